//! From a request that needs a connection to a connection that takes requests: lookup, connect, the next address,
//! handshake.

use std::io;
use std::net::SocketAddr;

use codec::{Opening, Origin, Protocol, Session};
use reactor::{Address, Reactor, Slot};
use record::{Blame, Failure, Outcome, Phase, Reach};
use rustix::io::Errno;
use units::Nanos;

use super::{PeerState, Stage, Worker, mark_dirty};
use crate::connection::{Attempt, Connection, State};
use crate::plan::Place;

/// How long every attempt must have failed before the servers count as unreachable. A little less than a second, so
/// that a run that can never connect shows it at the end of its first interval.
const FAILING_FOR: Nanos = Nanos::from_millis(950);

impl<R: Reactor, P: Protocol> Worker<'_, R, P> {
    /// Begins to open the connection of `slot`, with a name lookup first if needed.
    pub(super) fn open(&mut self, slot: Slot) {
        let origin = self.connections[slot.0 as usize].origin;
        self.peers[usize::from(origin.0)].tried = true;
        if !self.peer(slot).places.is_empty() {
            return self.connect(slot, self.first_attempt(slot));
        }
        self.connections[slot.0 as usize].state = State::Resolving;
        self.note_engaged(slot);
        let peer = &mut self.peers[usize::from(origin.0)];
        if !peer.looking_up {
            peer.looking_up = true;
            self.lookups.push_back(origin);
            if self.lookups.len() == 1 {
                self.look_up(origin);
            }
        }
    }

    fn look_up(&mut self, origin: Origin) {
        if let Place::Name { host, port } = &self.job.plan.peers[usize::from(origin.0)].place {
            self.reactor.resolve(host, *port);
        }
    }

    /// The lookup in progress has ended.
    pub(super) fn resolved(&mut self, result: io::Result<Vec<SocketAddr>>, at: Nanos) {
        let origin = self.lookups.pop_front().expect("one lookup is in progress, and it ends once");
        if let Some(&next) = self.lookups.front() {
            self.look_up(next);
        }
        let peer = &mut self.peers[usize::from(origin.0)];
        peer.looking_up = false;
        peer.places = result.unwrap_or_default().into_iter().map(Place::Address).collect();
        let found = !peer.places.is_empty();
        let waits = |connection: &Connection<P::Session>| {
            connection.origin == origin && connection.state == State::Resolving
        };
        let waiting: Vec<Slot> = (0..self.connections.len())
            .filter(|&index| waits(&self.connections[index]))
            .map(|index| Slot(index as u32))
            .collect();
        for slot in waiting {
            if !found {
                self.fail_connection(slot, Failure::new(Outcome::ResolveFailed, Phase::Resolve));
                continue;
            }
            for exchange in &mut self.connections[slot.0 as usize].exchanges {
                exchange.timeline.end(Phase::Resolve, at);
            }
            self.connect(slot, self.first_attempt(slot));
        }
    }

    fn peer(&self, slot: Slot) -> &PeerState {
        &self.peers[usize::from(self.connections[slot.0 as usize].origin.0)]
    }

    /// Begins with the address that was connected to last.
    fn first_attempt(&self, slot: Slot) -> Attempt {
        Attempt { address: self.peer(slot).preferred, before: 0 }
    }

    /// The remote address of the attempt, and its local address.
    fn address(&self, slot: Slot, attempt: Attempt) -> Address {
        let origin = usize::from(self.connections[slot.0 as usize].origin.0);
        let sources = &self.job.plan.peers[origin].sources;
        match &self.peers[origin].places[attempt.address] {
            Place::Unix(path) => Address::Unix(path.clone()),
            Place::Address(peer) => {
                let fits = sources.iter().filter(|source| source.is_ipv4() == peer.is_ipv4());
                let source = fits.clone().nth(slot.0 as usize % fits.count().max(1)).copied();
                Address::Tcp { peer: *peer, source }
            }
            Place::Name { .. } => unreachable!("what a lookup finds are addresses"),
        }
    }

    fn connect(&mut self, slot: Slot, attempt: Attempt) {
        let address = self.address(slot, attempt);
        let since = self.reactor.now();
        self.connections[slot.0 as usize].state = State::Connecting { since, attempt };
        self.note_engaged(slot);
        match self.reactor.connect(slot, &address) {
            Ok(()) => {
                if let Some(limit) = self.attempt_limit(slot) {
                    self.timers.arm(slot, since.saturating_add(limit));
                }
            }
            Err(error) => self.connect_failed(slot, attempt, &error),
        }
    }

    pub(super) fn attend_connecting(&mut self, slot: Slot, attempt: Attempt) {
        match self.reactor.connected(slot) {
            Ok(false) => {}
            Ok(true) => {
                let address = self.address(slot, attempt);
                let origin = self.connections[slot.0 as usize].origin;
                let peer = &mut self.peers[usize::from(origin.0)];
                // Other connections may have connected to another address in the meantime; either is as good.
                peer.preferred = attempt.address;
                peer.reached.get_or_insert(address);
                let is_idle = self.connections[slot.0 as usize].is_idle;
                self.recorder.current.counts.connections_opened += u64::from(!is_idle);
                self.begin_session(slot);
            }
            Err(error) => self.connect_failed(slot, attempt, &error),
        }
    }

    /// The connection is established: begins its session, with a handshake or with the requests that wait for it.
    fn begin_session(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        let State::Connecting { since, .. } = connection.state else { return };
        if self.recorder.keeps() || self.job.stage == Stage::Preparation {
            connection.ends = self.reactor.ends(slot);
        }
        let phase = match connection.session.open(&mut connection.out) {
            Opening::Ready => {
                connection.opened_by = Phase::Connect;
                return self.begin_requests(slot);
            }
            Opening::Tls => Phase::Tls,
            Opening::Auth => Phase::Auth,
        };
        connection.opened_by = phase;
        connection.state = State::Opening { since, phase };
        let stands = self.reactor.now();
        for exchange in &mut connection.exchanges {
            exchange.timeline.end(Phase::Connect, stands);
        }
        if let Some(limit) = self.job.plan.pool.connect_timeout {
            self.timers.arm(slot, since.saturating_add(limit));
        }
        mark_dirty(&mut self.dirty, slot, connection);
    }

    /// The connection takes requests: encodes those that waited for it.
    pub(super) fn begin_requests(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        connection.state = State::Open;
        if connection.opened_by == Phase::Connect {
            // After a handshake the server may still reject this client (TLS 1.3), which counts as a failure to
            // connect.
            self.peers[usize::from(connection.origin.0)].failing_since = None;
        }
        (0..connection.exchanges.len()).for_each(|index| connection.encode(index));
        mark_dirty(&mut self.dirty, slot, connection);
        if connection.is_idle {
            self.idle_opened();
        }
    }

    /// How long one address of the peer is tried: an equal share of the connect timeout, so that a silent address
    /// leaves time for the others.
    pub(super) fn attempt_limit(&self, slot: Slot) -> Option<Nanos> {
        let limit = self.job.plan.pool.connect_timeout?;
        Some(Nanos(limit.0 / (self.peer(slot).places.len().max(1) as u64)))
    }

    pub(super) fn connect_failed(&mut self, slot: Slot, attempt: Attempt, error: &io::Error) {
        self.note_shortage(error);
        // A name with several addresses has failed only when all of them have.
        let count = self.peer(slot).places.len();
        if attempt.before + 1 < count {
            let next = Attempt { address: (attempt.address + 1) % count, before: attempt.before + 1 };
            return self.connect(slot, next);
        }
        self.fail_connection(slot, classify_connect(error));
    }

    /// Notes that the connection of `slot` could not be opened.
    pub(super) fn note_unconnected(&mut self, slot: Slot, now: Nanos) {
        let origin = self.connections[slot.0 as usize].origin;
        self.peers[usize::from(origin.0)].failing_since.get_or_insert(now);
    }

    /// Whether the servers can be reached, according to the attempts to open connections.
    ///
    /// # Cost
    ///
    /// Visits all connections: call it once per interval.
    pub(super) fn reach(&self, now: Nanos) -> Reach {
        let waits = |connection: &Connection<P::Session>| {
            connection.state == State::Open && !connection.exchanges.is_empty()
        };
        if self.recorder.has_response() || self.connections.iter().any(waits) {
            return Reach::Possible;
        }
        let of_peer = |peer: &PeerState| match peer.failing_since {
            None if peer.tried => Reach::Possible,
            Some(since) if now.saturating_sub(since) >= FAILING_FOR => Reach::Failing,
            _ => Reach::Unknown,
        };
        self.peers.iter().map(of_peer).max().unwrap_or_default()
    }

    /// Counts errors caused by a resource that this host has run out of.
    fn note_shortage(&mut self, error: &io::Error) {
        let counts = &mut self.recorder.current.counts;
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE | Errno::NFILE) => counts.out_of_descriptors += 1,
            Some(Errno::ADDRNOTAVAIL) => counts.out_of_ports += 1,
            _ => {}
        }
    }
}

