//! One worker: a reactor, a share of the connections and of the schedule, and what it measures.
//!
//! The loop is: hand over a finished interval, end what timed out, send what is due, wait, process what became ready.
//! Hot path: no lock, no allocation, no formatting; two clock reads per request (before it is handed to the kernel, and
//! after its response is read).

mod ending;
mod exchanging;
mod idle;
mod journey;
mod opening;
mod pooling;
mod stage;

use std::collections::VecDeque;
use std::io;

use codec::{ConnectionUse, Origin, Protocol, Route, Session};
use reactor::{Address, Reactor, Ready, Slot, WaitMode};
use record::{Blame, Failure, KeptRequest, Outcome, Phase, Timeline};
use units::Nanos;

use self::idle::Idle;
pub use self::idle::IdleConnections;
use self::journey::StepEnd;
use self::stage::give_up_at;
use crate::connection::{Connection, Exchange, PickedUp, State};
use crate::controls::Controls;
use crate::demand::Demand;
use crate::journeys::{Journeys, Pause, Unit};
use crate::leases::Leases;
use crate::pacer::{Pace, Pacer, Rest, Sockets};
use crate::permits::Permits;
use crate::plan::{Place, RunPlan, Share};
use crate::pool::{Pools, Waiting};
use crate::recorder::Recorder;
use crate::timers::Timers;

/// How often the controls are checked if nothing else happens.
const STOP_EVERY: Nanos = Nanos::from_millis(50);

/// The maximum number of bytes per read.
const READ_BYTES: usize = 64 * 1024;

/// The maximum number of kinds of requests with figures per kind. Each worker has histograms for each kind; from the
/// 101st kind on they are an eighth as large, so 500 kinds take half as much memory again as 100.
pub const KINDS_APART: usize = 500;

/// The maximum number of journeys with figures per journey.
pub const JOURNEYS_APART: usize = 100;

/// What a worker works on: the plan, the protocol, and the controls of the run.
#[derive(Debug)]
pub(crate) struct Job<'a, P> {
    pub plan: &'a RunPlan,
    pub protocol: &'a P,
    pub controls: &'a Controls,
    pub start: Nanos,
    pub stage: Stage,
}

impl<P> Clone for Job<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Job<'_, P> {}

/// What a worker works on before and after the run's zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Idle connections are opened, and the load warms the server up. Connections stay open for the run.
    Preparation,
    Run,
}

/// What a worker reports at its end, in addition to what it recorded.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub at: Nanos,
    /// The first address connected to, of the first peer that was reached.
    pub address: Option<Address>,
    /// Requests that were to be kept but found no room.
    pub unkept: u64,
    /// Requests taken from this worker's share of the schedule; for all workers, the most that one took.
    pub taken: u64,
    pub idle: IdleConnections,
}

/// A request that is due: the first of its journey or a later one.
struct Due<J> {
    unit: Unit,
    journey: J,
    intended: Nanos,
    /// Whether it is the first of its unit.
    is_first: bool,
    /// The connection that its journey has leased.
    held: Option<Slot>,
}

impl<J> Due<J> {
    /// The record of it when it ended at `at` without having been picked up.
    fn ended(&self, route: Route, at: Nanos) -> KeptRequest {
        let timeline = Timeline::due(self.intended);
        KeptRequest {
            n: self.unit.n,
            kind: route.kind,
            connection: None,
            carried: None,
            timeline,
            ended: at,
            failure: None,
            code: None,
        }
    }
}

