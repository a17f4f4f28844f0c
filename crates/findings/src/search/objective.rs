//! The objective of a search, and how long a probe must be to decide it. Pure.

use record::document::Quantity;
use units::Nanos;

use crate::condition::{Condition, Metric, Operator, Statistic};

/// Conditions that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// Each with whether it was implied rather than stated.
    pub conditions: Vec<(Condition, bool)>,
}

/// Why a text is not a valid objective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--search '{text}' cannot be used: {why}")]
pub struct ObjectiveError {
    text: String,
    why: String,
}

/// A rate at which responses are errors does not hold, however fast they are.
const IMPLIED: &str = "error_share < 1%";

/// The shortest measured time of a probe: a queue at 1 % over its capacity has a backlog of 40 ms by then, and the
/// means of its two halves differ by 20 ms.
const SHORTEST: Nanos = Nanos::from_secs(4);

/// The longest time that an objective alone requires: beyond it, the growth of the backlog decides earlier.
const LONGEST: Nanos = Nanos::from_secs(20);

/// Multiple of the samples that a percentile needs for a finite interval: with exactly that number the bound is the
/// maximum.
const SAMPLE_MARGIN: f64 = 1.5;

/// The longest probe at a low rate.
const PATIENCE_S: f64 = 60.0;

impl Objective {
    /// Reads `p99 < 20ms and error_share < 0.1%`.
    ///
    /// # Errors
    ///
    /// One line for what is not a condition, or not one that a rate can break by being too high.
    pub fn parse(text: &str) -> Result<Objective, ObjectiveError> {
        let mut conditions = Vec::new();
        for part in text.split(" and ") {
            let condition = limit(part).map_err(|why| ObjectiveError { text: text.to_owned(), why })?;
            conditions.push((condition, false));
        }
        // An objective that limits only one outcome does not limit the others.
        let names_failures = |(condition, _): &(Condition, bool)| is_of_failures(condition);
        if !conditions.iter().any(names_failures) {
            let implied = IMPLIED.parse::<Condition>().expect("it is a condition");
            conditions.push((implied, true));
        }
        Ok(Objective { conditions })
    }

    /// How long a probe is measured at any rate, unless given.
    ///
    /// At the share ε over its capacity a queue makes its clients wait ε·t after t seconds. The share of a probe of
    /// T seconds that waits longer than L is 1 − L/(ε·T), so the quantile q breaks the limit L once ε·T > L/q. For
    /// a rate to fail that is `tolerance` over the capacity, T must be L/(q·tolerance) at least: for p99 < 20ms
    /// and 2 % that is 1.01 s.
    pub fn usual_length(&self, tolerance: f64) -> Nanos {
        let needed = self.times().map(|(q, limit)| limit.as_secs_f64() / (q * tolerance)).fold(0.0, f64::max);
        whole_seconds(needed).clamp(SHORTEST, LONGEST)
    }

    /// How long a probe at this rate is measured: long enough for the samples that its percentiles need.
    pub fn length_at(&self, rate_per_s: f64, usual: Nanos) -> Nanos {
        usual.max(whole_seconds(self.needed_samples() / rate_per_s))
    }

    /// The lowest rate that a probe of reasonable length can decide.
    pub fn lowest_rate(&self, usual: Nanos) -> f64 {
        (self.needed_samples() / usual.as_secs_f64().max(PATIENCE_S)).max(0.1)
    }

    fn needed_samples(&self) -> f64 {
        let needed = self.conditions.iter().map(|(condition, _)| match (condition.metric, condition.limit) {
            (Metric::Time(_, Statistic::Quantile(q)), _) => stats::needed_samples(q) as f64,
            // As many as make one request distinguishable from a share just over the limit.
            (_, Quantity::Share(share)) => 1.0 / share.max(1e-6),
            _ => 1.0,
        });
        needed.fold(1.0, f64::max) * SAMPLE_MARGIN
    }

