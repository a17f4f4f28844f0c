//! Whether the figures of a run agree with each other, and whether the run was stationary.

use units::{Nanos, plural};

use super::{Evidence, degraded};
use record::document::{Finding, LoadOrder, Model, State, VerdictWord};
use record::{Check, Durations, Outcome, Phase, Second};

/// The tolerance, as a share of the time that requests were outstanding; runs are compared with the same margin.
const LITTLE_PER_MILLE: u128 = 20;

/// Timestamps of each request can be moved by this much without being wrong.
const STAMP_SLACK: Nanos = Nanos::from_micros(1);

/// The phases from handing the request to the kernel to its end.
const ON_THE_WAY: [Phase; 4] = [Phase::Send, Phase::Wait, Phase::Receive, Phase::ClientLag];

/// Little's law: the mean number of requests in flight is their rate times their mean time. The left side is
/// integrated from a counter, the right side is the sum of the times recorded for each request. Both use the same
/// moments, so this checks the accounting: a request that was lost or counted twice is on one side only. A timestamp
/// that is wrong in itself is on both sides, and is not found.
pub(super) fn littles_law(evidence: &Evidence<'_>) -> Option<Finding> {
    if matches!(evidence.state, State::Running | State::Recovered) {
        return None;
    }
    // If it is absent in one second, the sum is incomplete. The sum also includes what could not be written.
    let is_whole = evidence.seconds.iter().all(|second| second.outstanding_ns.is_some());
    let counted = evidence.total.outstanding_time.filter(|_| is_whole)?;
    let total = evidence.total;
    let stamped: u128 =
        ON_THE_WAY.into_iter().filter_map(|phase| total.phase(phase)).map(Durations::sum_ns).sum();
    // For failed requests only the age is known, any part of which they may have been in flight.
    let failed = Outcome::ALL.into_iter().filter(|&outcome| outcome != Outcome::Ok);
    let ages: u128 = failed.filter_map(|outcome| total.failed(outcome)).map(Durations::sum_ns).sum();
    let slack = u128::from(total.ended()) * u128::from(STAMP_SLACK.0);
    let allowed = (stamped * LITTLE_PER_MILLE / 1_000).max(slack);
    let holds = counted + allowed >= stamped && counted <= stamped + ages + allowed;
    (!holds).then(|| {
        let length: u128 = evidence.seconds.iter().map(|second| u128::from(second.length_ns)).sum();
        let mean = |time: u128| time as f64 / length.max(1) as f64;
        degraded(
            Check::LittlesLaw,
            format!(
                "{:.3} requests were in flight on average, but the recorded times add up to {:.3}",
                mean(counted),
                mean(stamped)
            ),
            format!("2 %, or {STAMP_SLACK} per request"),
            "requests were lost or counted twice, which is a bug in Parallax: report it and attach the results directory",
        )
    })
}

/// From this number on the Mann-Kendall statistic is approximately normal (Kendall 1975), with an error on the safe
/// side: of all orders of eight seconds, 0.55 % exceed the limit of 1 % below. A run of 9 s has eight, without its
/// first.
const FEWEST_SECONDS: usize = 8;

/// Twice the margins by which runs are compared, 5 % for the median and 2 % for throughput: halves that differ by
/// this move the run's mean by one margin.
const RESPONSE_DRIFT: f64 = 0.10;
const THROUGHPUT_DRIFT: f64 = 0.04;

/// Two-sided, 1 %.
const TREND_Z: f64 = 2.576;

/// Two-sided, 1 %, with 6 degrees of freedom: two halves of four seconds, the minimum. More seconds would allow less.
const APART_T: f64 = 3.707;

/// A run that keeps changing has no single result. A finding needs both: the halves differ by more than matters, and
/// the seconds show a trend that is not chance. Either alone can be noise.
pub(super) fn drift(evidence: &Evidence<'_>) -> Option<Finding> {
    let seconds: Vec<&Second> = within_window(evidence).collect();
    if seconds.len() < FEWEST_SECONDS || is_load_meant_to_change(evidence, &seconds) {
        return None;
    }
    let medians: Vec<f64> =
        seconds.iter().filter_map(|second| Some(second.response_ns?.p50 as f64)).collect();
    let response = Drift::of(&medians).filter(|drift| drift.is_over(RESPONSE_DRIFT));
    let answered: Vec<f64> = seconds.iter().map(|second| second.ok as f64).collect();
    // In an open loop the schedule determines the throughput.
    let throughput = Drift::of(&answered)
        .filter(|drift| evidence.model == Model::Closed && drift.is_over(THROUGHPUT_DRIFT));
    let (what, drift, limit) = match (response, throughput) {
        (_, Some(drift)) => ("throughput", drift, "4 %"),
        (Some(drift), None) => ("the median response time", drift, "10 %"),
        (None, None) => return None,
    };
    let measured = match drift.stopped() {
        Some(half) => {
            format!(
                "the {half} half of the run had no ok response in most of its seconds, the other half had some"
            )
        }
        None => format!(
            "{what} was {:.1} % {} in the second half of the run than in the first, with a steady trend",
            (drift.ratio - 1.0).abs() * 100.0,
            if drift.ratio < 1.0 { "lower" } else { "higher" }
        ),
    };
    Some(degraded(
        Check::Drift,
        measured,
        format!("{limit}, with a trend that is significant at 1 %"),
        "the run was not in a steady state: warm the server up, run longer, and look at the figures per second",
    ))
}

