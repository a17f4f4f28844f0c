//! Parses conditions. An error names the part that is wrong and, if a typo is likely, what was probably meant.

use std::str::FromStr;

use record::Outcome;
use record::document::Quantity;
use thiserror::Error;
use units::{Nanos, Rate};

use super::metric::{self, Metric, Of, Statistic, Unit};
use super::part::Part;
use super::{Condition, Operator};

/// Why a text is not a condition. It does not repeat the text, which the caller adds.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConditionError {
    #[error(
        "`{text}` has no operator; write for example response.p99 > 50ms (--fail-if), response.p99 < 50ms (--search)"
    )]
    NoOperator { text: String },
    #[error("`{operator}` is no operator here; use >, >=, < or <=")]
    Operator { operator: String },
    #[error("there is no metric before `{operator}`; write for example response.p99 {operator} 50ms")]
    NoMetric { operator: &'static str },
    #[error("`{name}` is no metric; {hint}")]
    Metric { name: String, hint: String },
    #[error("`{name}` alone is no figure; write for example {name}.p99, {name}.mean or {name}.max")]
    NoStatistic { name: String },
    #[error("`{statistic}` is no statistic; {hint}")]
    Statistic { statistic: String, hint: String },
    #[error("`{name}` is no outcome; {hint}")]
    Outcome { name: String, hint: String },
    #[error("`{code}` is no code; write for example code.503")]
    Code { code: String },
    #[error(
        "`{prefix}.{name}` names no figure; write for example {prefix}.NAME.p99, {prefix}.NAME.failed or \
         {prefix}.NAME.error_share"
    )]
    Part { prefix: &'static str, name: String },
    #[error("`{name}` has no parts; write it without `.{rest}`")]
    NoParts { name: String, rest: String },
    #[error("there is no value after `{operator}`; write for example {example}")]
    NoValue { operator: &'static str, example: &'static str },
    #[error("`{value}` is no {what}; write for example {example}")]
    Value { value: String, what: &'static str, example: &'static str },
    #[error(transparent)]
    Unit(#[from] units::ParseError),
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '!');
        let begin = text.find(is_sign).ok_or_else(|| no_operator(text))?;
        let (name, rest) = text.split_at(begin);
        let end = rest.find(|c| !is_sign(c)).unwrap_or(rest.len());
        let (sign, value) = rest.split_at(end);
        let (name, value) = (name.trim(), value.trim());
        let operator = operator(sign)?;
        if name.is_empty() {
            return Err(ConditionError::NoMetric { operator: operator.sign() });
        }
        let (part, metric) = match Part::parse(name) {
            Some(of_part) => of_part.map(|(part, metric)| (Some(part), metric))?,
            None => (None, metric_of(name)?),
        };
        let limit = limit(metric.unit(), operator, value)?;
        Ok(Condition { part, metric, operator, limit, text: format!("{name} {sign} {value}") })
    }
}

fn no_operator(text: &str) -> ConditionError {
    ConditionError::NoOperator { text: text.trim().to_owned() }
}

fn operator(sign: &str) -> Result<Operator, ConditionError> {
    let all = [Operator::Above, Operator::AtLeast, Operator::Below, Operator::AtMost];
    let found = all.into_iter().find(|operator| operator.sign() == sign);
    found.ok_or_else(|| ConditionError::Operator { operator: sign.to_owned() })
}

fn metric_of(name: &str) -> Result<Metric, ConditionError> {
    // `p99` alone means that of the response time.
    if let Ok(statistic) = statistic(name) {
        return Ok(Metric::Time(Of::Response, statistic));
    }
    let (head, rest) = name.split_once('.').map_or((name, None), |(head, rest)| (head, Some(rest)));
    if let Some(of) = metric::timed(head) {
        let rest = rest.ok_or_else(|| ConditionError::NoStatistic { name: head.to_owned() })?;
        return Ok(Metric::Time(of, statistic(rest)?));
    }
    match (head, rest) {
        ("outcome", Some(rest)) => outcome(rest).map(Metric::Outcome),
        ("outcome", None) => Err(ConditionError::Outcome {
            name: head.to_owned(),
            hint: "name one, as in outcome.reset".to_owned(),
        }),
        ("code", rest) => {
            let code = rest.unwrap_or("");
            code.parse().map(Metric::Code).map_err(|_| ConditionError::Code { code: name.to_owned() })
        }
        (head, rest) => match (metric::plain(head), rest) {
            (Some(metric), None) => Ok(metric),
            (Some(_), Some(rest)) => {
                Err(ConditionError::NoParts { name: head.to_owned(), rest: rest.to_owned() })
            }
            (None, _) => Err(unknown_metric(name, head)),
        },
    }
}

