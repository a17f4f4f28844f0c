//! Think time: how long a virtual user of a closed loop pauses between a response and its next request.

use std::fmt;
use std::str::FromStr;

use units::Nanos;

use crate::random::Stream;

/// A distribution of think times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Think {
    /// Always the same time.
    Constant(Nanos),
    /// Uniform from the first to the second, both included.
    Uniform(Nanos, Nanos),
    /// Exponential with this mean.
    Exponential(Nanos),
}

impl Think {
    /// Whether it depends on the seed. Virtual users may then overtake each other.
    pub fn is_random(&self) -> bool {
        !matches!(self, Think::Constant(_))
    }

    /// The think times of one worker's virtual users, in the order in which they become free.
    pub fn times(self, seed: u64, worker: u64) -> ThinkTimes {
        // Different from the streams of a schedule's stages, whose labels count from 0.
        ThinkTimes { think: self, stream: Stream::new(seed, u64::MAX).substream(worker), drawn: 0 }
    }
}

/// The think times of one worker, one after another.
#[derive(Debug, Clone)]
pub struct ThinkTimes {
    think: Think,
    stream: Stream,
    drawn: u64,
}

impl ThinkTimes {
    #[inline]
    /// The next think time.
    pub fn draw(&mut self) -> Nanos {
        let n = self.drawn;
        self.drawn += 1;
        match self.think {
            Think::Constant(time) => time,
            Think::Uniform(from, to) => from + Nanos(self.stream.up_to(n, to.0 - from.0)),
            Think::Exponential(mean) => Nanos((self.stream.exponential(n) * mean.0 as f64) as u64),
        }
    }
}

/// Parses `100ms`, `50ms..150ms` and `exp:100ms`.
impl FromStr for Think {
    type Err = String;

    fn from_str(text: &str) -> Result<Think, String> {
        let time = |part: &str| {
            let time: Nanos = part.parse().map_err(|error| format!("{error}, 50ms..150ms or exp:100ms"))?;
            Ok::<_, String>(time)
        };
        if let Some(mean) = text.strip_prefix("exp:") {
            return match time(mean)? {
                Nanos::ZERO => Err("the mean must be longer than 0".to_owned()),
                mean => Ok(Think::Exponential(mean)),
            };
        }
        if let Some((name, _)) = text.split_once(':') {
            return Err(format!("`{name}` is not a think time; write exp:100ms, 50ms..150ms or 100ms"));
        }
        match text.split_once("..") {
            None => Ok(Think::Constant(time(text)?)),
            Some((from, to)) => match (time(from)?, time(to)?) {
                (from, to) if from > to => Err(format!("`{text}` goes down; write the shorter time first")),
                (from, to) => Ok(Think::Uniform(from, to)),
            },
        }
    }
}

/// Text that parses to the same distribution.
impl fmt::Display for Think {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Think::Constant(time) => f.write_str(&time.written()),
            Think::Uniform(from, to) => write!(f, "{}..{}", from.written(), to.written()),
            Think::Exponential(mean) => write!(f, "exp:{}", mean.written()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_are_read_and_written_alike() {
        for text in ["100ms", "50ms..150ms", "exp:100ms", "0s", "7us..7us"] {
            assert_eq!(text.parse::<Think>().unwrap().to_string(), text);
        }
        for text in ["100", "150ms..50ms", "exp:0s", "exp:", "gauss:3s", "..", "1s.."] {
            assert!(text.parse::<Think>().is_err(), "{text}");
        }
    }

    /// Standard errors over 20,000 draws with mean m: uniform over ±m/2 m/sqrt(12)/141, exponential m/141. The limits
    /// are four of them.
    #[test]
    fn think_times_have_their_mean_and_stay_within_their_range() {
        let n = 20_000;
        for (text, error) in [("50ms..150ms", 0.29 / 141.4), ("exp:100ms", 1.0 / 141.4)] {
            let think: Think = text.parse().unwrap();
            let mut times = think.times(11, 0);
            let drawn: Vec<Nanos> = (0..n).map(|_| times.draw()).collect();
            let mean = drawn.iter().map(|time| time.as_secs_f64()).sum::<f64>() / f64::from(n);
            assert!((mean / 0.1 - 1.0).abs() < 4.0 * error, "{text}: {mean}");
            if let Think::Uniform(from, to) = think {
                assert!(drawn.iter().all(|time| (from..=to).contains(time)));
            }
        }
        assert_eq!(Think::Constant(Nanos(3)).times(1, 1).draw(), Nanos(3));
    }
}
