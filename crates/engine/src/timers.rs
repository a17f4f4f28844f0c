//! When to check which connection again. There is at most one live timer per connection, so memory stays constant
//! whatever the rate and the timeouts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reactor::Slot;
use units::Nanos;

/// The timers of connections.
///
/// A connection's timer is set to its *earliest possible* deadline and checked lazily: if it fires after the request
/// it was set for has ended, it is set again for the current one. A request whose response comes in time costs nothing
/// here.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// What each connection's timer is set to; an entry of the heap with another time is stale.
    armed: Vec<Option<Nanos>>,
}

impl Timers {
    pub(crate) fn new(connections: u64) -> Timers {
        Timers { heap: BinaryHeap::new(), armed: vec![None; connections as usize] }
    }

    /// Makes `slot` due for a check at `deadline` or earlier.
    #[inline]
    pub(crate) fn arm(&mut self, slot: Slot, deadline: Nanos) {
        let armed = &mut self.armed[slot.0 as usize];
        if armed.is_none_or(|set| set > deadline) {
            *armed = Some(deadline);
            self.heap.push(Reverse((deadline, slot.0)));
        }
    }

    /// When the next timer fires.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// A connection whose timer has fired by `now`; this turns its timer off.
    #[inline]
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<Slot> {
        while self.next_at().is_some_and(|at| at <= now) {
            let Reverse((at, index)) = self.heap.pop()?;
            let armed = &mut self.armed[index as usize];
            if *armed == Some(at) {
                *armed = None;
                return Some(Slot(index));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_deadline_replaces_a_later_one() {
        let mut timers = Timers::new(2);
        timers.arm(Slot(0), Nanos(30));
        timers.arm(Slot(0), Nanos(10));
        timers.arm(Slot(1), Nanos(20));
        assert_eq!(timers.pop(Nanos(9)), None);
        assert_eq!(timers.pop(Nanos(25)), Some(Slot(0)));
        assert_eq!(timers.pop(Nanos(25)), Some(Slot(1)));
        // The stale entry at 30 fires for no connection.
        assert_eq!(timers.pop(Nanos(99)), None);
    }

    /// If this fails, a long run at a high rate with long timeouts fills the memory.
    #[test]
    fn a_million_requests_leave_one_entry() {
        let mut timers = Timers::new(1);
        for n in 0..1_000_000 {
            timers.arm(Slot(0), Nanos(1_000_000_000 + n));
        }
        assert_eq!(timers.heap.len(), 1);
    }
}
