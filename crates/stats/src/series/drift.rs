//! Whether the measured part of a run was stationary.

use statrs::distribution::{ContinuousCDF, Normal};

use super::mean;

/// Below this p-value a trend is no chance.
const TREND_LEVEL: f64 = 0.01;

/// What changed within a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// ln(mean of the second half / mean of the first).
    pub log_ratio_of_halves: f64,
    /// The two-sided p-value of the Mann-Kendall test; see [`trend_p`].
    pub trend_p: f64,
    pub is_drifting: bool,
}

/// A window drifts if its halves differ by `limit` or more (a log ratio: half the margin for a throughput, the margin
/// for a median), or if it has a trend. `None` for fewer than four values, and for a half whose mean is not positive.
pub fn drift(values: &[f64], limit: f64) -> Option<Drift> {
    let (first, second) = values.split_at(values.len() / 2);
    let ratio = mean(second) / mean(first);
    if values.len() < 4 || !(ratio > 0.0 && ratio.is_finite()) {
        return None;
    }
    let trend_p = trend_p(values);
    let log_ratio_of_halves = ratio.ln();
    let is_drifting = log_ratio_of_halves.abs() >= limit || trend_p <= TREND_LEVEL;
    Some(Drift { log_ratio_of_halves, trend_p, is_drifting })
}

/// The two-sided p-value of "there is no monotonic trend": Mann (1945) and Kendall, with ties, by the normal
/// approximation with continuity, which is good from ten values on.
///
/// # Cost
///
/// n²/2 comparisons: 10 ms for an hour of seconds.
pub fn trend_p(values: &[f64]) -> f64 {
    let pairs = values.iter().enumerate().flat_map(|(i, a)| values[i + 1..].iter().map(move |b| (a, b)));
    let sign = |(a, b): (&f64, &f64)| i64::from(b > a) - i64::from(b < a);
    let score: i64 = pairs.map(sign).sum();
    let n = values.len() as f64;
    let spread = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let variance = (spread(n) - ties(values).map(spread).sum::<f64>()) / 18.0;
    if score == 0 || variance <= 0.0 {
        return 1.0;
    }
    let distance = (score.unsigned_abs() as f64 - 1.0) / variance.sqrt();
    (2.0 * Normal::standard().sf(distance)).min(1.0)
}

/// The sizes of the groups of equal values.
fn ties(values: &[f64]) -> impl Iterator<Item = f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let sizes: Vec<f64> = sorted.chunk_by(|a, b| a == b).map(|group| group.len() as f64).collect();
    sizes.into_iter()
}
