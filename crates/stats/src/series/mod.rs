//! What a series of equal steps of time says: where warming up ends, whether it drifts, how many values it is worth.

mod drift;
mod effective;
mod segments;
mod slope;
mod truncation;
mod warmup;

pub use drift::{Drift, drift, trend_p};
pub use effective::effective_samples;
pub use segments::{Segment, segments};
pub use slope::{Slope, slope};
pub use truncation::{Truncation, mser5};
pub use warmup::{Course, Warmup, course, course_of_all, warmup};

#[cfg(test)]
mod tests;

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The median; zero for no values. Copies and sorts.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}
