//! The distribution-free confidence interval of a quantile, as ranks of the sorted sample.
//!
//! Of n independent values, the number B of those at or below the true q-quantile is binomial (n, q), whatever the
//! distribution of the values. So the value of rank `low` is above the quantile only if B < low, and the value of rank
//! `high` is below it only if B ≥ high. If each of these has a probability of at most 2.5 %, the values of the two
//! ranks enclose the true quantile in at least 95 % of all runs (David and Nagaraja, "Order Statistics", 7.1).

use crate::binomial::upper_critical;

/// The probability of a miss at each end of the interval: together 5 %.
const ALPHA: f64 = 0.025;

/// Ranks in the sorted sample, counted from 1: 1 ≤ `low` ≤ `estimate` ≤ `high` ≤ n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// The smallest value with at least q of the sample at or below it.
    pub estimate: u64,
    /// The lower end of the 95 % confidence interval.
    pub low: u64,
    /// The upper end of the 95 % confidence interval.
    pub high: u64,
}

/// The ranks of `n` sorted values that estimate the quantile `q` and bound it on both sides with 95 % confidence.
///
/// `None` if no finite interval exists: for n below [`needed_samples`], and for q outside (0, 1).
///
/// # Cost
///
/// About √n multiplications: 0.2 ms for n = 10^9. For reports, not for the hot path.
pub fn quantile_ranks(n: u64, q: f64) -> Option<Ranks> {
    if !(q > 0.0 && q < 1.0) || n < needed_samples(q) {
        return None;
    }
    let estimate = ceil_product(n, q);
    // Counted from above, the values beyond the quantile are binomial (n, 1 − q): one search serves both ends.
    let high = upper_critical(n, q, ALPHA).clamp(estimate, n);
    let low = (n + 1).saturating_sub(upper_critical(n, 1.0 - q, ALPHA)).clamp(1, estimate);
    Some(Ranks { estimate, low, high })
}

/// The smallest number of values for which [`quantile_ranks`] exists; `u64::MAX` for q outside (0, 1).
///
/// The interval is finite if even the largest value is unlikely to be below the quantile, qⁿ ≤ 0.025, and even the
/// smallest is unlikely to be above it, (1 − q)ⁿ ≤ 0.025. Hence n = ⌈ln 0.025 / ln max(q, 1 − q)⌉:
///
/// | p50 | p75 | p90 | p95 | p99 | p99.9 | p99.99 |
/// |-----|-----|-----|-----|-----|-------|--------|
/// | 6   | 13  | 36  | 72  | 368 | 3 688 | 36 887 |
///
/// These are the minimums themselves, without a safety factor: the interval is always printed next to the quantile,
/// and at the minimum it extends to the largest value.
pub fn needed_samples(q: f64) -> u64 {
    if !(q > 0.0 && q < 1.0) {
        return u64::MAX;
    }
    let nearer_one = q.max(1.0 - q);
    (ALPHA.ln() / nearer_one.ln()).ceil() as u64
}

