//! Requests that follow others: between the end of one and the moment the next is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use units::Nanos;

/// Journeys between two requests, the earliest due first.
#[derive(Debug)]
pub(crate) struct Journeys<J> {
    heap: BinaryHeap<Pause<J>>,
    /// Of those due at the same instant the first to come is the first to go.
    pauses: u64,
}

/// A journey whose next request is due at `due`.
#[derive(Debug)]
pub(crate) struct Pause<J> {
    pub due: Nanos,
    pub n: u64,
    pub journey: J,
    order: u64,
}

impl<J> Default for Journeys<J> {
    fn default() -> Journeys<J> {
        Journeys { heap: BinaryHeap::new(), pauses: 0 }
    }
}

impl<J> Journeys<J> {
    pub(crate) fn push(&mut self, due: Nanos, n: u64, journey: J) {
        self.pauses += 1;
        self.heap.push(Pause { due, n, journey, order: self.pauses });
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// When the next request is due.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|pause| pause.due)
    }

    /// The next journey to go on, if its request is due by `now`.
    #[inline]
    pub(crate) fn take(&mut self, now: Nanos) -> Option<Pause<J>> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop()
    }

    /// Ends those that go on at `end` or later.
    pub(crate) fn end_at(&mut self, end: Nanos) {
        self.heap.retain(|pause| pause.due < end);
    }
}

impl<J> Pause<J> {
    fn key(&self) -> (Nanos, u64) {
        (self.due, self.order)
    }
}

// The heap gives its greatest first.
impl<J> Ord for Pause<J> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<J> PartialOrd for Pause<J> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<J> PartialEq for Pause<J> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<J> Eq for Pause<J> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journeys_go_on_when_they_are_due() {
        let mut journeys = Journeys::default();
        for (due, n) in [(30, 0), (10, 1), (10, 2), (50, 3)] {
            journeys.push(Nanos(due), n, ());
        }
        journeys.end_at(Nanos(50));
        assert!(journeys.take(Nanos(9)).is_none());
        let gone: Vec<u64> = std::iter::from_fn(|| journeys.take(Nanos(99))).map(|pause| pause.n).collect();
        assert_eq!(gone, [1, 2, 0]);
    }
}
