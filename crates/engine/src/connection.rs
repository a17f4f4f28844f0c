//! One connection of a worker: its state, what is outstanding on it, and what is still to be written.

use std::collections::VecDeque;

use codec::{Encoded, Key, Origin, Route, Session};
use reactor::Ends;
use record::{Carried, Edge, KeptRequest, Phase, Timeline};
use units::Nanos;

use crate::journeys::Unit;
use crate::pool::Waiting;

/// A connection of the pool. Closed until the first request on it opens it.
#[derive(Debug)]
pub(crate) struct Connection<S: Session> {
    pub origin: Origin,
    pub state: State,
    pub session: S,
    /// Of a connection that stands, in a run that keeps requests one by one.
    pub ends: Option<Ends>,
    /// Requests put into `out` since it was opened.
    encoded: u64,
    /// Requests assigned and not ended, in the order in which they were assigned. The first `sent` of them are
    /// wholly with the kernel, and perhaps others.
    pub exchanges: VecDeque<Exchange<S::Journey>>,
    pub sent: usize,
    /// Bytes encoded; the first `written` of them are with the kernel.
    pub out: Vec<u8>,
    pub written: usize,
    /// Bytes that the kernel has taken and that are no longer in `out`.
    reclaimed: u64,
    /// Requests offered to the kernel for the first time, and not counted yet.
    pub newly_offered: u64,
    /// The last phase before its first request could be sent.
    pub opened_by: Phase,
    /// When something was last read from it.
    pub heard: Nanos,
    /// On the pool's list of connections with room.
    pub listed: bool,
    /// On the worker's list of connections with something to write.
    pub dirty: bool,
    /// On the worker's list of connections with more to read.
    pub unread: bool,
    /// Among those that the worker counts as engaged.
    pub engaged: bool,
    /// The unit that has leased it.
    pub lease: Option<u64>,
}

/// Moving what is left to the front is worth it from here on.
const RECLAIM_BYTES: usize = 256 * 1024;

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Closed,
    /// Waits for the name lookup.
    Resolving,
    Connecting {
        since: Nanos,
        attempt: Attempt,
    },
    /// Stands, and does not take requests yet: the handshake or the login, named by its phase. Since the
    /// connect began.
    Opening {
        since: Nanos,
        phase: Phase,
    },
    Open,
}

/// Which of the peer's addresses is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Its index.
    pub address: usize,
    /// How many were tried before it.
    pub before: usize,
}

/// One request on a connection.
#[derive(Debug)]
pub(crate) struct Exchange<J> {
    /// Which unit of the run it belongs to; a journey has one request at a time.
    pub unit: Unit,
    pub journey: J,
    pub route: Route,
    pub timeline: Timeline,
    /// Where in `out` it begins and ends, once it is there.
    pub out_begin: usize,
    pub out_end: usize,
    /// How many bytes of its connection go up to its last one, once the kernel has taken that.
    pub end: u64,
    /// Where on the wire it is, in a run that keeps requests one by one.
    pub carried: Option<Carried>,
    /// How much of it is in `out`; `None` until its connection takes requests.
    pub encoded: Option<Encoded>,
    /// The connection was opened for it.
    pub opens: bool,
    /// Its journey had leased the connection before it: it waited for none, and no other will do.
    pub held: bool,
    /// It had a connection at once: it is picked up when its first byte is handed to the kernel.
    pub immediate: bool,
    /// When it was first handed to the kernel, which may have taken nothing of it then.
    pub offered: Option<Nanos>,
    /// The kernel has taken its first byte.
    pub begun: bool,
    /// The kernel has taken its last byte.
    pub sent: bool,
    /// Its response has begun.
    pub began: bool,
}

impl<S: Session> Connection<S> {
    pub(crate) fn new(origin: Origin, session: S) -> Connection<S> {
        Connection {
            origin,
            state: State::Closed,
            session,
            ends: None,
            encoded: 0,
            exchanges: VecDeque::new(),
            sent: 0,
            out: Vec::new(),
            written: 0,
            reclaimed: 0,
            newly_offered: 0,
            opened_by: Phase::Connect,
            heard: Nanos::ZERO,
            listed: true,
            dirty: false,
            unread: false,
            engaged: false,
            lease: None,
        }
    }

