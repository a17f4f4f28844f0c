//! Which connection has room, and which requests wait for one. Handles order only; it has no sockets and reads no
//! clock.

use std::collections::VecDeque;

use codec::{Origin, Route};
use reactor::Slot;
use record::{KeptRequest, Phase, Timeline};
use units::Nanos;

use crate::journeys::Unit;

/// A request that has been picked up and has no connection yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting<J> {
    pub unit: Unit,
    pub journey: J,
    pub route: Route,
    pub intended: Nanos,
    pub picked_up: Nanos,
}

impl<J> Waiting<J> {
    pub(crate) fn timeline(&self) -> Timeline {
        let mut timeline = Timeline::due(self.intended);
        timeline.end(Phase::ScheduleLag, self.picked_up);
        timeline
    }

    /// The record of it when it ended at `at`, still waiting.
    pub(crate) fn ended(&self, at: Nanos) -> KeptRequest {
        let (n, kind, timeline) = (self.unit.n, self.route.kind, self.timeline());
        KeptRequest {
            n,
            kind,
            connection: None,
            carried: None,
            timeline,
            ended: at,
            failure: None,
            code: None,
        }
    }
}

/// The pools of one worker, one per origin.
#[derive(Debug)]
pub(crate) struct Pools<J> {
    pools: Vec<Pool<J>>,
    /// Waiting requests in all pools.
    queued: u64,
}

/// First come, first served on both sides: the request that has waited longest gets the connection that has been idle
/// longest, so every configured connection is used.
#[derive(Debug)]
struct Pool<J> {
    /// Connections with room, each listed once.
    ready: VecDeque<Slot>,
    /// Closed connections, if opening one needs a permit; otherwise they are among the `ready` ones.
    closed: VecDeque<Slot>,
    queue: VecDeque<Waiting<J>>,
}

impl<J> Pools<J> {
    /// `connections` for each of `origins`, numbered origin by origin, all with room. None is open yet: the first
    /// request on each opens it.
    pub(crate) fn new(origins: usize, connections: u64) -> Pools<J> {
        let pool = |origin: u64| Pool {
            ready: (0..connections).map(|index| Slot((origin * connections + index) as u32)).collect(),
            closed: VecDeque::new(),
            queue: VecDeque::new(),
        };
        Pools { pools: (0..origins as u64).map(pool).collect(), queued: 0 }
    }

    /// The same, but opening a connection needs a permit: see [`Pools::check_in_closed`].
    pub(crate) fn closed(origins: usize, connections: u64) -> Pools<J> {
        let mut pools = Pools::new(origins, connections);
        for pool in &mut pools.pools {
            std::mem::swap(&mut pool.ready, &mut pool.closed);
        }
        pools
    }

    /// How many origins there are.
    pub(crate) fn origins(&self) -> u16 {
        self.pools.len() as u16
    }

    /// Takes a connection with room off the list.
    #[inline]
    pub(crate) fn check_out(&mut self, origin: Origin) -> Option<Slot> {
        self.of(origin).ready.pop_front()
    }

    /// Takes a connection off the list that has no room any more although nothing was assigned to it.
    #[cold]
    pub(crate) fn withdraw(&mut self, origin: Origin, slot: Slot) {
        self.of(origin).ready.retain(|&other| other != slot);
    }

    /// Lists a connection that has room again. It must not be listed already.
    #[inline]
    pub(crate) fn check_in(&mut self, origin: Origin, slot: Slot) {
        let pool = self.of(origin);
        debug_assert!(!pool.ready.contains(&slot), "connection {slot:?} is on the list twice");
        pool.ready.push_back(slot);
    }

    /// Lists a closed connection that only a permit opens.
    pub(crate) fn check_in_closed(&mut self, origin: Origin, slot: Slot) {
        self.of(origin).closed.push_back(slot);
    }

    /// Takes a closed connection off its list, for a request that overtakes no other.
    pub(crate) fn check_out_closed(&mut self, origin: Origin) -> Option<Slot> {
        let pool = self.of(origin);
        if pool.queue.is_empty() { pool.closed.pop_front() } else { None }
    }

