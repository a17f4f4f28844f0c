//! What a run does, decided before it starts. Invalid input has been refused by then.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use schedule::{Arrivals, Residue, Think};
use units::Nanos;

use crate::pacer::Pace;

/// A run's load, pool, peer and end.
#[derive(Debug, Clone)]
pub struct RunPlan {
    pub load: Load,
    /// How closely the schedule is followed.
    pub pace: Pace,
    /// How long the same load is generated before the run's zero, without being measured.
    pub warmup: Option<Nanos>,
    /// How long requests are scheduled for; `None`: until `request_limit`.
    pub window: Option<Nanos>,
    /// The maximum number of scheduled requests.
    pub request_limit: Option<u64>,
    /// Applies to each peer.
    pub pool: PoolPlan,
    /// Indexed by [`codec::Origin`].
    pub peers: Vec<Peer>,
    /// The number of workers, each with a thread, a reactor, a share of the connections and a share of the schedule.
    pub workers: u64,
    /// Whether to have the kernel timestamp arrivals.
    pub kernel_stamps: bool,
    /// How long after the last request was due the run waits for outstanding responses; `None`: until each response or
    /// its own timeout.
    pub drain: Option<Nanos>,
    /// How often workers hand over what they measured.
    pub interval: Nanos,
}

/// What decides when a request is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// A schedule, regardless of how earlier requests ended.
    Open(Arrivals),
    /// Virtual users: each sends its next request when its last one has ended.
    Closed,
    /// The same, with think time before the next request.
    Thinking { think: Think, seed: u64 },
}

impl Load {
    /// Whether requests are due on a schedule, not when a virtual user becomes free.
    pub fn is_open(&self) -> bool {
        matches!(self, Load::Open(_))
    }
}

/// The number of connections, the limit on requests, and the timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolPlan {
    /// Connections to each peer, over all workers.
    pub connections: u64,
    /// The maximum number of requests in flight or queued; in a closed loop, the number of virtual users.
    pub users: u64,
    /// From picked up to getting a connection.
    pub checkout_timeout: Option<Nanos>,
    /// From the end of the name lookup to connected, handshakes and logins included.
    pub connect_timeout: Option<Nanos>,
    /// From the first byte handed to the kernel to the complete response.
    pub request_timeout: Option<Nanos>,
    /// Additional connections to each peer, over all workers, that are opened before the run's zero and carry nothing.
    pub idle: u64,
    /// The minimum time between two attempts to open a connection, over all workers; zero: no limit.
    pub connect_gap: Nanos,
    /// After how many requests a connection is closed and replaced.
    pub requests_per_connection: Option<u64>,
}

/// Where the connections of a pool go to and come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub place: Place,
    /// Local addresses that its connections use in turn; empty: the kernel chooses.
    pub sources: Vec<IpAddr>,
}

/// Where a peer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Address(SocketAddr),
    /// Looked up when the first connection needs it, and kept for the run.
    Name {
        host: String,
        port: u16,
    },
    /// A Unix domain stream socket with this path.
    Unix(PathBuf),
}

impl Peer {
    /// A peer without local addresses: the kernel chooses them.
    pub fn at(place: Place) -> Peer {
        Peer { place, sources: Vec::new() }
    }
}

/// One worker's part of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub residue: Residue,
    pub connections: u64,
    pub users: u64,
    /// Connections that carry nothing.
    pub idle: u64,
}

impl RunPlan {
    /// What precedes the run's zero: the warm-up, and opening the idle connections; `None` if there is nothing to do.
    /// Its window is that of the warm-up.
    pub(crate) fn preparation(&self) -> Option<RunPlan> {
        if self.warmup.is_none() && self.pool.idle == 0 {
            return None;
        }
        let window = Some(self.warmup.unwrap_or(Nanos::ZERO));
        Some(RunPlan { window, request_limit: None, warmup: None, ..self.clone() })
    }

    /// How long requests are scheduled for, if that is known in advance. In an open loop: until the end of the schedule
    /// or, with a limit on requests, until the one after the last would be due. In a closed loop: only if the plan has
    /// a window.
    pub fn window(&self) -> Option<Nanos> {
        let Load::Open(arrivals) = &self.load else { return self.window };
        // A schedule has no due time beyond its last request, only an end.
        let limited = self.request_limit.map(|limit| arrivals.due(limit)).filter(|&due| due < Nanos::MAX);
        [self.window, limited, arrivals.end()].into_iter().flatten().min()
    }