    /// Whether another request of any journey can be assigned.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.lease.is_none() && self.exchanges.len() < self.session.capacity()
    }

    /// Whether bytes wait to be handed to the kernel.
    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        self.written < self.out.len()
    }

    /// Whether its next step is this client's: it is being opened, has bytes to send, or is within its oldest answer.
    #[inline]
    pub(crate) fn is_engaged(&self) -> bool {
        let is_opening = !matches!(self.state, State::Closed | State::Open);
        is_opening || self.has_output() || self.exchanges.front().is_some_and(|oldest| oldest.began)
    }

    /// Forgets the connection; `session` is the next one's. The caller counts what was outstanding.
    pub(crate) fn reset(&mut self, session: S) {
        self.state = State::Closed;
        self.session = session;
        self.ends = None;
        self.encoded = 0;
        self.exchanges.clear();
        self.sent = 0;
        self.out.clear();
        self.written = 0;
        self.reclaimed = 0;
        self.lease = None;
    }

    /// The unit that has leased it and has no request on it: it is between two.
    pub(crate) fn idle_lease(&self) -> Option<u64> {
        self.lease.filter(|&n| self.exchanges.iter().all(|exchange| exchange.unit.n != n))
    }

    /// Whether the peer's kernel has all of the oldest request, of which `unacknowledged` bytes of this connection
    /// are not there yet: what was sent behind it does not matter.
    pub(crate) fn oldest_has_arrived(&self, unacknowledged: u64) -> bool {
        let handed = self.reclaimed + self.written as u64;
        let oldest = self.exchanges.front().filter(|oldest| oldest.sent);
        oldest.is_some_and(|oldest| handed.saturating_sub(unacknowledged) >= oldest.end)
    }

    /// Puts the request at `index` into `out`.
    #[inline]
    pub(crate) fn encode(&mut self, index: usize) {
        let exchange = &mut self.exchanges[index];
        exchange.out_begin = self.out.len();
        let nth = self.encoded;
        exchange.carried = self.ends.map(|Ends { local, peer }| Carried { local, server: peer, nth });
        self.encoded += 1;
        exchange.encoded = Some(self.session.request(&exchange.journey, exchange.key(), &mut self.out));
        exchange.out_end = self.out.len();
    }

    /// The TLS handshake ended at `at`, and a login follows.
    pub(crate) fn secured(&mut self, at: Nanos) {
        if let State::Opening { since, .. } = self.state {
            self.state = State::Opening { since, phase: Phase::Auth };
            self.opened_by = Phase::Auth;
            for exchange in &mut self.exchanges {
                exchange.timeline.end(Phase::Tls, at);
            }
        }
    }

    /// The exchange that might have led to TLS ended without it: all of the opening is a login.
    pub(crate) fn stays_plaintext(&mut self) {
        if let State::Opening { since, .. } = self.state {
            self.state = State::Opening { since, phase: Phase::Auth };
            self.opened_by = Phase::Auth;
        }
    }

    /// The rest of a request is in `out` now.
    pub(crate) fn encoded(&mut self, key: Key) {
        let end = self.out.len();
        if let Some(index) = self.position(key) {
            self.exchanges[index].out_end = end;
            self.exchanges[index].encoded = Some(Encoded::Whole);
        }
    }

    /// Which of the outstanding requests `key` is.
    #[inline]
    pub(crate) fn position(&self, key: Key) -> Option<usize> {
        // The oldest, wherever answers come in order.
        self.exchanges.iter().position(|exchange| exchange.key() == key)
    }

    /// Takes the request at `index` off the connection.
    #[inline]
    pub(crate) fn take(&mut self, index: usize) -> Option<Exchange<S::Journey>> {
        self.sent -= usize::from(index < self.sent);
        if index == 0 { self.exchanges.pop_front() } else { self.exchanges.remove(index) }
    }

    /// Books what one write did: handed over from `before`, accepted `count` bytes by `after`. Returns how many
    /// requests had their first byte among them.
    #[inline]
    pub(crate) fn wrote(&mut self, count: usize, before: Nanos, after: Nanos) -> u64 {
        self.written += count;
        let mut begun = 0;
        for exchange in self.exchanges.iter_mut().skip(self.sent) {
            let Some(encoded) = exchange.encoded else { break };
            // A write is given all there is, so each of them was offered.
            if exchange.offered.is_none() {
                self.newly_offered += 1;
                exchange.hand_over(before, self.opened_by);
            }
            if exchange.sent || exchange.out_begin >= self.written {
                continue;
            }
            if !exchange.begun {
                exchange.begun = true;
                begun += 1;
            }
            if exchange.out_end <= self.written && encoded == Encoded::Whole {
                // A response that has begun before has ended the phase already.
                if !exchange.began {
                    exchange.timeline.end(Phase::Send, after);
                }
                exchange.sent = true;
                exchange.end = self.reclaimed + exchange.out_end as u64;
            }
        }
        while self.exchanges.get(self.sent).is_some_and(|exchange| exchange.sent) {
            self.sent += 1;
        }
        self.reclaim();
        begun
    }

    /// Drops what the kernel has taken from `out`: when it is all, and when it is much. A peer that reads slowly
    /// while requests keep coming would otherwise make it grow for ever.
    #[inline]
    fn reclaim(&mut self) {
        if self.written == self.out.len() {
            self.out.clear();
        } else if self.written >= RECLAIM_BYTES {
            self.out.drain(..self.written);
        } else {
            return;
        }
        for exchange in self.exchanges.iter_mut().skip(self.sent) {
            exchange.out_begin = exchange.out_begin.saturating_sub(self.written);
            exchange.out_end = exchange.out_end.saturating_sub(self.written);
        }
        self.reclaimed += self.written as u64;
        self.written = 0;
    }

    /// The phase that an outstanding request is in.
    pub(crate) fn phase(&self, exchange: &Exchange<S::Journey>) -> Phase {
        match self.state {
            State::Closed => Phase::PoolWait,
            State::Resolving => Phase::Resolve,
            State::Connecting { .. } => Phase::Connect,
            State::Opening { phase, .. } => phase,
            State::Open if !exchange.sent => Phase::Send,
            State::Open if exchange.began => Phase::Receive,
            State::Open => Phase::Wait,
        }
    }

    /// The phase that the oldest outstanding request is in.
    pub(crate) fn oldest_phase(&self) -> Phase {
        self.exchanges.front().map_or(Phase::Wait, |exchange| self.phase(exchange))
    }
}

