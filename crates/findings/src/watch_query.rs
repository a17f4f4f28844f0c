//! Which rows of a watch's tables are shown, and in which order: `--top`, `--sort`, `--where`, `--bucket`.

use std::fmt;
use std::str::FromStr;

use record::document::QuantileValue;
use record::observation::watch::{Digest, RowCounts, Times};
use units::{Nanos, Rate};

use crate::condition::{Operator, nearest};

/// The options of a report of `watch`.
#[derive(Debug, Clone, Default)]
pub struct WatchQuery {
    /// The most rows of a table.
    pub top: Option<usize>,
    pub sort: SortBy,
    /// Which statements and routes are shown; `None` shows all.
    pub condition: Option<Where>,
    /// Also show a histogram with bins of this width.
    pub bucket: Option<Nanos>,
}

/// Rows of a table unless `--top` says otherwise.
const TOP: usize = 10;

impl WatchQuery {
    /// The most rows of a table.
    pub(crate) fn top(&self) -> usize {
        self.top.unwrap_or(TOP)
    }
}

units::named_enum! {
    /// The order of statements and routes, the greatest first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum SortBy {
        /// Summed time at the server.
        #[default]
        Total = "total",
        Count = "count",
        Mean = "mean",
        P99 = "p99",
        Max = "max",
        /// Rows of result sets.
        Rows = "rows",
    }
}

impl SortBy {
    /// What the order is by, in a title.
    pub(crate) fn words(self) -> &'static str {
        match self {
            SortBy::Total => "total time",
            SortBy::Count => "count",
            SortBy::Mean => "mean time",
            SortBy::P99 => "p99",
            SortBy::Max => "longest time",
            SortBy::Rows => "rows sent",
        }
    }
}

impl FromStr for SortBy {
    type Err = String;

    fn from_str(text: &str) -> Result<SortBy, String> {
        SortBy::from_name(text).ok_or_else(|| {
            let names: Vec<&str> = SortBy::ALL.into_iter().map(SortBy::name).collect();
            format!("there are {}", names.join(", "))
        })
    }
}

/// Sorts digests, the greatest first. Those whose sample is too small for the figure come last.
pub(crate) fn sort(digests: &mut [&Digest], by: SortBy) {
    let key = |digest: &Digest| match by {
        SortBy::Total => Some(digest.sum_ns),
        SortBy::Count => Some(digest.count),
        SortBy::Mean => digest.sum_ns.checked_div(digest.count),
        SortBy::P99 => digest.times.and_then(|times| known(times.p99)),
        SortBy::Max => digest.times.map(|times| times.max_ns),
        SortBy::Rows => digest.rows.map(|rows| rows.sent),
    };
    digests.sort_by_key(|digest| std::cmp::Reverse((key(digest), digest.sum_ns)));
}

/// A condition on a statement or route: comparisons joined by `and`.
#[derive(Debug, Clone, PartialEq)]
pub struct Where {
    terms: Vec<Term>,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    metric: Metric,
    operator: Operator,
    limit: f64,
}

units::named_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Metric {
        Count = "count",
        Rate = "rate",
        Total = "total",
        Share = "share",
        Mean = "mean",
        P50 = "p50",
        P95 = "p95",
        P99 = "p99",
        Max = "max",
        Rows = "rows",
        Affected = "affected",
    }
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Where {
    type Err = String;

    fn from_str(text: &str) -> Result<Where, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let terms = words.split(|word| word.eq_ignore_ascii_case("and")).map(|term| term.join(" ").parse());
        Ok(Where { terms: terms.collect::<Result<_, _>>()?, text: words.join(" ") })
    }
}

impl FromStr for Term {
    type Err = String;

    fn from_str(text: &str) -> Result<Term, String> {
        let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '!');
        let Some(begin) = text.find(is_sign) else {
            return Err(format!("`{text}` has no operator; {EXAMPLE}"));
        };
        let (name, rest) = text.split_at(begin);
        let (sign, value) = rest.split_at(rest.find(|c| !is_sign(c)).unwrap_or(rest.len()));
        let (name, value) = (name.trim(), value.trim());
        let all = [Operator::Above, Operator::AtLeast, Operator::Below, Operator::AtMost];
        let operator = all.into_iter().find(|operator| operator.sign() == sign);
        let operator = operator.ok_or_else(|| format!("`{sign}` is no operator here; use >, >=, < or <="))?;
        let metric = Metric::from_name(name).ok_or_else(|| unknown(name))?;
        let limit = metric.limit(value)?;
        Ok(Term { metric, operator, limit })
    }
}

