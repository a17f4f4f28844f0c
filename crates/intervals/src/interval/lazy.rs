//! Building blocks of an interval's figures: histograms that take no memory until they are used, and short lists.

use units::Nanos;

use crate::durations::{DIGITS, Durations};

// There are few distinct keys, and the first is nearly always the requested one: a list is faster than a map.
#[inline]
pub(super) fn add_to<K: PartialEq>(list: &mut Vec<(K, u64)>, key: K, count: u64) {
    match list.iter_mut().find(|(known, _)| *known == key) {
        Some((_, sum)) => *sum += count,
        None => list.push((key, count)),
    }
}

/// A histogram that is allocated when its first value is recorded.
#[derive(Debug, Clone, Default)]
pub(super) struct Lazy(Option<Box<Durations>>);

impl Lazy {
    #[inline]
    pub(super) fn get_or_make(&mut self) -> &mut Durations {
        self.get_or_make_with(DIGITS)
    }

    /// The histogram; if there is none, a new one with that many significant digits.
    #[inline]
    pub(super) fn get_or_make_with(&mut self, digits: u8) -> &mut Durations {
        self.0.get_or_insert_with(|| Box::new(Durations::with_digits(digits)))
    }

    /// Allocates the memory and writes to each page, so that the kernel has provided it.
    pub(super) fn reserve(&mut self) {
        self.get_or_make().clear();
    }

    #[inline]
    pub(super) fn record(&mut self, duration: Nanos) {
        self.get_or_make().record(duration);
    }

    pub(super) fn get(&self) -> Option<&Durations> {
        self.0.as_deref().filter(|durations| !durations.is_empty())
    }

    pub(super) fn merge(&mut self, other: &Lazy) {
        match (&mut self.0, other.get()) {
            (_, None) => {}
            (Some(ours), Some(theirs)) => ours.merge(theirs),
            (ours @ None, Some(theirs)) => *ours = Some(Box::new(theirs.clone())),
        }
    }

    pub(super) fn clear(&mut self) {
        if let Some(durations) = self.0.as_deref_mut().filter(|durations| !durations.is_empty()) {
            durations.clear();
        }
    }
}
