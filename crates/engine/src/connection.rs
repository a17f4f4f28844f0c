//! One connection of a worker: its state, the requests outstanding on it, and the bytes still to be written.

use std::collections::VecDeque;

use codec::{Encoded, Key, Origin, Route, Session};
use reactor::Ends;
use record::{Carried, Edge, KeptRequest, Phase, Timeline};
use units::Nanos;

use crate::journeys::Unit;
use crate::pool::Waiting;

/// A connection of the pool. It is closed until the first request assigned to it opens it.
#[derive(Debug)]
pub(crate) struct Connection<S: Session> {
    pub origin: Origin,
    pub state: State,
    pub session: S,
    /// Both ends' addresses while it is connected, in a run that keeps single requests.
    pub ends: Option<Ends>,
    /// Requests encoded into `out` since the connection was opened.
    encoded: u64,
    /// Requests assigned and not ended, in order of assignment. The kernel has all bytes of the first `sent` of them,
    /// and perhaps of some later ones.
    pub exchanges: VecDeque<Exchange<S::Journey>>,
    pub sent: usize,
    /// Encoded bytes; the kernel has taken the first `written` of them.
    pub out: Vec<u8>,
    pub written: usize,
    /// Bytes that the kernel has taken and that were removed from `out`.
    reclaimed: u64,
    /// Requests offered to the kernel for the first time and not yet counted.
    pub newly_offered: u64,
    /// The last phase of opening it, which ends when its first request is sent.
    pub opened_by: Phase,
    /// When bytes were last read from it.
    pub heard: Nanos,
    /// Whether it is on the pool's list of connections with room.
    pub listed: bool,
    /// Whether it is on the worker's list of connections with bytes to write.
    pub dirty: bool,
    /// Whether it is on the worker's list of connections with more to read.
    pub unread: bool,
    /// Whether the worker counts it as engaged.
    pub engaged: bool,
    /// The unit that has leased it.
    pub lease: Option<u64>,
    /// Whether it carries nothing and is on no list of the pool.
    pub is_idle: bool,
    /// How many requests it may still be assigned before it is replaced.
    left: u64,
    /// The same for a new connection.
    limit: u64,
}

/// From this many written bytes on, moving the rest to the front is worth its cost.
const RECLAIM_BYTES: usize = 256 * 1024;

/// How far opening a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Closed,
    /// Waits for the name lookup.
    Resolving,
    Connecting {
        since: Nanos,
        attempt: Attempt,
    },
    /// Connected, but not yet taking requests: in the handshake or the login, as `phase` says. `since` is when the
    /// connect began.
    Opening {
        since: Nanos,
        phase: Phase,
    },
    Open,
}

/// Which of the peer's addresses is being tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Its index in the list of addresses.
    pub address: usize,
    /// How many addresses were tried before it.
    pub before: usize,
}

/// One request on a connection.
#[derive(Debug)]
pub(crate) struct Exchange<J> {
    /// The unit it belongs to; a journey has one request at a time.
    pub unit: Unit,
    pub journey: J,
    pub route: Route,
    pub timeline: Timeline,
    /// Where it begins and ends in `out`, once it is encoded.
    pub out_begin: usize,
    pub out_end: usize,
    /// How many bytes of the connection there are up to its last byte; set when the kernel has taken that byte.
    pub end: u64,
    /// Its connection's addresses and its position on it, in a run that keeps single requests.
    pub carried: Option<Carried>,
    /// How much of it is encoded into `out`; `None` until its connection takes requests.
    pub encoded: Option<Encoded>,
    /// Whether the connection was opened for it.
    pub opens: bool,
    /// Whether its journey had leased the connection: it did not wait for one, and cannot use another.
    pub held: bool,
    /// Whether it got a connection at once; it then counts as picked up when its first byte is handed to the kernel.
    pub immediate: bool,
    /// When it was first offered to the kernel, which may have accepted none of it then.
    pub offered: Option<Nanos>,
    /// Whether the kernel has taken its first byte.
    pub begun: bool,
    /// Whether the kernel has taken its last byte.
    pub sent: bool,
    /// Whether its response has begun.
    pub began: bool,
}

