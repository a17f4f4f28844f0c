//! Whether the figures of a run hang together, and whether the run was one thing from its begin to its end.

use units::Nanos;

use super::{Evidence, degraded};
use crate::check::Check;
use crate::document::{Finding, LoadOrder, Model, State, VerdictWord};
use crate::durations::Durations;
use crate::outcome::Outcome;
use crate::phase::Phase;
use crate::series::Second;

/// The margin by which runs are compared, of the time that requests were outstanding.
const LITTLE_PER_MILLE: u128 = 20;

/// Stamps may be moved by as much a request without meaning anything.
const STAMP_SLACK: Nanos = Nanos::from_micros(1);

/// From the offer to the kernel to the end.
const ON_THE_WAY: [Phase; 4] = [Phase::Send, Phase::Wait, Phase::Receive, Phase::ClientLag];

/// Little's law: the mean number of requests on their way is their rate times their mean time. The left side is
/// integrated from a counter, the right side is the sum of what each request was booked with. Both rest on the same
/// instants, so this is a check of the books: a request that was lost or booked twice is on one side only. A stamp
/// that is wrong in itself is on both, and is not found.
pub(super) fn littles_law(evidence: &Evidence<'_>) -> Option<Finding> {
    if matches!(evidence.state, State::Running | State::Recovered) {
        return None;
    }
    // Absent in one second is absent of the sum. The sum itself also has what could not be written to the folder.
    let is_whole = evidence.seconds.iter().all(|second| second.outstanding_ns.is_some());
    let counted = evidence.total.outstanding_time.filter(|_| is_whole)?;
    let total = evidence.total;
    let stamped: u128 =
        ON_THE_WAY.into_iter().filter_map(|phase| total.phase(phase)).map(Durations::sum_ns).sum();
    // Of what failed, only the age is kept, and any part of it may have been spent on the way.
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
                "{:.3} requests were on their way in the mean, and those that were booked make {:.3}",
                mean(counted),
                mean(stamped)
            ),
            format!("2 %, or {STAMP_SLACK} a request"),
            "requests were lost or booked twice, a defect of this program: report it, with the run folder",
        )
    })
}

/// From here on Mann and Kendall's statistic may be taken as normal (Kendall 1975), which errs to the safe side: of
/// eight seconds in any order alike, 0.55 % pass the limit of 1 % below. A run of 9 s has as many, without its first.
const FEWEST_SECONDS: usize = 8;

/// Twice the margins by which runs are compared, 5 % for the median and 2 % for throughput: halves that differ by
/// this move the run's mean by one margin.
const RESPONSE_DRIFT: f64 = 0.10;
const THROUGHPUT_DRIFT: f64 = 0.04;

/// Two-sided, 1 %.
const TREND_Z: f64 = 2.576;

/// Two-sided, 1 %, with 6 degrees of freedom: those of two halves of four seconds, the fewest. More would allow less.
const APART_T: f64 = 3.707;

/// A run that changes all the while has no one result. Both must hold: the halves differ by more than matters, and
/// the seconds show a trend that chance does not make. Either alone is noise.
pub(super) fn drift(evidence: &Evidence<'_>) -> Option<Finding> {
    let seconds: Vec<&Second> = within_window(evidence).collect();
    if seconds.len() < FEWEST_SECONDS || is_load_meant_to_change(evidence, &seconds) {
        return None;
    }
    let medians: Vec<f64> =
        seconds.iter().filter_map(|second| Some(second.response_ns?.p50 as f64)).collect();
    let response = Drift::of(&medians).filter(|drift| drift.is_over(RESPONSE_DRIFT));
    let answered: Vec<f64> = seconds.iter().map(|second| second.ok as f64).collect();
    // An open loop's throughput is its schedule's.
    let throughput = Drift::of(&answered)
        .filter(|drift| evidence.model == Model::Closed && drift.is_over(THROUGHPUT_DRIFT));
    let (what, drift, limit) = match (response, throughput) {
        (_, Some(drift)) => ("throughput", drift, "4 %"),
        (Some(drift), None) => ("the median response", drift, "10 %"),
        (None, None) => return None,
    };
    let measured = match drift.stopped() {
        Some(half) => {
            format!("the {half} half of the run had no ok answer in most of its seconds, the other had")
        }
        None => format!(
            "{what} of the second half of the run differed by {:+.1} % from the first's, with a steady trend",
            (drift.ratio - 1.0) * 100.0
        ),
    };
    Some(degraded(
        Check::Drift,
        measured,
        format!("{limit}, and a difference that chance makes in 1 of 100 runs"),
        "the run had not settled, or something grew all the while: warm the server up, run longer, and look at \
         the seconds",
    ))
}

