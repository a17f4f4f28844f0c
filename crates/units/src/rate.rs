//! Events per second, stored as a fraction so that a schedule made from it never drifts.

use std::fmt;
use std::str::FromStr;

use crate::Nanos;
use crate::number::{self, ParseError};

/// A rate: `events` per `per` nanoseconds. Exact, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    events: u64,
    per: Nanos,
}

impl Rate {
    /// `events` per `per`, or `None` if either is zero.
    pub fn new(events: u64, per: Nanos) -> Option<Rate> {
        (events > 0 && per > Nanos::ZERO).then_some(Rate { events, per })
    }

    /// Whole events per second, or `None` for zero.
    pub fn per_second(events: u64) -> Option<Rate> {
        Rate::new(events, Nanos::from_secs(1))
    }

    /// This rate multiplied by `factor`, whose events per second are used as a plain number. `None` if the exact
    /// fraction does not fit, or exceeds 10^9 per second.
    pub fn times(self, factor: Rate) -> Option<Rate> {
        let events = u128::from(self.events) * u128::from(factor.events) * 1_000_000_000;
        let per = u128::from(self.per.0) * u128::from(factor.per.0);
        let divisor = common_divisor(events, per);
        let (events, per) = (u64::try_from(events / divisor).ok()?, u64::try_from(per / divisor).ok()?);
        // In events per second if that needs no fraction, as people write it.
        let to_a_second = if 1_000_000_000 % per == 0 { 1_000_000_000 / per } else { 1 };
        let rate = Rate::new(events.checked_mul(to_a_second)?, Nanos(per * to_a_second))?;
        (rate.as_per_second_f64() <= 1e9).then_some(rate)
    }

    /// When event `n` is due, with event 0 at zero: `n * per / events`, rounded down; saturates at [`Nanos::MAX`].
    pub fn due(self, n: u64) -> Nanos {
        let due = u128::from(n) * u128::from(self.per.0) / u128::from(self.events);
        Nanos(u64::try_from(due).unwrap_or(u64::MAX))
    }

    /// When `parts / of` events have become due, rounded down: an instant between two events.
    ///
    /// # Panics
    ///
    /// If `of` is zero.
    pub fn due_part(self, parts: u64, of: u64) -> Nanos {
        let due = u128::from(parts) * u128::from(self.per.0) / (u128::from(self.events) * u128::from(of));
        Nanos(u64::try_from(due).unwrap_or(u64::MAX))
    }

    /// How many parts of an event, each `1 / of`, have become due by `t`, rounded down.
    pub fn parts_until(self, t: Nanos, of: u64) -> u64 {
        let whole = u128::from(t.0) * u128::from(self.events) / u128::from(self.per.0);
        let rest = u128::from(t.0) * u128::from(self.events) % u128::from(self.per.0);
        // In two steps, because the product of all three may not fit.
        let parts = whole.saturating_mul(u128::from(of)) + rest * u128::from(of) / u128::from(self.per.0);
        u64::try_from(parts).unwrap_or(u64::MAX)
    }

    /// How many events are due strictly before `end`.
    pub fn count_before(self, end: Nanos) -> u64 {
        // The smallest n with n * per / events >= end.
        let count = (u128::from(end.0) * u128::from(self.events)).div_ceil(u128::from(self.per.0));
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// Exact text: `500/s`, `1/3s`, `7/150ms`. Parses to the same rate.
    pub fn written(self) -> String {
        let per_s = u128::from(self.events) * 1_000_000_000;
        if per_s % u128::from(self.per.0) == 0 {
            return format!("{}/s", per_s / u128::from(self.per.0));
        }
        format!("{}/{}", self.events, self.per.written())
    }

    /// Events per second as a float, for printing and shares only.
    pub fn as_per_second_f64(self) -> f64 {
        self.events as f64 / self.per.as_secs_f64()
    }
}

fn common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl FromStr for Rate {
    type Err = ParseError;

    /// Parses `500`, `500/s`, `10k/s`, `0.5/s`, `30/m`, `7/100ms`, `500rps`, `6000rpm`, `500 req/s`. A bare number is
    /// per second.
    fn from_str(text: &str) -> Result<Rate, ParseError> {
        const EXAMPLE: &str = "500/s, 10k/s or 30/m";
        let unknown = |unit: &str| ParseError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            known: "/s, /m, /h or /100ms, with k or M before it",
        };
        let (number, unit) = number::split(text)
            .ok_or_else(|| ParseError::NotANumber { text: text.to_owned(), example: EXAMPLE })?;
        let (prefix, per) = prefix_and_time(unit);
        let factor = number::decimal_prefix(prefix).ok_or_else(|| unknown(unit))?;
        let per = if per.starts_with(|c: char| c.is_ascii_digit()) {
            per.parse::<Nanos>()?
        } else {
            format!("1{per}").parse::<Nanos>().map_err(|_| unknown(unit))?
        };
        let out_of_range =
            || ParseError::OutOfRange { text: text.to_owned(), range: "a rate is over 0 and at most 1G/s" };
        // Digits after the point move into `per`, so that 0.5/s is exactly 1 every 2 s.
        let scale = 10u64.checked_pow(number.scale()).ok_or_else(out_of_range)?;
        let events = number.times(scale).and_then(|n| n.checked_mul(factor)).ok_or_else(out_of_range)?;
        let per = per.0.checked_mul(scale).map(Nanos).ok_or_else(out_of_range)?;
        let rate = Rate::new(events, per).ok_or_else(out_of_range)?;
        if rate.as_per_second_f64() > 1e9 {
            return Err(out_of_range());
        }
        Ok(rate)
    }
}