    /// Like [`Pools::match_up`], with a closed connection.
    pub(crate) fn match_up_closed(&mut self, origin: Origin) -> Option<(Slot, Waiting<J>)> {
        let pool = self.of(origin);
        if pool.queue.is_empty() {
            return None;
        }
        let slot = pool.closed.pop_front()?;
        Some((slot, self.next_waiting(origin)?))
    }

    /// Whether a request waits that a permit would give a connection.
    pub(crate) fn awaits_permit(&self) -> bool {
        self.pools.iter().any(|pool| !pool.queue.is_empty() && !pool.closed.is_empty())
    }

    #[inline]
    pub(crate) fn any_room(&self) -> bool {
        self.pools.iter().any(|pool| !pool.ready.is_empty())
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, waiting: Waiting<J>) {
        self.queued += 1;
        self.of(waiting.route.origin).queue.push_back(waiting);
    }

    /// Puts a request that had a connection back at the front of the queue.
    pub(crate) fn put_back(&mut self, waiting: Waiting<J>) {
        self.queued += 1;
        self.of(waiting.route.origin).queue.push_front(waiting);
    }

    #[inline]
    pub(crate) fn next_waiting(&mut self, origin: Origin) -> Option<Waiting<J>> {
        let waiting = self.of(origin).queue.pop_front()?;
        self.queued -= 1;
        Some(waiting)
    }

    /// Takes the request that has waited longest at `origin` and a connection for it, if there are both.
    #[inline]
    pub(crate) fn match_up(&mut self, origin: Origin) -> Option<(Slot, Waiting<J>)> {
        let pool = self.of(origin);
        if pool.queue.is_empty() {
            return None;
        }
        let slot = pool.ready.pop_front()?;
        Some((slot, self.next_waiting(origin)?))
    }

    /// Whether no pool has both a waiting request and a connection with room.
    pub(crate) fn is_matched_up(&self) -> bool {
        self.pools.iter().all(|pool| pool.queue.is_empty() || pool.ready.is_empty())
    }

    #[inline]
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// When the request that has waited longest at `origin` was picked up.
    #[inline]
    pub(crate) fn waiting_since(&self, origin: Origin) -> Option<Nanos> {
        self.pools[usize::from(origin.0)].queue.front().map(|waiting| waiting.picked_up)
    }

    /// When the request that has waited longest at any origin was picked up.
    #[inline]
    pub(crate) fn longest_waiting_since(&self) -> Option<Nanos> {
        if self.queued == 0 {
            return None;
        }
        (0..self.origins()).filter_map(|origin| self.waiting_since(Origin(origin))).min()
    }

    #[inline]
    fn of(&mut self, origin: Origin) -> &mut Pool<J> {
        &mut self.pools[usize::from(origin.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Origin = Origin(0);

    fn waiting(n: u64, origin: u16) -> Waiting<()> {
        let route = Route { origin: Origin(origin), ..Route::default() };
        let unit = Unit { n, began: Nanos(n) };
        Waiting { unit, journey: (), route, intended: Nanos(n), picked_up: Nanos(n) }
    }

    #[test]
    fn connections_take_turns_and_requests_keep_their_order() {
        let mut pools = Pools::new(1, 2);
        let (first, second) = (pools.check_out(HERE).unwrap(), pools.check_out(HERE).unwrap());
        assert!(!pools.any_room());
        (0..3).for_each(|n| pools.enqueue(waiting(n, 0)));
        pools.check_in(HERE, second);
        pools.check_in(HERE, first);
        assert_eq!(pools.match_up(HERE), Some((second, waiting(0, 0))));
        assert_eq!(pools.longest_waiting_since(), Some(Nanos(1)));
        assert_eq!(pools.queued(), 2);
    }

    /// If this fails, a slow origin holds up the requests to the others.
    #[test]
    fn each_origin_has_its_own_connections_and_queue() {
        let mut pools = Pools::new(2, 1);
        assert_eq!(pools.check_out(Origin(1)), Some(Slot(1)));
        pools.enqueue(waiting(0, 1));
        assert_eq!(pools.match_up(Origin(1)), None);
        assert_eq!(pools.check_out(HERE), Some(Slot(0)));
        assert_eq!((pools.waiting_since(HERE), pools.waiting_since(Origin(1))), (None, Some(Nanos(0))));
    }
}
