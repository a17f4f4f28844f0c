//! What users, peers, connections and waits take of a server. Every table is bounded, so that a watch can run for
//! days.

mod digests;
mod slow;
mod tally;
mod targets;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use record::Served;
use record::observation::watch::{ConnectionUse, PeerUse, SessionUse, SlowRequests, WaitUse};
use units::Nanos;
use watch::{Bounded, Summed, kernel};

pub use digests::DigestSums;
pub use slow::Slow;
pub use tally::{MakeTimes, Tally};
pub use targets::Targets;

/// Clients' addresses that are listed.
const PEERS: usize = 512;

/// Connections that are listed.
const CONNECTIONS: usize = 512;

/// Calls with their files and addresses that are listed.
const WAITS: usize = 256;

/// Sums of requests by user, peer, connection and wait.
#[derive(Debug)]
pub struct Usages {
    /// By number, of which the dissector gives out a bounded number.
    sessions: Vec<Tally>,
    /// `None`: Unix sockets.
    peers: Bounded<Option<IpAddr>, Tally>,
    connections: Bounded<u64, ConnectionTally>,
    waits: Bounded<(u16, Option<Arc<str>>), WaitTally>,
    slow: Slow,
}

#[derive(Debug, Clone, Default)]
struct ConnectionTally {
    tally: Tally,
    peer: Option<SocketAddr>,
    session: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct WaitTally {
    requests: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Summed for ConnectionTally {
    fn weight(&self) -> u64 {
        self.tally.weight()
    }

    fn merge(&mut self, other: &ConnectionTally) {
        self.tally.merge(&other.tally);
    }
}

impl Summed for WaitTally {
    fn weight(&self) -> u64 {
        self.sum_ns
    }

    fn merge(&mut self, other: &WaitTally) {
        self.requests += other.requests;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

impl Usages {
    /// No requests so far; those over `slow` have their reasons kept.
    pub fn new(slow: Nanos) -> Usages {
        Usages {
            sessions: Vec::new(),
            peers: Bounded::new(PEERS),
            connections: Bounded::new(CONNECTIONS),
            waits: Bounded::new(WAITS),
            slow: Slow::new(slow),
        }
    }

    /// Adds one request; `target` is the file or address that its longest sleep was for.
    ///
    /// # Cost
    ///
    /// Three lookups, and one more if its threads slept.
    pub fn add(&mut self, served: &Served, target: Option<&Arc<str>>) {
        let session = served.session as usize;
        if session >= self.sessions.len() {
            self.sessions.resize_with(session + 1, Tally::default);
        }
        self.sessions[session].add(served);
        self.peers.entry(served.peer.map(|peer| peer.ip())).add(served);
        let connection = self.connections.entry(served.connection);
        connection.tally.add(served);
        connection.peer = served.peer;
        connection.session = served.session;
        if let Some(sleep) = served.sleep {
            let wait = self.waits.entry((sleep.call, target.cloned()));
            wait.merge(&WaitTally { requests: 1, sum_ns: sleep.time.0, max_ns: sleep.time.0 });
        }
        self.slow.add(served, target);
    }

    /// The requests over the limit.
    pub fn slow(&self) -> &Slow {
        &self.slow
    }

    /// The slow requests in the record's form; `zero` is the record's start.
    pub fn slow_results(&self, zero: Nanos) -> SlowRequests {
        self.slow.results(zero)
    }

    /// A row for each number; `session` gives its user and schema.
    pub fn sessions(
        &self,
        session: impl Fn(u32) -> (Option<String>, Option<String>),
        times: MakeTimes<'_>,
    ) -> Vec<SessionUse> {
        let row = |(id, tally): (usize, &Tally)| {
            let (user, schema) = session(u32::try_from(id).expect("numbers are 32 bits"));
            let usage = (tally.times().count() > 0).then(|| tally.usage(times));
            SessionUse { user, schema, usage }
        };
        self.sessions.iter().enumerate().map(row).collect()
    }

    /// The peers with the most time, and all others.
    pub fn peers(&self, times: MakeTimes<'_>) -> Vec<PeerUse> {
        let (largest, other) = self.peers.largest();
        let address = |ip: &Option<IpAddr>| ip.map_or_else(|| "unix".to_owned(), |ip| ip.to_string());
        let row = |(ip, tally): (&Option<IpAddr>, &Tally)| PeerUse {
            address: Some(address(ip)),
            usage: tally.usage(times),
        };
        let other = other.map(|tally| PeerUse { address: None, usage: tally.usage(times) });
        largest.into_iter().map(row).chain(other).collect()
    }

    /// The connections with the most time, and all others.
    pub fn connections(&self, times: MakeTimes<'_>) -> Vec<ConnectionUse> {
        let (largest, other) = self.connections.largest();
        let row = |number: Option<u64>, of: &ConnectionTally| ConnectionUse {
            number,
            peer: of.peer.filter(|_| number.is_some()).map(|peer| peer.to_string()),
            session: of.session,
            usage: of.tally.usage(times),
        };
        let listed = largest.into_iter().map(|(number, of)| row(Some(*number), of));
        listed.chain(other.iter().map(|of| row(None, of))).collect()
    }

    /// The waits with the most time, and all others.
    pub fn waits(&self) -> Vec<WaitUse> {
        let (largest, other) = self.waits.largest();
        let row = |call: String, target: Option<String>, of: &WaitTally| WaitUse {
            call,
            target,
            requests: of.requests,
            sum_ns: of.sum_ns,
            max_ns: of.max_ns,
        };
        let listed = largest.into_iter().map(|((call, target), of)| {
            row(kernel::call_name(u32::from(*call)), target.as_ref().map(ToString::to_string), of)
        });
        listed.chain(other.iter().map(|of| row("others".to_owned(), None, of))).collect()
    }
}

#[cfg(test)]
mod tests;