pub(super) fn no_drift(evidence: &Evidence<'_>) -> Option<String> {
    let seconds: Vec<&Second> = within_window(evidence).collect();
    let changes = || is_load_meant_to_change(evidence, &seconds).then(|| "the load was to change".to_owned());
    too_few(seconds.len(), "full seconds").or_else(changes)
}

pub(super) fn no_independence(evidence: &Evidence<'_>) -> Option<String> {
    let all = within_window(evidence).count();
    let answered = within_window(evidence).filter(|second| second.ok > 0).count();
    too_few(all, "full seconds").or_else(|| too_few(answered, "seconds with answers"))
}

/// A reason in few words: it stands in the first line of a report.
fn too_few(seconds: usize, what: &str) -> Option<String> {
    (seconds < FEWEST_SECONDS).then(|| format!("{seconds} of {FEWEST_SECONDS} {what}"))
}

/// In an open loop with a schedule that is itself not steady, or where the load was changed by hand, the seconds are
/// not to be alike.
fn is_load_meant_to_change(evidence: &Evidence<'_>, seconds: &[&Second]) -> bool {
    let scheduled: Vec<f64> = seconds.iter().map(|second| second.scheduled as f64).collect();
    let by_hand = evidence.changes.iter().any(|change| change.change != LoadOrder::Ended);
    by_hand
        || evidence.model == Model::Open
            && Drift::of(&scheduled).is_some_and(|drift| drift.is_large(THROUGHPUT_DRIFT))
}

/// Full seconds of the window but the first, in which connections are opened.
fn within_window<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = &'a Second> {
    let end = evidence.window.0;
    let within = move |second: &&Second| second.start_ns.saturating_add(second.length_ns) <= end;
    evidence.full_seconds().filter(within).skip(1)
}

/// How one figure a second moved over a run.
struct Drift {
    /// The median of the second half over that of the first: 0 where it stopped, infinite where it began.
    ratio: f64,
    /// Mann and Kendall's statistic: how many pairs of seconds rise more than fall, in standard deviations.
    trend: f64,
    /// Student's statistic of the two halves' means.
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
        // A step in the middle has no trend that ranks could show in few seconds, and a half of nothing needs none.
        let is_no_chance = self.trend > TREND_Z || (self.stopped().is_some() && self.apart > APART_T);
        self.is_large(limit) && is_no_chance
    }

    /// The half whose median second had nothing.
    fn stopped(&self) -> Option<&'static str> {
        match self.ratio {
            0.0 => Some("second"),
            f64::INFINITY => Some("first"),
            _ => None,
        }
    }
}

/// The upper of the two middle ones.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// By how many standard errors, from the spread within each, the means of two samples of one length differ.
fn apart(one: &[f64], other: &[f64]) -> f64 {
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let squares = |part: &[f64]| part.iter().map(|value| (value - mean(part)).powi(2)).sum::<f64>();
    let n = one.len() as f64;
    let error = ((squares(one) + squares(other)) / (n * (n - 1.0))).sqrt();
    // Where neither spreads, any difference is beyond chance, and none is none.
    let difference = (mean(one) - mean(other)).abs();
    if difference > 0.0 { difference / error } else { 0.0 }
}

/// The quantiles that are printed, and how many independent requests a finite 95 % interval of each needs.
const NEEDED: [(&str, u64); 5] =
    [("p50", 6), ("p95", 72), ("p99", 368), ("p99.9", 3_688), ("p99.99", 36_887)];

/// Neighbouring requests resemble each other, so a million may tell no more than a thousand independent ones. A
/// note, and no reason to doubt what was measured: it says how far the run can stand for others.
pub(super) fn independence(evidence: &Evidence<'_>) -> Option<Finding> {
    let effective = effective_size(evidence)?;
    let n = evidence.total.counts.ok;
    let starved: Vec<&str> = NEEDED
        .iter()
        .filter(|(_, needed)| (*needed <= n) && (*needed as f64) > effective)
        .map(|(name, _)| *name)
        .collect();
    let (first, last) = (starved.first()?, starved.last()?);
    let which = if first == last { (*first).to_owned() } else { format!("{first} to {last}") };
    Some(Finding {
        check: Check::Independence,
        makes: VerdictWord::Valid,
        measured: format!(
            "seconds differ so much that {n} requests say as much as {effective:.0} independent ones: too few for \
             the interval of {which}"
        ),
        limit: "6 for p50, 72 for p95, 368 for p99, 3688 for p99.9, 36887 for p99.99".to_owned(),
        advice:
            "what was measured stands, but another run may differ by more than those intervals: run longer, \
                 or several times"
                .to_owned(),
    })
}

/// Batch means: were the requests independent, the mean of a second of b requests would vary by 1/b of the variance
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
    // Weighted, so that a second of few requests does not count as much as one of many.
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

    /// If this fails, so few seconds are called a trend more often than the limit says.
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