    /// The limits on durations, each with its quantile.
    fn times(&self) -> impl Iterator<Item = (f64, Nanos)> {
        self.conditions.iter().filter_map(|(condition, _)| match (condition.metric, condition.limit) {
            (Metric::Time(_, Statistic::Quantile(q)), Quantity::Ns(ns)) => Some((q, Nanos(ns))),
            (Metric::Time(_, Statistic::Mean), Quantity::Ns(ns)) => Some((0.5, Nanos(ns))),
            (Metric::Time(_, Statistic::Max), Quantity::Ns(ns)) => Some((1.0, Nanos(ns))),
            _ => None,
        })
    }
}

/// Parses a condition that a rate can break by being too high.
fn limit(part: &str) -> Result<Condition, String> {
    let condition = part.parse::<Condition>().map_err(|error| error.to_string())?;
    if !matches!(condition.operator, Operator::Below | Operator::AtMost) {
        return Err("an objective is an upper limit; write it with < or <=, as in 'p99 < 20ms'".to_owned());
    }
    if !matches!(condition.limit, Quantity::Ns(_) | Quantity::Share(_)) || is_rate(condition.metric) {
        return Err(format!(
            "`{condition}` grows with the length of a probe; use a time or a share, as in 'p99 < 20ms and \
             error_share < 1%'"
        ));
    }
    Ok(condition)
}

/// Whether it is about all failures together, not a single outcome.
fn is_of_failures(condition: &Condition) -> bool {
    condition.part.is_none() && matches!(condition.metric, Metric::ErrorShare | Metric::Failed)
}

fn is_rate(metric: Metric) -> bool {
    matches!(metric, Metric::Throughput | Metric::JourneyRate | Metric::SentRate | Metric::ScheduledRate)
}

/// Rounded up, because intervals of a run are whole seconds.
fn whole_seconds(seconds: f64) -> Nanos {
    Nanos::from_secs(seconds.ceil().clamp(0.0, 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, conditions: &[&str]) {
        let objective = Objective::parse(text).unwrap();
        let read: Vec<_> = objective.conditions.iter().map(|(condition, _)| condition.to_string()).collect();
        assert_eq!(read, conditions);
    }

    /// If this fails, a server that refuses everything at once passes at any rate.
    #[test]
    fn errors_are_limited_where_the_objective_does_not_speak_of_them() {
        check("p99<20ms", &["p99 < 20ms", "error_share < 1%"]);
        check(
            "response.p99.9 <= 50ms and p50 < 1ms",
            &["response.p99.9 <= 50ms", "p50 < 1ms", "error_share < 1%"],
        );
        check("p99 < 20ms and error_share < 5%", &["p99 < 20ms", "error_share < 5%"]);
        check("outcome.reset < 1%", &["outcome.reset < 1%", "error_share < 1%"]);
        check("p99 < 20ms and code.503 < 1%", &["p99 < 20ms", "code.503 < 1%", "error_share < 1%"]);
    }

    #[test]
    fn what_a_higher_rate_does_not_break_is_no_objective() {
        for (text, says) in [
            ("p99 > 20ms", "an upper limit"),
            ("throughput < 20/s", "grows with"),
            ("failed < 20", "grows with"),
            ("p99 < 20", "--search 'p99 < 20' cannot be used"),
            ("p99 < 20ms and", "cannot be used"),
            ("", "cannot be used"),
        ] {
            let error = Objective::parse(text).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{text}: {error}");
        }
    }

    /// The lengths that METHODOLOGY.md derives.
    #[test]
    fn a_probe_is_as_long_as_its_objective_needs() {
        let p99 = Objective::parse("p99 < 20ms").unwrap();
        assert_eq!(p99.usual_length(0.02), SHORTEST);
        assert_eq!(Objective::parse("p99 < 200ms").unwrap().usual_length(0.02), Nanos::from_secs(11));
        assert_eq!(Objective::parse("p50 < 10s").unwrap().usual_length(0.02), LONGEST);
        // 368 samples, half as many again.
        assert_eq!(p99.length_at(1_000.0, SHORTEST), SHORTEST);
        assert_eq!(p99.length_at(55.2, SHORTEST), Nanos::from_secs(10));
        assert!((p99.lowest_rate(SHORTEST) - 9.2).abs() < 1e-9);
    }
}
