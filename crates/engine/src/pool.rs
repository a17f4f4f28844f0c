//! Which connection has room, and which requests wait for one. Order only: no sockets, no time of its own.

use std::collections::VecDeque;

use reactor::Slot;
use units::Nanos;

/// A request that has been taken up and has no connection yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub n: u64,
    pub intended: Nanos,
    pub taken_up: Nanos,
}

/// First come, first served on both sides: the request that waited longest gets the connection that rested
/// longest, so that every connection asked for is used.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Connections with room, each once.
    ready: VecDeque<Slot>,
    queue: VecDeque<Waiting>,
}

impl Pool {
    /// Connections 0 to `connections`, all with room. None is open yet: the first request on each opens it.
    pub(crate) fn new(connections: u64) -> Pool {
        let ready = (0..connections).map(|index| Slot(index as u32)).collect();
        Pool { ready, queue: VecDeque::new() }
    }

    /// A connection with room, which is thereby taken off the list.
    #[inline]
    pub(crate) fn check_out(&mut self) -> Option<Slot> {
        self.ready.pop_front()
    }

    /// A connection has room again. It must not be on the list already.
    #[inline]
    pub(crate) fn check_in(&mut self, slot: Slot) {
        debug_assert!(!self.ready.contains(&slot), "connection {slot:?} is on the list twice");
        self.ready.push_back(slot);
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.ready.is_empty()
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, waiting: Waiting) {
        self.queue.push_back(waiting);
    }

    #[inline]
    pub(crate) fn next_waiting(&mut self) -> Option<Waiting> {
        self.queue.pop_front()
    }

    #[inline]
    pub(crate) fn queued(&self) -> u64 {
        self.queue.len() as u64
    }

    /// When the request that waits longest was taken up.
    #[inline]
    pub(crate) fn waiting_since(&self) -> Option<Nanos> {
        self.queue.front().map(|waiting| waiting.taken_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_turns_and_requests_keep_their_order() {
        let mut pool = Pool::new(2);
        let (first, second) = (pool.check_out().unwrap(), pool.check_out().unwrap());
        assert!(!pool.has_room());
        for n in 0..3 {
            pool.enqueue(Waiting { n, intended: Nanos(n), taken_up: Nanos(n) });
        }
        pool.check_in(second);
        pool.check_in(first);
        assert_eq!(pool.check_out(), Some(second));
        assert_eq!(pool.next_waiting().map(|waiting| waiting.n), Some(0));
        assert_eq!(pool.waiting_since(), Some(Nanos(1)));
        assert_eq!(pool.queued(), 2);
    }
}