const EXAMPLE: &str = "write for example 'p99 > 5ms and count > 100'";

fn unknown(name: &str) -> String {
    let names = || Metric::ALL.into_iter().map(Metric::name);
    if name.is_empty() {
        return format!("there is no metric before the operator; {EXAMPLE}");
    }
    match nearest(name, names()) {
        Some(near) => format!("`{name}` is no metric; did you mean `{near}`?"),
        None => format!("`{name}` is no metric; there are {}", names().collect::<Vec<_>>().join(", ")),
    }
}

impl Metric {
    fn limit(self, value: &str) -> Result<f64, String> {
        let name = self.name();
        let needs = |example: &str| format!("`{name}` needs a value such as {example}, not `{value}`");
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        match self {
            Metric::Total | Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 | Metric::Max => {
                let time = value.parse::<Nanos>().map_err(|_| needs("5ms"))?;
                Ok(time.0 as f64)
            }
            Metric::Rate => value.parse::<Rate>().map(Rate::as_per_second_f64).map_err(|_| needs("100/s")),
            Metric::Share => {
                let percent = value.strip_suffix('%').and_then(|text| number(text.trim()));
                percent.map(|percent| percent / 100.0).ok_or_else(|| needs("10%"))
            }
            Metric::Count => units::parse_count(value).map(|n| n as f64).map_err(|_| needs("100")),
            Metric::Rows | Metric::Affected => number(value).ok_or_else(|| needs("100")),
        }
    }
}

/// The requests that a digest's figures are relative to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    pub(crate) sum_ns: u64,
    pub(crate) elapsed: Nanos,
}

impl Where {
    /// Whether a digest meets all comparisons. One whose sample is too small for a figure does not meet a comparison
    /// of that figure.
    pub(crate) fn is_met(&self, digest: &Digest, whole: &Whole) -> bool {
        self.terms.iter().all(|term| {
            let figure = figure(term.metric, digest, whole);
            figure.is_some_and(|figure| match term.operator {
                Operator::Above => figure > term.limit,
                Operator::AtLeast => figure >= term.limit,
                Operator::Below => figure < term.limit,
                Operator::AtMost => figure <= term.limit,
            })
        })
    }
}

fn figure(metric: Metric, digest: &Digest, whole: &Whole) -> Option<f64> {
    let quantile = |of: fn(&Times) -> QuantileValue| digest.times.as_ref().and_then(|times| known(of(times)));
    let per_request = |of: fn(&RowCounts) -> u64| digest.rows.and_then(|rows| rows_each(&rows, of(&rows)));
    match metric {
        Metric::Count => Some(digest.count as f64),
        Metric::Rate => Some(digest.count as f64 * 1e9 / whole.elapsed.0.max(1) as f64),
        Metric::Total => Some(digest.sum_ns as f64),
        Metric::Share => Some(digest.sum_ns as f64 / whole.sum_ns.max(1) as f64),
        Metric::Mean => Some(digest.sum_ns as f64 / digest.count.max(1) as f64),
        Metric::P50 => quantile(|times| times.p50).map(|ns| ns as f64),
        Metric::P95 => quantile(|times| times.p95).map(|ns| ns as f64),
        Metric::P99 => quantile(|times| times.p99).map(|ns| ns as f64),
        Metric::Max => digest.times.map(|times| times.max_ns as f64),
        Metric::Rows => per_request(|rows| rows.sent),
        Metric::Affected => per_request(|rows| rows.affected),
    }
}

/// Rows per request, of the requests whose rows are known.
pub(crate) fn rows_each(rows: &RowCounts, of: u64) -> Option<f64> {
    (rows.requests > 0).then(|| of as f64 / rows.requests as f64)
}

