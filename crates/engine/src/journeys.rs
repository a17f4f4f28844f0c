//! Journeys between two requests: after the end of one request and before the next is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use reactor::Slot;
use units::Nanos;

/// One unit of the load: a single request, or all requests of a journey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Its number in the run.
    pub n: u64,
    /// The intended start of its first request; for a unit that is retried, of its first try.
    pub began: Nanos,
}

/// Journeys between two requests, the earliest due first.
#[derive(Debug)]
pub(crate) struct Journeys<J> {
    heap: BinaryHeap<Pause<J>>,
    /// Counts pauses, so that of those due at the same instant the first to come is the first to go.
    pauses: u64,
}

/// A journey whose next request is due at `due`.
#[derive(Debug)]
pub(crate) struct Pause<J> {
    pub due: Nanos,
    pub unit: Unit,
    pub journey: J,
    /// The connection that the journey has leased.
    pub held: Option<Slot>,
    order: u64,
}

impl<J> Default for Journeys<J> {
    fn default() -> Journeys<J> {
        Journeys { heap: BinaryHeap::new(), pauses: 0 }
    }
}

impl<J> Journeys<J> {
    pub(crate) fn push(&mut self, due: Nanos, unit: Unit, journey: J, held: Option<Slot>) {
        self.pauses += 1;
        self.heap.push(Pause { due, unit, journey, held, order: self.pauses });
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// When the next request is due, if a journey is waiting.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|pause| pause.due)
    }

    /// Takes the journey whose request is due first, if it is due by `now`.
    #[inline]
    pub(crate) fn take(&mut self, now: Nanos) -> Option<Pause<J>> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop()
    }

    /// Whether the next request to become due is due by `now` and its journey has leased a connection.
    #[inline]
    pub(crate) fn is_held_due(&self, now: Nanos) -> bool {
        self.heap.peek().is_some_and(|pause| pause.held.is_some() && pause.due <= now)
    }

    /// Removes and returns the journeys that would continue at `end` or later.
    pub(crate) fn end_at(&mut self, end: Nanos) -> Vec<Pause<J>> {
        let (gone, stay) = std::mem::take(&mut self.heap).into_iter().partition(|pause| pause.due >= end);
        self.heap = stay;
        let gone: BinaryHeap<Pause<J>> = gone;
        gone.into_vec()
    }

    /// Removes and returns all journeys: the run is over.
    pub(crate) fn drain(&mut self) -> Vec<Pause<J>> {
        std::mem::take(&mut self.heap).into_vec()
    }
}

impl<J> Pause<J> {
    fn key(&self) -> (Nanos, u64) {
        (self.due, self.order)
    }
}

// `BinaryHeap` returns the greatest first, so the order is reversed.
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
            journeys.push(Nanos(due), Unit { n, began: Nanos::ZERO }, (), None);
        }
        assert_eq!(journeys.end_at(Nanos(50)).len(), 1);
        assert!(journeys.take(Nanos(9)).is_none());
        let gone: Vec<u64> =
            std::iter::from_fn(|| journeys.take(Nanos(99))).map(|pause| pause.unit.n).collect();
        assert_eq!(gone, [1, 2, 0]);
    }
}
