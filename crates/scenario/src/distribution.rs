//! Distributions of whole numbers for parameters: hot keys, rows near the middle, sequences.
//!
//! Each is a pure function of the seed, the unit's number and the place in the file, so the same run requests the same
//! values whatever the number of workers. The definitions are those that users of sysbench and pgbench know; each has a
//! closed form, which its test checks it against.

use libm::{exp, log, log1p, pow};

use crate::random::{between, draw, nth_draw};

/// How whole numbers from `low` to `high`, both included, are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Distribution {
    pub low: u64,
    pub high: u64,
    pub shape: Shape,
}

/// The shape of a distribution over *N* values, number 1 of which is `low`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// All with the same probability.
    Uniform,
    /// Value number *k* with a probability in proportion to 1/*k*^s.
    Zipf(f64),
    /// A normal distribution around the middle, cut off at this many standard deviations, as pgbench's.
    Gaussian(f64),
    /// Falling by e^p from `low` to `high`, as pgbench's.
    Exponential(f64),
    /// Sysbench's `pareto`: the share *h* of the values is drawn in 1 - *h* of the cases, `low` most often.
    Pareto(f64),
    /// Sysbench's `special`: in 75 % of the cases evenly one of the middle 1 % of the values, otherwise the mean of
    /// twelve even draws.
    Special,
    /// In order of the unit's number, starting again at `low` after `high`.
    Sequence,
}

// Parameters are checked against their bounds, so they are never NaN.
impl Eq for Shape {}

impl Distribution {
    /// Reads `zipf 1 1000 0.99`: a name, both bounds, and the parameter of the shapes that have one.
    ///
    /// # Errors
    ///
    /// What is wrong and what to write instead; `None` if `words` name no distribution.
    pub(crate) fn parse(words: &[&str]) -> Option<Result<Distribution, String>> {
        let (&name, rest) = words.split_first()?;
        let known = KNOWN.iter().find(|known| known.name == name)?;
        Some(known.read(rest))
    }

    /// The value of draw `id` of unit `n`.
    pub(crate) fn value(self, seed: u64, n: u64, id: u64) -> u64 {
        let Distribution { low, high, shape } = self;
        let first = draw(seed, n, id);
        let count = (high - low) as f64 + 1.0;
        // At least 0, and below `count` except for rounding.
        let at = |offset: f64| low + (offset as u64).min(high - low);
        match shape {
            Shape::Uniform => between(first, low, high),
            Shape::Sequence if low == 0 && high == u64::MAX => n,
            Shape::Sequence => low + n % (high - low + 1),
            Shape::Zipf(s) => low + (Zipf::new(count, s).rank(first) - 1).min(high - low),
            Shape::Gaussian(p) => at(count * (1.0 + truncated_normal(first, p) / p) / 2.0),
            Shape::Exponential(p) => {
                let cut = exp(-p);
                at(count * -log(cut + (1.0 - cut) * unit(first)) / p)
            }
            Shape::Pareto(h) => at(count * pow(1.0 - unit(first), log(h) / log(1.0 - h))),
            Shape::Special if unit(first) <= SPECIAL_SHARE => {
                let middle = (count * SPECIAL_WIDTH).max(1.0);
                at((count - middle) / 2.0 + middle * (1.0 - unit(nth_draw(first, 1))))
            }
            Shape::Special => {
                let sum: f64 = (1..=SPECIAL_DRAWS).map(|nth| 1.0 - unit(nth_draw(first, nth))).sum();
                at(count * sum / SPECIAL_DRAWS as f64)
            }
        }
    }
}

/// Sysbench's defaults: `--rand-spec-res=75`, `--rand-spec-pct=1`, `--rand-spec-iter=12`.
const SPECIAL_SHARE: f64 = 0.75;
const SPECIAL_WIDTH: f64 = 0.01;
const SPECIAL_DRAWS: u64 = 12;

/// A distribution that a file may name.
struct Known {
    name: &'static str,
    /// Default parameter, and the bounds of what may be given.
    parameter: Option<(f64, f64, f64)>,
    shape: fn(f64) -> Shape,
}

