//! One worker: a reactor, a share of the connections and of the schedule, and what it measured.
//!
//! The loop is: hand over a finished interval, give up what timed out, send what is due, wait, attend to what
//! became ready. Hot path: no lock, no allocation, no formatting; three clock reads a request (before and after
//! it is handed to the kernel, after its answer is read).

mod ending;
mod exchanging;
mod opening;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use codec::{Protocol, Session};
use reactor::{Reactor, Ready, Slot};
use record::{Failure, Outcome, Phase, Timeline};
use units::Nanos;

use crate::connection::{Connection, Exchange, State};
use crate::demand::{Demand, Due};
use crate::plan::{Peer, Plan, Share};
use crate::pool::{Pool, Waiting};
use crate::recorder::Recorder;
use crate::timers::Timers;

/// How often the stop flag is looked at when nothing else happens.
const STOP_EVERY: Nanos = Nanos::from_millis(50);

/// What one read takes at most.
const READ_BYTES: usize = 64 * 1024;

/// What a worker works for: the plan, the protocol, and the flag that ends the run early.
#[derive(Debug)]
pub(crate) struct Job<'a, P> {
    pub plan: &'a Plan,
    pub protocol: &'a P,
    pub stop: &'a AtomicBool,
    pub start: Nanos,
}

/// What a worker knows at its end beside what it recorded.
#[derive(Debug)]
pub(crate) struct Ended {
    pub at: Nanos,
    /// The address that answered first.
    pub address: Option<SocketAddr>,
}

pub(crate) struct Worker<'a, R, P: Protocol> {
    reactor: &'a mut R,
    job: Job<'a, P>,
    demand: Demand,
    pool: Pool,
    connections: Vec<Connection<P::Session>>,
    timers: Timers,
    recorder: Recorder,
    /// Requests under way or queueing at once, at most.
    callers: u64,
    /// Requests assigned to a connection and not ended.
    under_way: u64,
    /// Connections with bytes to hand to the kernel.
    dirty: Vec<Slot>,
    /// Connections that had more to read than one turn takes.
    unread: VecDeque<Slot>,
    peer: PeerState,
    buffer: Vec<u8>,
    /// When the run ends whatever is outstanding.
    give_up_at: Nanos,
    /// When this worker should have run again at the latest.
    woke_by: Nanos,
    /// Since when this worker has not run, in the turn in which it finds that out.
    stalled_from: Option<Nanos>,
    stopping: bool,
}

/// What is known of the peer's addresses.
#[derive(Debug, Default)]
struct PeerState {
    addresses: Vec<SocketAddr>,
    /// The one that answered last.
    preferred: usize,
    looking_up: bool,
    reached: Option<SocketAddr>,
}

impl<'a, R: Reactor, P: Protocol> Worker<'a, R, P> {
    pub(crate) fn new(reactor: &'a mut R, job: Job<'a, P>, share: Share, recorder: Recorder) -> Self {
        let (plan, start) = (job.plan, job.start);
        let addresses = match &plan.peer {
            Peer::Address(address) => vec![*address],
            Peer::Name { .. } => Vec::new(),
        };
        let connections = (0..share.connections).map(|_| Connection::new(job.protocol.session())).collect();
        let give_up_at = match (plan.window(), plan.drain) {
            (Some(window), Some(drain)) => start.saturating_add(window).saturating_add(drain),
            _ => Nanos::MAX,
        };
        Worker {
            reactor,
            demand: Demand::new(plan, share, start),
            pool: Pool::new(share.connections),
            connections,
            timers: Timers::new(share.connections),
            recorder,
            callers: share.callers,
            under_way: 0,
            dirty: Vec::with_capacity(share.connections as usize),
            unread: VecDeque::with_capacity(share.connections as usize),
            peer: PeerState { addresses, ..PeerState::default() },
            buffer: vec![0; READ_BYTES],
            give_up_at,
            woke_by: Nanos::MAX,
            stalled_from: None,
            stopping: false,
            job,
        }
    }