pub(super) fn no_drift(evidence: &Evidence<'_>) -> Option<String> {
    let seconds: Vec<&Second> = within_window(evidence).collect();
    let changes =
        || is_load_meant_to_change(evidence, &seconds).then(|| "the load was meant to change".to_owned());
    too_few(seconds.len(), full_seconds).or_else(changes)
}

pub(super) fn no_independence(evidence: &Evidence<'_>) -> Option<String> {
    let all = within_window(evidence).count();
    let answered = within_window(evidence).filter(|second| second.ok > 0).count();
    too_few(all, full_seconds)
        .or_else(|| too_few(answered, |count| format!("responses in {}", plural(count, "second"))))
}

/// A short reason: it is part of the first line of a report.
fn too_few(seconds: usize, in_words: impl Fn(u64) -> String) -> Option<String> {
    (seconds < FEWEST_SECONDS).then(|| format!("{}, needs {FEWEST_SECONDS}", in_words(seconds as u64)))
}

fn full_seconds(count: u64) -> String {
    plural(count, "full second")
}

/// Whether the seconds are expected to differ: in an open loop whose schedule is not steady, or after a manual change.
fn is_load_meant_to_change(evidence: &Evidence<'_>, seconds: &[&Second]) -> bool {
    let scheduled: Vec<f64> = seconds.iter().map(|second| second.scheduled as f64).collect();
    let by_hand = evidence.changes.iter().any(|change| change.change != LoadOrder::Ended);
    by_hand
        || evidence.model == Model::Open
            && Drift::of(&scheduled).is_some_and(|drift| drift.is_large(THROUGHPUT_DRIFT))
}

/// Full seconds of the window except the first, in which connections are opened.
fn within_window<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = &'a Second> {
    let end = evidence.window.0;
    let within = move |second: &&Second| second.start_ns.saturating_add(second.length_ns) <= end;
    evidence.full_seconds().filter(within).skip(1)
}

/// How a per-second figure changed over a run.
struct Drift {
    /// The median of the second half divided by that of the first: 0 if responses stopped, infinite if they began.
    ratio: f64,
    /// The Mann-Kendall statistic: how many more pairs of seconds rise than fall, in standard deviations.
    trend: f64,
    /// Student's t statistic of the two halves' means.
    apart: f64,
}

impl Drift {
    fn of(values: &[f64]) -> Option<Drift> {
        let n = values.len();
        if n < FEWEST_SECONDS {
            return None;
        }
        let (first, second) = (&values[..n / 2], &values[n.div_ceil(2)..]);
        let (before, after) = (median(first), median(second));
        if before == 0.0 && after == 0.0 {
            return None;
        }
        let sign =
            |i: usize, j: usize| f64::from(i8::from(values[j] > values[i]) - i8::from(values[j] < values[i]));
        let rises: f64 = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).map(|(i, j)| sign(i, j)).sum();
        let n = n as f64;
        let spread = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        let trend = (rises.abs() - 1.0).max(0.0) / spread;
        Some(Drift { ratio: after / before, trend, apart: apart(first, second) })
    }

    fn is_large(&self, limit: f64) -> bool {
        self.ratio.ln().abs() > limit.ln_1p()
    }

    fn is_over(&self, limit: f64) -> bool {
        // With few seconds, ranks cannot show a step in the middle, and a half without any responses needs no trend.
        let is_no_chance = self.trend > TREND_Z || (self.stopped().is_some() && self.apart > APART_T);
        self.is_large(limit) && is_no_chance
    }

    /// The half whose median second has a figure of 0.
    fn stopped(&self) -> Option<&'static str> {
        match self.ratio {
            0.0 => Some("second"),
            f64::INFINITY => Some("first"),
            _ => None,
        }
    }
}

