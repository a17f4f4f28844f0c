//! Connections that carry nothing: opened before the run's zero, then silent.

use std::collections::VecDeque;

use codec::{Origin, Protocol};
use reactor::{Reactor, Slot};
use record::{Failure, Reason};
use units::Nanos;

use super::{Stage, Worker};
use crate::connection::{Connection, State};
use crate::plan::{RunPlan, Share};

/// How many are opened at a time, so that they fit into a listener's queue of 128 (listen(2)) when several workers open
/// theirs. If as many fail before the first one opens, the others are not tried.
const AT_A_TIME: u64 = 32;

/// The idle connections of one worker or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdleConnections {
    /// Connections that were to be opened.
    pub wanted: u64,
    /// Connections that were opened.
    pub opened: u64,
    /// Opened connections that the server closed later.
    pub lost: u64,
    /// The first failure to open one, with its reason if the protocol has one.
    pub failure: Option<(Failure, Option<Reason>)>,
}

impl IdleConnections {
    /// Adds those of another worker.
    pub fn merge(&mut self, other: IdleConnections) {
        self.wanted += other.wanted;
        self.opened += other.opened;
        self.lost += other.lost;
        self.failure = self.failure.take().or(other.failure);
    }
}

/// The state of one worker's idle connections.
#[derive(Debug)]
pub(super) struct Idle {
    pub(super) figures: IdleConnections,
    to_open: VecDeque<Slot>,
    opening: u64,
    failed: u64,
    /// How long opening all of them may take.
    takes: Nanos,
}

impl Idle {
    /// Appends closed connections to `connections`, for each peer of `plan`.
    pub(super) fn new<P: Protocol>(
        plan: &RunPlan,
        share: Share,
        protocol: &P,
        connections: &mut Vec<Connection<P::Session>>,
    ) -> Idle {
        let first = connections.len();
        for origin in (0..plan.peers.len() as u16).map(Origin) {
            connections.extend((0..share.idle).map(|_| Connection::idle(origin, protocol.session(origin))));
        }
        let to_open: VecDeque<Slot> = (first..connections.len()).map(|index| Slot(index as u32)).collect();
        let wanted = to_open.len() as u64;
        let batches = wanted.div_ceil(AT_A_TIME);
        let waits = plan.pool.connect_timeout.map_or(Nanos::MAX, |limit| times(limit, batches));
        let paced = times(plan.pool.connect_gap, plan.workers.saturating_mul(wanted));
        Idle {
            figures: IdleConnections { wanted, ..IdleConnections::default() },
            takes: if wanted == 0 { Nanos::ZERO } else { waits.saturating_add(paced) },
            to_open,
            opening: 0,
            failed: 0,
        }
    }

    pub(super) fn opening_takes(&self) -> Nanos {
        self.takes
    }

    /// Whether some are still to be opened.
    pub(super) fn is_opening(&self) -> bool {
        self.opening > 0 || !self.to_open.is_empty()
    }

    /// Whether another one may be opened.
    pub(super) fn is_next_due(&self) -> bool {
        self.opening < AT_A_TIME && !self.to_open.is_empty()
    }
}

fn times(length: Nanos, count: u64) -> Nanos {
    Nanos(length.0.saturating_mul(count))
}

impl<R: Reactor, P: Protocol> Worker<'_, R, P> {
    /// Opens as many as are permitted at `now`.
    pub(super) fn open_idle(&mut self, now: Nanos) {
        if self.job.stage == Stage::Run {
            return;
        }
        while self.idle.is_next_due() && self.permits.is_due(now) {
            let Some(slot) = self.idle.to_open.pop_front() else { return };
            self.permits.take(now);
            self.idle.opening += 1;
            self.open(slot);
        }
    }

    /// The idle connection of `slot` is open.
    pub(super) fn idle_opened(&mut self) {
        self.idle.opening -= 1;
        self.idle.figures.opened += 1;
    }

    /// The idle connection of `slot` ends: it could not be opened, or the server closed it.
    pub(super) fn idle_ended(&mut self, slot: Slot, failure: Failure, reason: Option<&Reason>) {
        if self.connections[slot.0 as usize].state == State::Open {
            self.idle.figures.lost += 1;
            return;
        }
        let idle = &mut self.idle;
        idle.opening -= 1;
        idle.failed += 1;
        idle.figures.failure.get_or_insert_with(|| (failure, reason.cloned()));
        if idle.figures.opened == 0 && idle.failed >= AT_A_TIME {
            idle.to_open.clear();
        }
    }
}
