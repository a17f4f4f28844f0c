//! The options of a server, and why it may fail to start. Checks values; opens nothing.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use thiserror::Error;
use units::{Bytes, Nanos};

use crate::Freeze;

/// What to serve, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address. With port 0 the kernel chooses; [`Server::local_addr`](crate::Server::local_addr) has the result.
    pub listen: SocketAddr,
    /// The number of loops, each with its own listener (`SO_REUSEPORT` when there are several).
    pub threads: usize,
    /// Connections that the kernel queues until they are accepted; it caps this at `net.core.somaxconn`.
    pub backlog: i32,
    /// Freezes of the whole server, on a fixed schedule.
    pub freeze: Option<Freeze>,
    /// The maximum number of open connections over all threads, divided evenly. A connection beyond its thread's share
    /// gets a 503 and is closed.
    pub max_connections: usize,
    /// How many arrivals to record one by one; 8 bytes each, allocated at the start.
    pub arrivals_kept: usize,
    /// Limits per connection.
    pub limits: Limits,
}

/// How much memory and time one connection may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A longer head gets a 431.
    pub head: Bytes,
    /// A longer request body gets a 413.
    pub body: Bytes,
    /// The same for `/echo`, which keeps the body in memory.
    pub echo: Bytes,
    /// A request that has begun and is not complete after this long gets a 408.
    pub request_time: Nanos,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            threads: 1,
            backlog: 4_096,
            freeze: None,
            max_connections: 65_536,
            arrivals_kept: 0,
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: Bytes(16 << 10),
            body: Bytes(64 << 20),
            echo: Bytes(1 << 20),
            request_time: Nanos::from_secs(30),
        }
    }
}

impl Options {
    /// Refuses nonsensical values before anything is opened.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        let bad = |option, why| Err(StartError::BadOption { option, why });
        if self.threads == 0 || self.threads > MOST_THREADS {
            return bad("threads", "use 1 to 1024");
        }
        if self.backlog < 1 {
            return bad("backlog", "use 1 or more");
        }
        if self.max_connections < self.threads {
            return bad("max_connections", "use at least one per thread");
        }
        match &self.freeze {
            Some(freeze) if freeze.length == Nanos::ZERO => bad("freeze", "its length must be more than 0"),
            Some(freeze) if freeze.every <= freeze.length => {
                bad("freeze", "it must be shorter than the time from one to the next")
            }
            _ => Ok(()),
        }
    }
}

/// Far above any machine's cores; catches typing errors.
const MOST_THREADS: usize = 1_024;

/// Why the server could not start. Messages are one line: what, where, what to do.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("option {option}: {why}")]
    BadOption { option: &'static str, why: &'static str },
    #[error("cannot listen on {address}: it is in use; choose another port, or 0 for any free one")]
    AddressInUse { address: SocketAddr },
    #[error("cannot listen on {address}: no permission; choose a port from 1024 up")]
    PermissionDenied { address: SocketAddr },
    #[error("cannot listen on {address}: this host has no such address; try 127.0.0.1 or 0.0.0.0")]
    NoSuchAddress { address: SocketAddr },
    #[error(
        "cannot listen on {address}: {source}; check the address and the limit of open files (ulimit -n)"
    )]
    Listen { address: SocketAddr, source: io::Error },
    #[error(
        "cannot start thread {index}: {source}; check the limits of threads and open files (ulimit -u -n)"
    )]
    Thread { index: usize, source: io::Error },
}
