//! MSER-5: how much of the beginning to leave out (White, Simulation 69, 1997; the best of 44 methods in the comparison
//! by Hoad, Robinson and Davies, Winter Simulation Conference 2008).

use super::mean;

/// Values per batch.
const BATCH: usize = 5;

/// With fewer batches the minimum is decided by chance.
const FEWEST_BATCHES: usize = 10;

/// What the method concludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    /// The number of values to leave out; a multiple of five.
    LeaveOut(usize),
    /// The best place to cut is in the second half: the series is not long enough to contain a steady state.
    NoSteadyState,
    /// Fewer than 50 values.
    TooShort,
}

/// Cuts where the standard error of the mean of the rest is smallest: at the d that minimises Σ(x − mean)²/(n − d)²
/// over batches of five values.
pub fn mser5(values: &[f64]) -> Truncation {
    let batches: Vec<f64> = values.chunks_exact(BATCH).map(mean).collect();
    let n = batches.len();
    if n < FEWEST_BATCHES {
        return Truncation::TooShort;
    }
    // From the end, so that sum and sum of squares grow by one batch; shifted, because the variance is a difference.
    let shift = mean(&batches);
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for cut in (0..n).rev() {
        let value = batches[cut] - shift;
        sum += value;
        squares += value * value;
        let kept = (n - cut) as f64;
        let error = (squares - sum * sum / kept).max(0.0) / (kept * kept);
        // A few batches at the end are alike by chance, which would be taken for the steady state.
        if n - cut >= n.div_ceil(4) && error <= best.0 {
            best = (error, cut);
        }
    }
    if best.1 > n / 2 { Truncation::NoSteadyState } else { Truncation::LeaveOut(best.1 * BATCH) }
}
