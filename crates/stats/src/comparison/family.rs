//! Several comparisons of one experiment: p-values adjusted so that the whole makes its error, and not each.

/// Holm's step-down adjustment: with them, the chance of any false finding among all is at most the level (Holm,
/// Scandinavian Journal of Statistics 6, 1979). In the order of the input.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let order = ascending(p_values);
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (position, index) in order.iter().enumerate() {
        let factor = (p_values.len() - position) as f64;
        largest = largest.max((p_values[*index] * factor).min(1.0));
        adjusted[*index] = largest;
    }
    adjusted
}

/// The step-up adjustment of Benjamini and Hochberg: of the findings at level q, at most the share q is false on
/// average (Journal of the Royal Statistical Society B 57, 1995). In the order of the input.
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let order = ascending(p_values);
    let mut adjusted = vec![0.0; p_values.len()];
    let mut smallest = 1.0_f64;
    for (position, index) in order.iter().enumerate().rev() {
        let factor = p_values.len() as f64 / (position + 1) as f64;
        smallest = smallest.min(p_values[*index] * factor);
        adjusted[*index] = smallest;
    }
    adjusted
}

fn ascending(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    order
}
