//! Requests that are each moved by a random time, and renumbered in the order of time.
//!
//! Request *i* is at its evenly spaced position plus a random time, uniform over ±j. If j is over half a gap, some
//! requests change places. The *n*-th request of the schedule is then the *n*-th in the order of time: the set of
//! instants depends only on the numbers, whatever the number of workers, and time never goes back. A request that would
//! be before the stage's begin or after its end is mirrored there, so that a stage contains exactly its requests and
//! none is lost where two stages meet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Nanos;

use crate::random::Stream;
use crate::shape::{ONE, Shape};
use crate::stage::Jitter;

/// The maximum number of requests that may change places with each other. A worker keeps as many in memory: 512 KiB.
pub(crate) const MOST_MIXED: u64 = 65_536;

/// The jittered requests of one stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Jittered {
    shape: Shape,
    over: Nanos,
    /// The position of request 0.
    phase: u64,
    pub count: u64,
    jitter: Jitter,
    stream: Stream,
    /// The largest move and the stage's end: in nanoseconds or, if the jitter is a share of the gap, in steps of
    /// position.
    half: u64,
    end: u64,
}

impl Jittered {
    pub(crate) fn new(
        shape: Shape,
        over: Nanos,
        (phase, count): (u64, u64),
        jitter: Jitter,
        stream: Stream,
    ) -> Jittered {
        let (half, end) = match jitter {
            Jitter::Time(time) => (time.0, over.0),
            Jitter::Percent(percent) => {
                let end = if over == Nanos::MAX { u64::MAX } else { shape.position(over, over) };
                ((percent / 100.0 * ONE as f64) as u64, end)
            }
        };
        Jittered { shape, over, phase, count, jitter, stream, half, end }
    }

    /// The maximum number of requests that may change places with each other.
    pub(crate) fn mixed(shape: &Shape, jitter: Jitter) -> u64 {
        let reach = match jitter {
            Jitter::Time(time) => 2.0 * time.as_secs_f64() * shape.peak_per_s(),
            Jitter::Percent(percent) => 2.0 * percent / 100.0,
        };
        reach as u64 + 2
    }

    /// When the `n`-th request in the order of time is due.
    pub(crate) fn due(&self, n: u64) -> Nanos {
        if n >= self.count {
            return Nanos::MAX;
        }
        // Requests that certainly come before it, or certainly after it, need not be considered.
        let centre = self.centre(n);
        let first =
            partition(n, |i| self.centre(i).saturating_add(self.half) < centre.saturating_sub(self.half));
        let last = centre.saturating_add(self.half);
        let mut places: Vec<u64> = (first..self.count)
            .take_while(|&i| self.centre(i).saturating_sub(self.half) <= last)
            .map(|i| self.place(i))
            .collect();
        let rank = usize::try_from(n - first).expect("a rank within those that may change places is small");
        let (_, place, _) = places.select_nth_unstable(rank);
        self.time(*place)
    }

    /// How many requests are due before `end`.
    pub(crate) fn count_before(&self, end: Nanos) -> u64 {
        let surely = |i| self.time(self.centre(i).saturating_add(self.half)) < end;
        let perhaps = |i: &u64| self.time(self.centre(*i).saturating_sub(self.half)) < end;
        let first = partition(self.count, surely);
        let rest = (first..self.count).take_while(perhaps).filter(|&i| self.time(self.place(i)) < end);
        first + rest.count() as u64
    }

    /// The position of request `i` before it is moved.
    #[inline]
    fn centre(&self, i: u64) -> u64 {
        let position = self.phase.saturating_add(i.saturating_mul(ONE));
        match self.jitter {
            Jitter::Time(_) => self.shape.due(position, self.over).0,
            Jitter::Percent(_) => position,
        }
    }

    /// The position of request `i` after it is moved.
    #[inline]
    fn place(&self, i: u64) -> u64 {
        let moved = self.centre(i).saturating_add(self.stream.up_to(i, 2 * self.half));
        let place = moved.abs_diff(self.half);
        let place = if moved < self.half || place < self.end {
            place
        } else {
            (self.end - 1).saturating_sub(place - self.end)
        };
        place.min(self.end - 1)
    }

    #[inline]
    fn time(&self, place: u64) -> Nanos {
        match self.jitter {
            Jitter::Time(_) => Nanos(place),
            Jitter::Percent(_) => self.shape.due(place, self.over).min(Nanos(self.over.0 - 1)),
        }
    }
}

/// Sorts jittered requests by time, as a walk reaches them.
#[derive(Debug, Clone)]
pub(crate) struct Sorter {
    of: Jittered,
    /// Requests that have been drawn and may not be the next one yet.
    waiting: BinaryHeap<Reverse<u64>>,
    /// The first request that has not been drawn.
    unread: u64,
    /// The number of the next request in the order of time.
    next: u64,
    last: u64,
}

impl Sorter {
    /// Allocates room for all requests that may change places, so that a walk never allocates.
    pub(crate) fn new(of: Jittered, mixed: u64) -> Sorter {
        let room = usize::try_from(mixed.min(MOST_MIXED)).expect("what may be mixed is bounded") + 1;
        Sorter { of, waiting: BinaryHeap::with_capacity(room), unread: 0, next: 0, last: 0 }
    }

    /// Begins another stage in the same memory.
    pub(crate) fn restart(&mut self, of: Jittered) {
        self.waiting.clear();
        (self.of, self.unread, self.next, self.last) = (of, 0, 0, 0);
    }

    /// When the `n`-th request in the order of time is due; `n` must not decrease from call to call.
    pub(crate) fn due(&mut self, n: u64) -> Nanos {
        while self.next <= n && self.next < self.of.count {
            self.last = self.pop();
            self.next += 1;
        }
        self.of.time(self.last)
    }

    fn pop(&mut self) -> u64 {
        loop {
            let surely_after = match self.waiting.peek() {
                None => false,
                Some(_) if self.unread >= self.of.count => true,
                Some(Reverse(place)) => *place <= self.of.centre(self.unread).saturating_sub(self.of.half),
            };
            if surely_after && let Some(Reverse(place)) = self.waiting.pop() {
                return place;
            }
            self.waiting.push(Reverse(self.of.place(self.unread)));
            self.unread += 1;
        }
    }
}

/// The first of `0..most` for which `holds` is false; `holds` must be true before it and false from there on.
pub(crate) fn partition(most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
