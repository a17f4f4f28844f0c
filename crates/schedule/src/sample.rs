//! Which requests are in a sample: decided by number, before anything is known about the request.

use crate::random::Stream;

/// The label of the stream that decides samples.
const LABEL: u64 = 0x5a;

/// A random share of the requests of a run, decided for each independently.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    share: f64,
    stream: Stream,
}

impl Sample {
    /// A sample of the share `share` (0 to 1) of all requests, drawn with `seed`.
    ///
    /// # Panics
    ///
    /// If `share` is not within 0 to 1.
    pub fn new(share: f64, seed: u64) -> Sample {
        assert!((0.0..=1.0).contains(&share), "a share of {share}");
        Sample { share, stream: Stream::new(seed, LABEL) }
    }

    /// The requested share, 0 to 1.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Whether request number `n` is in the sample.
    ///
    /// # Cost
    ///
    /// One hash, no memory.
    #[inline]
    pub fn has(&self, n: u64) -> bool {
        self.stream.is_below(n, self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For 100,000 draws at 1 % the standard deviation is 31.5: the limit is four of them, for each of 20 fixed seeds.
    #[test]
    fn a_sample_has_its_share() {
        for seed in 0..20 {
            let sample = Sample::new(0.01, seed);
            let kept = (0..100_000).filter(|&n| sample.has(n)).count();
            assert!(kept.abs_diff(1_000) <= 126, "seed {seed}: {kept}");
        }
    }

    #[test]
    fn none_and_all() {
        assert!((0..1_000).all(|n| Sample::new(1.0, 1).has(n)));
        assert!(!(0..1_000).any(|n| Sample::new(0.0, 1).has(n)));
    }
}