pub(crate) struct Worker<'a, R, P: Protocol> {
    reactor: &'a mut R,
    job: Job<'a, P>,
    share: Share,
    /// The protocol's number of the request 0 of this stage.
    first: u64,
    demand: Demand,
    pacer: Pacer,
    /// Whether the pacer also spaces overdue requests of the schedule.
    spaced: bool,
    journeys: Journeys<P::Journey>,
    leases: Leases,
    pools: Pools<P::Journey>,
    connections: Vec<Connection<P::Session>>,
    permits: Permits,
    idle: Idle,
    timers: Timers,
    recorder: Recorder,
    /// The maximum number of requests in flight or queued.
    users: u64,
    /// Requests assigned to a connection and not ended.
    under_way: u64,
    /// Connections with bytes to hand to the kernel.
    dirty: Vec<Slot>,
    /// Connections that had more to read than one turn reads.
    unread: VecDeque<Slot>,
    /// The number of connections whose next step is up to this client.
    engaged: usize,
    /// Indexed by origin.
    peers: Vec<PeerState>,
    /// Origins whose names are to be looked up; the lookup of the first is in progress.
    lookups: VecDeque<Origin>,
    /// Whether figures are kept per kind of request.
    several_kinds: bool,
    /// Whether figures are kept per journey: the run has journeys, and not too many.
    keeps_journeys: bool,
    buffer: Vec<u8>,
    /// When the run ends regardless of what is outstanding.
    give_up_at: Nanos,
    /// By when this worker should have run again.
    woke_by: Nanos,
    /// Since when this worker had not run; set only in the turn in which it notices that.
    stalled_from: Option<Nanos>,
    stopping: bool,
    /// The generation of the controls that this worker follows.
    steered: u64,
}

/// What is known about a peer's addresses.
#[derive(Debug, Default)]
struct PeerState {
    places: Vec<Place>,
    /// The index of the address that was connected to last.
    preferred: usize,
    looking_up: bool,
    reached: Option<Address>,
    /// Whether a connection to it was attempted.
    tried: bool,
    /// Since when every attempt to connect to it has failed.
    failing_since: Option<Nanos>,
}

impl<'a, R: Reactor, P: Protocol> Worker<'a, R, P> {
    pub(crate) fn new(reactor: &'a mut R, job: Job<'a, P>, share: Share, recorder: Recorder) -> Self {
        let (plan, start) = (job.plan, job.start);
        let known = |place: &Place| match place {
            Place::Name { .. } => Vec::new(),
            Place::Address(_) | Place::Unix(_) => vec![place.clone()],
        };
        let peers: Vec<PeerState> = plan
            .peers
            .iter()
            .map(|peer| PeerState { places: known(&peer.place), ..PeerState::default() })
            .collect();
        let mut connections = Vec::new();
        for origin in (0..peers.len() as u16).map(Origin) {
            let limit = plan.pool.requests_per_connection.unwrap_or(u64::MAX);
            let new = |_| Connection::new(origin, job.protocol.session(origin), limit);
            connections.extend((0..share.connections).map(new));
        }
        let idle = Idle::new(plan, share, job.protocol, &mut connections);
        let first_permit = start.saturating_add(Nanos(plan.pool.connect_gap.0 * share.residue.nth(0)));
        let permits = Permits::new(plan.pool.connect_gap, plan.workers, first_permit);
        let pools = if permits.are_unlimited() { Pools::new } else { Pools::closed };
        let slots = connections.len() as u64;
        let give_up_at = give_up_at(&job, idle.opening_takes());
        Worker {
            reactor,
            demand: Demand::new(plan, share, start),
            pacer: Pacer::new(plan.pace),
            spaced: plan.pace == Pace::Precise && plan.load.is_open(),
            journeys: Journeys::default(),
            leases: Leases::default(),
            pools: pools(peers.len(), share.connections),
            connections,
            permits,
            idle,
            share,
            first: 0,
            timers: Timers::new(slots),
            recorder,
            users: share.users,
            under_way: 0,
            dirty: Vec::with_capacity(slots as usize),
            unread: VecDeque::with_capacity(slots as usize),
            engaged: 0,
            peers,
            lookups: VecDeque::new(),
            several_kinds: (2..=KINDS_APART).contains(&job.protocol.kinds()),
            keeps_journeys: (1..=JOURNEYS_APART).contains(&job.protocol.journeys()),
            buffer: vec![0; READ_BYTES],
            give_up_at,
            woke_by: Nanos::MAX,
            stalled_from: None,
            stopping: false,
            steered: 0,
            job,
        }
    }