impl<S: Session> Connection<S> {
    /// A closed connection that is replaced after `limit` requests.
    pub(crate) fn new(origin: Origin, session: S, limit: u64) -> Connection<S> {
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
            is_idle: false,
            left: limit,
            limit,
        }
    }

    /// A closed connection that will carry nothing. It counts as listed, so that nothing lists it.
    pub(crate) fn idle(origin: Origin, session: S) -> Connection<S> {
        Connection { is_idle: true, ..Connection::new(origin, session, u64::MAX) }
    }

    /// Whether another request, of any journey, can be assigned.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.lease.is_none() && self.left > 0 && self.exchanges.len() < self.session.capacity()
    }

    /// Appends a request. One of a lease may exceed the limit: its transaction stays on this connection.
    #[inline]
    pub(crate) fn push(&mut self, exchange: Exchange<S::Journey>) {
        self.left = self.left.saturating_sub(1);
        self.exchanges.push_back(exchange);
    }

    /// Whether it has had all its requests, and they have ended.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0 && self.exchanges.is_empty() && self.lease.is_none()
    }

    /// Whether bytes are waiting to be handed to the kernel.
    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        self.written < self.out.len()
    }

    /// Whether the next step is up to this client: the connection is being opened, has bytes to send, or has received
    /// part of its oldest response.
    #[inline]
    pub(crate) fn is_engaged(&self) -> bool {
        let is_opening = !matches!(self.state, State::Closed | State::Open);
        is_opening || self.has_output() || self.exchanges.front().is_some_and(|oldest| oldest.began)
    }

    /// Closes it and installs `session` for the next use. The caller accounts for what was outstanding.
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
        self.left = self.limit;
    }

    /// The unit that has leased it, if that unit is between two requests.
    pub(crate) fn idle_lease(&self) -> Option<u64> {
        self.lease.filter(|&n| self.exchanges.iter().all(|exchange| exchange.unit.n != n))
    }

    /// Whether the peer's kernel has acknowledged all of the oldest request, when `unacknowledged` bytes of this
    /// connection are outstanding. Unacknowledged bytes of later requests do not matter.
    pub(crate) fn oldest_has_arrived(&self, unacknowledged: u64) -> bool {
        let handed = self.reclaimed + self.written as u64;
        let oldest = self.exchanges.front().filter(|oldest| oldest.sent);
        oldest.is_some_and(|oldest| handed.saturating_sub(unacknowledged) >= oldest.end)
    }

    /// Encodes the request at `index` into `out`.
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

    /// The TLS handshake ended at `at`; a login follows.
    pub(crate) fn secured(&mut self, at: Nanos) {
        if let State::Opening { since, .. } = self.state {
            self.state = State::Opening { since, phase: Phase::Auth };
            self.opened_by = Phase::Auth;
            for exchange in &mut self.exchanges {
                exchange.timeline.end(Phase::Tls, at);
            }
        }
    }

    /// The exchange that could have led to TLS ended without it: the whole opening counts as login.
    pub(crate) fn stays_plaintext(&mut self) {
        if let State::Opening { since, .. } = self.state {
            self.state = State::Opening { since, phase: Phase::Auth };
            self.opened_by = Phase::Auth;
        }
    }

    /// The rest of the request `key` is in `out` now.
    pub(crate) fn encoded(&mut self, key: Key) {
        let end = self.out.len();
        if let Some(index) = self.position(key) {
            self.exchanges[index].out_end = end;
            self.exchanges[index].encoded = Some(Encoded::Whole);
        }
    }

    /// The index of the outstanding request `key`.
    #[inline]
    pub(crate) fn position(&self, key: Key) -> Option<usize> {
        // Responses usually come in order, so it is usually the first.
        self.exchanges.iter().position(|exchange| exchange.key() == key)
    }

    /// Removes the request at `index` from the connection.
    #[inline]
    pub(crate) fn take(&mut self, index: usize) -> Option<Exchange<S::Journey>> {
        self.sent -= usize::from(index < self.sent);
        if index == 0 { self.exchanges.pop_front() } else { self.exchanges.remove(index) }
    }

    /// Accounts for one write, started at `before` and returned at `after`, that accepted `count` bytes. Returns how
    /// many requests had their first byte among them.
    #[inline]
    pub(crate) fn wrote(&mut self, count: usize, before: Nanos, after: Nanos) -> u64 {
        self.written += count;
        let mut begun = 0;
        for exchange in self.exchanges.iter_mut().skip(self.sent) {
            let Some(encoded) = exchange.encoded else { break };
            // A write passes all of `out`, so each encoded request was offered.
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
                // If the response has begun already, that has ended the phase.
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

    /// Removes from `out` what the kernel has taken: when that is everything, or a lot. Otherwise `out` would grow
    /// without bound if the peer reads slowly while requests keep coming.
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

    /// The phase that the oldest outstanding request is in; `Wait` if there is none.
    pub(crate) fn oldest_phase(&self) -> Phase {
        self.exchanges.front().map_or(Phase::Wait, |exchange| self.phase(exchange))
    }
}

/// When a request counts as picked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickedUp {
    /// Already: it has been waiting for its connection.
    Before,
    /// It got a connection at once, and counts as picked up when its first byte is handed to the kernel.
    WhenSent,
    /// The same, on the connection that its journey has leased: it has no `pool_wait`.
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

    /// Its key in the session: the unit's number, since a journey has one request at a time.
    #[inline]
    pub(crate) fn key(&self) -> Key {
        Key(self.unit.n)
    }

    /// Whether it can be sent on another connection: it was assigned to an open one that ended before any of it was
    /// offered to the kernel. A request that waited for its connection to open fails with that connection, so that
    /// retries end; so does one whose transaction is on that connection.
    pub(crate) fn may_move(&self) -> bool {
        self.offered.is_none() && !self.opens && !self.held
    }

    /// Turns it into a request that waits for a connection, from `now` unless it was picked up before.
    pub(crate) fn waiting(self, now: Nanos) -> Waiting<J> {
        let Exchange { unit, journey, route, timeline, .. } = self;
        let picked_up = timeline.at(Edge::PickedUp).unwrap_or(now);
        Waiting { unit, journey, route, intended: timeline.due_at(), picked_up }
    }

    /// The record of it when it ended at `at` on connection number `connection`.
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

    /// Its first byte is handed to the kernel at `at`.
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

    /// The first byte of its response arrived at `at`. Only the first call counts.
    #[inline]
    pub(crate) fn first_arrived(&mut self, at: Nanos) {
        if self.began {
            return;
        }
        self.began = true;
        if self.timeline.current() == Some(Phase::Wait) {
            // On loopback the response can arrive before the write that sent the request returns.
            self.timeline.pull_back(Phase::Send, at);
        } else {
            // The server responded before the request was completely sent, for example to refuse a large body.
            self.timeline.end(Phase::Send, at);
        }
        self.timeline.end(Phase::Wait, at);
    }
}
