//! Blocks drawn again and again: intervals of statistics without a formula, and of ranks.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::comparison::t_quantile;

/// Resamples of each interval.
const RESAMPLES: usize = 10_000;

/// The 95 % interval of `statistic`, which is given the indices of drawn blocks (some twice, some not at all). Blocks
/// are drawn whole, both arms together. `None` for fewer than two blocks, and if a statistic is not a number.
///
/// The interval is the expanded percentile interval: its tails are Φ(−√(n/(n − 1))·t(0.975; n − 1)), because plain
/// percentiles cover 85 to 92 % for 5 to 20 blocks (Hesterberg, The American Statistician 69, 2015).
pub fn resampled_interval(
    blocks: usize,
    seed: u64,
    statistic: impl Fn(&[usize]) -> f64,
) -> Option<(f64, f64)> {
    if blocks < 2 {
        return None;
    }
    let mut values: Vec<f64> =
        Draws::new(blocks, seed).take(RESAMPLES).map(|drawn| statistic(&drawn)).collect();
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let n = blocks as f64;
    let tail = Normal::standard().cdf(-(n / (n - 1.0)).sqrt() * t_quantile(0.975, n - 1.0));
    let below = (tail * RESAMPLES as f64).floor() as usize;
    Some((values[below], values[RESAMPLES - 1 - below]))
}

/// The best and the worst rank, from 1, that an arm has in 95 % of the resamples; by the mean over drawn blocks, the
/// smallest first. `values[block][arm]`; every block has a value of each arm.
///
/// # Panics
///
/// If a block has another number of arms than the first.
pub fn rank_intervals(values: &[Vec<f64>], seed: u64) -> Vec<(usize, usize)> {
    let Some(arms) = values.first().map(Vec::len) else { return Vec::new() };
    assert!(values.iter().all(|block| block.len() == arms), "every block has every arm");
    let mut seen = vec![vec![0_usize; arms]; arms];
    for drawn in Draws::new(values.len(), seed).take(RESAMPLES) {
        let sum = |arm: usize| drawn.iter().map(|block| values[*block][arm]).sum::<f64>();
        let sums: Vec<f64> = (0..arms).map(sum).collect();
        let mut order: Vec<usize> = (0..arms).collect();
        order.sort_by(|a, b| sums[*a].total_cmp(&sums[*b]));
        for (rank, arm) in order.into_iter().enumerate() {
            seen[arm][rank] += 1;
        }
    }
    seen.iter().map(|counts| (rank_at(counts, 0.025), rank_at(counts, 0.975))).collect()
}

/// The rank, from 1, at which the share of resamples first exceeds `share`.
fn rank_at(counts: &[usize], share: f64) -> usize {
    let limit = (share * RESAMPLES as f64) as usize;
    let mut sum = 0;
    let reached = counts.iter().position(|count| {
        sum += count;
        sum > limit
    });
    reached.map_or(counts.len(), |rank| rank + 1)
}

/// Endless draws of as many blocks as there are.
struct Draws {
    generator: Xoshiro256PlusPlus,
    blocks: usize,
}

impl Draws {
    fn new(blocks: usize, seed: u64) -> Draws {
        Draws { generator: Xoshiro256PlusPlus::seed_from_u64(seed), blocks }
    }
}

impl Iterator for Draws {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let blocks = self.blocks as u128;
        // The high half of a product: uniform to one part in 2^64 / blocks.
        let mut index = || ((u128::from(self.generator.next_u64()) * blocks) >> 64) as usize;
        Some((0..self.blocks).map(|_| index()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::normal;

    /// Ten blocks: plain percentiles would cover about 90 %.
    #[test]
    fn the_interval_of_a_mean_covers_it() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(5);
        let covered = (0..400).filter(|seed| {
            let values: Vec<f64> = (0..10).map(|_| normal(&mut generator)).collect();
            let mean = |drawn: &[usize]| drawn.iter().map(|block| values[*block]).sum::<f64>();
            let (low, high) = resampled_interval(10, *seed, mean).unwrap();
            low <= 0.0 && 0.0 <= high
        });
        let covered = covered.count();
        assert!((368..=392).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn ranks_are_certain_only_where_arms_are_apart() {
        let block = |noise: f64| vec![10.0 + noise, 10.0 - noise, 20.0 + noise, 30.0];
        let values: Vec<Vec<f64>> = [0.5, -0.4, 0.3, -0.6, 0.2, -0.1].map(block).to_vec();
        assert_eq!(rank_intervals(&values, 1), [(1, 2), (1, 2), (3, 3), (4, 4)]);
        assert!(rank_intervals(&[], 1).is_empty());
    }

    #[test]
    fn too_few_blocks_have_no_interval() {
        assert_eq!(resampled_interval(1, 1, |_| 1.0), None);
        assert_eq!(resampled_interval(3, 1, |_| f64::NAN), None);
        assert_eq!(resampled_interval(3, 1, |_| 2.0), Some((2.0, 2.0)));
    }
}
