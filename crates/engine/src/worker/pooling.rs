//! Which connection a request gets, and when a connection is on the pool's list.

use codec::{Origin, Protocol};
use reactor::{Reactor, Slot};

use super::Worker;
use crate::connection::{Exchange, PickedUp, State};
use crate::pool::Waiting;

impl<R: Reactor, P: Protocol> Worker<'_, R, P> {
    /// Assigns waiting requests to connections with room.
    #[inline]
    pub(super) fn serve_queues(&mut self) {
        if self.pools.queued() == 0 {
            return;
        }
        for origin in (0..self.pools.origins()).map(Origin) {
            while let Some((slot, waiting)) = self.pools.match_up(origin) {
                let timeline = waiting.timeline();
                let Waiting { unit, journey, route, .. } = waiting;
                self.assign(slot, Exchange::new(unit, journey, route, timeline, PickedUp::Before));
            }
        }
        if !self.permits.are_unlimited() {
            self.open_permitted();
        }
    }

    /// Assigns waiting requests to closed connections, as many as may be opened now.
    fn open_permitted(&mut self) {
        for origin in (0..self.pools.origins()).map(Origin) {
            loop {
                let now = self.reactor.now();
                if !self.permits.is_due(now) {
                    return;
                }
                let Some((slot, waiting)) = self.pools.match_up_closed(origin) else { break };
                self.permits.take(now);
                let timeline = waiting.timeline();
                let Waiting { unit, journey, route, .. } = waiting;
                self.assign(slot, Exchange::new(unit, journey, route, timeline, PickedUp::Before));
            }
        }
    }

    /// Takes a connection with room for a request that is due, if there is one or one may be opened.
    #[inline]
    pub(super) fn check_out(&mut self, origin: Origin) -> Option<Slot> {
        if let Some(slot) = self.pools.check_out(origin) {
            return Some(slot);
        }
        if self.permits.are_unlimited() {
            return None;
        }
        let now = self.reactor.now();
        let slot = self.permits.is_due(now).then(|| self.pools.check_out_closed(origin)).flatten()?;
        self.permits.take(now);
        Some(slot)
    }

    #[inline]
    pub(super) fn list_if_room(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        if connection.is_spent() && !connection.is_idle {
            return self.replace(slot);
        }
        if !connection.listed && connection.has_room() {
            connection.listed = true;
            if connection.state == State::Closed && !self.permits.are_unlimited() {
                self.pools.check_in_closed(connection.origin, slot);
            } else {
                self.pools.check_in(connection.origin, slot);
            }
        }
    }

    /// Takes a connection off the pool's list if it has no room any more: the peer allows fewer requests, or is
    /// closing.
    #[inline]
    pub(super) fn unlist_if_full(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        if connection.listed && !connection.has_room() && !connection.is_idle {
            connection.listed = false;
            self.pools.withdraw(connection.origin, slot);
        }
    }
}
