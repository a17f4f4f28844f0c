//! What follows a request: its journey continues, is retried, or ends; its lease is kept or released.

use codec::{ConnectionUse, Ended, Next, Protocol, Session};
use reactor::{Reactor, Slot};
use record::{Failure, Outcome, Phase};
use units::Nanos;

use super::{Due, Worker};
use crate::connection::{Exchange, PickedUp};
use crate::journeys::Unit;

/// A request that has ended, as seen by its journey.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepEnd {
    pub unit: Unit,
    /// Which journey of the run it belongs to, if any.
    pub journey: Option<u16>,
    /// The connection that it was on, if that still exists.
    pub slot: Option<Slot>,
    pub at: Nanos,
    pub is_ok: bool,
}

impl<R: Reactor, P: Protocol> Worker<'_, R, P> {
    /// Continues after a request that has ended.
    #[inline]
    pub(super) fn follow(&mut self, end: StepEnd, next: Next<P::Journey>) {
        match next {
            Next::End => {
                self.end_journey(end);
                self.free_user(end);
            }
            Next::Then { journey, think } => self.go_on(end, journey, think),
            Next::Retry { journey, think } => {
                self.recorder.current.counts.retries += 1;
                if let Some(number) = self.journey_apart(end.journey) {
                    self.recorder.current.journey(number).retries += 1;
                }
                self.go_on(end, journey, think);
            }
        }
    }

    /// Continues after a request that ended without a response; `end.slot` is its connection, if that survived.
    #[inline]
    pub(super) fn give_up_journey(&mut self, end: StepEnd, journey: P::Journey) {
        let next = self.job.protocol.advance(journey, Ended::Unanswered);
        self.follow(end, next);
    }

    fn go_on(&mut self, end: StepEnd, journey: P::Journey, think: Nanos) {
        let due = end.at.saturating_add(think);
        if !self.demand.is_open_at(due) {
            self.cut_journey(end.journey);
            return self.free_user(end);
        }
        let held = self.keep_lease(end, &journey);
        if held.is_some() {
            self.leases.pause();
        }
        self.journeys.push(due, end.unit, journey, held);
    }

    fn free_user(&mut self, end: StepEnd) {
        if let Some(slot) = end.slot {
            self.release(slot, end.unit.n);
        }
        self.demand.user_free(end.at);
    }

    /// The connection that the next request of a journey must use. Releases a connection that the journey no longer
    /// needs.
    fn keep_lease(&mut self, end: StepEnd, journey: &P::Journey) -> Option<Slot> {
        let slot = end.slot?;
        let connection = &self.connections[slot.0 as usize];
        if connection.lease != Some(end.unit.n) {
            return None;
        }
        let route = self.job.protocol.route(journey);
        if route.connection == ConnectionUse::Leased && route.origin == connection.origin {
            return Some(slot);
        }
        self.release(slot, end.unit.n);
        None
    }

    /// Ends the lease that unit `n` has on this connection, if it has one. Others may then use it, unless its session
    /// forbids that.
    pub(super) fn release(&mut self, slot: Slot, n: u64) {
        let connection = &mut self.connections[slot.0 as usize];
        if connection.lease != Some(n) {
            return;
        }
        connection.lease = None;
        if connection.session.is_reusable() {
            self.list_if_room(slot);
        } else {
            let phase = connection.oldest_phase();
            self.fail_connection(slot, Failure::new(Outcome::ClosedBeforeResponse, phase));
        }
    }

    /// The next request of a journey that has leased a connection is due: it goes on that connection, or fails.
    pub(super) fn take_up_held(&mut self, due: Due<P::Journey>, slot: Slot) {
        self.leases.resume();
        let route = self.job.protocol.route(&due.journey);
        if let Some(outcome) = self.leases.take_lost(due.unit.n) {
            return self.fail_lost(due, slot, outcome);
        }
        debug_assert_eq!(
            self.connections[slot.0 as usize].lease,
            Some(due.unit.n),
            "a lease was lost unnoticed"
        );
        let timeline = record::Timeline::due(due.intended);
        let exchange = Exchange::new(due.unit, due.journey, route, timeline, PickedUp::WhenSentHeld);
        self.assign(slot, exchange);
    }

    /// Fails a request whose leased connection ended before the request was due.
    #[cold]
    fn fail_lost(&mut self, due: Due<P::Journey>, slot: Slot, outcome: Outcome) {
        let now = self.reactor.now();
        let route = self.job.protocol.route(&due.journey);
        let mut request = due.ended(route, now);
        request.timeline.end(Phase::ScheduleLag, now);
        request.connection = Some(self.number(slot));
        self.record_failure(Failure::new(outcome, Phase::Send), request);
        let end = StepEnd { unit: due.unit, journey: route.journey, slot: None, at: now, is_ok: false };
        self.give_up_journey(end, due.journey);
    }

    /// Ends the journeys whose next request would be due at `end` or later.
    pub(super) fn end_journeys_at(&mut self, end: Nanos) {
        for pause in self.journeys.end_at(end) {
            self.cut_journey(self.job.protocol.route(&pause.journey).journey);
            if let Some(slot) = pause.held {
                self.leases.resume();
                if self.leases.take_lost(pause.unit.n).is_none() {
                    self.release(slot, pause.unit.n);
                }
            }
        }
    }

    /// The first request of a unit became due.
    #[inline]
    pub(super) fn note_journey_begun(&mut self, journey: Option<u16>) {
        if let Some(number) = self.journey_apart(journey) {
            self.recorder.current.journey(number).begun += 1;
        }
    }

    /// A unit was ended by the end of the run.
    #[inline]
    pub(super) fn cut_journey(&mut self, journey: Option<u16>) {
        if let Some(number) = self.journey_apart(journey) {
            self.recorder.current.journey(number).cut += 1;
        }
    }

    #[inline]
    fn end_journey(&mut self, end: StepEnd) {
        let Some(number) = self.journey_apart(end.journey) else { return };
        let journey = self.recorder.current.journey(number);
        let age = end.at.saturating_sub(end.unit.began);
        if end.is_ok {
            journey.record_ok(age);
        } else {
            journey.record_failed(age);
        }
    }

    /// `journey`, if the run keeps figures per journey.
    #[inline]
    fn journey_apart(&self, journey: Option<u16>) -> Option<u16> {
        journey.filter(|_| self.keeps_journeys)
    }
}
