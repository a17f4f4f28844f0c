//! A histogram for thousands of statements or peers: two digits, and memory only for the octaves that have values.

use units::Nanos;

use crate::LONGEST;

/// Durations with a relative error of at most 1.6 %, from 0 to 1 h; longer ones count as 1 h. The sum and the maximum
/// are exact.
///
/// # Cost
///
/// Recording takes a few nanoseconds, and allocates 512 bytes with the first value of an octave: about 5 KiB per
/// statement, at most 20 KiB.
#[derive(Debug, Clone, Default)]
pub struct Compact {
    octaves: Vec<Option<Box<[u64; SLOTS]>>>,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

/// Buckets per octave: 1/64 is the relative width.
const SLOTS: usize = 64;

/// Values below this are exact.
const EXACT_BITS: u32 = 6;

impl Compact {
    /// Adds one duration.
    #[inline]
    pub fn record(&mut self, duration: Nanos) {
        let (octave, slot) = place(duration.0.min(LONGEST.0));
        if octave >= self.octaves.len() {
            self.octaves.resize_with(octave + 1, || None);
        }
        self.octaves[octave].get_or_insert_with(|| Box::new([0; SLOTS]))[slot] += 1;
        self.count += 1;
        self.sum_ns += u128::from(duration.0);
        self.max_ns = self.max_ns.max(duration.0);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Compact) {
        if self.octaves.len() < other.octaves.len() {
            self.octaves.resize_with(other.octaves.len(), || None);
        }
        for (own, other) in self.octaves.iter_mut().zip(&other.octaves) {
            let Some(other) = other else { continue };
            let own = own.get_or_insert_with(|| Box::new([0; SLOTS]));
            own.iter_mut().zip(other.iter()).for_each(|(own, other)| *own += other);
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact sum, in nanoseconds; at most `u64::MAX`, 584 years.
    pub fn sum_ns(&self) -> u64 {
        u64::try_from(self.sum_ns).unwrap_or(u64::MAX)
    }

    /// The exact maximum; `None` without a value.
    pub fn max(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos(self.max_ns))
    }

    /// The `rank`-th smallest value, counted from 1: the upper end of its bucket, at most 1.6 % above the value.
    /// `None` if there are fewer values.
    ///
    /// # Cost
    ///
    /// Visits the buckets: for reports, not for the hot path.
    pub fn at_rank(&self, rank: u64) -> Option<Nanos> {
        if rank == 0 || rank > self.count {
            return None;
        }
        let mut seen = 0;
        for (octave, slots) in self.octaves.iter().enumerate() {
            for (slot, count) in slots.iter().flat_map(|slots| slots.iter().enumerate()) {
                seen += count;
                if seen >= rank {
                    return Some(Nanos(highest(octave, slot).min(self.max_ns)));
                }
            }
        }
        None
    }
}

/// The octave and bucket of a value.
#[inline]
fn place(ns: u64) -> (usize, usize) {
    let bits = u64::BITS - ns.leading_zeros();
    let octave = bits.saturating_sub(EXACT_BITS);
    let shift = octave.saturating_sub(1);
    (octave as usize, (ns >> shift) as usize & (SLOTS - 1))
}

/// The largest value of a bucket.
fn highest(octave: usize, slot: usize) -> u64 {
    let slot = slot as u64;
    match octave {
        0 => slot,
        octave => ((slot + SLOTS as u64 + 1) << (octave - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_at_most_1_6_percent_too_high() {
        let mut compact = Compact::default();
        let values: Vec<u64> = (0..2_000).map(|n| n * n * n * 41).collect();
        values.iter().for_each(|&ns| compact.record(Nanos(ns)));
        for (n, &ns) in values.iter().enumerate() {
            let found = compact.at_rank(n as u64 + 1).unwrap().0;
            assert!(found >= ns && found <= ns + ns / 64, "{ns}: {found}");
        }
        assert_eq!((compact.at_rank(0), compact.at_rank(2_001)), (None, None));
        assert_eq!(compact.max(), values.last().map(|&ns| Nanos(ns)));
        assert_eq!(compact.sum_ns(), values.iter().sum::<u64>());
    }

    #[test]
    fn every_value_is_in_its_bucket() {
        for ns in (0..200).chain((6..42).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let (octave, slot) = place(ns);
            let below = if slot > 0 { Some(highest(octave, slot - 1)) } else { None };
            assert!(highest(octave, slot) >= ns && below.is_none_or(|below| below < ns), "{ns}");
        }
    }

    #[test]
    fn what_is_longer_than_an_hour_counts() {
        let mut compact = Compact::default();
        compact.record(Nanos(u64::MAX));
        assert_eq!((compact.count(), compact.max(), compact.octaves.len()), (1, Some(Nanos(u64::MAX)), 37));
    }

    proptest::proptest! {
        #[test]
        fn merging_is_recording_together(
            a in proptest::collection::vec(0u64..5_000_000_000_000, 0..50),
            b in proptest::collection::vec(0u64..5_000_000_000_000, 0..50)
        ) {
            let of = |values: &[u64]| {
                let mut compact = Compact::default();
                values.iter().for_each(|&ns| compact.record(Nanos(ns)));
                compact
            };
            let (mut merged, together) = (of(&a), of(&[&a[..], &b[..]].concat()));
            merged.merge(&of(&b));
            for rank in 0..=together.count() + 1 {
                proptest::prop_assert_eq!(merged.at_rank(rank), together.at_rank(rank));
            }
            proptest::prop_assert_eq!((merged.sum_ns(), merged.max()), (together.sum_ns(), together.max()));
        }
    }
}