    /// Worker `index`'s part. The parts of all workers add up to the plan.
    pub fn share(&self, index: u64) -> Share {
        let residue = Residue::new(index, self.workers);
        Share {
            residue,
            connections: residue.share_of(self.pool.connections),
            users: residue.share_of(self.pool.users),
            idle: residue.share_of(self.pool.idle),
        }
    }

    /// Why the plan cannot run, or `None`. The command line refuses most of these earlier, with better messages.
    pub fn refusal(&self) -> Option<&'static str> {
        if self.workers == 0 || self.pool.connections < self.workers {
            return Some("every worker needs a connection: use fewer workers or more connections");
        }
        if self.pool.users < self.workers {
            return Some("every worker needs a virtual user: use fewer workers or more virtual users");
        }
        if self.peers.is_empty() {
            return Some("a run needs a peer");
        }
        if self.window().is_none() && self.request_limit.is_none() {
            return Some("a run needs an end: a duration or a number of requests");
        }
        if self.interval == Nanos::ZERO {
            return Some("the interval must be longer than zero");
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use schedule::{Stages, parse_stage};

    use super::*;

    /// One worker, one virtual user, one connection, ten seconds, no timeouts.
    pub(crate) fn plan() -> RunPlan {
        RunPlan {
            load: Load::Closed,
            pace: Pace::default(),
            warmup: None,
            window: Some(Nanos::from_secs(10)),
            request_limit: None,
            pool: PoolPlan {
                connections: 1,
                users: 1,
                checkout_timeout: None,
                connect_timeout: None,
                request_timeout: None,
                idle: 0,
                connect_gap: Nanos::ZERO,
                requests_per_connection: None,
            },
            peers: vec![Peer::at(Place::Address(SocketAddr::from(([127, 0, 0, 1], 1))))],
            workers: 1,
            kernel_stamps: true,
            drain: Some(Nanos::from_secs(5)),
            interval: Nanos::from_secs(1),
        }
    }

    #[test]
    fn the_shares_add_up() {
        let mut plan = plan();
        plan.workers = 3;
        plan.pool.connections = 10;
        plan.pool.users = 17;
        let shares: Vec<_> = (0..3).map(|index| plan.share(index)).collect();
        assert_eq!(shares.iter().map(|share| share.connections).sum::<u64>(), 10);
        assert_eq!(shares.iter().map(|share| share.users).sum::<u64>(), 17);
    }

    /// If this fails, a run of few requests reports a rate other than the one that was requested and kept.
    #[test]
    fn an_open_loops_window_ends_with_its_last_period() {
        let mut plan = plan();
        plan.load = Load::Open(Arrivals::Constant("2/s".parse().unwrap()));
        plan.request_limit = Some(4);
        assert_eq!(plan.window(), Some(Nanos::from_secs(2)));
        plan.window = None;
        assert_eq!(plan.window(), Some(Nanos::from_secs(2)));
        plan.load = Load::Closed;
        assert_eq!(plan.window(), None);
    }

    #[test]
    fn a_schedule_that_ends_needs_no_other_end() {
        let mut plan = plan();
        plan.window = None;
        assert!(plan.refusal().is_some());
        let stages =
            ["ramp 0/s..10/s 2s", "constant 10/s 3s"].map(|text| parse_stage(text).unwrap()).concat();
        plan.load = Load::Open(Arrivals::Staged(Arc::new(Stages::new(stages, 0).unwrap())));
        assert_eq!(plan.refusal(), None);
        assert_eq!(plan.window(), Some(Nanos::from_secs(5)));
        // Ten in the ramp, then one every 100 ms: the one after 30 requests is due 2 s after it.
        plan.request_limit = Some(30);
        assert_eq!(plan.window(), Some(Nanos::from_secs(4)));
        plan.request_limit = Some(300);
        assert_eq!(plan.window(), Some(Nanos::from_secs(5)));
        plan.window = Some(Nanos::from_secs(3));
        assert_eq!(plan.window(), Some(Nanos::from_secs(3)));
    }
}