    /// Runs until the schedule is done and every request has ended, or the drain is over.
    ///
    /// # Errors
    ///
    /// When the kernel's event facility fails. What was measured has been handed over.
    pub(crate) fn run_stage(&mut self) -> io::Result<Ended> {
        self.recorder.begin(self.job.start, clock::thread_cpu());
        let mut ready = Vec::with_capacity(1_024);
        let result = loop {
            let now = self.reactor.now();
            self.note_stall(now);
            self.look_at_controls(now);
            if now >= self.recorder.ends_at() {
                self.recorder.current.reach = self.reach(now);
                self.recorder.roll(now, self.outstanding(), clock::thread_cpu());
            }
            self.give_up_expired(now);
            if now >= self.give_up_at {
                // Requests that became due in the meantime would be sent only to be aborted.
                break Ok(());
            }
            self.open_idle(now);
            self.dispatch(now);
            self.note_last_taken(now);
            if self.is_done(now) {
                break Ok(());
            }
            debug_assert!(self.pools.is_matched_up(), "a request waits although there is room for it");
            debug_assert!(self.occupied() <= self.users, "more requests than users");
            let rest = self.plan_rest(now);
            self.woke_by = rest.until;
            if let Err(error) = self.rest(rest, &mut ready) {
                break Err(error);
            }
            self.attend(&mut ready);
        };
        let at = self.end();
        let address = self.peers.iter().find_map(|peer| peer.reached.clone());
        let unkept = self.recorder.finish(at, clock::thread_cpu());
        let (taken, idle) = (self.demand.taken(), self.idle.figures.clone());
        result.map(|()| Ended { at, address, unkept, taken, idle })
    }

    /// Whether nothing is due any more and everything has ended.
    #[inline]
    fn is_done(&self, now: Nanos) -> bool {
        self.demand.is_over(now)
            && self.outstanding() == 0
            && self.journeys.is_empty()
            && (self.job.stage == Stage::Run || !self.idle.is_opening())
    }

    fn attend(&mut self, ready: &mut Vec<Ready>) {
        // Connections that still have more are appended, for the next turn.
        for _ in 0..self.unread.len() {
            let Some(slot) = self.unread.pop_front() else { break };
            self.connections[slot.0 as usize].unread = false;
            self.read(slot);
        }
        for event in ready.drain(..) {
            match event {
                Ready::Socket { slot, readable, writable, closed } => {
                    self.attend_socket(slot, readable || closed, writable);
                }
                Ready::Resolved { result, at } => self.resolved(result, at),
            }
        }
        // Everything that has arrived is read before anything is sent, so no response waits for another's request, and
        // an idle server is woken once, not for each request (against nginx: 0.88 of wrk's CPU time instead of 0.95).
        self.flush_dirty();
    }

    fn attend_socket(&mut self, slot: Slot, readable: bool, writable: bool) {
        match self.connections[slot.0 as usize].state {
            State::Connecting { attempt, .. } => {
                self.attend_connecting(slot, attempt);
                if readable && self.stands(slot) {
                    // The peer has already sent something, or closed. This is reported only once, so it is read as soon
                    // as the requests are sent.
                    self.flush_dirty();
                    self.read(slot);
                }
            }
            State::Opening { .. } | State::Open => {
                if readable {
                    self.read(slot);
                }
                let connection = &mut self.connections[slot.0 as usize];
                if writable && connection.has_output() {
                    self.flush(slot);
                }
            }
            // An event of a socket that was closed while this batch was processed.
            State::Closed | State::Resolving => {}
        }
    }

    /// Updates whether the connection of `slot` counts as engaged.
    #[inline]
    fn note_engaged(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        let engaged = connection.is_engaged();
        if engaged != connection.engaged {
            connection.engaged = engaged;
            if engaged {
                self.engaged += 1;
            } else {
                self.engaged -= 1;
            }
        }
    }

