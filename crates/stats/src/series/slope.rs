//! How fast a series grows, whatever single values do.

use statrs::distribution::{ContinuousCDF, Normal};

use super::median;

/// The growth per step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    pub per_step: f64,
    /// The 95 % confidence interval.
    pub low: f64,
    pub high: f64,
}

/// The median of the slopes of all pairs (Theil 1950, Sen, JASA 63, 1968), with Sen's interval. `None` for fewer than
/// ten values. Longer series than 1,000 are thinned to every k-th value first, which keeps the slope and bounds the cost.
///
/// # Cost
///
/// At most 500,000 slopes, sorted: 40 ms.
pub fn slope(values: &[f64]) -> Option<Slope> {
    const MOST: usize = 1000;
    let step = values.len().div_ceil(MOST).max(1);
    let kept: Vec<f64> = values.iter().copied().step_by(step).collect();
    if kept.len() < 10 {
        return None;
    }
    let pairs = |(i, a): (usize, &f64)| {
        let a = *a;
        kept[i + 1..]
            .iter()
            .enumerate()
            .map(move |(gap, b)| (b - a) / ((gap + 1) * step) as f64)
            .collect::<Vec<_>>()
    };
    let mut slopes: Vec<f64> = kept.iter().enumerate().flat_map(pairs).collect();
    slopes.sort_by(f64::total_cmp);
    let n = kept.len() as f64;
    let reach = Normal::standard().inverse_cdf(0.975) * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let count = slopes.len() as f64;
    let at = |rank: f64| slopes[(rank.max(0.0) as usize).min(slopes.len() - 1)];
    Some(Slope {
        per_step: median(&slopes),
        low: at(((count - reach) / 2.0).floor()),
        high: at(((count + reach) / 2.0).ceil()),
    })
}
