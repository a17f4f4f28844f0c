//! What one method concludes from the log ratios of an experiment.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The log of a ratio with the interval in which the true one is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Natural logs of ratios; infinite where the sample is too small for a limit.
    pub low: f64,
    pub high: f64,
}

/// The estimate of one method and what it supports. All values are natural logs of ratios, or probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    pub estimate: f64,
    /// Contains the true value in 95 % of all experiments.
    pub interval_95: Interval,
    /// Contains it in 90 %. Inside the margin, it shows that the difference is too small to matter: this is the
    /// interval form of two one-sided tests at 5 % (Schuirmann, 1987).
    pub interval_90: Interval,
    /// The two-sided p-value of "there is no difference".
    pub p_differs: f64,
    /// The larger p-value of the two one-sided tests of "the difference is at least the margin".
    pub p_beyond_margin: f64,
}

impl Interval {
    /// The limits as ratios.
    pub fn ratios(self) -> (f64, f64) {
        (self.low.exp(), self.high.exp())
    }
}

/// The evidence of a mean with a standard error and `degrees` of freedom: Student's t. `margin` is a log.
pub(super) fn student(mean: f64, error: f64, degrees: f64, margin: f64) -> Evidence {
    let reach = |p: f64| if error == 0.0 { 0.0 } else { t_quantile(p, degrees) * error };
    let interval = |p: f64| Interval { low: mean - reach(p), high: mean + reach(p) };
    let above = |limit: f64| upper_tail(mean - limit, error, degrees);
    Evidence {
        estimate: mean,
        interval_95: interval(0.975),
        interval_90: interval(0.95),
        p_differs: (2.0 * above(0.0).min(1.0 - above(0.0))).min(1.0),
        p_beyond_margin: above(-margin).max(1.0 - above(margin)),
    }
}

/// The value below which Student's t with `degrees` of freedom is with probability `p`.
pub(crate) fn t_quantile(p: f64, degrees: f64) -> f64 {
    distribution(degrees).inverse_cdf(p)
}

/// P(T ≥ distance / error); without any spread, a distance either way is certain.
fn upper_tail(distance: f64, error: f64, degrees: f64) -> f64 {
    if error > 0.0 {
        return distribution(degrees).sf(distance / error);
    }
    match distance.partial_cmp(&0.0) {
        Some(std::cmp::Ordering::Greater) => 0.0,
        Some(std::cmp::Ordering::Less) => 1.0,
        _ => 0.5,
    }
}

fn distribution(degrees: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees).expect("degrees of freedom are positive: there are two values at least")
}