/// When a request counts as picked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickedUp {
    /// It has waited for its connection since.
    Before,
    /// It has a connection at once, and is picked up when its first byte is handed to the kernel.
    WhenSent,
    /// The same, on the connection that its journey has leased: there is no wait for the pool.
    WhenSentHeld,
}

impl<J> Exchange<J> {
    #[inline]
    pub(crate) fn new(
        unit: Unit,
        journey: J,
        route: Route,
        timeline: Timeline,
        picked_up: PickedUp,
    ) -> Exchange<J> {
        Exchange {
            unit,
            journey,
            route,
            timeline,
            out_begin: 0,
            out_end: 0,
            end: 0,
            carried: None,
            encoded: None,
            opens: false,
            held: picked_up == PickedUp::WhenSentHeld,
            immediate: picked_up != PickedUp::Before,
            offered: None,
            begun: false,
            sent: false,
            began: false,
        }
    }

    /// How the session calls it: by its number, of which a journey has one request at a time.
    #[inline]
    pub(crate) fn key(&self) -> Key {
        Key(self.unit.n)
    }

    /// Whether it can have another connection: it was put on one that was already, which ended before anything
    /// of it was offered to the kernel. One that waited for its connection to open fails with it, so that there is
    /// an end to it, and so does one whose transaction is on that connection.
    pub(crate) fn may_move(&self) -> bool {
        self.offered.is_none() && !self.opens && !self.held
    }

    /// It waits for a connection again, at `now`.
    pub(crate) fn waiting(self, now: Nanos) -> Waiting<J> {
        let Exchange { unit, journey, route, timeline, .. } = self;
        let picked_up = timeline.at(Edge::PickedUp).unwrap_or(now);
        Waiting { unit, journey, route, intended: timeline.due_at(), picked_up }
    }

    /// It ended at `at` on connection number `connection`.
    pub(crate) fn ended(&self, connection: u32, at: Nanos) -> KeptRequest {
        KeptRequest {
            n: self.unit.n,
            kind: self.route.kind,
            connection: Some(connection),
            carried: self.carried,
            timeline: self.timeline,
            ended: at,
            failure: None,
            code: None,
        }
    }

    /// Its first byte goes to the kernel at `at`.
    #[inline]
    fn hand_over(&mut self, at: Nanos, opened_by: Phase) {
        self.offered = Some(at);
        if self.opens {
            self.timeline.end(opened_by, at);
        } else {
            if self.immediate {
                self.timeline.end(Phase::ScheduleLag, at);
            }
            if !self.held {
                self.timeline.end(Phase::PoolWait, at);
            }
        }
    }

    /// The first byte of its response arrived at `at`.
    #[inline]
    pub(crate) fn first_arrived(&mut self, at: Nanos) {
        if self.began {
            return;
        }
        self.began = true;
        if self.timeline.current() == Some(Phase::Wait) {
            // On loopback the response can be here before the write that sent the request has returned.
            self.timeline.pull_back(Phase::Send, at);
        } else {
            // Answered before it was wholly sent: a refusal of a large body, say.
            self.timeline.end(Phase::Send, at);
        }
        self.timeline.end(Phase::Wait, at);
    }
}