    /// Assigns requests to connections: first those that wait, then those that became due.
    #[inline]
    fn dispatch(&mut self, now: Nanos) {
        self.serve_queues();
        while let Some(due) = self.next_due(now) {
            self.take_up(due);
            self.flush_dirty();
        }
        self.flush_dirty();
    }

    /// Takes the next request that is due by `now`: of a journey in progress, or the first of a new one.
    #[inline]
    fn next_due(&mut self, now: Nanos) -> Option<Due<P::Journey>> {
        if let Some(due) = self.take_pause(now) {
            return Some(due);
        }
        if !self.spaced {
            return self.take_next(now);
        }
        if self.pacer.earliest(self.demand.next_at()?) > now {
            return None;
        }
        let due = self.take_next(now)?;
        self.pacer.note_taken(due.intended, now);
        Some(due)
    }

    /// Takes the next request of a journey in progress that is due by `now`.
    #[inline]
    fn take_pause(&mut self, now: Nanos) -> Option<Due<P::Journey>> {
        if self.journeys.is_empty() {
            return None;
        }
        let pause = self.journeys.take(now)?;
        let Pause { unit, journey, due: intended, held, .. } = pause;
        Some(Due { unit, journey, intended, is_first: false, held })
    }

    /// Takes the next request that begins a journey and is due by `now`, regardless of the pace.
    #[inline]
    fn take_next(&mut self, now: Nanos) -> Option<Due<P::Journey>> {
        let due = self.demand.take(now)?;
        let unit = Unit { n: due.n, began: due.intended };
        let journey = self.job.protocol.begin(due.n + self.first);
        Some(Due { unit, journey, intended: due.intended, is_first: true, held: None })
    }

    #[inline]
    fn take_up(&mut self, due: Due<P::Journey>) {
        self.recorder.current.counts.scheduled += 1;
        if let Some(slot) = due.held {
            return self.take_up_held(due, slot);
        }
        let route = self.job.protocol.route(&due.journey);
        if due.is_first {
            self.note_journey_begun(route.journey);
        }
        if self.occupied() >= self.users {
            let now = self.reactor.now();
            let mut failure = Failure::new(Outcome::QueueFull, Phase::PoolWait);
            if self.stalled_from.is_some_and(|from| due.intended >= from) {
                // It became due while this client was not running and could not have made room for it.
                failure.blame = Blame::Client;
            }
            self.record_failure(failure, due.ended(route, now));
            let end = StepEnd { unit: due.unit, journey: route.journey, slot: None, at: now, is_ok: false };
            self.give_up_journey(end, due.journey);
        } else if let Some(slot) = self.check_out(route.origin) {
            let timeline = Timeline::due(due.intended);
            self.assign(slot, Exchange::new(due.unit, due.journey, route, timeline, PickedUp::WhenSent));
        } else {
            let picked_up = self.reactor.now();
            let Due { unit, journey, intended, .. } = due;
            self.pools.enqueue(Waiting { unit, journey, route, intended, picked_up });
        }
    }

    /// Assigns a request to a connection, and takes the connection off the pool's list unless it has room for more.
    #[inline]
    fn assign(&mut self, slot: Slot, mut exchange: Exchange<P::Journey>) {
        let connection = &mut self.connections[slot.0 as usize];
        connection.listed = false;
        if exchange.route.connection == ConnectionUse::Leased {
            connection.lease = Some(exchange.unit.n);
        }
        exchange.opens = connection.state != State::Open;
        if exchange.opens {
            let now = self.reactor.now();
            if exchange.immediate {
                exchange.timeline.end(Phase::ScheduleLag, now);
            }
            exchange.timeline.end(Phase::PoolWait, now);
        }
        let index = connection.exchanges.len();
        connection.push(exchange);
        self.under_way += 1;
        match connection.state {
            State::Open => {
                connection.encode(index);
                mark_dirty(&mut self.dirty, slot, connection);
                self.list_if_room(slot);
            }
            State::Closed => {
                self.list_if_room(slot);
                self.open(slot);
            }
            State::Resolving | State::Connecting { .. } | State::Opening { .. } => self.list_if_room(slot),
        }
    }