    /// Runs until the schedule is done and everything has ended, or the drain is over.
    ///
    /// # Errors
    ///
    /// When the kernel's event facility fails. What was measured has been handed over.
    pub(crate) fn run(mut self) -> io::Result<Ended> {
        self.recorder.begin(self.job.start, clock::thread_cpu());
        let mut ready = Vec::with_capacity(1_024);
        let result = loop {
            let now = self.reactor.now();
            self.note_stall(now);
            self.look_at_stop(now);
            if now >= self.recorder.ends_at() {
                self.recorder.roll(now, self.outstanding(), clock::thread_cpu());
            }
            self.give_up_expired(now);
            if now >= self.give_up_at {
                // What has become due meanwhile would be sent only to be cut off.
                break Ok(());
            }
            self.dispatch(now);
            self.note_last_taken(now);
            if self.demand.is_over(now) && self.outstanding() == 0 {
                break Ok(());
            }
            debug_assert!(
                self.pool.queued() == 0 || !self.pool.has_room(),
                "a request waits beside room for it"
            );
            debug_assert!(self.outstanding() <= self.callers, "more requests than callers");
            let until = if self.unread.is_empty() { self.wake_at(now) } else { now };
            self.woke_by = until;
            if let Err(error) = self.reactor.wait(until, &mut ready) {
                break Err(error);
            }
            self.attend(&mut ready);
        };
        let at = self.end();
        let address = self.peer.reached;
        self.recorder.finish(at, clock::thread_cpu());
        result.map(|()| Ended { at, address })
    }

    fn attend(&mut self, ready: &mut Vec<Ready>) {
        // Those that still have more come behind, for the next turn.
        for _ in 0..self.unread.len() {
            let Some(slot) = self.unread.pop_front() else { break };
            self.connections[slot.0 as usize].unread = false;
            self.read(slot);
            self.flush_dirty();
        }
        for event in ready.drain(..) {
            match event {
                Ready::Socket { slot, readable, writable, closed } => {
                    self.attend_socket(slot, readable || closed, writable);
                }
                Ready::Resolved { result, at } => self.resolved(result, at),
            }
            self.flush_dirty();
        }
    }

    fn attend_socket(&mut self, slot: Slot, readable: bool, writable: bool) {
        match self.connections[slot.0 as usize].state {
            State::Connecting { attempt, .. } => {
                self.attend_connecting(slot, attempt);
                if readable && self.connections[slot.0 as usize].state == State::Open {
                    // The peer has spoken, or left, already. Told once, so it is looked at once the requests
                    // are on their way.
                    self.flush_dirty();
                    self.read(slot);
                }
            }
            State::Open => {
                if readable {
                    self.read(slot);
                }
                let connection = &mut self.connections[slot.0 as usize];
                if writable && connection.state == State::Open && connection.has_output() {
                    self.flush(slot);
                }
            }
            // An event of a socket that was closed while this batch was worked through.
            State::Closed | State::Resolving => {}
        }
    }

    /// Gives requests to connections: first those that wait, then those that became due.
    #[inline]
    fn dispatch(&mut self, now: Nanos) {
        self.serve_queue();
        while let Some(due) = self.demand.take(now) {
            self.take_up(due);
        }
        self.flush_dirty();
    }

    /// Gives waiting requests to connections with room.
    #[inline]
    fn serve_queue(&mut self) {
        while self.pool.queued() > 0 {
            let Some(slot) = self.pool.check_out() else { return };
            let Some(waiting) = self.pool.next_waiting() else { return };
            let mut timeline = Timeline::due(waiting.intended);
            timeline.end(Phase::ScheduleLag, waiting.taken_up);
            self.assign(slot, waiting.n, timeline, false);
        }
    }

