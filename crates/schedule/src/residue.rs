//! One worker's share of the numbers 0, 1, 2, …: workers split request numbers by residue.

/// One worker's share of the numbers 0, 1, 2, …: those with `n % of == index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residue {
    index: u64,
    of: u64,
}

impl Residue {
    /// The share of worker `index` of `of` workers.
    ///
    /// # Panics
    ///
    /// If `index` is not below `of`.
    pub fn new(index: u64, of: u64) -> Residue {
        assert!(index < of, "worker {index} of {of}");
        Residue { index, of }
    }

    /// The global number of this worker's `k`-th request.
    #[inline]
    pub fn nth(&self, k: u64) -> u64 {
        self.index + k * self.of
    }

    /// How many of the first `total` numbers belong to this worker. Also splits connections and virtual users.
    pub fn share_of(&self, total: u64) -> u64 {
        total / self.of + u64::from(total % self.of > self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
