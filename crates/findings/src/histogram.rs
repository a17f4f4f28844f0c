//! A distribution over powers of two.

use record::Durations;
use units::Nanos;

use crate::view::{Bin, Histogram, Value};

/// A bin for each power of two of nanoseconds, from the first that has a value to the last.
pub(crate) fn histogram(id: &str, durations: &Durations) -> Histogram {
    let bins = bins(durations).into_iter().map(|(from, count)| Bin { from: Value::Ns(from), count });
    Histogram { id: id.to_owned(), bins: bins.collect() }
}

/// Bins of equal width from the first value to the last; neighboring empty bins are one. If there are too many, the
/// last one has all that is above, and the second result is true.
///
/// The values have three digits, so one near an edge may be in the bin next to its own.
pub(crate) fn linear(id: &str, durations: &Durations, width: Nanos) -> (Histogram, bool) {
    let width = width.0.max(1);
    let mut bins: Vec<(u64, u64)> = Vec::new();
    let mut has_rest = false;
    for bucket in durations.histogram().iter_recorded() {
        let bin = durations.histogram().lowest_equivalent(bucket.value_iterated_to()) / width;
        let count = bucket.count_at_value();
        let last = bins.last().map(|&(last, _)| last);
        let new = last.map_or(1, |last| (bin - last).min(2));
        if new == 0 || bins.len() as u64 + new > BINS {
            has_rest |= new > 0;
            bins.last_mut().expect("there is room for the first").1 += count;
            continue;
        }
        bins.extend(last.filter(|_| new == 2).map(|last| (last + 1, 0)));
        bins.push((bin, count));
    }
    let bins = bins.into_iter().map(|(bin, count)| Bin { from: Value::Ns(bin * width), count });
    (Histogram { id: id.to_owned(), bins: bins.collect() }, has_rest)
}

/// Bins of equal width that are shown.
const BINS: u64 = 40;

/// The number of values from each power of two up to the next.
fn bins(durations: &Durations) -> Vec<(u64, u64)> {
    let mut counts = [0_u64; 64];
    for bucket in durations.histogram().iter_recorded() {
        let value = bucket.value_iterated_to().max(1);
        counts[63 - value.leading_zeros() as usize] += bucket.count_at_value();
    }
    let Some(first) = counts.iter().position(|&n| n > 0) else { return Vec::new() };
    let last = counts.iter().rposition(|&n| n > 0).unwrap_or(first);
    (first..=last).map(|power| (1 << power, counts[power])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_of_one_width_have_every_value_and_the_last_has_the_rest() {
        let counts = |values: &[u64]| {
            let mut durations = Durations::default();
            values.iter().for_each(|&us| durations.record(Nanos::from_micros(us)));
            let (histogram, has_rest) = linear("x", &durations, Nanos::from_micros(500));
            let bin = |bin: &Bin| (bin.from.magnitude().unwrap() as u64 / 1_000, bin.count);
            (histogram.bins.iter().map(bin).collect::<Vec<_>>(), has_rest)
        };
        let few = counts(&[600, 700, 1_200, 2_600, 900_900]);
        let expected = [(500, 2), (1_000, 1), (1_500, 0), (2_500, 1), (3_000, 0), (900_500, 1)];
        assert_eq!(few, (expected.to_vec(), false));
        let (many, has_rest) = counts(&(0..90).map(|n| 250 + n * 500).collect::<Vec<_>>());
        assert_eq!((many.len(), many[39], has_rest), (40, (19_500, 51), true));
        // With gaps, each value takes two rows.
        let (gaps, has_rest) = counts(&(0..90).map(|n| 250 + n * 1_000).collect::<Vec<_>>());
        assert_eq!((gaps.len(), gaps[38], has_rest), (39, (19_000, 71), true));
        assert_eq!(counts(&[]), (Vec::new(), false));
    }

    #[test]
    fn every_value_is_in_one_bin() {
        let mut durations = Durations::default();
        for value in [1, 2, 3, 900, 1_100, 70_000] {
            durations.record(Nanos(value));
        }
        let bins = bins(&durations);
        assert_eq!(bins.iter().map(|&(_, n)| n).sum::<u64>(), 6);
        assert_eq!(
            (bins[0], bins[1], bins[9], bins[10], bins[16]),
            ((1, 1), (2, 2), (512, 1), (1024, 1), (65536, 1))
        );
    }
}
