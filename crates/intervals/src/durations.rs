//! A histogram of durations, with what a histogram alone would lose: the exact sum, and the number of values out of
//! range.

use hdrhistogram::Histogram;
use units::Nanos;

/// The largest duration that a histogram contains. Longer ones are also counted in [`Durations::out_of_range`].
pub const LONGEST: Nanos = Nanos::from_secs(3_600);

/// The number of significant digits of a histogram that Parallax records.
pub const DIGITS: u8 = 3;

/// The number of significant digits if there are many histograms.
pub const COARSE_DIGITS: u8 = 2;

/// Durations with three significant digits (HdrHistogram), from 1 ns to 1 h. Those recorded by a JVM, and those of a
/// run's targets from the 101st on, have two.
///
/// # Cost
///
/// Recording takes a few nanoseconds and never allocates. One histogram takes 270 KiB, with two digits 36 KiB.
#[derive(Debug, Clone)]
pub struct Durations {
    histogram: Histogram<u64>,
    sum_ns: u128,
    out_of_range: u64,
}

impl Default for Durations {
    fn default() -> Durations {
        Durations::new()
    }
}

impl Durations {
    /// An empty histogram of three significant digits; allocates all its buckets.
    pub fn new() -> Durations {
        Durations::with_digits(DIGITS)
    }

    /// An empty histogram of `digits` significant digits, from 1 to 5.
    pub fn with_digits(digits: u8) -> Durations {
        let histogram = Histogram::new_with_bounds(1, LONGEST.0, digits)
            .expect("the bounds are constants that HdrHistogram accepts");
        Durations { histogram, sum_ns: 0, out_of_range: 0 }
    }

    /// A histogram read from a file, with the exact sum that was stored with it.
    pub fn from_parts(histogram: Histogram<u64>, sum_ns: u128, out_of_range: u64) -> Durations {
        Durations { histogram, sum_ns, out_of_range }
    }

    /// Adds one duration. One above [`LONGEST`] is recorded as [`LONGEST`] and counted as out of range.
    #[inline]
    pub fn record(&mut self, duration: Nanos) {
        self.sum_ns += u128::from(duration.0);
        // HdrHistogram's last bucket extends beyond its bound, so the bound is checked here.
        let kept = duration.min(LONGEST);
        self.out_of_range += u64::from(kept != duration);
        self.histogram.saturating_record(kept.0);
    }

    /// Adds `count` durations of 0 ns.
    pub fn record_zeros(&mut self, count: u64) {
        if count > 0 {
            self.histogram.saturating_record_n(0, count);
        }
    }

    /// Adds all values of `other`: counts are added, nothing is averaged.
    pub fn merge(&mut self, other: &Durations) {
        self.histogram.add(&other.histogram).expect("a histogram that came within bounds merges within them");
        self.sum_ns += other.sum_ns;
        self.out_of_range += other.out_of_range;
    }

    /// Removes all values but keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.sum_ns = 0;
        self.out_of_range = 0;
    }

    /// The number of values, including those out of range.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether no value was recorded.
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// The exact sum of everything recorded.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The exact mean, rounded down; `None` if there is no value.
    pub fn mean(&self) -> Option<Nanos> {
        let mean = self.sum_ns.checked_div(u128::from(self.count()))?;
        Some(Nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// How many durations were longer than [`LONGEST`].
    pub fn out_of_range(&self) -> u64 {
        self.out_of_range
    }

    /// The HdrHistogram in nanoseconds, for export and merging.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// The `rank`-th smallest value, counted from 1, to the histogram's digits. `None` if there are fewer values.
    ///
    /// # Cost
    ///
    /// Visits the buckets: for reports, not for the hot path.
    pub fn at_rank(&self, rank: u64) -> Option<Nanos> {
        if rank == 0 || rank > self.count() {
            return None;
        }
        let mut seen = 0;
        for bucket in self.histogram.iter_recorded() {
            seen += bucket.count_since_last_iteration();
            if seen >= rank {
                // A bucket may extend beyond the largest recorded value.
                return Some(Nanos(bucket.value_iterated_to().min(self.histogram.max())));
            }
        }
        None
    }

    /// How many values are certainly greater than `limit`: those whose whole bucket is.
    ///
    /// # Cost
    ///
    /// Like [`Durations::at_rank`].
    pub fn count_over(&self, limit: Nanos) -> u64 {
        let over = self
            .histogram
            .iter_recorded()
            .filter(|bucket| self.histogram.lowest_equivalent(bucket.value_iterated_to()) > limit.0);
        over.map(|bucket| bucket.count_at_value()).sum()
    }

    /// The smallest value, to three digits; `None` if there is none.
    pub fn min(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.histogram.min()))
    }

    /// The largest value, to three digits; `None` if there is none.
    pub fn max(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.histogram.max()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_clamped_silently() {
        let mut durations = Durations::new();
        durations.record(Nanos::from_secs(3_600));
        durations.record(Nanos::from_secs(9_000));
        assert_eq!(durations.count(), 2);
        assert_eq!(durations.out_of_range(), 1);
        assert_eq!(durations.sum_ns(), 12_600_000_000_000);
    }

    #[test]
    fn ranks_keep_three_digits() {
        let mut durations = Durations::new();
        for us in 1..=1_000 {
            durations.record(Nanos::from_micros(us));
        }
        for (rank, us) in [(1, 1.0), (500, 500.0), (990, 990.0), (1_000, 1_000.0)] {
            let value = durations.at_rank(rank).unwrap().0 as f64 / 1e3;
            assert!((value / us - 1.0).abs() < 0.001, "rank {rank}: {value} us");
        }
        for (limit_us, over) in [(0, 1_000), (500, 500), (999, 1), (1_000, 0)] {
            assert_eq!(durations.count_over(Nanos::from_micros(limit_us)), over, "{limit_us} us");
        }
        assert_eq!(durations.at_rank(0), None);
        assert_eq!(durations.at_rank(1_001), None);
    }

    proptest::proptest! {
        /// If this fails, a merged record differs from the record of all values together.
        #[test]
        fn merging_is_recording_together(
            a in proptest::collection::vec(0u64..5_000_000_000_000, 0..50),
            b in proptest::collection::vec(0u64..5_000_000_000_000, 0..50)
        ) {
            let of = |values: &[u64]| {
                let mut durations = Durations::new();
                values.iter().for_each(|&ns| durations.record(Nanos(ns)));
                durations
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let together = of(&[a, b].concat());
            proptest::prop_assert_eq!(merged.histogram(), together.histogram());
            proptest::prop_assert_eq!(merged.sum_ns(), together.sum_ns());
            proptest::prop_assert_eq!(merged.out_of_range(), together.out_of_range());
        }
    }
}
