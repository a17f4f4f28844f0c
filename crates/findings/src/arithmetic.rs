//! Rates, shares and means, computed in the same way for reports, progress lines and live views.

use record::Second;
use units::Nanos;

/// One interval of a run, as rates.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IntervalRates {
    /// Requests that became due.
    pub due_per_s: f64,
    /// Requests that were sent.
    pub sent_per_s: f64,
    /// Throughput: requests that ended `ok`.
    pub ok_per_s: f64,
    /// Requests that ended otherwise.
    pub failed_per_s: f64,
    /// Completed journeys; 0 without journeys.
    pub journeys_per_s: f64,
    /// Requests that were due and not finished at the end of the interval.
    pub outstanding: u64,
    /// CPU of the busiest worker, between 0 and 1.
    pub worker_cpu: f64,
}

impl IntervalRates {
    /// The rates of `second`, which may be shorter than a second; all 0 if its length is 0.
    pub fn of(second: &Second) -> IntervalRates {
        let rate = |count: u64| per_s(count, second.length_ns);
        IntervalRates {
            due_per_s: rate(second.scheduled),
            sent_per_s: rate(second.sent),
            ok_per_s: rate(second.ok),
            failed_per_s: rate(second.failed),
            journeys_per_s: rate(second.journeys.iter().map(|journey| journey.ok).sum()),
            outstanding: second.outstanding,
            worker_cpu: share(second.worker_cpu_max_ns, second.length_ns).unwrap_or(0.0),
        }
    }
}

/// `count` in `length_ns` nanoseconds, per second; 0 if the length is 0.
pub fn per_s(count: u64, length_ns: u64) -> f64 {
    if length_ns == 0 { 0.0 } else { count as f64 * 1e9 / length_ns as f64 }
}

/// `part` as a share of `whole`; `None` if `whole` is 0.
pub fn share(part: impl Into<u128>, whole: impl Into<u128>) -> Option<f64> {
    let (part, whole) = (part.into(), whole.into());
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The mean of `count` durations, rounded down; zero if there are none.
pub fn mean(sum_ns: u64, count: u64) -> Nanos {
    Nanos(sum_ns / count.max(1))
}

/// The `most` largest of `parts`, each with its share of the sum of all, in the order of `parts`. Parts of 0 are left
/// out.
pub fn largest_shares<T>(parts: impl IntoIterator<Item = (T, u128)>, most: usize) -> Vec<(T, f64)> {
    let mut parts: Vec<(usize, (T, u128))> = parts.into_iter().enumerate().collect();
    let whole: u128 = parts.iter().map(|(_, (_, sum))| sum).sum();
    parts.retain(|(_, (_, sum))| *sum > 0);
    parts.sort_by_key(|&(_, (_, sum))| std::cmp::Reverse(sum));
    parts.truncate(most);
    parts.sort_by_key(|&(at, _)| at);
    parts.into_iter().map(|(_, (part, sum))| (part, sum as f64 / whole as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_parts_keep_their_order_and_their_share_of_everything() {
        let parts = [("a", 1), ("b", 5), ("c", 0), ("d", 2), ("e", 2)];
        assert_eq!(largest_shares(parts, 3), [("b", 0.5), ("d", 0.2), ("e", 0.2)]);
        assert_eq!(largest_shares(parts, 9).len(), 4);
        assert!(largest_shares([("a", 0)], 3).is_empty());
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!((per_s(7, 0), per_s(7, 3_500_000_000)), (0.0, 2.0));
        assert_eq!((share(1u64, 0u64), share(1u64, 4u64)), (None, Some(0.25)));
        assert_eq!((mean(9, 0), mean(9, 2)), (Nanos(9), Nanos(4)));
    }
}
