//! One request as seen from the server's kernel: when it arrived, was read and was answered, and where the time went.
//!
//! It does not contain how this was measured (`watch` does that), or the way to the server. The observer of a server
//! creates these, and `explain` joins them with the client's requests by the two addresses of the connection.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use units::Nanos;

units::named_enum! {
    /// Where the time of a request at the server went, from its read to the end of its response. The parts are
    /// exclusive, and add up to that time to the nanosecond. In the order of [`Served::parts`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Part {
        /// A thread of the server ran for it.
        OnCpu = "on_cpu",
        /// It had a CPU that did other work: interrupts, or other guests of the hypervisor.
        Stolen = "stolen",
        /// It was woken or preempted, and waited for a CPU that others used.
        RunQueue = "run_queue",
        /// It yielded the CPU.
        Yielded = "yielded",
        /// Its control group had used up its CPU quota.
        Throttled = "throttled",
        /// Blocked on a block device.
        Disk = "disk",
        /// Blocked on a lock of another thread.
        Lock = "lock",
        /// Blocked on another connection.
        Network = "network",
        /// Blocked for another reason: a sleep, a pipe, or an unknown one.
        Other = "other",
        /// No thread worked on it: the server's event loop or thread pool worked on other requests.
        LoopWait = "loop_wait",
    }
}

units::named_enum! {
    /// What the bytes of a connection were taken for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum Protocol {
        Http1 = "http1",
        Postgres = "postgres",
        Mysql = "mysql",
        Redis = "redis",
        /// Unknown: all that comes before the server writes is a request, and what it writes until more comes is its
        /// answer.
        Turns = "turns",
        /// Encrypted, and so timed as turns.
        Tls = "tls",
        /// Each stream is a request.
        Http2 = "http2",
    }
}

/// The thread that ran longest on the CPU that a request waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprit {
    pub pid: u32,
    pub comm: String,
    /// For how long it ran while the request waited.
    pub time: Nanos,
}

/// The longest sleep of a thread that worked on a request, and what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleep {
    /// The number of the system call in which it slept, on the server's machine.
    pub call: u16,
    /// The call's first argument where that is a file descriptor.
    pub fd: Option<i32>,
    pub time: Nanos,
}

/// The rows of a statement, as its response says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rows {
    /// Rows of result sets.
    pub sent: u64,
    /// Rows inserted, updated or deleted.
    pub affected: u64,
}

/// What kept a process from running altogether.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// A signal, by its number: SIGSTOP and the like.
    Signal(u8),
    /// The freezer of control groups.
    Freezer,
}

/// The thread that has ended a wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub tid: u32,
    pub comm: String,
    /// The index in the record of the digest of the request that it served then.
    pub digest: Option<u32>,
    /// For how long it was waited for.
    pub time: Nanos,
}

/// What ended the long waits of a request, where the observer saw it. Each time is a part of `done - read`, except for
/// `stopped_unread`, and they do not overlap: they divide the parts in which no thread ran or waited for a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Waits {
    /// The part of the socket queue in which the thread that read it was stopped.
    pub stopped_unread: Nanos,
    /// Its thread was stopped.
    pub stopped: Nanos,
    /// By what, for whichever of the two.
    pub stop: Option<Stop>,
    /// Its thread slept until a timer that it had set itself.
    pub timer: Nanos,
    /// Its thread had asked another server, and waited for the answer.
    pub upstream: Nanos,
    /// The address of that server, of several the one that took longest; `None` for Unix sockets.
    pub upstream_at: Option<SocketAddr>,
    /// Its thread waited for a lock that this one released.
    pub owner: Option<Owner>,
    /// The last bytes of its response were held back until the client had acknowledged those before (Nagle's
    /// algorithm): that time is after `done`.
    pub held_back: bool,
}

impl Waits {
    /// Those within the time at the server, together.
    pub fn sum(&self) -> Nanos {
        let owner = self.owner.as_ref().map_or(Nanos::ZERO, |owner| owner.time);
        [self.stopped, self.timer, self.upstream].into_iter().fold(owner, Nanos::saturating_add)
    }
}

