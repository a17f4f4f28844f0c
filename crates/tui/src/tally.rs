//! Durations by value, stored sparsely: added up over the run and over its last seconds for the live view.

use std::collections::{BTreeMap, VecDeque};

use record::{Durations, Interval, Outcome};
use stats::quantile_ranks;
use units::Nanos;

/// Number of seconds that count as recent.
pub const RECENT: usize = 10;

/// The values of one interval, to the three digits of its histogram, with their counts.
pub type Values = Vec<(u64, u64)>;

/// The values of a histogram with their counts; empty for `None`.
pub fn values(durations: Option<&Durations>) -> Values {
    let buckets = durations.into_iter().flat_map(|durations| durations.histogram().iter_recorded());
    buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect()
}

/// A quantile, as far as the sample carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Known(Nanos),
    /// It falls among requests that got no response.
    Above(Nanos),
    TooFew,
}

/// Counts by value, from which intervals can be subtracted again.
#[derive(Debug, Default)]
pub struct Tally {
    counts: BTreeMap<u64, u64>,
    total: u64,
}

impl Tally {
    /// Adds the values of one interval.
    pub fn add(&mut self, values: &Values) {
        for &(value, count) in values {
            *self.counts.entry(value).or_default() += count;
            self.total += count;
        }
    }

    fn take_away(&mut self, values: &Values) {
        for &(value, count) in values {
            if let Some(held) = self.counts.get_mut(&value) {
                *held = held.saturating_sub(count);
                if *held == 0 {
                    self.counts.remove(&value);
                }
                self.total = self.total.saturating_sub(count);
            }
        }
    }

    /// The largest value.
    pub fn max(&self) -> Option<Nanos> {
        self.counts.last_key_value().map(|(&value, _)| Nanos(value))
    }

    fn at_rank(&self, rank: u64) -> Option<Nanos> {
        let mut seen = 0;
        self.counts.iter().find_map(|(&value, &count)| {
            seen += count;
            (seen >= rank).then_some(Nanos(value))
        })
    }

    /// A quantile if all values are known.
    pub fn quantile(&self, q: f64) -> Shown {
        match quantile_ranks(self.total, q).and_then(|ranks| self.at_rank(ranks.estimate)) {
            Some(value) => Shown::Known(value),
            None => Shown::TooFew,
        }
    }
}

/// Response times, including requests without a response at their ages. As in the report, a quantile counts as known if
/// these add no more uncertainty than the sample has anyway.
#[derive(Debug, Default)]
pub struct Response {
    ok: Tally,
    at_least: Tally,
}

/// What one interval adds to a [`Response`].
#[derive(Debug, Default)]
pub struct ResponseValues {
    pub ok: Values,
    unanswered: Values,
}

impl ResponseValues {
    /// The response times of one interval, with the ages of unanswered requests.
    pub fn of(interval: &Interval) -> ResponseValues {
        let unanswered = Outcome::ALL.into_iter().filter(|outcome| outcome.is_unanswered());
        ResponseValues {
            ok: values(interval.response()),
            unanswered: unanswered.flat_map(|outcome| values(interval.failed(outcome))).collect(),
        }
    }
}

impl Response {
    /// Adds one interval.
    pub fn add(&mut self, values: &ResponseValues) {
        self.ok.add(&values.ok);
        self.at_least.add(&values.ok);
        self.at_least.add(&values.unanswered);
    }

    fn take_away(&mut self, values: &ResponseValues) {
        self.ok.take_away(&values.ok);
        self.at_least.take_away(&values.ok);
        self.at_least.take_away(&values.unanswered);
    }

    /// The quantile `q`, from 0 to 1, by the rule of the report.
    pub fn quantile(&self, q: f64) -> Shown {
        let Some(ranks) = quantile_ranks(self.at_least.total, q) else { return Shown::TooFew };
        let lower = |rank| self.at_least.at_rank(rank).unwrap_or(Nanos::ZERO);
        match self.ok.at_rank(ranks.estimate) {
            Some(upper) if upper <= lower(ranks.high) => Shown::Known(lower(ranks.estimate)),
            _ => Shown::Above(lower(ranks.estimate)),
        }
    }