fn unknown_metric(name: &str, head: &str) -> ConditionError {
    // `p999` and `latency` are known from other tools.
    if let Some(hint) = percentile_hint(name) {
        return ConditionError::Statistic { statistic: name.to_owned(), hint };
    }
    let hint = if head.contains("latency") || head == "http_req_duration" {
        "which one: response (from the intended start) or service (from the first byte sent)?".to_owned()
    } else if head.contains("error") {
        "did you mean `error_share`?".to_owned()
    } else if Outcome::from_name(head).is_some() {
        format!("did you mean `outcome.{head}`?")
    } else {
        nearest(head, metric::heads()).map_or_else(
            || "there are response, service, each phase, throughput, sent_rate, error_share, outcome.NAME, code.N, \
                request.NAME.p99, journey.NAME.p99, scheduled, sent, ok, failed"
                .to_owned(),
            |name| format!("did you mean `{name}`?"),
        )
    };
    ConditionError::Metric { name: head.to_owned(), hint }
}

pub(super) fn statistic(text: &str) -> Result<Statistic, ConditionError> {
    match text {
        "mean" => return Ok(Statistic::Mean),
        "max" => return Ok(Statistic::Max),
        _ => {}
    }
    let known = text.strip_prefix('p').and_then(quantile).map(Statistic::Quantile);
    known.ok_or_else(|| {
        let hint = percentile_hint(text).unwrap_or_else(|| match text {
            "avg" | "average" => "did you mean `mean`?".to_owned(),
            "med" | "median" => "did you mean `p50`?".to_owned(),
            "maximum" => "did you mean `max`?".to_owned(),
            _ => "write p50, p99, p99.9 or any other percentile, mean or max".to_owned(),
        });
        ConditionError::Statistic { statistic: text.to_owned(), hint }
    })
}

/// `99.9` to 0.999, exactly the double nearest to that number.
fn quantile(percent: &str) -> Option<f64> {
    let (whole, fraction) = percent.split_once('.').unwrap_or((percent, "0"));
    let digits = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !digits(whole, 2) || !digits(fraction, 6) {
        return None;
    }
    let q: f64 = format!("0.{whole:0>2}{fraction}").parse().ok()?;
    (q > 0.0).then_some(q)
}

/// `p999` and `p9999` are p99.9 and p99.99 in some tools.
fn percentile_hint(text: &str) -> Option<String> {
    let digits = text.strip_prefix('p').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    match digits.len() {
        3..=8 if digits != "100" => Some(format!("did you mean `p{}.{}`?", &digits[..2], &digits[2..])),
        3 => Some("did you mean `max`?".to_owned()),
        _ => None,
    }
}

fn outcome(name: &str) -> Result<Outcome, ConditionError> {
    Outcome::from_name(name).ok_or_else(|| {
        let names = || Outcome::ALL.into_iter().map(Outcome::name);
        let hint = nearest(name, names()).map_or_else(
            || format!("there are {}", names().collect::<Vec<_>>().join(", ")),
            |name| format!("did you mean `{name}`?"),
        );
        ConditionError::Outcome { name: name.to_owned(), hint }
    })
}

fn limit(unit: Unit, operator: Operator, value: &str) -> Result<Quantity, ConditionError> {
    let example = match unit {
        Unit::Time => "50ms",
        Unit::Rate => "500/s",
        Unit::Share => "1%",
        Unit::Count => "1000",
        Unit::ShareOrCount => "0, or 1% of what was scheduled",
    };
    if value.is_empty() {
        return Err(ConditionError::NoValue { operator: operator.sign(), example });
    }
    let wrong = |what| ConditionError::Value { value: value.to_owned(), what, example };
    match unit {
        Unit::Time => Ok(Quantity::Ns(value.parse::<Nanos>()?.0)),
        Unit::Rate if is_zero_rate(value) => Ok(Quantity::PerS(0.0)),
        Unit::Rate => Ok(Quantity::PerS(value.parse::<Rate>()?.as_per_second_f64())),
        Unit::Share => share(value).ok_or_else(|| wrong("share from 0% to 100%")),
        Unit::ShareOrCount if value.ends_with('%') => {
            share(value).ok_or_else(|| wrong("share from 0% to 100%"))
        }
        Unit::Count | Unit::ShareOrCount if value.ends_with('%') => Err(wrong("count")),
        Unit::Count | Unit::ShareOrCount => Ok(Quantity::Count(units::parse_count(value)?)),
    }
}

/// A [`Rate`] is never zero, but a limit may be.
fn is_zero_rate(value: &str) -> bool {
    matches!(value, "0" | "0/s")
}

fn share(value: &str) -> Option<Quantity> {
    let percent = value.strip_suffix('%')?.trim();
    let is_decimal = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let percent: f64 = percent.parse().ok().filter(|_| is_decimal)?;
    (percent <= 100.0).then_some(Quantity::Share(percent / 100.0))
}

/// The most similar name, if it is similar enough.
pub(crate) fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Up to a third of the letters may differ; beyond that it is another word. A long text is not a mistyped name.
    if text.len() > 40 {
        return None;
    }
    let near = names.map(|name| (distance(text, name), name));
    let (distance, name) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.len() / 3).max(1)).then_some(name)
}

/// The number of letters to insert, delete, change or swap with a neighbor.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}
