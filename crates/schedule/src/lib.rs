//! When request *n* is due: pure functions of *n*, with no clock and no state.
//!
//! There is one global schedule. Workers split it by residue ([`Residue`]), so the union of what they send is
//! exactly the schedule, whatever their number.

use units::{Nanos, Rate};

/// An arrival process: when each request of a run is due, as an offset from the run's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly spaced, the first at zero.
    Constant(Rate),
}

impl Arrivals {
    /// When request `n` is due. Never decreases with `n`.
    #[inline]
    pub fn due(&self, n: u64) -> Nanos {
        match self {
            Arrivals::Constant(rate) => rate.due(n),
        }
    }

    /// How many requests are due strictly before `end`.
    pub fn count_before(&self, end: Nanos) -> u64 {
        match self {
            Arrivals::Constant(rate) => rate.count_before(end),
        }
    }
}

/// One worker's share of the numbers 0, 1, 2, …: those with `n % of == index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residue {
    index: u64,
    of: u64,
}

impl Residue {
    /// # Panics
    ///
    /// When `index` is not below `of`.
    pub fn new(index: u64, of: u64) -> Residue {
        assert!(index < of, "worker {index} of {of}");
        Residue { index, of }
    }

    /// The global number of this worker's `k`-th request.
    #[inline]
    pub fn nth(&self, k: u64) -> u64 {
        self.index + k * self.of
    }

    /// How many of the first `total` numbers belong to this worker. Also splits connections and callers.
    pub fn share_of(&self, total: u64) -> u64 {
        (total + self.of - 1 - self.index) / self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_does_not_drift() {
        let arrivals = Arrivals::Constant("3/s".parse().unwrap());
        assert_eq!(arrivals.due(0), Nanos(0));
        assert_eq!(arrivals.due(1), Nanos(333_333_333));
        // A rounded gap of 333_333_333 ns would be off by a second after 95 years of requests; this is not.
        assert_eq!(arrivals.due(3_000_000_000), Nanos::from_secs(1_000_000_000));
    }

    proptest::proptest! {
        /// If this fails, two workers send the same request, or none does.
        #[test]
        fn the_union_of_the_shares_is_the_schedule(of in 1u64..9, total in 0u64..500) {
            let mut numbers: Vec<u64> = (0..of)
                .map(|index| Residue::new(index, of))
                .flat_map(|share| (0..share.share_of(total)).map(move |k| share.nth(k)))
                .collect();
            numbers.sort_unstable();
            proptest::prop_assert_eq!(numbers, (0..total).collect::<Vec<_>>());
        }
    }
}
