//! Tolerances.

use units::Nanos;

/// 2 % or 20 us, whichever is more: what the observer guarantees for each part.
pub fn promised(truth: Nanos) -> Nanos {
    Nanos((truth.0 / 50).max(20_000))
}

pub fn is_close(seen: Nanos, truth: Nanos, tolerance: Nanos) -> bool {
    seen.0.abs_diff(truth.0) <= tolerance.0
}

/// In per cent of the truth.
pub fn error(seen: u64, truth: u64) -> f64 {
    (seen as f64 - truth as f64) * 100.0 / truth as f64
}
