//! From a request that needs a connection to one that stands: lookup, connect, the next address.

use std::io;
use std::net::SocketAddr;

use codec::Protocol;
use reactor::{Reactor, Slot};
use record::{Blame, Failure, Outcome, Phase};
use rustix::io::Errno;
use units::Nanos;

use super::{Worker, mark_dirty};
use crate::connection::{Attempt, State};
use crate::plan::Peer;

impl<R: Reactor, P: Protocol> Worker<'_, R, P> {
    /// Begins to open the connection of `slot`, looking the peer up first if that has not been done.
    pub(super) fn open(&mut self, slot: Slot) {
        if !self.peer.addresses.is_empty() {
            return self.connect(slot, self.first_attempt());
        }
        self.connections[slot.0 as usize].state = State::Resolving;
        if let (Peer::Name { host, port }, false) = (&self.job.plan.peer, self.peer.looking_up) {
            self.peer.looking_up = true;
            self.reactor.resolve(host, *port);
        }
    }

    pub(super) fn resolved(&mut self, result: io::Result<Vec<SocketAddr>>, at: Nanos) {
        self.peer.looking_up = false;
        self.peer.addresses = result.unwrap_or_default();
        let waiting: Vec<Slot> = (0..self.connections.len())
            .filter(|&index| self.connections[index].state == State::Resolving)
            .map(|index| Slot(index as u32))
            .collect();
        for slot in waiting {
            if self.peer.addresses.is_empty() {
                self.fail_connection(slot, Failure::new(Outcome::ResolveFailed, Phase::Resolve));
                continue;
            }
            for exchange in &mut self.connections[slot.0 as usize].exchanges {
                exchange.timeline.end(Phase::Resolve, at);
            }
            self.connect(slot, self.first_attempt());
        }
    }

    /// Begins with the address that answered last.
    fn first_attempt(&self) -> Attempt {
        Attempt { address: self.peer.preferred, before: 0 }
    }

    fn connect(&mut self, slot: Slot, attempt: Attempt) {
        let address = self.peer.addresses[attempt.address];
        let since = self.reactor.now();
        self.connections[slot.0 as usize].state = State::Connecting { since, attempt };
        match self.reactor.connect(slot, address) {
            Ok(()) => {
                if let Some(limit) = self.attempt_limit() {
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
                // Other connections may have found another one meanwhile; either is as good.
                self.peer.preferred = attempt.address;
                self.peer.reached = self.peer.reached.or(Some(self.peer.addresses[self.peer.preferred]));
                self.recorder.current.counts.connections_opened += 1;
                let connection = &mut self.connections[slot.0 as usize];
                connection.state = State::Open;
                mark_dirty(&mut self.dirty, slot, connection);
            }
            Err(error) => self.connect_failed(slot, attempt, &error),
        }
    }

    /// How long one address of the peer is tried: its share of the connect timeout, so that a silent address
    /// leaves time for the others.
    pub(super) fn attempt_limit(&self) -> Option<Nanos> {
        let limit = self.job.plan.pool.connect_timeout?;
        Some(Nanos(limit.0 / (self.peer.addresses.len().max(1) as u64)))
    }

    pub(super) fn connect_failed(&mut self, slot: Slot, attempt: Attempt, error: &io::Error) {
        // A name with several addresses has failed only when all of them have.
        let count = self.peer.addresses.len();
        if attempt.before + 1 < count {
            let next = Attempt { address: (attempt.address + 1) % count, before: attempt.before + 1 };
            return self.connect(slot, next);
        }
        self.fail_connection(slot, classify_connect(error));
    }
}

/// What a failed connect means, from the kernel's error (connect(2), tcp(7)).
fn classify_connect(error: &io::Error) -> Failure {
    let blamed = |outcome, blame| Failure::blamed(outcome, Phase::Connect, blame);
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::CONNREFUSED) => Failure::new(Outcome::ConnectRefused, Phase::Connect),
        Some(Errno::TIMEDOUT) => Failure::new(Outcome::ConnectTimeout, Phase::Connect),
        Some(Errno::CONNRESET) => blamed(Outcome::ConnectFailed, Blame::Server),
        Some(Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::HOSTDOWN | Errno::NETDOWN) => {
            blamed(Outcome::ConnectFailed, Blame::Network)
        }
        // Out of descriptors, ports or memory, or forbidden here: this host's own doing.
        Some(
            Errno::MFILE
            | Errno::NFILE
            | Errno::ADDRNOTAVAIL
            | Errno::ADDRINUSE
            | Errno::NOBUFS
            | Errno::NOMEM
            | Errno::ACCESS
            | Errno::PERM
            | Errno::AFNOSUPPORT
            | Errno::AGAIN,
        ) => blamed(Outcome::ConnectFailed, Blame::Client),
        _ => Failure::new(Outcome::ConnectFailed, Phase::Connect),
    }
}
