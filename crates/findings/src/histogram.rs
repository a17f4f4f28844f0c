//! A distribution over powers of two.

use record::Durations;

use crate::view::{Bin, Histogram, Value};

/// A bin for each power of two of nanoseconds, from the first that has a value to the last.
pub(crate) fn histogram(id: &str, durations: &Durations) -> Histogram {
    let bins = bins(durations).into_iter().map(|(from, count)| Bin { from: Value::Ns(from), count });
    Histogram { id: id.to_owned(), bins: bins.collect() }
}

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
    use units::Nanos;

    use super::*;

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
