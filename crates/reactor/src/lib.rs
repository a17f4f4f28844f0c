//! Sockets, readiness, name lookup and the kernel's arrival timestamps. Knows no protocol.
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

/// The index of one connection, chosen by the caller; reused after [`Reactor::close`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

/// Where a connection goes to, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP; from `source` if it is given, otherwise from an address that the kernel chooses.
    Tcp { peer: SocketAddr, source: Option<IpAddr> },
    /// A Unix domain socket (stream). The kernel does not timestamp what arrives on one.
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

/// The clock and a set of connections, one per [`Slot`]. Owned by one worker; nothing in it is shared.
pub trait Reactor {
    /// The monotonic clock.
    fn now(&self) -> Nanos;

    /// Starts a name lookup, which ends with [`Ready::Resolved`]. At most one runs at a time.
    fn resolve(&mut self, host: &str, port: u16);

    /// Starts a connection in `slot`; when [`Ready::Socket`] with `writable` or `closed` follows,
    /// [`connected`](Reactor::connected) has the result.
    ///
    /// # Errors
    ///
    /// What the kernel refuses at once: no descriptors, no ports, no route.
    fn connect(&mut self, slot: Slot, address: &Address) -> io::Result<()>;

    /// Whether the connection of `slot` is established. `Ok(false)`: not yet.
    ///
    /// # Errors
    ///
    /// Why connecting failed.
    fn connected(&mut self, slot: Slot) -> io::Result<bool>;

    /// Hands bytes to the kernel; returns how many it accepted. 0 means: wait for `writable`.
    fn send(&mut self, slot: Slot, bytes: &[u8]) -> io::Result<usize>;

    /// Reads what has arrived into `buffer`, at most one bufferful.
    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> io::Result<Received>;

    /// Whether bytes with the timestamp `arrived` certainly arrived before `instant`, given the error of the timestamp.
    fn is_surely_before(&mut self, arrived: Nanos, instant: Nanos) -> bool {
        arrived < instant
    }

    /// Bytes handed to the kernel that the peer's kernel has not acknowledged; `None` if that is not known.
    fn unacknowledged(&self, slot: Slot) -> Option<u64>;

    /// The two ends of the established connection of `slot`; `None` if it is not TCP.
    fn ends(&self, slot: Slot) -> Option<Ends>;

    /// Closes the connection of `slot`, if any. Its pending events are not delivered.
    fn close(&mut self, slot: Slot);

    /// Waits, in the given mode, until something is ready or `until` has passed; appends events to `ready`. May return
    /// a little before `until` with nothing ready.
    ///
    /// # Errors
    ///
    /// Only when the kernel's own facility fails: an environment error, not an outcome.
    fn wait(&mut self, until: Nanos, mode: WaitMode, ready: &mut Vec<Ready>) -> io::Result<()>;
}

/// How [`Reactor::wait`] waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// Asleep: woken by anything that becomes ready, or by the clock.
    Asleep,
    /// Awake: polls the sockets and the clock in turn, so that nothing is delayed by a wake-up, at the cost of a whole
    /// CPU.
    Awake,
    /// Asleep until the clock wakes it, even if sockets become ready in the meantime.
    Undisturbed,
}

/// The result of [`Reactor::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Bytes. `arrived`: when the last of them reached this host's kernel, on the monotonic clock, if they have a
    /// timestamp. `drained`: nothing more was waiting, not even the end, so a new event will announce more.
    Bytes { count: usize, arrived: Option<Nanos>, drained: bool },
    /// Nothing is waiting; an event will come.
    Nothing,
    /// The peer has closed its side.
    Closed,
}

/// An event to handle.
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
