//! Durations with their exact minimum and maximum, which a histogram rounds.

use record::Durations;
use units::Nanos;

/// A histogram of three digits with exact count, sum, minimum and maximum. Durations above an hour count as an hour.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    durations: Durations,
    extremes: Option<(Nanos, Nanos)>,
}

impl Distribution {
    #[inline]
    pub(crate) fn record(&mut self, duration: Nanos) {
        self.durations.record(duration);
        let (min, max) = self.extremes.unwrap_or((duration, duration));
        self.extremes = Some((min.min(duration), max.max(duration)));
    }

    pub(crate) fn merge(&mut self, other: &Distribution) {
        self.durations.merge(&other.durations);
        self.extremes = match (self.extremes, other.extremes) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (mine, theirs) => mine.or(theirs),
        };
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.durations.count()
    }

    /// The exact minimum; `None` when nothing was recorded.
    pub fn min(&self) -> Option<Nanos> {
        self.extremes.map(|(min, _)| min)
    }

    /// The exact maximum; `None` when nothing was recorded.
    pub fn max(&self) -> Option<Nanos> {
        self.extremes.map(|(_, max)| max)
    }

    /// The mean, from the exact sum, rounded down; `None` when nothing was recorded.
    pub fn mean(&self) -> Option<Nanos> {
        self.durations.mean()
    }

    /// The smallest value that at least `share` of all do not exceed, to three digits; never above
    /// [`max`](Distribution::max). `share` is in parts per 100 000, so that 99.99 % needs no rounding.
    pub fn quantile(&self, share: u32) -> Option<Nanos> {
        let rank = (u128::from(self.count()) * u128::from(share)).div_ceil(100_000).max(1);
        let value = self.durations.at_rank(u64::try_from(rank).ok()?)?;
        Some(value.min(self.max()?))
    }

    /// The histogram, for exports.
    pub fn durations(&self) -> &Durations {
        &self.durations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_exact_and_quantiles_lie_between() {
        let mut some = Distribution::default();
        let mut others = Distribution::default();
        assert_eq!((some.min(), some.quantile(50_000)), (None, None));
        for ns in [2_000_001, 9_999_999] {
            some.record(Nanos(ns));
        }
        others.record(Nanos(2_000_500));
        some.merge(&others);
        assert_eq!((some.min(), some.max()), (Some(Nanos(2_000_001)), Some(Nanos(9_999_999))));
        assert_eq!((some.count(), some.mean()), (3, Some(Nanos(4_666_833))));
        assert_eq!(some.quantile(99_990), Some(Nanos(9_999_999)));
        let median = some.quantile(50_000).unwrap();
        assert!(median >= Nanos(1_999_000) && median < Nanos(2_003_000), "{median:?}");
    }
}