    /// Whether the connection of `slot` is established, even if it does not take requests yet.
    #[inline]
    fn stands(&self, slot: Slot) -> bool {
        matches!(self.connections[slot.0 as usize].state, State::Opening { .. } | State::Open)
    }

    /// Records `request`, which ended with `failure`.
    fn record_failure(&mut self, failure: Failure, request: KeptRequest) {
        let interval = &mut self.recorder.current;
        let age = request.age();
        interval.record_failure(failure, age);
        interval.record_failed_lags(&request.timeline);
        if self.several_kinds {
            interval.kind(request.kind).record_failure(failure, age);
        }
        self.recorder.keep(|| KeptRequest { failure: Some(failure), ..request });
    }

    /// The number in the run of the connection of `slot`.
    #[inline]
    fn number(&self, slot: Slot) -> u32 {
        self.recorder.connection(slot.0, self.job.plan.workers)
    }

    #[inline]
    fn outstanding(&self) -> u64 {
        self.under_way + self.pools.queued()
    }

    /// Requests in flight or queued, plus the next request of each journey that pauses with a leased connection.
    #[inline]
    fn occupied(&self) -> u64 {
        self.outstanding() + self.leases.paused()
    }

    /// Until when to wait now, and in which mode.
    fn plan_rest(&mut self, now: Nanos) -> Rest {
        if self.unread.is_empty() {
            let other = self.look_at(now);
            let next =
                self.demand.next_at().map(|due| if self.spaced { self.pacer.earliest(due) } else { due });
            let due = [next, self.journeys.next_at()].into_iter().flatten().min();
            let sockets = if self.engaged == 0 { Sockets::Quiet } else { Sockets::Engaged };
            self.pacer.plan(now, due, other, sockets)
        } else {
            Rest { until: now, mode: WaitMode::Asleep }
        }
    }

    fn rest(&mut self, Rest { until, mode }: Rest, ready: &mut Vec<Ready>) -> io::Result<()> {
        let from = (mode == WaitMode::Awake).then(|| self.reactor.now());
        self.reactor.wait(until, mode, ready)?;
        if let Some(from) = from {
            self.recorder.current.worker_spin += self.reactor.now() - from;
        }
        if mode == WaitMode::Undisturbed {
            self.pacer.note_wake(until, self.reactor.now());
        }
        Ok(())
    }

    /// The next instant at which something other than a due request needs attention.
    fn look_at(&self, now: Nanos) -> Nanos {
        let checkout = self
            .job
            .plan
            .pool
            .checkout_timeout
            .and_then(|limit| Some(self.pools.longest_waiting_since()?.saturating_add(limit)));
        let awaits_permit = self.idle.is_next_due() || self.pools.awaits_permit();
        let permit = (!self.permits.are_unlimited() && awaits_permit).then(|| self.permits.next_at());
        [self.timers.next_at(), checkout, permit]
            .into_iter()
            .flatten()
            .fold(now + STOP_EVERY, Nanos::min)
            .min(self.recorder.ends_at())
            .min(self.give_up_at)
    }

    /// Notices that this worker did not run when it should have: it was stopped or starved, or its host was.
    ///
    /// A delay below [`STOP_EVERY`] is a turn's own work or a late timer, and is visible in the phases.
    fn note_stall(&mut self, now: Nanos) {
        let late = now.saturating_sub(self.woke_by);
        self.stalled_from = (late > STOP_EVERY).then_some(self.woke_by);
        if self.stalled_from.is_some() {
            let longest = &mut self.recorder.current.worker_stall_max;
            *longest = late.max(*longest);
        }
    }
}

#[inline]
fn mark_dirty<S: Session>(dirty: &mut Vec<Slot>, slot: Slot, connection: &mut Connection<S>) {
    if !connection.dirty {
        connection.dirty = true;
        dirty.push(slot);
    }
}
