//! Time as whole nanoseconds: a length, or an instant on the monotonic clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

use crate::number::{self, Decimal, ParseError};

/// Nanoseconds: a duration, or an instant since the zero of the monotonic clock.
///
/// One type for both, because every phase is the gap between two instants and every schedule is an instant plus a
/// duration. Subtraction panics below zero in debug builds: a negative phase is a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A duration of 0; as an instant, the zero of the clock.
    pub const ZERO: Nanos = Nanos(0);
    /// The largest value; means "never" if an instant is expected.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// `us` microseconds. Overflow panics in debug builds, as in the next two functions.
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }

    /// Exact text for a command line or a record, in the largest unit that needs no fraction: `90s`, `1500us`. Parses
    /// to the same value.
    pub fn written(self) -> String {
        for (unit, ns) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
            if self.0.is_multiple_of(ns) {
                return format!("{}{unit}", self.0 / ns);
            }
        }
        format!("{}ns", self.0)
    }

    /// Seconds as a float, for printing and for rates: rounded above 2^53 ns (104 days).
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, or zero if that would be negative.
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// `self + other`, at most [`Nanos::MAX`].
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl From<Nanos> for Duration {
    fn from(value: Nanos) -> Duration {
        Duration::from_nanos(value.0)
    }
}

const EXAMPLE: &str = "2s, 500us or 1.5ms";
const KNOWN: &str = "ns, us, ms, s, m or h";

impl FromStr for Nanos {
    type Err = ParseError;

    /// Parses `2s`, `1.5ms`, `500us`, `10 min`, and several units from the largest to the smallest: `1m30s`, `1h 15m`.
    fn from_str(text: &str) -> Result<Nanos, ParseError> {
        let mut rest = text.trim();
        let (mut sum, mut last_factor) = (0u64, u64::MAX);
        loop {
            let (part, factor, behind) = part(text, rest)?;
            if factor >= last_factor {
                return Err(ParseError::NotANumber { text: text.to_owned(), example: EXAMPLE });
            }
            let out_of_range =
                || ParseError::OutOfRange { text: text.to_owned(), range: "at most 580 years" };
            sum = part.times(factor).and_then(|ns| sum.checked_add(ns)).ok_or_else(out_of_range)?;
            if behind.is_empty() {
                return Ok(Nanos(sum));
            }
            (rest, last_factor) = (behind, factor);
        }
    }
}

/// The first number with its unit in `rest`, a part of `text`: the number, nanoseconds per unit, and what follows.
fn part<'a>(text: &str, rest: &'a str) -> Result<(Decimal, u64, &'a str), ParseError> {
    let (number, from_unit) = number::split(rest)
        .ok_or_else(|| ParseError::NotANumber { text: text.to_owned(), example: EXAMPLE })?;
    let end = from_unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(from_unit.len());
    let (unit, behind) = from_unit.split_at(end);
    let factor = match unit.trim() {
        "" => return Err(ParseError::NoUnit { text: text.to_owned(), example: EXAMPLE }),
        "ns" | "nsec" => 1,
        "us" | "µs" | "μs" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hr" | "hour" | "hours" => 3_600_000_000_000,
        unit => {
            let (text, unit) = (text.to_owned(), unit.to_owned());
            return Err(ParseError::UnknownUnit { text, unit, known: KNOWN });
        }
    };
    Ok((number, factor, behind))
}

/// Prints three significant digits in the unit that reads best: `417 ns`, `2.27 ms`, `4.00 s`, `2 min 5 s`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0 => "0".to_owned(),
            ns @ 1..=999 => format!("{ns} ns"),
            ns @ 1_000..=999_499 => three_digits(ns as f64 / 1e3, "us"),
            ns @ 999_500..=999_499_999 => three_digits(ns as f64 / 1e6, "ms"),
            ns @ 999_500_000..=119_999_999_999 => three_digits(ns as f64 / 1e9, "s"),
            ns => minutes(ns / 1_000_000_000),
        };
        f.pad(&text)
    }
}

fn three_digits(value: f64, unit: &str) -> String {
    // Choose by what will be printed: 9.996 must print as 10.0, not as 10.00.
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

fn minutes(total_s: u64) -> String {
    let (h, m, s) = (total_s / 3_600, total_s / 60 % 60, total_s % 60);
    match (h, m, s) {
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_units_people_write() {
        for (text, ns) in [
            ("2s", 2_000_000_000),
            ("500us", 500_000),
            ("500µs", 500_000),
            ("1.5ms", 1_500_000),
            ("1m", 60_000_000_000),
            ("1h", 3_600_000_000_000),
            ("0s", 0),
            ("17ns", 17),
            (" 2 s ", 2_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h 15m", 4_500_000_000_000),
            ("1.5s500us", 1_500_500_000),
            ("1sec", 1_000_000_000),
            ("10 minutes", 600_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn a_bare_number_asks_for_its_unit() {
        let error = "30".parse::<Nanos>().unwrap_err().to_string();
        assert_eq!(error, "`30` has no unit; write for example 2s, 500us or 1.5ms");
    }

    #[test]
    fn several_units_go_from_the_largest_to_the_smallest() {
        for text in
            ["30s1m", "1m1m", "1m30", "1mm30s", "1m-30s", "s", "", "1s,", "1..5s", "9e3s", "580h999999999h"]
        {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn prints_three_digits() {
        for (ns, text) in [
            (0, "0"),
            (417, "417 ns"),
            (2_270_000, "2.27 ms"),
            (999_499, "999 us"),
            (999_700, "1.00 ms"),
            (9_996_000, "10.0 ms"),
            (999_600_000, "1.00 s"),
            (4_000_000_000, "4.00 s"),
            (119_999_999_999, "120 s"),
            (125_000_000_000, "2 min 5 s"),
            (5_400_000_000_000, "1 h 30 min"),
        ] {
            assert_eq!(Nanos(ns).to_string(), text);
        }
    }

    proptest::proptest! {
        /// If this fails, a printed effective option does not mean what was typed.
        #[test]
        fn what_is_written_is_read_as_the_same_time(ns in proptest::prelude::any::<u64>()) {
            proptest::prop_assert_eq!(Nanos(ns).written().parse(), Ok(Nanos(ns)));
        }

        #[test]
        fn whole_microseconds_survive_text(us in 0u64..10_000_000_000) {
            proptest::prop_assert_eq!(format!("{us}us").parse(), Ok(Nanos::from_micros(us)));
        }
    }
}
