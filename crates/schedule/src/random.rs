//! Random numbers by position: the *n*-th of a stream is a pure function of seed and *n*.
//!
//! SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, with the constants
//! of Vigna's splitmix64.c (public domain). Its state is a counter, so any number can be computed without the earlier
//! ones, and workers agree without communicating. Logarithm and cosine are from `libm`, not from the system, so the
//! same seed gives the same schedule on every host, to the last bit.

/// The golden ratio in 64 bits, the step of SplitMix64's counter.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// An endless sequence of random numbers, each addressed by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// Stream `label` of `seed`. Streams with different labels are independent.
    pub fn new(seed: u64, label: u64) -> Stream {
        // Keys that differ by a multiple of the step would give the same sequence, shifted, so they are mixed.
        Stream { key: mix(mix(seed.wrapping_add(STEP)) ^ label.wrapping_mul(STEP)) }
    }

    /// An independent stream for each number.
    pub(crate) fn substream(self, n: u64) -> Stream {
        Stream { key: mix(self.at(n) ^ STEP) }
    }

    #[inline]
    pub(crate) fn at(self, n: u64) -> u64 {
        mix(self.key.wrapping_add(n.wrapping_add(1).wrapping_mul(STEP)))
    }

    /// Uniform over `0..=most`: the draw at position `n`.
    #[inline]
    pub fn up_to(self, n: u64, most: u64) -> u64 {
        let scaled = (u128::from(self.at(n)) * (u128::from(most) + 1)) >> 64;
        u64::try_from(scaled).expect("the high word of a product with at most 2^64 fits a word")
    }

    /// Uniform over (0, 1], in steps of 2^-53: never zero, so its logarithm exists.
    #[inline]
    fn unit(self, n: u64) -> f64 {
        ((self.at(n) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `share`, decided by the draw at position `n`.
    #[inline]
    pub fn is_below(self, n: u64, share: f64) -> bool {
        self.unit(n) <= share
    }

    /// Exponential with mean 1.
    #[inline]
    pub(crate) fn exponential(self, n: u64) -> f64 {
        -libm::log(self.unit(n))
    }

    /// Gamma with a shape of at least 1 and mean `shape`: the sum of that many exponentials.
    ///
    /// Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26(3), 2000. Takes numbers
    /// of this stream from `first` on; one try in a thousand is refused at the shapes used here.
    pub(crate) fn gamma(self, shape: f64, first: u64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        let mut n = first;
        loop {
            let x = self.normal(n);
            let accept = self.unit(n + 2);
            n += 3;
            let v = 1.0 + c * x;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            if libm::log(accept) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }

    /// Standard normal, from two numbers of this stream (Box and Muller, 1958).
    fn normal(self, n: u64) -> f64 {
        (-2.0 * libm::log(self.unit(n))).sqrt() * libm::cos(std::f64::consts::TAU * self.unit(n + 1))
    }
}

/// The next output of SplitMix64 in the state `state`. Each state gives a different number, and neighbouring states
/// give unrelated ones, so it can also mix several numbers into one.
#[inline]
pub fn splitmix64(state: u64) -> u64 {
    mix(state.wrapping_add(STEP))
}

/// SplitMix64 as a sequence, as in Vigna's splitmix64.c: advances `state` and returns the next number.
#[inline]
pub fn next_splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    mix(*state)
}

#[inline]
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of Vigna's splitmix64.c from state 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let stream = Stream { key: 1_234_567 };
        let first: Vec<u64> = (0..5).map(|n| stream.at(n)).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    /// Mean and variance of a gamma are its shape. Over 20,000 draws the mean has a standard error of sqrt(256 /
    /// 20,000) = 0.113, and the variance one of about 256 * sqrt(2 / 20,000) = 2.56. The limits are four standard
    /// errors.
    #[test]
    fn a_gamma_has_its_mean_and_variance() {
        let n = 20_000;
        let draws: Vec<f64> = (0..n).map(|k| Stream::new(7, 1).substream(k).gamma(256.0, 0)).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1) as f64;
        assert!((mean - 256.0).abs() < 4.0 * 0.113, "{mean}");
        assert!((variance - 256.0).abs() < 4.0 * 2.56, "{variance}");
    }

    #[test]
    fn whole_numbers_reach_both_ends() {
        let stream = Stream::new(1, 0);
        let drawn: Vec<u64> = (0..200).map(|n| stream.up_to(n, 3)).collect();
        for value in 0..4 {
            assert!(drawn.contains(&value), "{value}");
        }
        assert!(drawn.iter().all(|&value| value <= 3));
        assert_eq!(stream.up_to(0, 0), 0);
    }
}
