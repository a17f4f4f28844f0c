//! PELT: a series divided where its mean or variance changes (Killick, Fearnhead and Eckley, JASA 107, 2012), with the
//! penalty and the treatment of outliers of Barrett et al. (OOPSLA 2017).

use super::mean;

/// Times ln n: each further segment must improve the fit by this much.
const PENALTY: f64 = 15.0;

/// The width of the window in which a value is an outlier or not.
const OUTLIER_WINDOW: usize = 200;

/// A segment has a variance only from two values on.
const SHORTEST: usize = 2;

/// Values that belong together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// The index of the first value, and the one after the last; outliers inside are counted.
    pub start: usize,
    pub end: usize,
    /// Without outliers.
    pub mean: f64,
    pub variance: f64,
}

/// Divides `values`; one segment if nothing changes, none for fewer than four values. Outliers (outside the median
/// ± 3·(p90 − p10) of the 200 values around) are set aside first: a pause is no new state.
///
/// # Cost
///
/// About n log n where segments are short compared with n, at most n²: 30 ms for an hour of seconds.
pub fn segments(values: &[f64]) -> Vec<Segment> {
    let kept: Vec<(usize, f64)> = values
        .iter()
        .copied()
        .enumerate()
        .filter(|(index, value)| !is_outlier(values, *index, *value))
        .collect();
    if kept.len() < 2 * SHORTEST {
        return Vec::new();
    }
    let bounds = change_points(&Sums::new(kept.iter().map(|(_, value)| *value)));
    let edge = |kept_index: usize| kept.get(kept_index).map_or(values.len(), |(index, _)| *index);
    let segment = |bounds: &[usize]| {
        let inside: Vec<f64> = kept[bounds[0]..bounds[1]].iter().map(|(_, value)| *value).collect();
        let mean = mean(&inside);
        let variance = inside.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / inside.len() as f64;
        let start = if bounds[0] == 0 { 0 } else { edge(bounds[0]) };
        Segment { start, end: edge(bounds[1]), mean, variance }
    };
    bounds.windows(2).map(segment).collect()
}

fn is_outlier(values: &[f64], index: usize, value: f64) -> bool {
    let width = OUTLIER_WINDOW.min(values.len());
    let start = index.saturating_sub(width / 2).min(values.len() - width);
    let mut window = values[start..start + width].to_vec();
    window.sort_by(f64::total_cmp);
    let at = |share: f64| window[((width - 1) as f64 * share).round() as usize];
    let reach = 3.0 * (at(0.9) - at(0.1));
    (value - at(0.5)).abs() > reach
}

/// Running sums of values and squares, so that the fit of any segment costs two subtractions.
struct Sums {
    sums: Vec<f64>,
    squares: Vec<f64>,
    /// No variance is smaller: a constant stretch would have an infinitely good fit.
    floor: f64,
}

impl Sums {
    fn new(values: impl Iterator<Item = f64> + Clone) -> Sums {
        let n = values.clone().count() as f64;
        let shift = values.clone().sum::<f64>() / n;
        let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
        let (mut sum, mut square) = (0.0, 0.0);
        for value in values {
            sum += value - shift;
            square += (value - shift).powi(2);
            sums.push(sum);
            squares.push(square);
        }
        // One millionth of the whole variance, and of the mean where the whole does not vary.
        let floor = (square / n * 1e-6).max((shift * 1e-6).powi(2)).max(f64::MIN_POSITIVE);
        Sums { sums, squares, floor }
    }

    fn len(&self) -> usize {
        self.sums.len() - 1
    }

    /// Twice the negative log-likelihood of a normal distribution fitted to the values, less what is the same for all.
    fn cost(&self, start: usize, end: usize) -> f64 {
        let n = (end - start) as f64;
        let sum = self.sums[end] - self.sums[start];
        let variance = ((self.squares[end] - self.squares[start]) / n - (sum / n).powi(2)).max(self.floor);
        n * variance.ln()
    }
}

/// The starts of all segments and the end, ascending.
fn change_points(sums: &Sums) -> Vec<usize> {
    let n = sums.len();
    let penalty = PENALTY * (n as f64).ln();
    // The best cost of the first `end` values, and where its last segment starts.
    let mut best = vec![(-penalty, 0); n + 1];
    let mut candidates = vec![0];
    for end in SHORTEST..=n {
        let cost = |start: usize| best[start].0 + sums.cost(start, end);
        let costs: Vec<(f64, usize)> = candidates
            .iter()
            .filter(|start| end - **start >= SHORTEST)
            .map(|start| (cost(*start), *start))
            .collect();
        let Some(&(lowest, start)) = costs.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        best[end] = (lowest + penalty, start);
        // A start that is worse by more than the penalty can never become the best one.
        candidates.retain(|start| {
            end - *start < SHORTEST || best[*start].0 + sums.cost(*start, end) <= best[end].0
        });
        if end + SHORTEST <= n {
            candidates.push(end);
        }
    }
    let mut bounds = vec![n];
    let mut end = n;
    while end > 0 {
        end = best[end].1;
        bounds.push(end);
    }
    bounds.reverse();
    bounds
}