fn known(value: QuantileValue) -> Option<u64> {
    match value {
        QuantileValue::Known { ns, .. } => Some(ns),
        QuantileValue::Above { .. } | QuantileValue::TooFew { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use record::Protocol;

    use super::*;

    fn digest(count: u64, sum_ns: u64, p99: Option<u64>) -> Digest {
        let value = |ns: Option<u64>| match ns {
            Some(ns) => QuantileValue::Known { ns, low_ns: ns, high_ns: Some(ns) },
            None => QuantileValue::TooFew { needed: 368 },
        };
        let times = Some(Times { p50: value(p99), p95: value(p99), p99: value(p99), max_ns: 9_000_000 });
        let rows = Some(RowCounts { requests: 2, sent: 30, affected: 0 });
        Digest { count, sum_ns, times, rows, ..Digest::named("select ?".to_owned(), Protocol::Mysql) }
    }

    #[track_caller]
    fn check(text: &str, expected: bool) {
        let condition: Where = text.parse().unwrap();
        let whole = Whole { sum_ns: 4_000_000, elapsed: Nanos::from_secs(2) };
        assert_eq!(condition.is_met(&digest(1_000, 2_000_000, Some(6_000_000)), &whole), expected, "{text}");
    }

    #[test]
    fn a_statement_is_compared_by_each_of_its_figures() {
        for text in [
            "p99 > 5ms",
            "p99>5ms and count>=1000",
            "p50 <= 6ms AND p95 >= 6ms",
            "rate >= 500/s",
            "share >= 50%",
            "mean < 2001ns",
            "total >= 2ms",
            "max > 8.9ms",
            "rows > 14.9",
            "affected <= 0",
        ] {
            check(text, true);
        }
        for text in ["p99 > 6ms", "p99 > 5ms and count > 1k", "share > 50%", "rows > 15"] {
            check(text, false);
        }
    }

    /// If this fails, a percentile of three requests is compared as if it were known.
    #[test]
    fn a_sample_that_is_too_small_meets_no_comparison() {
        let whole = Whole { sum_ns: 1, elapsed: Nanos(1) };
        for text in ["p99 > 1ns", "p99 < 1h"] {
            assert!(!text.parse::<Where>().unwrap().is_met(&digest(3, 1, None), &whole), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, message) in [
            ("", "`` has no operator; write for example 'p99 > 5ms and count > 100'"),
            ("p99", "`p99` has no operator; write for example 'p99 > 5ms and count > 100'"),
            ("p99 > 5ms and", "`` has no operator; write for example 'p99 > 5ms and count > 100'"),
            ("men > 5ms", "`men` is no metric; did you mean `mean`?"),
            ("p99 == 5ms", "`==` is no operator here; use >, >=, < or <="),
            ("p99 > 5", "`p99` needs a value such as 5ms, not `5`"),
            ("share > 10", "`share` needs a value such as 10%, not `10`"),
            (
                "> 5ms",
                "there is no metric before the operator; write for example 'p99 > 5ms and count > 100'",
            ),
        ] {
            assert_eq!(text.parse::<Where>().unwrap_err(), message, "{text}");
        }
        let all = "latency > 5ms".parse::<Where>().unwrap_err();
        assert!(all.starts_with("`latency` is no metric; there are count, rate, total"), "{all}");
        assert!("rows > nan".parse::<Where>().is_err());
    }

    #[test]
    fn statements_are_sorted_by_what_was_asked_for() {
        let (a, b, c) = (digest(1, 9, None), digest(5, 5, Some(7)), digest(3, 8, Some(4)));
        let order = |by| {
            let mut all = [&a, &b, &c];
            sort(&mut all, by);
            all.map(|digest| digest.count)
        };
        assert_eq!(order(SortBy::Total), [1, 3, 5]);
        assert_eq!(order(SortBy::Count), [5, 3, 1]);
        assert_eq!(order(SortBy::P99), [5, 3, 1]);
        assert_eq!(order(SortBy::Mean), [1, 3, 5]);
        assert_eq!("speed".parse::<SortBy>().unwrap_err(), "there are total, count, mean, p99, max, rows");
    }
}
