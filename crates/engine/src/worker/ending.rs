//! How requests end other than by an answer: timeouts, broken connections, the end of the run.

use std::collections::VecDeque;

use codec::{Protocol, Session};
use reactor::{Reactor, Slot};
use record::{Blame, Failure, Outcome, Phase};
use rustix::io::Errno;
use units::Nanos;

use super::Worker;
use crate::connection::{Exchange, State};

impl<R: Reactor, P: Protocol> Worker<'_, R, P> {
    /// Gives up what has waited longer than it may.
    pub(super) fn give_up_expired(&mut self, now: Nanos) {
        while let Some(slot) = self.timers.pop(now) {
            if self.deadline(slot).is_some_and(|deadline| deadline <= now) {
                self.look_again(slot);
            }
            match self.deadline(slot) {
                Some(deadline) if deadline <= now => self.expire(slot),
                Some(deadline) => self.timers.arm(slot, deadline),
                None => {}
            }
        }
        let Some(limit) = self.job.plan.pool.checkout_timeout else { return };
        while let Some(deadline) = self.pool.waiting_since().map(|since| since.saturating_add(limit)) {
            if deadline > now {
                return;
            }
            let Some(waiting) = self.pool.next_waiting() else { return };
            let mut failure = Failure::new(Outcome::CheckoutTimeout, Phase::PoolWait);
            if self.stalled_from.is_some_and(|from| deadline > from) {
                // It ran out while this client did not run, and could not have given it a connection.
                failure.blame = Blame::Client;
            }
            self.recorder.current.record_failure(failure, now - waiting.intended);
            self.demand.caller_free(now);
        }
    }

    /// Attends to what lies in the kernel already: after a stall of this client the timers have run out, but the
    /// answers may have come in time, and more of them than one wait returns.
    fn look_again(&mut self, slot: Slot) {
        match self.connections[slot.0 as usize].state {
            State::Connecting { attempt, .. } => self.attend_connecting(slot, attempt),
            State::Open => self.read(slot),
            State::Closed | State::Resolving => {}
        }
    }

    /// When the connection's oldest request, or its opening, is to be given up.
    fn deadline(&self, slot: Slot) -> Option<Nanos> {
        let connection = &self.connections[slot.0 as usize];
        let pool = &self.job.plan.pool;
        match connection.state {
            State::Connecting { since, .. } => Some(since.saturating_add(self.attempt_limit()?)),
            State::Open => Some(connection.exchanges.front()?.offered?.saturating_add(pool.request_timeout?)),
            State::Closed | State::Resolving => None,
        }
    }

    fn expire(&mut self, slot: Slot) {
        let connection = &self.connections[slot.0 as usize];
        if let State::Connecting { attempt, .. } = connection.state {
            return self.connect_failed(slot, attempt, &Errno::TIMEDOUT.into());
        }
        // The request was wholly sent and the peer's kernel has acknowledged every byte, so it got there: what
        // is missing is the answer. Otherwise silence is all there is.
        let blame = match self.reactor.unacknowledged(slot) {
            Some(0) if connection.sent > 0 => Blame::Server,
            _ => Blame::Undecided,
        };
        let failure = Failure::blamed(Outcome::RequestTimeout, connection.phase(0), blame);
        self.fail_connection(slot, failure);
    }

    /// Ends the connection of `slot`: its oldest request failed by `failure`, those behind it with it.
    ///
    /// A connection that breaks takes all its requests with it, but only the oldest was being answered: the
    /// others are booked as closed before their response, or under the same outcome where that holds for
    /// each of them. A request of which nothing was ever offered to the kernel has not failed: it was given a
    /// connection that had ended already, and gets another.
    pub(super) fn fail_connection(&mut self, slot: Slot, failure: Failure) {
        let now = self.reactor.now();
        let unoffered = self.take_unoffered(slot);
        let connection = &self.connections[slot.0 as usize];
        for (index, exchange) in connection.exchanges.iter().enumerate() {
            let failure = if index == 0 { failure } else { behind(failure, connection.phase(index)) };
            let age = now.saturating_sub(exchange.timeline.due_at());
            self.recorder.current.record_failure(failure, age);
        }
        let ended = connection.exchanges.len() as u64;
        self.under_way -= ended;
        self.recorder.current.counts.idle_closes += u64::from(ended == 0 && !unoffered.is_empty());
        self.reset(slot);
        for exchange in unoffered {
            let other = self.pool.check_out().expect("the connection just closed has room for what it held");
            self.under_way -= 1;
            self.assign(other, exchange.n, exchange.timeline, exchange.immediate);
        }
        for _ in 0..ended {
            self.demand.caller_free(now);
        }
    }

    /// Takes the requests that were put on an open connection in this turn, and never offered to the kernel.
    fn take_unoffered(&mut self, slot: Slot) -> VecDeque<Exchange> {
        let connection = &mut self.connections[slot.0 as usize];
        let offered = match connection.state {
            State::Open => {
                connection.exchanges.iter().take_while(|exchange| exchange.offered.is_some()).count()
            }
            // Those that wait for the connection fail with it.
            State::Closed | State::Resolving | State::Connecting { .. } => connection.exchanges.len(),
        };
        connection.exchanges.split_off(offered)
    }

    /// The answer said that the connection ends with it.
    pub(super) fn close_after_answer(&mut self, slot: Slot) {
        let phase = self.connections[slot.0 as usize].phase(0);
        self.fail_connection(slot, Failure::new(Outcome::ClosedBeforeResponse, phase));
    }

    /// The connection ended while nothing was outstanding; the next request on it opens another.
    pub(super) fn close_idle(&mut self, slot: Slot) {
        debug_assert!(self.connections[slot.0 as usize].exchanges.is_empty());
        self.reset(slot);
    }

    fn reset(&mut self, slot: Slot) {
        self.reactor.close(slot);
        let session = self.job.protocol.session();
        debug_assert!(session.capacity() > 0);
        self.connections[slot.0 as usize].reset(session);
        self.list_if_room(slot);
    }

    /// The run is over: books everything outstanding. Returns when that was.
    pub(super) fn end(&mut self) -> Nanos {
        let now = self.reactor.now();
        // What became due while nobody looked is due all the same.
        while let Some(due) = self.demand.take(now) {
            self.recorder.current.counts.scheduled += 1;
            let failure = Failure::new(Outcome::NotSent, Phase::ScheduleLag);
            self.recorder.current.record_failure(failure, now - due.intended);
        }
        while let Some(waiting) = self.pool.next_waiting() {
            let failure = Failure::new(Outcome::NotSent, Phase::PoolWait);
            self.recorder.current.record_failure(failure, now - waiting.intended);
        }
        for index in 0..self.connections.len() {
            let slot = Slot(index as u32);
            let connection = &self.connections[index];
            for (position, exchange) in connection.exchanges.iter().enumerate() {
                let outcome = if exchange.begun { Outcome::InFlight } else { Outcome::NotSent };
                let failure = Failure::new(outcome, connection.phase(position));
                let age = now.saturating_sub(exchange.timeline.due_at());
                self.recorder.current.record_failure(failure, age);
            }
            self.reactor.close(slot);
        }
        now
    }
}

/// What becomes of a request whose connection ended by an earlier one's `failure`.
fn behind(failure: Failure, phase: Phase) -> Failure {
    match failure.outcome {
        Outcome::ProtocolError | Outcome::IncompleteResponse => {
            Failure::new(Outcome::ClosedBeforeResponse, phase)
        }
        // We closed the connection, because the oldest request's answer did not come.
        Outcome::RequestTimeout => Failure::blamed(Outcome::RequestTimeout, phase, failure.blame),
        outcome => Failure::blamed(outcome, phase, failure.blame),
    }
}
