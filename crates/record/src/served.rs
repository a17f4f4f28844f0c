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
    /// Process of the thread that wrote the response's last byte.
    pub pid: u32,
    pub tid: u32,
    /// How often another thread took the request over.
    pub hand_offs: u16,
    pub protocol: Protocol,
    /// The index of its digest in the record.
    pub digest: u32,
    /// HTTP status and the like.
    pub status: Option<u16>,
    /// The value returned by the function that `--class` names.
    pub class: Option<i64>,
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
        in_order
            && self.residual() == 0
            && self.preempted <= self.part(Part::RunQueue)
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