/// Splits the unit of a rate into its decimal prefix and its time: `k/s`, `krps` and `k req/s` are all `k` and `s`.
fn prefix_and_time(unit: &str) -> (&str, &str) {
    const WORDS: [(&str, &str); 5] = [("rps", "s"), ("qps", "s"), ("tps", "s"), ("rpm", "m"), ("rph", "h")];
    if let Some((prefix, time)) =
        WORDS.iter().find_map(|(word, time)| Some((unit.strip_suffix(word)?, *time)))
    {
        return (prefix.trim(), time);
    }
    let (counted, time) = unit.split_once('/').unwrap_or((unit, "s"));
    let counted = counted.trim();
    let things = ["requests", "request", "reqs", "req"];
    let prefix = things.iter().find_map(|thing| counted.strip_suffix(thing)).unwrap_or(counted);
    (prefix.trim(), time.trim())
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_s = self.as_per_second_f64();
        let text = if per_s >= 100.0 || per_s.fract() == 0.0 {
            format!("{per_s:.0}/s")
        } else if per_s >= 1.0 {
            format!("{per_s:.2}/s")
        } else {
            format!("{:.2}/min", per_s * 60.0)
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_forms_people_write() {
        for (text, events, per) in [
            ("500", 500, Nanos::from_secs(1)),
            ("500/s", 500, Nanos::from_secs(1)),
            ("10k/s", 10_000, Nanos::from_secs(1)),
            ("0.5/s", 5, Nanos::from_secs(10)),
            ("30/m", 30, Nanos::from_secs(60)),
            ("7/100ms", 7, Nanos::from_millis(100)),
            ("100rps", 100, Nanos::from_secs(1)),
            ("2krps", 2_000, Nanos::from_secs(1)),
            ("6000rpm", 6_000, Nanos::from_secs(60)),
            ("500 req/s", 500, Nanos::from_secs(1)),
            ("1k reqs/min", 1_000, Nanos::from_secs(60)),
            ("50/sec", 50, Nanos::from_secs(1)),
        ] {
            assert_eq!(text.parse(), Ok(Rate { events, per }), "{text}");
        }
    }

    #[test]
    fn refuses_zero_and_nonsense() {
        for text in ["0", "0/s", "x", "10/parsec", "10q/s", "5/0s", "2G/1ms"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn between_two_events_the_time_is_shared_out() {
        let rate: Rate = "3/s".parse().unwrap();
        assert_eq!(rate.due_part(5, 2), Nanos(833_333_333));
        assert_eq!(rate.due_part(6, 2), rate.due(3));
        assert_eq!(rate.parts_until(Nanos(833_333_334), 2), 5);
        assert_eq!(rate.parts_until(Nanos(833_333_333), 2), 4);
    }

    #[test]
    fn a_multiple_of_a_rate_is_exact() {
        let rate: Rate = "100/s".parse().unwrap();
        assert_eq!(rate.times("2.5".parse().unwrap()).unwrap().written(), "250/s");
        assert_eq!(rate.times("1G".parse().unwrap()), None);
    }

    #[test]
    fn what_is_written_is_read_as_the_same_rate() {
        for (text, written) in
            [("500", "500/s"), ("10k/s", "10000/s"), ("30/m", "30/60s"), ("7/100ms", "70/s")]
        {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.written(), written);
            let again: Rate = written.parse().unwrap();
            assert_eq!(again.due(1_000_003), rate.due(1_000_003));
        }
    }

    proptest::proptest! {
        /// If this fails, a run sends one request too many or too few at its end.
        #[test]
        fn count_before_agrees_with_due(
            events in 1u64..2_000_000, per_ms in 1u64..100_000, end_us in 0u64..600_000_000
        ) {
            let rate = Rate::new(events, Nanos::from_millis(per_ms)).unwrap();
            let end = Nanos::from_micros(end_us);
            let count = rate.count_before(end);
            proptest::prop_assert!(count == 0 || rate.due(count - 1) < end);
            proptest::prop_assert!(rate.due(count) >= end);
        }
    }
}
