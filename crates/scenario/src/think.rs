//! Think times: how long a journey waits between two steps.

use units::Nanos;

use crate::random::{between, draw};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Think {
    #[default]
    None,
    Constant(Nanos),
    /// Evenly distributed between these two.
    Uniform(Nanos, Nanos),
    /// Exponentially distributed with this mean, like the steps of independent users.
    Exponential(Nanos),
}

impl Think {
    /// Reads `1s`, `1s..3s` or `exp:2s`.
    pub(crate) fn parse(text: &str) -> Result<Think, String> {
        let time = |text: &str| text.trim().parse::<Nanos>().map_err(|error| error.to_string());
        if let Some(mean) = text.trim().strip_prefix("exp:") {
            return time(mean).map(Think::Exponential);
        }
        match text.split_once("..") {
            None => time(text).map(Think::Constant),
            Some((low, high)) => match (time(low)?, time(high)?) {
                (low, high) if low <= high => Ok(Think::Uniform(low, high)),
                _ => Err(format!("`{text}` ends before it begins; write the shorter time first")),
            },
        }
    }

    /// The think time of draw `id` of unit `n`.
    pub(crate) fn time(self, seed: u64, n: u64, id: u64) -> Nanos {
        match self {
            Think::None => Nanos::ZERO,
            Think::Constant(time) => time,
            Think::Uniform(low, high) => Nanos(between(draw(seed, n, id), low.0, high.0)),
            Think::Exponential(mean) => {
                // 53 bits give a number above 0 and at most 1, so its logarithm is finite.
                let share = ((draw(seed, n, id) >> 11) + 1) as f64 / (1u64 << 53) as f64;
                Nanos((-share.ln() * mean.0 as f64) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_and_drawn() {
        let second = Nanos::from_secs(1);
        assert_eq!(Think::parse("1s"), Ok(Think::Constant(second)));
        assert_eq!(Think::parse("1s..3s"), Ok(Think::Uniform(second, Nanos::from_secs(3))));
        assert_eq!(Think::parse("exp:1s"), Ok(Think::Exponential(second)));
        for text in ["", "1", "3s..1s", "exp:", "exp 1s", "a..b"] {
            assert!(Think::parse(text).is_err(), "{text}");
        }
        let uniform = Think::Uniform(second, Nanos::from_secs(3));
        assert!((0..1_000).all(|n| (second..=Nanos::from_secs(3)).contains(&uniform.time(7, n, 1))));
        let total: u64 = (0..10_000).map(|n| Think::Exponential(second).time(7, n, 1).0).sum();
        // The mean of 10,000 has a standard deviation of 1/100: five of those.
        assert!((950_000_000..1_050_000_000).contains(&(total / 10_000)), "{total}");
    }
}
