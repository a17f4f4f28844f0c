//! How many independent values a series is worth.

use super::mean;

/// Batches of the series: enough to know their variance, and each long enough to be nearly independent of the next.
const BATCHES: usize = 20;

/// The number of independent values whose mean is as certain as that of `values`, by batch means: n·(variance of the
/// values)/(m·variance of the means of batches of m) (Schmeiser, Operations Research 30, 1982). At least 1, at most n.
/// `None` for fewer than 40 values.
pub fn effective_samples(values: &[f64]) -> Option<f64> {
    let size = values.len() / BATCHES;
    if size < 2 {
        return None;
    }
    let used = &values[values.len() - size * BATCHES..];
    let means: Vec<f64> = used.chunks_exact(size).map(mean).collect();
    let of_values = variance(used);
    let of_means = variance(&means) * size as f64;
    let n = values.len() as f64;
    // Values that do not vary, or whose batches vary less than chance, are not worth more than they are.
    Some(if of_means <= of_values { n } else { (n * of_values / of_means).max(1.0) })
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}
