//! How requests end without a response: timeouts, broken connections, the end of the run.

use std::collections::VecDeque;

use codec::{Origin, Protocol, Session};
use reactor::{Reactor, Slot};
use record::{Blame, Failure, Outcome, Phase, Reason};
use rustix::io::Errno;
use units::Nanos;

use super::journey::StepEnd;
use super::{Stage, Worker, mark_dirty};
use crate::connection::{Exchange, State};

impl<R: Reactor, P: Protocol> Worker<'_, R, P> {
    /// Ends every request and every opening of a connection whose timeout has passed.
    pub(super) fn give_up_expired(&mut self, now: Nanos) {
        while let Some(slot) = self.timers.pop(now) {
            if self.deadline(slot).is_some_and(|deadline| deadline <= now) {
                self.look_again(slot);
            }
            match self.deadline(slot) {
                Some(deadline) if deadline <= now => {
                    self.expire(slot, now);
                    if let Some(next) = self.deadline(slot) {
                        self.timers.arm(slot, next);
                    }
                }
                Some(deadline) => self.timers.arm(slot, deadline),
                None => {}
            }
        }
        let Some(limit) = self.job.plan.pool.checkout_timeout else { return };
        for origin in (0..self.pools.origins()).map(Origin) {
            self.give_up_waiting(origin, limit, now);
        }
    }

    /// Ends the requests that have waited for a connection to `origin` for `limit`.
    fn give_up_waiting(&mut self, origin: Origin, limit: Nanos, now: Nanos) {
        while let Some(deadline) = self.pools.waiting_since(origin).map(|since| since.saturating_add(limit)) {
            if deadline > now {
                return;
            }
            let Some(waiting) = self.pools.next_waiting(origin) else { return };
            let mut failure = Failure::new(Outcome::CheckoutTimeout, Phase::PoolWait);
            if self.stalled_from.is_some_and(|from| deadline > from) {
                // The timeout passed while this client was not running and could not have assigned a connection.
                failure.blame = Blame::Client;
            }
            self.record_failure(failure, waiting.ended(now));
            let (unit, journey) = (waiting.unit, waiting.route.journey);
            let end = StepEnd { unit, journey, slot: None, at: now, is_ok: false };
            self.give_up_journey(end, waiting.journey);
        }
    }

    /// Processes what is already in the kernel: after a stall of this client the timers have fired, but responses may
    /// have come in time, and more of them than one wait returns.
    fn look_again(&mut self, slot: Slot) {
        match self.connections[slot.0 as usize].state {
            State::Connecting { attempt, .. } => self.attend_connecting(slot, attempt),
            State::Opening { .. } | State::Open => self.read(slot),
            State::Closed | State::Resolving => {}
        }
    }

    /// When the connection's oldest request, or its opening, times out.
    fn deadline(&self, slot: Slot) -> Option<Nanos> {
        let connection = &self.connections[slot.0 as usize];
        let pool = &self.job.plan.pool;
        match connection.state {
            State::Connecting { since, .. } => Some(since.saturating_add(self.attempt_limit(slot)?)),
            State::Opening { since, .. } => Some(since.saturating_add(pool.connect_timeout?)),
            State::Open => Some(connection.exchanges.front()?.offered?.saturating_add(pool.request_timeout?)),
            State::Closed | State::Resolving => None,
        }
    }

    fn expire(&mut self, slot: Slot, now: Nanos) {
        let connection = &self.connections[slot.0 as usize];
        if let State::Connecting { attempt, .. } = connection.state {
            return self.connect_failed(slot, attempt, &Errno::TIMEDOUT.into());
        }
        if let State::Opening { phase, .. } = connection.state {
            return self.fail_connection(slot, Failure::new(Outcome::ConnectTimeout, phase));
        }
        // If the request was completely sent and the peer's kernel acknowledged every byte of it, it arrived, and the
        // response is missing. Otherwise nothing but the silence is known.
        let missing = self.reactor.unacknowledged(slot);
        let arrived = missing.is_some_and(|bytes| connection.oldest_has_arrived(bytes));
        let blame = if arrived { Blame::Server } else { Blame::Undecided };
        let failure = Failure::blamed(Outcome::RequestTimeout, connection.oldest_phase(), blame);
        // A network path that is completely silent may be dead, and would lose later requests too.
        let oldest = connection.exchanges.front().and_then(|oldest| oldest.offered);
        let is_alive = arrived || oldest.is_some_and(|offered| connection.heard > offered);
        if !is_alive || !self.cancel_oldest(slot, failure, now) {
            self.fail_connection(slot, failure);
        }
    }

    /// Ends only the oldest request of the connection, if its session can do that. Returns whether it did.
    fn cancel_oldest(&mut self, slot: Slot, failure: Failure, now: Nanos) -> bool {
        let connection = &mut self.connections[slot.0 as usize];
        let Some(key) = connection.exchanges.front().map(Exchange::key) else { return false };
        if !connection.session.cancel(key, &mut connection.out) {
            return false;
        }
        mark_dirty(&mut self.dirty, slot, connection);
        let Some(exchange) = connection.take(0) else { return false };
        self.under_way -= 1;
        self.recorder.note_ended(u64::from(exchange.offered.is_some()), now);
        self.record_failure(failure, exchange.ended(self.number(slot), now));
        let end = StepEnd {
            unit: exchange.unit,
            journey: exchange.route.journey,
            slot: Some(slot),
            at: now,
            is_ok: false,
        };
        self.give_up_journey(end, exchange.journey);
        self.list_if_room(slot);
        true
    }

    /// Ends the connection of `slot`: its oldest request fails with `failure`, and those behind it fail too.
    ///
    /// A connection that breaks takes all its requests with it, but only the oldest was being answered: the others are
    /// counted as closed before their response, or with the same outcome if that applies to each of them. A request
    /// that was assigned to a connection which had already ended has not failed, and gets another: see
    /// [`Exchange::may_move`].
    pub(super) fn fail_connection(&mut self, slot: Slot, failure: Failure) {
        self.fail_connection_by(slot, failure, None);
    }

    /// The same, with a reason from the protocol.
    pub(super) fn fail_connection_by(&mut self, slot: Slot, failure: Failure, reason: Option<&Reason>) {
        let now = self.reactor.now();
        if self.connections[slot.0 as usize].is_idle {
            self.idle_ended(slot, failure, reason);
            return self.reset(slot);
        }
        if failure.outcome.is_unconnected() {
            self.note_unconnected(slot, now);
        }
        self.lose_lease(slot, failure.outcome);
        let moving = self.take_moving(slot);
        let connection = &self.connections[slot.0 as usize];
        let of_oldest = failure.outcome;
        for index in 0..connection.exchanges.len() {
            let connection = &self.connections[slot.0 as usize];
            let exchange = &connection.exchanges[index];
            let phase = connection.phase(exchange);
            let failure = if index == 0 { failure } else { behind(failure, phase, exchange.began) };
            let request = exchange.ended(self.number(slot), now);
            self.record_failure(failure, request);
            if let Some(reason) = reason.filter(|_| index == 0 || failure.outcome == of_oldest) {
                self.recorder.current.add_reasons(failure.outcome, reason.clone(), 1);
            }
        }
        let ended = std::mem::take(&mut self.connections[slot.0 as usize].exchanges);
        self.under_way -= ended.len() as u64;
        let offered = ended.iter().filter(|exchange| exchange.offered.is_some()).count() as u64;
        self.recorder.note_ended(offered, now);
        let was_idle = ended.is_empty() && !moving.is_empty();
        self.recorder.current.counts.idle_closes += u64::from(was_idle);
        self.reset(slot);
        if !moving.is_empty() {
            self.put_back(moving.into_iter(), now);
        }
        for exchange in ended {
            let (unit, journey) = (exchange.unit, exchange.route.journey);
            let end = StepEnd { unit, journey, slot: None, at: now, is_ok: false };
            self.give_up_journey(end, exchange.journey);
        }
    }

    /// Takes the requests that can be sent on another connection. They are the last ones.
    fn take_moving(&mut self, slot: Slot) -> VecDeque<Exchange<P::Journey>> {
        let exchanges = &mut self.connections[slot.0 as usize].exchanges;
        let staying = exchanges.iter().take_while(|exchange| !exchange.may_move()).count();
        exchanges.split_off(staying)
    }

    /// Makes requests that were taken off their connection wait for another one, before those that came after them.
    /// They are not assigned at once, because a new connection may have less room than theirs had.
    pub(super) fn put_back(
        &mut self,
        moving: impl DoubleEndedIterator<Item = Exchange<P::Journey>>,
        now: Nanos,
    ) {
        for exchange in moving.rev() {
            self.under_way -= 1;
            self.pools.put_back(exchange.waiting(now));
        }
        self.serve_queues();
    }

    /// Closes a connection whose response announced that the connection ends with it.
    pub(super) fn close_after_response(&mut self, slot: Slot) {
        let phase = self.connections[slot.0 as usize].oldest_phase();
        self.fail_connection(slot, Failure::new(Outcome::ClosedBeforeResponse, phase));
    }

    /// The connection ended while nothing was outstanding; the next request assigned to it opens it again.
    pub(super) fn close_idle(&mut self, slot: Slot, outcome: Outcome) {
        debug_assert!(self.connections[slot.0 as usize].exchanges.is_empty());
        if self.connections[slot.0 as usize].is_idle {
            self.idle_ended(slot, Failure::new(outcome, Phase::Wait), None);
        }
        self.lose_lease(slot, outcome);
        self.reset(slot);
    }

    /// Closes a connection that has had all its requests; the next request assigned to it opens it again.
    #[cold]
    pub(super) fn replace(&mut self, slot: Slot) {
        self.reset(slot);
    }

    /// The connection ends with `outcome`. A journey that pauses on it finds out when its next request is due.
    fn lose_lease(&mut self, slot: Slot, outcome: Outcome) {
        if let Some(n) = self.connections[slot.0 as usize].idle_lease() {
            self.leases.lose(n, outcome);
        }
    }

    fn reset(&mut self, slot: Slot) {
        self.reactor.close(slot);
        let connection = &mut self.connections[slot.0 as usize];
        let session = self.job.protocol.session(connection.origin);
        debug_assert!(session.capacity() > 0);
        connection.reset(session);
        self.note_engaged(slot);
        self.list_if_room(slot);
    }

    /// Ends the stage: gives everything outstanding its outcome, and closes the connections that the run does not use
    /// any more. Returns when that was.
    pub(super) fn end(&mut self) -> Nanos {
        let now = self.reactor.now();
        // Requests that became due since the last check count as due.
        while let Some(due) = self.take_pause(now).or_else(|| self.take_next(now)) {
            self.recorder.current.counts.scheduled += 1;
            let failure = Failure::new(Outcome::NotSent, Phase::ScheduleLag);
            let route = self.job.protocol.route(&due.journey);
            if due.is_first {
                self.note_journey_begun(route.journey);
            }
            self.cut_journey(route.journey);
            self.record_failure(failure, due.ended(route, now));
        }
        for pause in self.journeys.drain() {
            self.cut_journey(self.job.protocol.route(&pause.journey).journey);
            if let (Stage::Preparation, Some(slot)) = (self.job.stage, pause.held) {
                self.release(slot, pause.unit.n);
            }
        }
        for origin in (0..self.pools.origins()).map(Origin) {
            while let Some(waiting) = self.pools.next_waiting(origin) {
                let failure = Failure::new(Outcome::NotSent, Phase::PoolWait);
                self.cut_journey(waiting.route.journey);
                self.record_failure(failure, waiting.ended(now));
            }
        }
        for index in 0..self.connections.len() {
            let slot = Slot(index as u32);
            for position in 0..self.connections[index].exchanges.len() {
                let connection = &self.connections[index];
                let exchange = &connection.exchanges[position];
                let outcome = if exchange.begun { Outcome::InFlight } else { Outcome::NotSent };
                let failure = Failure::new(outcome, connection.phase(exchange));
                let request = exchange.ended(self.number(slot), now);
                let journey = exchange.route.journey;
                self.cut_journey(journey);
                self.record_failure(failure, request);
            }
            match self.job.stage {
                Stage::Run => self.reactor.close(slot),
                Stage::Preparation => self.abandon_outstanding(slot),
            }
        }
        now
    }

    /// Closes a connection whose requests were given up at the end of a stage. Others stay open.
    fn abandon_outstanding(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        let count = connection.exchanges.len() as u64;
        let is_half_open = connection.is_idle && connection.state != State::Open;
        if count == 0 && connection.lease.is_none() && !is_half_open {
            return;
        }
        connection.exchanges.clear();
        self.under_way -= count;
        self.reset(slot);
    }
}

/// The failure of a request whose connection ended because of an earlier request's `failure`. `began`: whether its
/// response had begun.
fn behind(failure: Failure, phase: Phase, began: bool) -> Failure {
    match failure.outcome {
        Outcome::ProtocolError | Outcome::IncompleteResponse | Outcome::ClosedBeforeResponse => {
            let cut = if began { Outcome::IncompleteResponse } else { Outcome::ClosedBeforeResponse };
            Failure::new(cut, phase)
        }
        // We closed the connection because the response to the oldest request did not come.
        Outcome::RequestTimeout => Failure::blamed(Outcome::RequestTimeout, phase, failure.blame),
        outcome => Failure::blamed(outcome, phase, failure.blame),
    }
}
