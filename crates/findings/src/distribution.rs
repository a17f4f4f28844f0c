//! Distributions with their quantiles and intervals, censored if some requests got no response.

use record::document::{Distribution, Quantile, QuantileValue};
use record::observation::watch::Times;
use record::{Compact, Durations, Interval, KindFigures, Outcome};
use stats::{Ranks, needed_samples, quantile_ranks};

/// The quantiles of every distribution, in print order. The maximum is separate.
pub const QUANTILES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// A distribution in which every value is known.
pub(crate) fn plain(durations: Option<&Durations>) -> Distribution {
    let Some(durations) = durations else { return with_quantiles(None, unknown_quantiles()) };
    let quantiles = QUANTILES.map(|q| Quantile { q, value: plain_quantile(durations, q) });
    with_quantiles(Some(durations), quantiles.into())
}

/// Percentiles of a statement's, a user's or a peer's requests.
pub fn times(compact: &Compact) -> Times {
    let at = |rank| compact.at_rank(rank).map_or(0, |value| value.0);
    let quantile = |q| {
        one(compact.count(), q, |ranks| QuantileValue::Known {
            ns: at(ranks.estimate),
            low_ns: at(ranks.low),
            high_ns: Some(at(ranks.high)),
        })
    };
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(quantile);
    Times { p50, p95, p99, max_ns: compact.max().map_or(0, |max| max.0) }
}

/// The response time: values of the `ok` requests; its quantiles include unanswered requests.
pub(crate) fn response(total: &Interval) -> Distribution {
    let censored = Censored::new(total);
    let quantiles = ranked(censored.population(), |ranks| censored.quantile(ranks));
    with_quantiles(total.response(), quantiles)
}

/// The response time of one target. The ages of all its failures are kept in one histogram, so if any got no response,
/// all of them count as unanswered: a quantile can then be a lower bound although it is known for the whole run.
pub(crate) fn response_of(kind: &KindFigures) -> Distribution {
    let censored = Censored::of_target(kind);
    let quantiles = ranked(censored.population(), |ranks| censored.quantile(ranks));
    with_quantiles(kind.response(), quantiles)
}

/// Any quantile of the response of one target, with the unanswered taken into account.
pub(crate) fn response_quantile_of(kind: &KindFigures, q: f64) -> QuantileValue {
    let censored = Censored::of_target(kind);
    one(censored.population(), q, |ranks| censored.quantile(ranks))
}

/// Any quantile of a distribution in which every value is known.
pub(crate) fn plain_quantile(durations: &Durations, q: f64) -> QuantileValue {
    one(durations.count(), q, |ranks| {
        let at = |rank| durations.at_rank(rank).map_or(0, |value| value.0);
        QuantileValue::Known { ns: at(ranks.estimate), low_ns: at(ranks.low), high_ns: Some(at(ranks.high)) }
    })
}

/// Any quantile of the response, with the unanswered taken into account.
pub(crate) fn response_quantile(total: &Interval, q: f64) -> QuantileValue {
    let censored = Censored::new(total);
    one(censored.population(), q, |ranks| censored.quantile(ranks))
}

/// The `ok` requests together with those without a response, for which only a lower bound is known.
struct Censored<'a> {
    ok: Option<&'a Durations>,
    /// The `ok` values and the unanswered at their ages.
    at_least: Durations,
    /// Unanswered requests whose age was lost with a cut-off run: they count as age 0.
    ageless: u64,
}

