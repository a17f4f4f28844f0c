//! Sockets, readiness, name lookup and the kernel's arrival stamps. Knows no protocol.
//!
//! The engine drives connections through the [`Reactor`] trait, so its accounting can be tested on a
//! simulated network in simulated time. [`SystemReactor`] is the real one, on epoll.

mod probe;
mod source;
pub mod stamp;
mod system;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

pub use probe::StampProbe;
pub use system::SystemReactor;
use units::Nanos;

/// A place for one connection, chosen by the caller; reused after [`Reactor::close`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

/// Where a connection goes, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP; from `source` where it is given, else from wherever the kernel chooses.
    Tcp { peer: SocketAddr, source: Option<IpAddr> },
    /// A stream socket in the file system. The kernel stamps nothing that arrives on one.
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(peer: SocketAddr) -> Address {
        Address::Tcp { peer, source: None }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { peer, .. } => peer.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The two ends of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub local: SocketAddr,
    pub peer: SocketAddr,
}

/// Time and a set of connections, one a [`Slot`]. Owned by one worker; nothing in it is shared.
pub trait Reactor {
    /// The monotonic clock.
    fn now(&self) -> Nanos;

    /// Begins a name lookup; [`Ready::Resolved`] answers it. At most one is under way.
    fn resolve(&mut self, host: &str, port: u16);

    /// Begins a connection in `slot`; [`Ready::Socket`] with `writable` or `closed` set answers it, after which
    /// [`connected`](Reactor::connected) tells.
    ///
    /// # Errors
    ///
    /// What the kernel refuses at once: no descriptors, no ports, no route.
    fn connect(&mut self, slot: Slot, address: &Address) -> io::Result<()>;

    /// Whether the connection of `slot` stands. `Ok(false)`: not yet.
    ///
    /// # Errors
    ///
    /// Why it failed.
    fn connected(&mut self, slot: Slot) -> io::Result<bool>;

    /// Hands bytes to the kernel; returns how many it accepted. 0 means: wait for `writable`.
    fn send(&mut self, slot: Slot, bytes: &[u8]) -> io::Result<usize>;

    /// Reads what has arrived into `buffer`.
    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> io::Result<Received>;

    /// Whether bytes stamped with `arrived` arrived before `instant`, all that is known of the stamp's error
    /// considered.
    fn is_surely_before(&mut self, arrived: Nanos, instant: Nanos) -> bool {
        arrived < instant
    }

    /// Bytes handed to the kernel that the peer's kernel has not acknowledged, where that can be known.
    fn unacknowledged(&self, slot: Slot) -> Option<u64>;

    /// The two ends of the connection of `slot`, which stands; `None` where it is none of TCP.
    fn ends(&self, slot: Slot) -> Option<Ends>;

    /// Closes the connection of `slot`, if any. Events of it that were under way are not delivered.
    fn close(&mut self, slot: Slot);

    /// Waits until something is ready or `until` has come, in the manner of `mode`; appends to `ready`. May
    /// return a little before `until` with nothing ready.
    ///
    /// # Errors
    ///
    /// Only when the kernel's own facility fails: an environment error, not an outcome.
    fn wait(&mut self, until: Nanos, mode: WaitMode, ready: &mut Vec<Ready>) -> io::Result<()>;
}

/// How [`Reactor::wait`] passes the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// Asleep: woken by whatever becomes ready, or by the clock.
    Asleep,
    /// Awake: looks at the sockets and at the clock in turn, so that nothing is late by a wake-up.
    Awake,
    /// Asleep until the clock wakes it, whatever becomes ready meanwhile.
    Undisturbed,
}

/// What [`Reactor::receive`] got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Bytes. `arrived`: when the last of them reached this host's kernel, on the monotonic clock, where it
    /// was stamped. `drained`: nothing more was waiting, the end included, so a new event will come for
    /// more.
    Bytes { count: usize, arrived: Option<Nanos>, drained: bool },
    /// Nothing is waiting; an event will come.
    Nothing,
    /// The peer has closed its side.
    Closed,
}

/// Something to attend to.
#[derive(Debug)]
pub enum Ready {
    Socket {
        slot: Slot,
        readable: bool,
        writable: bool,
        /// The peer closed, or the connection failed.
        closed: bool,
    },
    /// A name lookup ended, at this instant.
    Resolved { result: io::Result<Vec<SocketAddr>>, at: Nanos },
}
