//! The only place that reads time.
//!
//! All times in Parallax are `CLOCK_MONOTONIC` nanoseconds. The kernel timestamps arriving packets with
//! `CLOCK_REALTIME`; [`Pairing`] converts those. Logic that needs the time takes it as an argument, or takes a
//! [`Clock`], so that its tests use a [`SimClock`] and never sleep.
//!
//! # Cost
//!
//! [`now`] is one vDSO call: 20 to 40 ns if the clock source is the TSC.

mod pairing;
mod sim;

pub use pairing::{Pairing, Shift};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};
pub use sim::SimClock;
use units::Nanos;

/// A source of time on the monotonic scale.
pub trait Clock {
    /// Nanoseconds on the scale of `CLOCK_MONOTONIC`; never decreases.
    fn now(&self) -> Nanos;
}

/// The kernel's monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Nanos {
        now()
    }
}

/// `CLOCK_MONOTONIC`, in nanoseconds since its zero. 20 to 40 ns per call if the clock source is the TSC.
#[inline]
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// `CLOCK_REALTIME`: nanoseconds since 1970. Only for dates in records, never for measuring a duration.
pub fn wall() -> Nanos {
    read(ClockId::Realtime)
}

/// CPU time used so far by the calling thread, user and system together.
///
/// # Cost
///
/// A system call: use it once per interval, never once per request.
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// The period of this kernel's tick (1 / `CONFIG_HZ`), taken from the resolution of the coarse clock, which advances
/// once per tick.
pub fn tick() -> Nanos {
    let period = clock_getres(ClockId::MonotonicCoarse);
    Nanos(period.tv_sec as u64 * 1_000_000_000 + period.tv_nsec as u64)
}

/// Sleeps until `due` on the monotonic clock; returns at once if that has passed. Signals do not shorten the sleep.
pub fn sleep_until(due: Nanos) {
    let request = Timespec {
        tv_sec: i64::try_from(due.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (due.0 % 1_000_000_000) as _,
    };
    while let Err(rustix::io::Errno::INTR) =
        rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &request)
    {}
}

#[inline]
#[expect(clippy::disallowed_methods, reason = "this crate is the one that may")]
fn read(id: ClockId) -> Nanos {
    let time = clock_gettime(id);
    // These clocks are never negative on Linux.
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_run_backwards() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn a_tick_is_between_one_and_ten_milliseconds() {
        assert!((Nanos::from_micros(900)..=Nanos::from_millis(11)).contains(&tick()), "{}", tick());
    }

    #[test]
    fn sleeping_until_the_past_returns_at_once() {
        sleep_until(Nanos(0));
        let due = now() + Nanos::from_micros(200);
        sleep_until(due);
        assert!(now() >= due);
    }
}
