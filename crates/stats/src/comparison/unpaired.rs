//! Two arms without blocks in common: Welch's t on the logs of the values.
//!
//! Weaker than pairs, and wrong if the machine drifted between the arms; a report says "unpaired".

use super::Evidence;
use super::evidence::student;

/// The natural logs of the values of two arms.
#[derive(Debug, Clone, PartialEq)]
pub struct Unpaired {
    base: Moments,
    arm: Moments,
}

/// Why values cannot be compared as ratios.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum UnpairedError {
    #[error("a ratio needs positive values, and {0} is not one")]
    NotPositive(f64),
    #[error("a comparison needs at least two runs per arm, and one has {0}")]
    TooFew(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Moments {
    n: usize,
    mean: f64,
    /// Of the mean: s²/n.
    variance: f64,
}

impl Unpaired {
    /// # Errors
    ///
    /// [`UnpairedError`] for fewer than two values in an arm, or one that is not positive and finite.
    pub fn new(base: &[f64], arm: &[f64]) -> Result<Unpaired, UnpairedError> {
        Ok(Unpaired { base: moments(base)?, arm: moments(arm)? })
    }

    /// The smaller number of runs of the two arms.
    pub fn runs(&self) -> usize {
        self.base.n.min(self.arm.n)
    }

    /// Welch's t, with the degrees of freedom of Welch and Satterthwaite (Biometrika 34, 1947). `margin` is a log.
    pub fn student(&self, margin: f64) -> Evidence {
        welch(self.base, self.arm, margin)
    }

    /// The same as if both arms had `runs` with these means and deviations.
    pub(super) fn student_of(&self, runs: usize, margin: f64) -> Evidence {
        let of = |m: Moments| Moments { n: runs, variance: m.variance * m.n as f64 / runs as f64, ..m };
        welch(of(self.base), of(self.arm), margin)
    }
}

fn welch(a: Moments, b: Moments, margin: f64) -> Evidence {
    let variance = a.variance + b.variance;
    let share = |m: Moments| m.variance * m.variance / (m.n - 1) as f64;
    let shares = share(a) + share(b);
    let degrees = if shares > 0.0 { variance * variance / shares } else { (a.n + b.n - 2) as f64 };
    student(b.mean - a.mean, variance.sqrt(), degrees, margin)
}

fn moments(values: &[f64]) -> Result<Moments, UnpairedError> {
    if let Some(value) = values.iter().find(|value| !(**value > 0.0 && value.is_finite())) {
        return Err(UnpairedError::NotPositive(*value));
    }
    if values.len() < 2 {
        return Err(UnpairedError::TooFew(values.len()));
    }
    let n = values.len() as f64;
    let mean = values.iter().map(|value| value.ln()).sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
    Ok(Moments { n: values.len(), mean, variance: squares / (n - 1.0) / n })
}
