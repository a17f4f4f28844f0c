//! Shares of failures over several runs: failures come in clusters, and a run is one cluster.

use crate::share::{Z_95, wilson};

/// The failures of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    pub failed: u64,
    pub attempts: u64,
}

/// The share over all runs with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusteredShare {
    pub share: f64,
    pub low: f64,
    pub high: f64,
    /// How much less the runs tell than as many independent attempts: between-run variance / binomial variance, at least 1.
    pub design_effect: f64,
}

/// Where a share is compared with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Above,
    Below,
    Undecided,
}

/// The share of failures: Wilson's interval (JASA 22, 1927) with the attempts divided by the design effect (Kish,
/// "Survey Sampling", 1965). `None` without attempts.
pub fn clustered_share(runs: &[Attempts]) -> Option<ClusteredShare> {
    let attempts: u64 = runs.iter().map(|run| run.attempts).sum();
    let failed: u64 = runs.iter().map(|run| run.failed).sum();
    if attempts == 0 {
        return None;
    }
    let share = failed as f64 / attempts as f64;
    let design_effect = design_effect(runs, share, attempts as f64);
    let bounds = wilson(share, attempts as f64 / design_effect, Z_95);
    Some(ClusteredShare { share, low: bounds.low, high: bounds.high, design_effect })
}

impl ClusteredShare {
    /// The side of `limit` on which the whole interval is.
    pub fn side(self, limit: f64) -> Side {
        if self.low > limit {
            Side::Above
        } else if self.high < limit {
            Side::Below
        } else {
            Side::Undecided
        }
    }
}

/// The variance of the ratio estimator over runs, divided by that of independent attempts.
fn design_effect(runs: &[Attempts], share: f64, attempts: f64) -> f64 {
    let runs: Vec<_> = runs.iter().filter(|run| run.attempts > 0).collect();
    let binomial = share * (1.0 - share) / attempts;
    if runs.len() < 2 || binomial <= 0.0 {
        return 1.0;
    }
    let n = runs.len() as f64;
    let residual = |run: &&Attempts| (run.failed as f64 - share * run.attempts as f64).powi(2);
    let between = n / (n - 1.0) * runs.iter().map(residual).sum::<f64>() / (attempts * attempts);
    (between / binomial).max(1.0)
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::comparison::normal;

    fn runs(runs: &[(u64, u64)]) -> Vec<Attempts> {
        runs.iter().map(|&(failed, attempts)| Attempts { failed, attempts }).collect()
    }

    /// Newcombe (Statistics in Medicine 17, 1998), table I: 15 of 148 by Wilson's method.
    #[test]
    fn one_run_has_the_interval_of_wilson() {
        let share = clustered_share(&runs(&[(15, 148)])).unwrap();
        assert!((share.low - 0.0624).abs() < 1e-4 && (share.high - 0.1605).abs() < 1e-4, "{share:?}");
        assert_eq!(share.design_effect, 1.0);
    }

    #[test]
    fn failures_that_come_in_clusters_say_less() {
        let even = clustered_share(&runs(&[(50, 1000), (50, 1000), (50, 1000), (50, 1000)])).unwrap();
        let uneven = clustered_share(&runs(&[(0, 1000), (0, 1000), (0, 1000), (200, 1000)])).unwrap();
        assert_eq!((even.share, even.design_effect), (0.05, 1.0));
        assert_eq!(uneven.share, 0.05);
        assert!(uneven.design_effect > 100.0 && uneven.high > 3.0 * even.high, "{uneven:?}");
    }

    #[test]
    fn a_limit_has_three_sides() {
        let side = |failed| clustered_share(&runs(&[(failed, 1000)])).unwrap().side(0.05);
        assert_eq!([side(20), side(50), side(90)], [Side::Below, Side::Undecided, Side::Above]);
        assert_eq!(clustered_share(&runs(&[(0, 0)])), None);
    }

    /// Twenty runs whose own shares vary around 10 %; without the design effect the interval covers in about half.
    #[test]
    fn the_interval_covers_the_share_behind_the_runs() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(11);
        let covered = (0..1000).filter(|_| {
            let mut run = || {
                let share = (0.1 + 0.02 * normal(&mut generator)).clamp(0.0, 1.0);
                let failed =
                    2000.0 * share + (2000.0 * share * (1.0 - share)).sqrt() * normal(&mut generator);
                Attempts { failed: failed.round().max(0.0) as u64, attempts: 2000 }
            };
            let runs: Vec<Attempts> = (0..20).map(|_| run()).collect();
            let share = clustered_share(&runs).unwrap();
            share.low <= 0.1 && 0.1 <= share.high
        });
        let covered = covered.count();
        assert!((910..=970).contains(&covered), "{covered} of 1000");
    }
}