    /// The longest response; a lower bound if an unanswered request is older.
    pub fn max(&self) -> Shown {
        match (self.ok.max(), self.at_least.max()) {
            (ok, Some(any)) if ok != Some(any) => Shown::Above(any),
            (Some(ok), _) => Shown::Known(ok),
            (None, _) => Shown::TooFew,
        }
    }
}

/// The response times of the last seconds.
#[derive(Debug, Default)]
pub struct RecentResponse {
    pub sum: Response,
    parts: VecDeque<ResponseValues>,
}

impl RecentResponse {
    /// Adds the newest interval and removes the one that is older than [`RECENT`] intervals.
    pub fn push(&mut self, values: ResponseValues) {
        if self.parts.len() == RECENT
            && let Some(oldest) = self.parts.pop_front()
        {
            self.sum.take_away(&oldest);
        }
        self.sum.add(&values);
        self.parts.push_back(values);
    }
}

/// One phase in the last seconds.
#[derive(Debug, Default)]
pub struct RecentPhase {
    pub tally: Tally,
    /// Exact sum of the intervals that are held.
    pub sum_ns: u128,
    parts: VecDeque<(Values, u128)>,
}

impl RecentPhase {
    /// Adds the newest interval and removes the one that is older than [`RECENT`] intervals.
    pub fn push(&mut self, durations: Option<&Durations>) {
        if self.parts.len() == RECENT
            && let Some((oldest, sum_ns)) = self.parts.pop_front()
        {
            self.tally.take_away(&oldest);
            self.sum_ns -= sum_ns;
        }
        let (values, sum_ns) = (values(durations), durations.map_or(0, Durations::sum_ns));
        self.tally.add(&values);
        self.sum_ns += sum_ns;
        self.parts.push_back((values, sum_ns));
    }
}

#[cfg(test)]
mod tests {
    use record::{Failure, Phase, Series};

    use super::*;

    fn interval(ok: u64, ms: u64, timeouts: u64) -> Interval {
        let mut interval = Interval::default();
        (0..ok).for_each(|_| interval.slot(Series::Response).record(Nanos::from_millis(ms)));
        let failure = Failure::new(Outcome::RequestTimeout, Phase::Wait);
        (0..timeouts).for_each(|_| interval.record_failure(failure, Nanos::from_secs(1)));
        interval
    }

    fn near(shown: Shown, ms: u64) {
        let Shown::Known(value) = shown else { panic!("{shown:?}") };
        assert!(value.0.abs_diff(ms * 1_000_000) <= ms * 1_000, "{value} is not {ms} ms");
    }

    #[test]
    fn what_is_ten_seconds_old_no_longer_counts() {
        let mut recent = RecentResponse::default();
        (0..RECENT).for_each(|_| recent.push(ResponseValues::of(&interval(100, 900, 0))));
        near(recent.sum.quantile(0.5), 900);
        (0..RECENT).for_each(|_| recent.push(ResponseValues::of(&interval(100, 2, 0))));
        near(recent.sum.quantile(0.99), 2);
        assert_eq!(recent.sum.ok.total, 1_000);
    }

    /// If this fails, the live view shows a fast server while its requests time out.
    #[test]
    fn percentiles_among_the_unanswered_are_above() {
        let mut response = Response::default();
        response.add(&ResponseValues::of(&interval(950, 2, 50)));
        near(response.quantile(0.5), 2);
        assert!(matches!(response.quantile(0.99), Shown::Above(age) if age >= Nanos::from_millis(999)));
        assert!(matches!(response.max(), Shown::Above(_)));
    }

    #[test]
    fn a_small_sample_shows_no_p99() {
        let mut response = Response::default();
        response.add(&ResponseValues::of(&interval(50, 2, 0)));
        near(response.quantile(0.5), 2);
        assert_eq!(response.quantile(0.99), Shown::TooFew);
        assert_eq!(Response::default().max(), Shown::TooFew);
    }
}
