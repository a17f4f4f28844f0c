//! Burns a share of a CPU's time: busy for that share of every period, asleep for the rest.

use units::Nanos;

use super::{Window, fact};
use crate::disturb::conduct::Fact;

/// A tenth of the default period of a CPU quota: short compared with usual disturbances, long compared with a
/// scheduler's slice.
const PERIOD: Nanos = Nanos::from_millis(10);

const WHOLE_PPM: u64 = 1_000_000;

/// Burns CPU time until the window closes. The share is one of elapsed time: a hog that has to wait for its CPU does
/// not catch up.
pub(super) fn burn(duty_ppm: u64, window: &Window) -> Vec<Fact> {
    let before = clock::thread_cpu();
    let busy = Nanos(PERIOD.0 * duty_ppm.min(WHOLE_PPM) / WHOLE_PPM);
    let mut period = clock::now();
    while window.is_open() {
        let until = period + busy;
        while clock::now() < until && window.is_open() {
            for _ in 0..SPINS {
                std::hint::spin_loop();
            }
        }
        period += PERIOD;
        if busy < PERIOD {
            window.sleep_until(period);
        }
        // After a long wait the periods start again.
        period = period.max(clock::now().saturating_sub(PERIOD));
    }
    vec![fact("cpu_ns", (clock::thread_cpu() - before).0)]
}

/// Some microseconds between two readings of the clock.
const SPINS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// It used the CPU time that it was meant to use, as far as the host allowed: a hog that waits does not catch up,
    /// so it uses at most its share of the elapsed time plus one period.
    #[test]
    fn a_hog_burns_its_share() {
        let begin = clock::now();
        let facts = burn(300_000, &Window::until(begin + Nanos::from_millis(200)));
        let elapsed = clock::now() - begin;
        let used = facts[0].value;
        assert!(used <= elapsed.0 * 3 / 10 + PERIOD.0, "{used} ns of {elapsed}");
        assert!(used > 0);
    }
}
