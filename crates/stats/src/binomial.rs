//! Tails of the binomial distribution that remain exact for counts beyond those that library functions are made for.
//!
//! The usual method is the incomplete beta function via `ln_gamma`. At n = 10^12, `ln_gamma` is 3·10^13 and its last
//! digit is worth 0.004, so every probability computed from it has an error of that size. Loader's saddle-point form
//! (C. Loader, "Fast and accurate computation of binomial probabilities", 2000; also R's `dbinom`) avoids the large
//! numbers, and tails are summed from single probabilities.

/// The smallest `h` with P(B ≥ h) ≤ `alpha`, where B counts successes in `n` trials of probability `p`.
/// It is `n + 1` if even P(B = n) is larger than `alpha`.
///
/// # Cost
///
/// About 7·√(n·p·(1 − p)) multiplications: 0.1 ms for n = 10^9.
pub(crate) fn upper_critical(n: u64, p: f64, alpha: f64) -> u64 {
    let trials = Trials { n, p };
    let mean = n as f64 * p;
    let deviation = (mean * (1.0 - p)).sqrt();
    // Any start is correct; one at two deviations is a few steps from the result.
    let mut h = ((mean + 2.0 * deviation).ceil() as u64).clamp(1, n);
    let mut tail = trials.upper_tail(h);
    while tail > alpha && h <= n {
        tail -= trials.probability(h);
        h += 1;
    }
    while h > 0 {
        let wider = tail + trials.probability(h - 1);
        if wider > alpha {
            break;
        }
        tail = wider;
        h -= 1;
    }
    h
}

#[derive(Debug, Clone, Copy)]
struct Trials {
    n: u64,
    p: f64,
}

impl Trials {
    /// P(B = k), to about 13 digits.
    fn probability(self, k: u64) -> f64 {
        let Trials { n, p } = self;
        if k > n {
            return 0.0;
        }
        let (n, k) = (n as f64, k as f64);
        if k == 0.0 {
            return (n * (-p).ln_1p()).exp();
        }
        if k == n {
            return (n * p.ln()).exp();
        }
        let exponent = stirling_error(n)
            - stirling_error(k)
            - stirling_error(n - k)
            - deviance(k, n * p)
            - deviance(n - k, n * (1.0 - p));
        exponent.exp() / (std::f64::consts::TAU * k * (1.0 - k / n)).sqrt()
    }

    /// P(B ≥ k), for k at the mean or above: far below it, the first term would underflow.
    fn upper_tail(self, k: u64) -> f64 {
        let odds = self.p / (1.0 - self.p);
        let mut term = self.probability(k);
        let mut sum = 0.0;
        for j in k..=self.n {
            sum += term;
            let ratio = (self.n - j) as f64 / (j + 1) as f64 * odds;
            term *= ratio;
            // Beyond the mode the terms fall at least geometrically: the remainder does not reach the last digit.
            if ratio < 1.0 && term < sum * 1e-18 * (1.0 - ratio) {
                break;
            }
        }
        sum
    }
}

/// ln(n!) − ln(√(2πn)·(n/e)^n): the error of Stirling's formula.
fn stirling_error(n: f64) -> f64 {
    if n <= 15.0 {
        let factorial: f64 = (1..=n as u64).map(|i| i as f64).product();
        return factorial.ln() - 0.5 * (std::f64::consts::TAU * n).ln() - n * n.ln() + n;
    }
    let square = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square)
        / n
}

/// x·ln(x / m) + m − x, without the cancellation near x = m.
fn deviance(x: f64, m: f64) -> f64 {
    if (x - m).abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() + m - x;
    }
    let v = (x - m) / (x + m);
    let mut sum = (x - m) * v;
    let mut term = 2.0 * x * v;
    for j in 1..1_000 {
        term *= v * v;
        let next = sum + term / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pascal's triangle: too slow for reports, but certainly correct for tests.
    fn by_recurrence(n: u64, p: f64) -> Vec<f64> {
        let mut row = vec![1.0];
        for _ in 0..n {
            let mut next = vec![0.0; row.len() + 1];
            for (k, probability) in row.iter().enumerate() {
                next[k] += probability * (1.0 - p);
                next[k + 1] += probability * p;
            }
            row = next;
        }
        row
    }

    #[test]
    fn probabilities_agree_with_pascals_triangle() {
        for (n, p) in [(1, 0.5), (6, 0.5), (20, 0.95), (100, 0.3), (700, 0.99), (1_000, 0.999)] {
            let expected = by_recurrence(n, p);
            for k in 0..=n {
                let (got, want) = (Trials { n, p }.probability(k), expected[k as usize]);
                assert!((got - want).abs() <= 1e-11 * want + 1e-300, "n {n} p {p} k {k}: {got} {want}");
            }
            let mean = (n as f64 * p) as u64;
            let tail: f64 = expected[mean as usize..].iter().sum();
            assert!((Trials { n, p }.upper_tail(mean) - tail).abs() < 1e-12);
        }
    }

    /// At n = 10^12 the normal tail is exact to six digits: the skewness there is below 10^-6.
    #[test]
    fn tails_stay_exact_for_a_million_million() {
        let trials = Trials { n: 1_000_000_000_000, p: 0.5 };
        // P(Z ≥ 2) = 0.022750131948...; half a step of continuity correction is 10^-6 of a deviation.
        let tail = trials.upper_tail(500_000_000_000 + 1_000_000);
        assert!((tail - 0.022_750_131_948).abs() < 1e-7, "{tail}");
    }

    #[test]
    fn the_critical_value_is_the_first_that_holds() {
        for (n, p) in [(6, 0.5), (40, 0.9), (368, 0.99), (400, 0.01), (999, 0.5)] {
            let row = by_recurrence(n, p);
            let tail = |h: u64| row.iter().skip(h as usize).sum::<f64>();
            let h = upper_critical(n, p, 0.025);
            assert!(tail(h) <= 0.025 && tail(h - 1) > 0.025, "n {n} p {p}: {h}");
        }
    }
}