/// ⌈n·q⌉, where a product that is a whole number except for rounding is that number: 0.999 · 1000 is 999.
fn ceil_product(n: u64, q: f64) -> u64 {
    let product = n as f64 * q;
    let nearest = product.round();
    let whole =
        if (product - nearest).abs() <= product * 4.0 * f64::EPSILON { nearest } else { product.ceil() };
    (whole as u64).clamp(1, n)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schedule::next_splitmix64;

    use super::*;

    #[test]
    fn the_least_sample_sizes_are_the_published_ones() {
        for (q, least) in [
            (0.5, 6),
            (0.75, 13),
            (0.9, 36),
            (0.95, 72),
            (0.99, 368),
            (0.999, 3_688),
            (0.9999, 36_887),
            (0.05, 72),
        ] {
            assert_eq!(needed_samples(q), least, "{q}");
            assert_eq!(quantile_ranks(least - 1, q), None);
            assert!(quantile_ranks(least, q).is_some());
        }
        assert_eq!(quantile_ranks(1_000, 0.0), None);
        assert_eq!(quantile_ranks(1_000, 1.0), None);
        assert_eq!(quantile_ranks(1_000, f64::NAN), None);
    }

    /// The table of the median's interval in Conover, "Practical Nonparametric Statistics", and elsewhere: n, the two
    /// ranks, and their exact coverage.
    #[test]
    fn small_samples_of_the_median_match_the_published_table() {
        for (n, low, high, coverage) in [
            (6, 1, 6, 0.969),
            (7, 1, 7, 0.984),
            (8, 1, 8, 0.992),
            (9, 2, 8, 0.961),
            (10, 2, 9, 0.979),
            (11, 2, 10, 0.988),
            (12, 3, 10, 0.961),
            (15, 4, 12, 0.965),
            (20, 6, 15, 0.959),
            (25, 8, 18, 0.957),
            (30, 10, 21, 0.957),
        ] {
            let ranks = quantile_ranks(n, 0.5).unwrap();
            assert_eq!((ranks.low, ranks.high), (low, high), "n {n}");
            assert!((median_coverage(n, low, high) - coverage).abs() < 5e-4, "n {n}");
        }
    }

    /// P(low ≤ B < high) for B binomial (n, 1/2), from whole numbers.
    fn median_coverage(n: u64, low: u64, high: u64) -> f64 {
        let choose = |k: u64| (0..k).fold(1u64, |product, i| product * (n - i) / (i + 1));
        (low..high).map(choose).sum::<u64>() as f64 / (1u64 << n) as f64
    }

    #[test]
    fn estimates_are_the_nearest_rank() {
        for (n, q, rank) in
            [(1_000, 0.5, 500), (1_001, 0.5, 501), (10_000, 0.999, 9_990), (40_000, 0.9999, 39_996)]
        {
            assert_eq!(quantile_ranks(n, q).unwrap().estimate, rank);
        }
    }

    /// If this fails, the printed intervals cover the true quantile less often than they claim.
    #[test]
    fn intervals_cover_the_true_quantile() {
        const TRIALS: u32 = 20_000;
        // Each distribution with its quantile function.
        type Law = fn(f64) -> f64;
        let laws: [(&str, Law); 4] = [
            ("uniform", |u| u),
            ("exponential", |u| -(-u).ln_1p()),
            ("heavy tail", |u| (1.0 - u).powf(-1.0 / 1.1)),
            // Ties, as in histograms, may only widen the interval.
            ("rounded", |u| (-(-u).ln_1p() * 4.0).floor()),
        ];
        let mut random = SplitMix(42);
        for (n, q) in [(6, 0.5), (101, 0.5), (36, 0.9), (300, 0.9), (72, 0.95), (400, 0.99)] {
            let ranks = quantile_ranks(n, q).unwrap();
            for (name, law) in laws {
                let truth = law(q);
                let covered = (0..TRIALS).filter(|_| {
                    let (mut below, mut up_to) = (0, 0);
                    for _ in 0..n {
                        let value = law(random.next_unit());
                        below += u64::from(value < truth);
                        up_to += u64::from(value <= truth);
                    }
                    // The value of rank `low` is ≤ truth, and that of rank `high` is ≥ truth.
                    up_to >= ranks.low && below < ranks.high
                });
                let coverage = covered.count() as f64 / f64::from(TRIALS);
                assert!(coverage >= 0.945, "{name}, n {n}, q {q}: {coverage}");
            }
        }
    }

    struct SplitMix(u64);

    impl SplitMix {
        fn next_unit(&mut self) -> f64 {
            (next_splitmix64(&mut self.0) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn a_million_million_samples_are_no_harder_than_six() {
        let n = 1_000_000_000_000;
        let ranks = quantile_ranks(n, 0.999).unwrap();
        assert_eq!(ranks.estimate, 999_000_000_000);
        // 1.96 deviations of √(n·q·(1 − q)) = 31 607.
        for distance in [ranks.high - ranks.estimate, ranks.estimate - ranks.low] {
            assert!((61_900..62_000).contains(&distance), "{distance}");
        }
    }

    proptest! {
        /// If this fails, a higher percentile could print below a lower one.
        #[test]
        fn ranks_rise_with_the_quantile(n in 6u64..200_000, a in 0.01f64..0.9999, b in 0.01f64..0.9999) {
            let (lower, higher) = (a.min(b), a.max(b));
            if let (Some(lower), Some(higher)) = (quantile_ranks(n, lower), quantile_ranks(n, higher)) {
                prop_assert!(lower.low <= higher.low);
                prop_assert!(lower.estimate <= higher.estimate);
                prop_assert!(lower.high <= higher.high);
            }
        }

        #[test]
        fn ranks_lie_in_order_within_the_sample(n in 1u64..5_000_000, q in 0.001f64..0.99999) {
            match quantile_ranks(n, q) {
                None => prop_assert!(n < needed_samples(q)),
                Some(Ranks { estimate, low, high }) => {
                    prop_assert!(1 <= low && low <= estimate && estimate <= high && high <= n);
                }
            }
        }

        /// More samples never make the interval wider, as a share of the sample.
        #[test]
        fn more_samples_narrow_the_interval(n in 40u64..100_000, q in 0.1f64..0.9) {
            let width = |n: u64| {
                let ranks = quantile_ranks(n, q).unwrap();
                (ranks.high - ranks.low) as f64 / n as f64
            };
            prop_assert!(width(n * 4) < width(n));
        }
    }
}