/// The failure of a handshake or login that was not completed.
pub(super) fn opening_failure(phase: Phase) -> Failure {
    let outcome = if phase == Phase::Auth { Outcome::AuthFailed } else { Outcome::TlsFailed };
    Failure::new(outcome, phase)
}

/// What a failed connect means, given the kernel's error (connect(2), tcp(7)).
fn classify_connect(error: &io::Error) -> Failure {
    let blamed = |outcome, blame| Failure::blamed(outcome, Phase::Connect, blame);
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        // NOENT concerns Unix domain sockets: nothing listens there, or not yet.
        Some(Errno::CONNREFUSED | Errno::NOENT) => Failure::new(Outcome::ConnectRefused, Phase::Connect),
        Some(Errno::TIMEDOUT) => Failure::new(Outcome::ConnectTimeout, Phase::Connect),
        // AGAIN concerns Unix domain sockets: the listener's queue is full.
        Some(Errno::CONNRESET | Errno::AGAIN) => blamed(Outcome::ConnectFailed, Blame::Server),
        Some(Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::HOSTDOWN | Errno::NETDOWN) => {
            blamed(Outcome::ConnectFailed, Blame::Network)
        }
        // Out of descriptors, ports or memory, or not permitted: caused by this host.
        Some(
            Errno::MFILE
            | Errno::NFILE
            | Errno::ADDRNOTAVAIL
            | Errno::ADDRINUSE
            | Errno::NOBUFS
            | Errno::NOMEM
            | Errno::ACCESS
            | Errno::PERM
            | Errno::AFNOSUPPORT,
        ) => blamed(Outcome::ConnectFailed, Blame::Client),
        _ => Failure::new(Outcome::ConnectFailed, Phase::Connect),
    }
}