/// Defaults: YCSB's zipf, pgbench's examples, sysbench's `--rand-pareto-h`.
const KNOWN: [Known; 7] = [
    Known { name: "uniform", parameter: None, shape: |_| Shape::Uniform },
    Known { name: "zipf", parameter: Some((0.99, 0.01, 20.0)), shape: Shape::Zipf },
    Known { name: "gaussian", parameter: Some((2.5, 2.0, 100.0)), shape: Shape::Gaussian },
    Known { name: "exponential", parameter: Some((2.5, 0.01, 700.0)), shape: Shape::Exponential },
    Known { name: "pareto", parameter: Some((0.2, 0.01, 0.5)), shape: Shape::Pareto },
    Known { name: "special", parameter: None, shape: |_| Shape::Special },
    Known { name: "sequence", parameter: None, shape: |_| Shape::Sequence },
];

/// The names of all distributions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}

impl Known {
    fn read(&self, words: &[&str]) -> Result<Distribution, String> {
        let name = self.name;
        let bounds = |low: &str, high: &str| Some((low.parse().ok()?, high.parse().ok()?));
        let (parameter, given) = match (words, self.parameter) {
            ([low, high], _) => (None, bounds(low, high)),
            ([low, high, parameter], Some(_)) => (Some(*parameter), bounds(low, high)),
            _ => (None, None),
        };
        let Some((low, high)) = given.filter(|(low, high): &(u64, u64)| low <= high) else {
            return Err(match self.parameter {
                None => format!("`{name}` needs two bounds; write for example {name} 1 100"),
                Some((usual, ..)) => format!(
                    "`{name}` needs two bounds and may have a parameter; write for example {name} 1 100 {usual}"
                ),
            });
        };
        let shape = match (self.parameter, parameter) {
            (Some((usual, ..)), None) => (self.shape)(usual),
            (Some((_, least, most)), Some(text)) => match text.parse::<f64>() {
                Ok(value) if (least..=most).contains(&value) => (self.shape)(value),
                _ => {
                    return Err(format!(
                        "the parameter of `{name}` is a number from {least} to {most}, not `{text}`"
                    ));
                }
            },
            (None, _) => (self.shape)(0.0),
        };
        Ok(Distribution { low, high, shape })
    }
}

/// Above 0 and at most 1, in steps of 2^-53, so its logarithm is finite.
fn unit(draw: u64) -> f64 {
    ((draw >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// A standard normal number between `-limit` and `limit`: the first such draw of the Box-Muller method. With a limit of
/// 2 or more, at most one in twenty is rejected.
fn truncated_normal(first: u64, limit: f64) -> f64 {
    let normal = |pair: u64| {
        let (radius, turn) = (unit(nth_draw(first, 2 * pair)), unit(nth_draw(first, 2 * pair + 1)));
        (-2.0 * log(radius)).sqrt() * libm::cos(std::f64::consts::TAU * turn)
    };
    // Bounded, because a loop could be long for some parameter in a file; with 20^-64 the fallback never occurs.
    (0..64).map(normal).find(|z| z.abs() < limit).unwrap_or(0.0)
}

/// Ranks by rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", ACM TOMACS 6(3), 1996. Needs no table, so its cost does not grow with the range.
struct Zipf {
    count: f64,
    s: f64,
    /// The integral up to half a rank after the last, and up to half a rank after the first, minus the first rank's
    /// value.
    most: f64,
    least: f64,
}

impl Zipf {
    fn new(count: f64, s: f64) -> Zipf {
        let mut zipf = Zipf { count, s, most: 0.0, least: 0.0 };
        zipf.most = zipf.integral(count + 0.5);
        zipf.least = zipf.integral(1.5) - 1.0;
        zipf
    }

    /// A rank from 1 to the count. Needs at most 1.3 tries on average.
    fn rank(&self, first: u64) -> u64 {
        for nth in 0..64 {
            let u = self.most + unit(nth_draw(first, nth)) * (self.least - self.most);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.count);
            if u >= self.integral(k + 0.5) - exp(-self.s * log(k)) {
                return k as u64;
            }
        }
        1
    }

    /// The integral of x^-s from 1 to `x`: (x^(1 - s) - 1) / (1 - s), or the logarithm if s is 1.
    fn integral(&self, x: f64) -> f64 {
        let (log_x, t) = (log(x), 1.0 - self.s);
        if (t * log_x).abs() < 1e-8 { log_x * (1.0 + t * log_x / 2.0) } else { libm::expm1(t * log_x) / t }
    }

    fn inverse(&self, u: f64) -> f64 {
        let t = 1.0 - self.s;
        let t_u = (t * u).max(-1.0);
        if t_u.abs() < 1e-8 { exp(u * (1.0 - t_u / 2.0)) } else { exp(log1p(t_u) / t) }
    }
}

#[cfg(test)]
mod tests;