/// The median; for an even number of values, the upper of the two middle ones.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The difference of the means of two samples of the same size, in standard errors from the spread within each.
fn apart(one: &[f64], other: &[f64]) -> f64 {
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let squares = |part: &[f64]| part.iter().map(|value| (value - mean(part)).powi(2)).sum::<f64>();
    let n = one.len() as f64;
    let error = ((squares(one) + squares(other)) / (n * (n - 1.0))).sqrt();
    // If neither half varies, any difference is more than chance.
    let difference = (mean(one) - mean(other)).abs();
    if difference > 0.0 { difference / error } else { 0.0 }
}

/// The quantiles that are printed, and how many independent requests a finite 95 % interval of each needs.
const NEEDED: [(&str, u64); 5] =
    [("p50", 6), ("p95", 72), ("p99", 368), ("p99.9", 3_688), ("p99.99", 36_887)];

/// Neighboring requests are alike, so a million of them may be worth only a thousand independent ones. This is a note,
/// not a reason to doubt the measurement: it states how much other runs may differ.
pub(super) fn independence(evidence: &Evidence<'_>) -> Option<Finding> {
    let effective = effective_size(evidence)?;
    let n = evidence.total.counts.ok;
    let starved: Vec<(&str, u64)> =
        NEEDED.into_iter().filter(|(_, needed)| (*needed <= n) && (*needed as f64) > effective).collect();
    if starved.is_empty() {
        return None;
    }
    Some(Finding {
        check: Check::Independence,
        makes: VerdictWord::Valid,
        measured: format!(
            "these {n} requests are worth only {effective:.0} independent samples, because response times differ \
             from second to second: the {} too narrow",
            interval_of(&starved)
        ),
        limit: needed_of(&starved),
        advice:
            "the figures are correct, but another run can differ by more than the intervals say: run longer, or \
                 several times"
                .to_owned(),
    })
}

/// `p99 confidence interval is`, or `p95 and p99 confidence intervals are`.
fn interval_of(starved: &[(&str, u64)]) -> String {
    let names: Vec<&str> = starved.iter().map(|(name, _)| *name).collect();
    match names.as_slice() {
        [only] => format!("{only} confidence interval is"),
        [first @ .., last] => format!("{} and {last} confidence intervals are", first.join(", ")),
        [] => String::new(),
    }
}

/// `368 for p99`.
fn needed_of(starved: &[(&str, u64)]) -> String {
    let each: Vec<String> = starved.iter().map(|(name, needed)| format!("{needed} for {name}")).collect();
    each.join(", ")
}

/// Batch means: if the requests were independent, the mean of a second of b requests would vary by 1/b of the variance
/// of one. It varies by τ/b of it, and n requests are worth n/τ.
fn effective_size(evidence: &Evidence<'_>) -> Option<f64> {
    let batches: Vec<(f64, f64)> = within_window(evidence)
        .filter(|second| second.ok > 0)
        .map(|second| {
            let sum = second.sums_ns.get("response").copied().unwrap_or(0);
            (second.ok as f64, sum as f64 / second.ok as f64)
        })
        .collect();
    if batches.len() < FEWEST_SECONDS {
        return None;
    }
    let requests: f64 = batches.iter().map(|(ok, _)| ok).sum();
    let mean = batches.iter().map(|(ok, mean)| ok * mean).sum::<f64>() / requests;
    // Weighted, so that a second with few requests counts less than one with many.
    let between = batches.iter().map(|(ok, batch)| ok * (batch - mean).powi(2)).sum::<f64>();
    let between = between / (batches.len() as f64 - 1.0);
    let one = evidence.total.response()?.histogram().stdev().powi(2);
    (one > 0.0).then(|| evidence.total.counts.ok as f64 / (between / one).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `code`-th order of `n` seconds of different figures.
    fn order(n: usize, mut code: usize) -> Vec<f64> {
        let mut left: Vec<usize> = (1..=n).collect();
        let mut values = Vec::new();
        for of in (1..=n).rev() {
            values.push(left.remove(code % of) as f64);
            code /= of;
        }
        values
    }

    /// If this fails, a trend is reported for so few seconds more often than the limit allows.
    #[test]
    fn chance_makes_a_trend_of_the_fewest_seconds_in_less_than_1_of_100() {
        let all: usize = (1..=FEWEST_SECONDS).product();
        let trends = (0..all).filter(|&code| {
            let values = order(FEWEST_SECONDS, code);
            Drift::of(&values).expect("as many as are needed").trend > TREND_Z
        });
        assert_eq!(trends.count(), 222);
        assert!(222 * 100 < all, "0.55 % of {all}");
    }
}
