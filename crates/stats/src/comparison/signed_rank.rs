//! The exact signed-rank test and the estimate of Hodges and Lehmann: what holds without the normal distribution.
//!
//! The Walsh averages are the means of all pairs of values, each value with itself included. Their median is the
//! estimate, and the number of them above a value decides the test of that value (Hodges and Lehmann, Annals of
//! Mathematical Statistics 34, 1963; Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 3.1 to 3.3).

use statrs::distribution::{ContinuousCDF, Normal};

use super::{Evidence, Interval};

/// Up to this many values the distribution of the statistic is counted out, in about n³/6 additions: 1 ms for 100.
/// Beyond, the normal distribution differs from it by less than 0.001.
const COUNTED: usize = 100;

/// The evidence of the signed-rank test about the centre of `values`. `margin` is a log, as the values are.
/// `None` for no values.
///
/// Averages that are equal to a tested value count against the conclusion, so that ties never make it easier.
///
/// # Cost
///
/// About n² log n comparisons.
pub fn signed_rank(values: &[f64], margin: f64) -> Option<Evidence> {
    if values.is_empty() {
        return None;
    }
    let averages = walsh_averages(values);
    let null = Null::new(values.len());
    // P that at least as many averages are above (or below) the value, if that value were the centre.
    let above = |value: f64| null.at_least(averages.len() - averages.partition_point(|a| *a <= value));
    let below = |value: f64| null.at_least(averages.partition_point(|a| *a < value));
    Some(Evidence {
        estimate: median(&averages),
        interval_95: interval(&averages, &null, 0.025),
        interval_90: interval(&averages, &null, 0.05),
        p_differs: (2.0 * above(0.0).min(below(0.0))).min(1.0),
        p_beyond_margin: above(-margin).max(below(margin)),
    })
}

fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> =
        values.iter().enumerate().flat_map(|(i, a)| values[i..].iter().map(move |b| (a + b) / 2.0)).collect();
    averages.sort_by(f64::total_cmp);
    averages
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// The averages of the ranks k and m + 1 − k, with the largest k for which a miss at each end has at most `tail`.
fn interval(averages: &[f64], null: &Null, tail: f64) -> Interval {
    let m = averages.len();
    // The centre is below the average of rank k only if at most k − 1 averages are below it.
    match null.largest_with_lower_tail(tail) {
        Some(k) => Interval { low: averages[k], high: averages[m - 1 - k] },
        None => Interval { low: f64::NEG_INFINITY, high: f64::INFINITY },
    }
}

/// The distribution of the number of Walsh averages above the true centre.
enum Null {
    /// The probability of each number, from 0.
    Counted(Vec<f64>),
    Normal {
        distribution: Normal,
        most: usize,
    },
}

impl Null {
    fn new(n: usize) -> Null {
        if n > COUNTED { Null::normal(n) } else { Null::counted(n) }
    }

    fn normal(n: usize) -> Null {
        let most = n * (n + 1) / 2;
        let n = n as f64;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let distribution = Normal::new(n * (n + 1.0) / 4.0, deviation).expect("the deviation is positive");
        Null::Normal { distribution, most }
    }

    /// Each rank from 1 to n counts or does not, with probability one half.
    fn counted(n: usize) -> Null {
        let mut probabilities = vec![0.0; n * (n + 1) / 2 + 1];
        probabilities[0] = 1.0;
        let mut reached = 0;
        for rank in 1..=n {
            reached += rank;
            for sum in (0..=reached).rev() {
                let with = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
                probabilities[sum] = (probabilities[sum] + with) / 2.0;
            }
        }
        Null::Counted(probabilities)
    }

    fn at_least(&self, count: usize) -> f64 {
        match self {
            Null::Counted(probabilities) => probabilities[count..].iter().sum::<f64>().min(1.0),
            Null::Normal { distribution, .. } => distribution.sf(count as f64 - 0.5),
        }
    }

    /// The largest k with P(number ≤ k) ≤ `tail`; `None` if even zero is likelier than that.
    fn largest_with_lower_tail(&self, tail: f64) -> Option<usize> {
        match self {
            Null::Counted(probabilities) => {
                let mut sum = 0.0;
                let within = |probability: &&f64| {
                    sum += **probability;
                    sum <= tail
                };
                probabilities.iter().take_while(within).count().checked_sub(1)
            }
            Null::Normal { distribution, most } => {
                let limit = (distribution.inverse_cdf(tail) - 0.5).floor();
                (limit >= 0.0).then_some((limit as usize).min(most / 2))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_continues_the_counted_one() {
        let (counted, normal) = (Null::counted(COUNTED), Null::normal(COUNTED));
        for count in 0..=COUNTED * (COUNTED + 1) / 2 {
            let difference = counted.at_least(count) - normal.at_least(count);
            assert!(difference.abs() < 0.001, "{count}: {difference}");
        }
        for tail in [0.025, 0.05] {
            let [counted, normal] = [&counted, &normal]
                .map(|null| null.largest_with_lower_tail(tail).expect("100 values are enough"));
            assert!(counted.abs_diff(normal) <= 2, "{counted} {normal}");
        }
    }
}
