//! Waiting for something, never for long.

use units::Nanos;

/// Waits until `is_so`; false when it is not so within `most`.
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

/// Lets `length` pass.
pub fn pause(length: Nanos) {
    clock::sleep_until(clock::now() + length);
}
