//! Converts the kernel's realtime timestamps to the monotonic clock.
//!
//! The kernel slews both clocks equally, so their difference changes only when somebody *sets* the wall clock (a step,
//! or a leap second). Between steps the difference is constant, and every measurement narrows the interval that
//! contains it: a realtime reading with a monotonic reading just before and just after it brackets the difference.
//! Intersecting brackets reduces the error to a few nanoseconds.

use units::Nanos;

use crate::{Clock, SystemClock, wall};

/// The difference between the realtime and the monotonic clock, with bounds on its error.
#[derive(Debug, Clone)]
pub struct Pairing {
    /// The true difference is within `low..=high`.
    low: i128,
    high: i128,
    shifts: u64,
}

/// The result of a re-measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// The difference has not changed.
    None,
    /// The wall clock was set by about this many nanoseconds; timestamps taken around the step may be off by that.
    Stepped { by_ns: i64 },
}

/// One realtime reading between two monotonic ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bracket {
    pub before: Nanos,
    pub real: Nanos,
    pub after: Nanos,
}

impl Pairing {
    /// Measures the difference now, from 51 brackets, about 150 clock readings: some 5 us.
    pub fn measure() -> Pairing {
        let mut pairing = Pairing::from_bracket(bracket());
        for _ in 0..50 {
            pairing.narrow(bracket());
        }
        pairing
    }

    /// Measures again. Call it about once per second: a step of the wall clock is noticed at the next call.
    pub fn remeasure(&mut self) -> Shift {
        let mut shift = Shift::None;
        for _ in 0..5 {
            if let Shift::Stepped { by_ns } = self.narrow(bracket()) {
                shift = Shift::Stepped { by_ns };
            }
        }
        shift
    }

    /// The monotonic instant of a realtime timestamp, which is in nanoseconds since 1970. Saturates at zero.
    #[inline]
    pub fn to_monotonic(&self, realtime_ns: u64) -> Nanos {
        let difference = self.low + (self.high - self.low) / 2;
        Nanos(u64::try_from(i128::from(realtime_ns) - difference).unwrap_or(0))
    }

    /// The largest possible error of a converted timestamp, as long as nobody sets the wall clock.
    pub fn error_bound(&self) -> Nanos {
        Nanos(u64::try_from((self.high - self.low + 1) / 2).unwrap_or(u64::MAX))
    }

    /// How many times the wall clock was found to have been set.
    pub fn shift_count(&self) -> u64 {
        self.shifts
    }

    fn from_bracket(bracket: Bracket) -> Pairing {
        let (low, high) = bounds(bracket);
        Pairing { low, high, shifts: 0 }
    }

    fn narrow(&mut self, bracket: Bracket) -> Shift {
        let (low, high) = bounds(bracket);
        let (narrowed_low, narrowed_high) = (self.low.max(low), self.high.min(high));
        if narrowed_low <= narrowed_high {
            (self.low, self.high) = (narrowed_low, narrowed_high);
            return Shift::None;
        }
        // No constant fits both: the wall clock was set in between.
        let by = (low + high) / 2 - (self.low + self.high) / 2;
        (self.low, self.high) = (low, high);
        self.shifts += 1;
        Shift::Stepped { by_ns: i64::try_from(by).unwrap_or(i64::MAX) }
    }
}

fn bounds(bracket: Bracket) -> (i128, i128) {
    let real = i128::from(bracket.real.0);
    (real - i128::from(bracket.after.0), real - i128::from(bracket.before.0))
}

fn bracket() -> Bracket {
    let before = SystemClock.now();
    let real = wall();
    Bracket { before, real, after: SystemClock.now() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(before: u64, real: u64, after: u64) -> Bracket {
        Bracket { before: Nanos(before), real: Nanos(real), after: Nanos(after) }
    }

    #[test]
    fn brackets_narrow_the_difference() {
        let mut pairing = Pairing::from_bracket(at(100, 5_110, 140));
        assert_eq!(pairing.error_bound(), Nanos(20));
        assert_eq!(pairing.narrow(at(200, 5_205, 206)), Shift::None);
        // The intersection of 4_999..=5_005 and 4_970..=5_010.
        assert_eq!(pairing.error_bound(), Nanos(3));
        assert_eq!(pairing.to_monotonic(6_002), Nanos(1_000));
    }

    /// If this fails, setting the clock during a run shifts every later arrival timestamp.
    #[test]
    fn a_step_of_the_wall_clock_is_noticed_and_followed() {
        let mut pairing = Pairing::from_bracket(at(100, 5_100, 100));
        assert_eq!(pairing.narrow(at(200, 9_200, 200)), Shift::Stepped { by_ns: 4_000 });
        assert_eq!(pairing.to_monotonic(9_300), Nanos(300));
        assert_eq!(pairing.shift_count(), 1);
    }

    #[test]
    fn the_real_clocks_pair_within_a_microsecond() {
        assert!(Pairing::measure().error_bound() < Nanos(1_000));
    }
}
