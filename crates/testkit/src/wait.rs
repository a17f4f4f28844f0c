//! Waiting for a condition, with a limit.

use units::Nanos;

/// Waits until `is_so` returns true; returns false if it does not within `most`. Checks every 5 ms.
pub fn until(most: Nanos, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = clock::now() + most;
    loop {
        if is_so() {
            return true;
        }
        if clock::now() >= deadline {
            return false;
        }
        pause(Nanos::from_millis(5));
    }
}

/// Sleeps for `length`.
pub fn pause(length: Nanos) {
    clock::sleep_until(clock::now() + length);
}
