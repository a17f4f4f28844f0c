//! What a run is to do, decided before it starts. Everything that can be refused has been refused.

use std::net::SocketAddr;

use schedule::{Arrivals, Residue};
use units::Nanos;

/// A run's load, pool, peer and end.
#[derive(Debug, Clone)]
pub struct Plan {
    pub load: Load,
    /// Requests are scheduled for this long; without it, until `request_limit`.
    pub window: Option<Nanos>,
    /// At most this many requests are scheduled.
    pub request_limit: Option<u64>,
    pub pool: PoolPlan,
    pub peer: Peer,
    /// Reactors, each with a thread, a share of the connections and a share of the schedule.
    pub workers: u64,
    /// Ask the kernel to stamp arrivals.
    pub kernel_stamps: bool,
    /// How long after the last request was due outstanding ones may still be answered; without it, each until its
    /// answer or its own timeout.
    pub drain: Option<Nanos>,
    /// How often workers hand over what they measured.
    pub interval: Nanos,
}

/// Who decides when a request is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// A schedule, whatever became of the earlier requests.
    Open(Arrivals),
    /// The callers: each is ready for its next request when its last one has ended.
    Closed,
}

/// Connections, and how long one may wait for each thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolPlan {
    pub connections: u64,
    /// How many requests may be under way or queueing.
    pub callers: u64,
    /// Taken up → a connection is its own.
    pub checkout_timeout: Option<Nanos>,
    /// Lookup done → connected.
    pub connect_timeout: Option<Nanos>,
    /// First byte handed to the kernel → whole answer read.
    pub request_timeout: Option<Nanos>,
}

/// Where connections go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    Address(SocketAddr),
    /// Looked up when the first connection needs it, and kept for the run.
    Name {
        host: String,
        port: u16,
    },
}

/// One worker's part of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub residue: Residue,
    pub connections: u64,
    pub callers: u64,
}

impl Plan {
    /// How long requests are scheduled for, where that is known beforehand: in an open loop to the end of the last
    /// request's period, in a closed loop only when the plan says it.
    pub fn window(&self) -> Option<Nanos> {
        match (self.load, self.request_limit) {
            (Load::Open(arrivals), Some(limit)) => {
                let scheduled = arrivals.due(limit);
                Some(self.window.map_or(scheduled, |window| window.min(scheduled)))
            }
            _ => self.window,
        }
    }

    /// Worker `index`'s part. The parts add up to the whole.
    pub fn share(&self, index: u64) -> Share {
        let residue = Residue::new(index, self.workers);
        Share {
            residue,
            connections: residue.share_of(self.pool.connections),
            callers: residue.share_of(self.pool.callers),
        }
    }

    /// Why the plan cannot run, or `None`. The command line has better words for most of these.
    pub fn refusal(&self) -> Option<&'static str> {
        if self.workers == 0 || self.pool.connections < self.workers {
            return Some("every worker needs a connection: ask for fewer workers or more connections");
        }
        if self.pool.callers < self.workers {
            return Some("every worker needs a caller: ask for fewer workers or more callers");
        }
        if self.window.is_none() && self.request_limit.is_none() {
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
    use super::*;

    /// One worker, one caller, one connection, ten seconds, no timeouts.
    pub(crate) fn plan() -> Plan {
        Plan {
            load: Load::Closed,
            window: Some(Nanos::from_secs(10)),
            request_limit: None,
            pool: PoolPlan {
                connections: 1,
                callers: 1,
                checkout_timeout: None,
                connect_timeout: None,
                request_timeout: None,
            },
            peer: Peer::Address(SocketAddr::from(([127, 0, 0, 1], 1))),
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
        plan.pool.callers = 17;
        let shares: Vec<_> = (0..3).map(|index| plan.share(index)).collect();
        assert_eq!(shares.iter().map(|share| share.connections).sum::<u64>(), 10);
        assert_eq!(shares.iter().map(|share| share.callers).sum::<u64>(), 17);
    }

    /// If this fails, a run of few requests reports another rate than it was asked for and kept.
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
}
