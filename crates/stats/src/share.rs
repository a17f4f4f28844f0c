//! Confidence intervals of shares that were sampled, and of the difference of two.
//!
//! A share is `hits` of `trials` samples at random instants. Its interval is the score interval (E. B. Wilson,
//! "Probable inference, the law of succession, and statistical inference", 1927), which also holds for shares near 0
//! and 1. The interval of a difference combines two of them (R. G. Newcombe, "Interval estimation for the difference
//! between independent proportions", 1998, method 10).
//!
//! It covers the error of sampling only: two runs of the same program may differ by more.

/// The probability that an interval misses the true value.
const ALPHA: f64 = 0.05;

/// The standard deviations of a 95 % interval.
pub(crate) const Z_95: f64 = 1.959_963_984_540_054;

/// How often something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    pub hits: u64,
    pub trials: u64,
}

/// Both ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub low: f64,
    pub high: f64,
}

impl Bounds {
    /// Whether every value in the interval has the same sign, so that a change is not just chance.
    pub fn excludes_zero(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

impl Sampled {
    /// The share itself, 0 to 1; `None` without samples.
    pub fn share(self) -> Option<f64> {
        (self.trials > 0).then(|| self.hits.min(self.trials) as f64 / self.trials as f64)
    }

    /// The 95 % confidence interval of the share, within 0 to 1; `None` without samples.
    pub fn interval(self) -> Option<Bounds> {
        self.wilson(deviations(ALPHA))
    }

    /// How much the share grew from `before`, at most 1, with its interval. If `comparisons` shares are compared, all
    /// of their intervals together hold with 95 % confidence (Bonferroni). `None` without samples on either side.
    pub fn change_from(self, before: Sampled, comparisons: usize) -> Option<(f64, Bounds)> {
        let z = deviations(ALPHA / comparisons.max(1) as f64);
        let (was, is) = (before.share()?, self.share()?);
        let (around_was, around_is) = (before.wilson(z)?, self.wilson(z)?);
        let change = is - was;
        let below = (is - around_is.low).hypot(around_was.high - was);
        let above = (around_is.high - is).hypot(was - around_was.low);
        Some((change, Bounds { low: change - below, high: change + above }))
    }

    fn wilson(self, z: f64) -> Option<Bounds> {
        Some(wilson(self.share()?, self.trials as f64, z))
    }
}

/// The score interval of `share`, observed in `trials`, which need not be whole; `z` standard deviations wide. The ends
/// are exact for a share of 0 and of 1.
pub(crate) fn wilson(share: f64, trials: f64, z: f64) -> Bounds {
    let squared = z * z / trials;
    let middle = (share + squared / 2.0) / (1.0 + squared);
    let half = z / (1.0 + squared) * (share * (1.0 - share) / trials + squared / (4.0 * trials)).sqrt();
    // At the ends, rounding would leave a share of 1e-17.
    let low = if share <= 0.0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if share >= 1.0 { 1.0 } else { (middle + half).min(1.0) };
    Bounds { low, high }
}

/// How many standard deviations a normal value stays within, both ways, except with probability `alpha`.
///
/// To 4.5e-4 (Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.2.23).
fn deviations(alpha: f64) -> f64 {
    let t = (-2.0 * (alpha / 2.0).ln()).sqrt();
    let over = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let under = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - over / under
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hits: u64, trials: u64, low: f64, high: f64) {
        let bounds = Sampled { hits, trials }.interval().unwrap();
        assert!((bounds.low - low).abs() < 2e-4 && (bounds.high - high).abs() < 2e-4, "{bounds:?}");
    }

    /// The published examples of Newcombe's comparison of methods, 1998.
    #[test]
    fn intervals_are_those_of_the_literature() {
        check(81, 263, 0.2553, 0.3662);
        check(15, 148, 0.0624, 0.1605);
        check(0, 20, 0.0, 0.1611);
        check(1, 29, 0.0061, 0.1718);
        check(20, 20, 0.8389, 1.0);
        assert!(Sampled { hits: 0, trials: 0 }.interval().is_none());
        let (change, bounds) =
            Sampled { hits: 56, trials: 70 }.change_from(Sampled { hits: 48, trials: 80 }, 1).unwrap();
        assert!((change - 0.2).abs() < 1e-12);
        assert!((bounds.low - 0.0524).abs() < 2e-4 && (bounds.high - 0.3339).abs() < 2e-4, "{bounds:?}");
    }

    #[test]
    fn more_comparisons_need_a_larger_change() {
        let (before, after) = (Sampled { hits: 100, trials: 1000 }, Sampled { hits: 135, trials: 1000 });
        let claims = |n| after.change_from(before, n).unwrap().1.excludes_zero();
        assert!(claims(1) && !claims(200));
        assert!(
            (deviations(0.05) - 1.959_964).abs() < 5e-4 && (deviations(0.05 / 200.0) - 3.662_4).abs() < 5e-4
        );
    }

    /// If this fails, a share that is reported with an interval is outside of it more often than once in twenty.
    ///
    /// All outcomes of 990 samples, weighted by their probability, for shares from 1 in 100 to 99 in 100.
    #[test]
    fn an_interval_holds_the_true_share_in_19_of_20() {
        const N: u64 = 990;
        for percent in [1_u32, 5, 25, 50, 75, 99] {
            let p = f64::from(percent) / 100.0;
            let mut log = (1.0 - p).ln() * N as f64;
            let mut covered = 0.0;
            for hits in 0..=N {
                let bounds = Sampled { hits, trials: N }.interval().unwrap();
                if (bounds.low..=bounds.high).contains(&p) {
                    covered += log.exp();
                }
                log += ((N - hits) as f64 / (hits + 1) as f64 * p / (1.0 - p)).ln();
            }
            // A score interval has 95 % on average over shares; for one share it is up to 1.5 points off.
            assert!(covered > 0.935, "{percent} %: {covered}");
        }
    }
}