impl<'a> Censored<'a> {
    fn new(total: &'a Interval) -> Censored<'a> {
        let mut at_least = total.response().cloned().unwrap_or_default();
        let mut aged = 0;
        for outcome in Outcome::ALL.into_iter().filter(|outcome| outcome.is_unanswered()) {
            if let Some(ages) = total.failed(outcome) {
                at_least.merge(ages);
                aged += ages.count();
            }
        }
        let unanswered: u64 = total
            .failures()
            .iter()
            .filter(|(failure, _)| failure.outcome.is_unanswered())
            .map(|(_, count)| count)
            .sum();
        Censored { ok: total.response(), at_least, ageless: unanswered.saturating_sub(aged) }
    }

    fn of_target(kind: &'a KindFigures) -> Censored<'a> {
        let mut at_least = kind.response().cloned().unwrap_or_default();
        let unanswered: u64 = kind
            .failures()
            .iter()
            .filter(|(failure, _)| failure.outcome.is_unanswered())
            .map(|(_, count)| count)
            .sum();
        let mut aged = 0;
        if let Some(ages) = kind.failed().filter(|_| unanswered > 0) {
            at_least.merge(ages);
            aged = ages.count();
        }
        Censored { ok: kind.response(), at_least, ageless: unanswered.saturating_sub(aged) }
    }

    fn population(&self) -> u64 {
        self.ageless + self.at_least.count()
    }

    /// The value at a rank if every unanswered request had received its response when it was given up.
    fn lower(&self, rank: u64) -> u64 {
        self.at_least.at_rank(rank.saturating_sub(self.ageless)).map_or(0, |value| value.0)
    }

    /// The value at a rank if no unanswered request had ever received a response; `None` means never.
    fn upper(&self, rank: u64) -> Option<u64> {
        self.ok?.at_rank(rank).map(|value| value.0)
    }

    /// The true quantile is between two bounds. It counts as known if the upper bound is within the confidence interval
    /// of the lower one, so that the unanswered requests add no more uncertainty than the sample has. Without this rule,
    /// the two requests that are in flight at the end of every run would hide the median of a million. The printed
    /// interval includes both bounds, so it covers the true value in any case.
    fn quantile(&self, ranks: Ranks) -> QuantileValue {
        let (ns, reach) = (self.lower(ranks.estimate), self.lower(ranks.high));
        match self.upper(ranks.estimate) {
            Some(upper) if upper <= reach || self.same_bucket(ns, upper) => {
                QuantileValue::Known { ns, low_ns: self.lower(ranks.low), high_ns: self.upper(ranks.high) }
            }
            _ => QuantileValue::Above { ns },
        }
    }

    fn same_bucket(&self, a: u64, b: u64) -> bool {
        self.at_least.histogram().equivalent(a, b)
    }
}

/// Every quantile of a sample of `n` values, or the number of values it would need.
fn ranked(n: u64, value: impl Fn(Ranks) -> QuantileValue) -> Vec<Quantile> {
    QUANTILES.into_iter().map(|q| Quantile { q, value: one(n, q, &value) }).collect()
}

fn one(n: u64, q: f64, value: impl Fn(Ranks) -> QuantileValue) -> QuantileValue {
    match quantile_ranks(n, q) {
        Some(ranks) => value(ranks),
        None => QuantileValue::TooFew { needed: needed_samples(q) },
    }
}

fn unknown_quantiles() -> Vec<Quantile> {
    QUANTILES
        .into_iter()
        .map(|q| Quantile { q, value: QuantileValue::TooFew { needed: needed_samples(q) } })
        .collect()
}

fn with_quantiles(durations: Option<&Durations>, quantiles: Vec<Quantile>) -> Distribution {
    let Some(durations) = durations else {
        return Distribution { count: 0, sum_ns: 0, min_ns: None, mean_ns: None, max_ns: None, quantiles };
    };
    Distribution {
        count: durations.count(),
        // 2^64 ns of summed time are 584 years of waiting.
        sum_ns: u64::try_from(durations.sum_ns()).unwrap_or(u64::MAX),
        min_ns: durations.min().map(|value| value.0),
        mean_ns: durations.mean().map(|value| value.0),
        max_ns: durations.max().map(|value| value.0),
        quantiles,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::{Failure, Phase, Series};
    use units::Nanos;

    use super::*;

    fn value(distribution: &Distribution, q: f64) -> QuantileValue {
        distribution.quantiles.iter().find(|quantile| quantile.q == q).unwrap().value
    }

    /// `ok` of 1 ms each, then failures of one kind at `age`.
    fn run(ok: u64, outcome: Outcome, failures: u64, age: Nanos) -> Interval {
        let mut total = Interval::default();
        total.counts.ok = ok;
        for i in 0..ok {
            total.slot(Series::Response).record(Nanos(1_000_000 + i * 1_000));
        }
        for _ in 0..failures {
            total.record_failure(Failure::new(outcome, Phase::Wait), age);
        }
        total
    }

    #[test]
    fn percentiles_among_timeouts_print_as_above() {
        // 2 % timed out at 1 s: p95 is known, p99 is not.
        let distribution = response(&run(9_800, Outcome::RequestTimeout, 200, Nanos::from_secs(1)));
        let QuantileValue::Known { ns, high_ns: Some(_), .. } = value(&distribution, 0.95) else {
            panic!("{:?}", value(&distribution, 0.95));
        };
        assert!((10_480_000..10_510_000).contains(&ns), "{ns}");
        let QuantileValue::Above { ns } = value(&distribution, 0.99) else {
            panic!("{:?}", value(&distribution, 0.99));
        };
        assert!(ns.abs_diff(1_000_000_000) < 1_000_000, "{ns}");
        assert_eq!(distribution.count, 9_800);
    }

    #[test]
    fn an_interval_that_reaches_the_timeouts_has_no_upper_end() {
        // Slightly less than 5 % timed out: p95 is the slowest ok, its upper rank a timeout.
        let distribution = response(&run(9_505, Outcome::RequestTimeout, 495, Nanos::from_secs(1)));
        assert!(matches!(value(&distribution, 0.95), QuantileValue::Known { high_ns: None, .. }));
    }

    #[test]
    fn early_failures_do_not_flatter_the_percentiles() {
        // A third was rejected at once: those never get a response, so the median is not that of the rest.
        let distribution = response(&run(1_000, Outcome::QueueFull, 500, Nanos::ZERO));
        assert!(matches!(value(&distribution, 0.5), QuantileValue::Above { .. }));
        assert!(matches!(value(&distribution, 0.75), QuantileValue::Above { .. }));
    }

    #[test]
    fn a_few_requests_under_way_at_the_end_hide_nothing() {
        let distribution = response(&run(100_000, Outcome::InFlight, 2, Nanos::from_micros(300)));
        for quantile in &distribution.quantiles {
            assert!(matches!(quantile.value, QuantileValue::Known { high_ns: Some(_), .. }), "{quantile:?}");
        }
    }

    #[test]
    fn answered_failures_are_no_part_of_the_response() {
        let clean = response(&run(1_000, Outcome::AppError, 0, Nanos::ZERO));
        let with_errors = response(&run(1_000, Outcome::AppError, 900, Nanos::ZERO));
        assert_eq!(clean, with_errors);
    }

    #[test]
    fn lost_ages_count_as_nothing_waited() {
        let mut total = run(1_000, Outcome::Ok, 0, Nanos::ZERO);
        total.add_failures(Failure::new(Outcome::InFlight, Phase::Wait), 500);
        let distribution = response(&total);
        assert!(matches!(value(&distribution, 0.5), QuantileValue::Above { .. }));
        assert_eq!(value(&distribution, 0.9), QuantileValue::Above { ns: distribution_value(&total, 850) });
    }

    fn distribution_value(total: &Interval, rank: u64) -> u64 {
        total.response().unwrap().at_rank(rank).unwrap().0
    }

    #[test]
    fn only_unanswered_requests_leave_lower_bounds() {
        let distribution = response(&run(0, Outcome::RequestTimeout, 100, Nanos::from_secs(1)));
        assert_eq!(distribution.count, 0);
        assert_eq!(distribution.max_ns, None);
        assert!(matches!(value(&distribution, 0.5), QuantileValue::Above { .. }));
        assert_eq!(value(&distribution, 0.99), QuantileValue::TooFew { needed: 368 });
    }

    #[test]
    fn nothing_at_all_is_too_few() {
        for distribution in [plain(None), response(&Interval::default())] {
            assert_eq!(distribution.count, 0);
            assert!(distribution.quantiles.iter().all(|q| matches!(q.value, QuantileValue::TooFew { .. })));
        }
    }

    proptest! {
        /// Whatever response times the unanswered requests would have had, the printed bounds hold.
        #[test]
        fn bounds_hold_for_every_fate_of_the_unanswered(
            ok in proptest::collection::vec(1_000u64..50_000_000, 50..300),
            ages in proptest::collection::vec((0u64..50_000_000, 0u64..500_000_000), 0..60),
        ) {
            let mut total = Interval::default();
            total.counts.ok = ok.len() as u64;
            ok.iter().for_each(|&ns| total.slot(Series::Response).record(Nanos(ns)));
            let mut fate = Durations::new();
            ok.iter().for_each(|&ns| fate.record(Nanos(ns)));
            for &(age, more) in &ages {
                total.record_failure(Failure::new(Outcome::InFlight, Phase::Wait), Nanos(age));
                fate.record(Nanos(age + more));
            }
            for quantile in response(&total).quantiles {
                let rank = quantile_ranks(fate.count(), quantile.q).map(|ranks| ranks.estimate);
                let truth = rank.and_then(|rank| fate.at_rank(rank)).map(|value| value.0);
                // A histogram's value is right to one part in a thousand.
                match (quantile.value, truth) {
                    (QuantileValue::Known { low_ns, high_ns, .. }, Some(truth)) => {
                        prop_assert!(low_ns <= truth + truth / 500);
                        prop_assert!(high_ns.is_none_or(|high| truth <= high + high / 500));
                    }
                    (QuantileValue::Above { ns }, Some(truth)) => prop_assert!(ns <= truth + truth / 500),
                    (QuantileValue::TooFew { .. }, truth) => prop_assert_eq!(truth, None),
                    (known, None) => prop_assert!(false, "{known:?} of too few"),
                }
            }
        }
    }
}