    #[inline]
    fn take_up(&mut self, due: Due) {
        self.recorder.current.counts.scheduled += 1;
        if self.outstanding() >= self.callers {
            let age = self.reactor.now() - due.intended;
            self.recorder.current.record_failure(Failure::new(Outcome::QueueFull, Phase::PoolWait), age);
            return;
        }
        if let Some(slot) = self.pool.check_out() {
            self.assign(slot, due.n, Timeline::due(due.intended), true);
            self.flush_dirty();
        } else {
            let taken_up = self.reactor.now();
            self.pool.enqueue(Waiting { n: due.n, intended: due.intended, taken_up });
        }
    }

    /// Puts a request on a connection, which is thereby off the pool's list unless it has room for more.
    #[inline]
    fn assign(&mut self, slot: Slot, n: u64, mut timeline: Timeline, immediate: bool) {
        let connection = &mut self.connections[slot.0 as usize];
        connection.listed = false;
        let opens = connection.state != State::Open;
        if opens {
            let now = self.reactor.now();
            if immediate {
                timeline.end(Phase::ScheduleLag, now);
            }
            timeline.end(Phase::PoolWait, now);
        }
        let out_begin = connection.out.len();
        let expect = self.job.protocol.encode(n, &mut connection.out);
        connection.session.expect(expect);
        connection.exchanges.push_back(Exchange {
            n,
            timeline,
            out_begin,
            out_end: connection.out.len(),
            opens,
            immediate,
            offered: None,
            begun: false,
            began: false,
        });
        self.under_way += 1;
        self.list_if_room(slot);
        let connection = &mut self.connections[slot.0 as usize];
        match connection.state {
            State::Open => mark_dirty(&mut self.dirty, slot, connection),
            State::Closed => self.open(slot),
            State::Resolving | State::Connecting { .. } => {}
        }
    }

    #[inline]
    fn list_if_room(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        if !connection.listed && connection.has_room() {
            connection.listed = true;
            self.pool.check_in(slot);
        }
    }

    #[inline]
    fn outstanding(&self) -> u64 {
        self.under_way + self.pool.queued()
    }

    /// The next instant at which something must be looked at.
    fn wake_at(&self, now: Nanos) -> Nanos {
        let checkout = self
            .job
            .plan
            .pool
            .checkout_timeout
            .and_then(|limit| Some(self.pool.waiting_since()?.saturating_add(limit)));
        [self.demand.next_at(), self.timers.next_at(), checkout]
            .into_iter()
            .flatten()
            .fold(now + STOP_EVERY, Nanos::min)
            .min(self.recorder.ends_at())
            .min(self.give_up_at)
    }

    /// Notices that this worker did not run when it should have: it was stopped, starved, or its host was.
    ///
    /// Less than [`STOP_EVERY`] is a turn's own work or a timer's lateness, and is seen in the phases.
    fn note_stall(&mut self, now: Nanos) {
        let late = now.saturating_sub(self.woke_by);
        self.stalled_from = (late > STOP_EVERY).then_some(self.woke_by);
        if self.stalled_from.is_some() {
            let longest = &mut self.recorder.current.worker_stall_max;
            *longest = late.max(*longest);
        }
    }

    /// With a number of requests and no window, the drain begins when the last one has been taken up.
    fn note_last_taken(&mut self, now: Nanos) {
        if self.give_up_at == Nanos::MAX && self.demand.is_exhausted() {
            self.give_up_at = self.job.plan.drain.map_or(Nanos::MAX, |drain| now.saturating_add(drain));
        }
    }

    fn look_at_stop(&mut self, now: Nanos) {
        if !self.stopping && self.job.stop.load(Ordering::Relaxed) {
            self.stopping = true;
            // Whatever was due by now stays due; nothing after it is.
            self.demand.end_at(now);
            self.give_up_at = now;
        }
    }
}

#[inline]
fn mark_dirty<S>(dirty: &mut Vec<Slot>, slot: Slot, connection: &mut Connection<S>) {
    if !connection.dirty {
        connection.dirty = true;
        dirty.push(slot);
    }
}