/// One request as seen from the server's kernel. All instants are on the monotonic clock of that host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The observer's number of its connection.
    pub connection: u64,
    /// The client's end of the connection; `None` if the observer did not know it.
    pub peer: Option<SocketAddr>,
    /// The server's end.
    pub local: Option<SocketAddr>,
    /// The number of the request on its connection, from 0, since the observer first saw the connection.
    pub n: u64,
    /// When its last byte was in the server's kernel; `None` without an arrival timestamp.
    pub arrived: Option<Nanos>,
    /// When the read that took its last byte returned.
    pub read: Nanos,
    /// The part of the socket queue in which the thread that read it was ready to run and waited for a CPU.
    pub socket_run_queue: Nanos,
    /// The part of the socket queue in which the CPU quota of the reader's control group was used up.
    pub socket_throttled: Nanos,
    /// When the first write of its response completed.
    pub first_sent: Nanos,
    /// When the last write completed.
    pub done: Nanos,
    /// In the order of [`Part::ALL`]; they add up to `done - read`.
    pub parts: [Nanos; Part::COUNT],
    /// The part of [`Part::RunQueue`] for which it was preempted, rather than woken late.
    pub preempted: Nanos,
    pub preemptions: u32,
    /// `None` if it never waited for a CPU.
    pub culprit: Option<Culprit>,
    /// The longest sleep of its threads; `None` if they did not sleep.
    pub sleep: Option<Sleep>,
    /// The part of [`Part::RunQueue`] in which other processes ran on the CPU that it waited for. In the rest that CPU
    /// was just waking up, or other threads of the server had it.
    pub contended: Nanos,
    /// Likewise, of `socket_run_queue`.
    pub socket_contended: Nanos,
    /// `None` when nothing is known of its waits.
    pub waits: Option<Box<Waits>>,
    /// Process of the thread that wrote the response's last byte.
    pub pid: u32,
    pub tid: u32,
    /// How often another thread took the request over.
    pub hand_offs: u16,
    pub protocol: Protocol,
    /// The index of its digest in the record.
    pub digest: u32,
    /// The index of its user and schema in the record.
    pub session: u32,
    /// `None` if the protocol has no rows, or not all of the response was captured.
    pub rows: Option<Rows>,
    /// HTTP status and the like.
    pub status: Option<u16>,
    /// The value returned by the function that `--class` names.
    pub class: Option<i64>,
    /// Statements or commands that it executed: those of one SQL text, those of Redis's `EXEC`; otherwise 1.
    pub statements: u32,
    /// With the data that followed it, such as the file of `LOAD DATA LOCAL INFILE`.
    pub request_bytes: u64,
    pub response_bytes: u64,
}

impl Served {
    /// Its time at the server: from read to done.
    #[inline]
    pub fn response(&self) -> Nanos {
        self.done.saturating_sub(self.read)
    }

    /// From arrived in the kernel to read by the server; `None` without an arrival timestamp.
    #[inline]
    pub fn socket_queue(&self) -> Option<Nanos> {
        self.arrived.map(|arrived| self.read.saturating_sub(arrived))
    }

    /// The time of one part; the ten parts add up to the time at the server.
    #[inline]
    pub fn part(&self, part: Part) -> Nanos {
        self.parts[part as usize]
    }

    /// The same request on a clock that is `ahead` by that many nanoseconds. Its length is unchanged, unless it leaves
    /// the range of the clock.
    #[must_use]
    pub fn later(mut self, ahead: i64) -> Served {
        let later = |at: Nanos| Nanos(at.0.saturating_add_signed(ahead));
        self.arrived = self.arrived.map(later);
        self.read = later(self.read);
        self.first_sent = later(self.first_sent);
        self.done = later(self.done);
        self
    }

    /// `done - read` minus all parts, in nanoseconds. Anything but 0 is an error of the observer.
    pub fn residual(&self) -> i128 {
        let parts: i128 = self.parts.iter().map(|part| i128::from(part.0)).sum();
        i128::from(self.done.0) - i128::from(self.read.0) - parts
    }

    /// Whether its instants are in order and its parts add up to its time.
    pub fn is_lawful(&self) -> bool {
        let in_order = self.arrived.is_none_or(|arrived| arrived <= self.read)
            && self.read <= self.first_sent
            && self.first_sent <= self.done;
        let queued = self.socket_queue().unwrap_or(Nanos::ZERO);
        let waits = self.waits.as_deref();
        in_order
            && waits.is_none_or(|waits| waits.sum() <= self.response() && waits.stopped_unread <= queued)
            && self.residual() == 0
            && self.preempted <= self.part(Part::RunQueue)
            && self.contended <= self.part(Part::RunQueue)
            && self.socket_contended <= self.socket_run_queue
            && self.socket_run_queue.saturating_add(self.socket_throttled) <= queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for (i, part) in Part::ALL.into_iter().enumerate() {
            assert_eq!((part as usize, Part::from_name(part.name())), (i, Some(part)));
        }
        for protocol in Protocol::ALL {
            assert_eq!(Protocol::from_name(protocol.name()), Some(protocol));
            assert_eq!(serde_json::to_value(protocol).unwrap(), protocol.name());
        }
    }

    #[test]
    fn a_residual_is_told_in_both_directions() {
        let mut served = crate::fixture::served(1);
        assert!(served.is_lawful());
        served.parts[0] += Nanos(3);
        assert_eq!((served.residual(), served.is_lawful()), (-3, false));
        served.parts[0] = Nanos::ZERO;
        assert!(served.residual() > 0);
    }

    #[test]
    fn a_request_without_an_arrival_has_no_socket_queue() {
        let mut served = crate::fixture::served(1);
        assert_eq!(served.socket_queue(), Some(Nanos(40)));
        served.arrived = None;
        assert_eq!(served.socket_queue(), None);
    }
}
