//! What `watch` records: the requests of a running server, and where their time went.
//!
//! Wire types only; the verb fills them, `report` and `explain` read them.
//!
//! Its logs are [`RESPONSE`], [`SOCKET_QUEUE`], [`PREEMPTED`] and [`UNDISTURBED`], [`class_log`] for each class and
//! [`part_log`] for each part. A part's log has one value per request of the interval, including zeros, so its
//! quantiles are over all requests, and its sum is the total of the part.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::commit::{EVENTS, RUN, SERIES};
use crate::document::{Distribution, Kept};
use crate::observation::is_log_name;
use crate::served::{Part, Protocol};

mod losses;
mod usage;
mod windows;

pub use losses::{Inexact, Losses};
pub use usage::{
    ConnectionUse, PeerUse, RowCounts, SessionUse, SlowReason, SlowRequest, SlowRequests, Times, Usage,
    WaitUse,
};

pub use windows::{EstimatedRange, SeenSpan, WindowCost, Windows};

/// Time at the server, from read to done, of every request.
pub const RESPONSE: &str = "response";

/// From arrived in the kernel to read, of the requests with an arrival timestamp.
pub const SOCKET_QUEUE: &str = "socket_queue";

/// Time at the server of the requests that were preempted; the others are in [`UNDISTURBED`].
pub const PREEMPTED: &str = "preempted";

pub const UNDISTURBED: &str = "undisturbed";

/// The single requests, if they were kept.
pub const SERVED: &str = "served.parquet";

/// Whether a record of `watch` may contain a file of this name. Other files in an archive of a record are not
/// extracted.
pub fn is_file_name(name: &str) -> bool {
    matches!(name, RUN | SERIES | EVENTS | SERVED) || name.strip_suffix(".hlog").is_some_and(is_log_name)
}

/// The log of a part, without its `.hlog`.
pub fn part_log(part: Part) -> String {
    format!("part-{}", part.name())
}

/// The log of a class, without its `.hlog`: time at the server of its requests. Characters that are not allowed in the
/// name of a log become `_`, so classes must not differ only in these.
pub fn class_log(class: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let name: String = class.chars().take(80).map(fits).collect();
    format!("response-class-{}", name.strip_suffix(".hlog").unwrap_or(&name))
}

/// What `watch` saw, over the whole record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct WatchResults {
    pub subject: WatchSubject,
    pub tier: Tier,
    /// Requests whose answer was complete.
    pub requests: u64,
    /// Those of them that were preempted at least once.
    pub preempted: u64,
    /// Connections on which requests were seen.
    pub connections: u64,
    pub request_bytes: u64,
    pub response_bytes: u64,
    /// Read → done. These four are absent while the record is in progress.
    pub response: Option<Distribution>,
    /// Arrived → read; absent without stamps of the arrival too, and `missing` says why.
    pub socket_queue: Option<Distribution>,
    /// Of the requests that were preempted, and of those that were not.
    pub preempted_response: Option<Distribution>,
    pub undisturbed_response: Option<Distribution>,
    /// Sums over all requests: together they are the sum of `response`.
    pub parts_ns: PartsNs,
    /// Requests by what `--class` makes of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassResult>,
    /// Statements and routes; [`Served::digest`](crate::Served::digest) is a place in this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<Digest>,
    /// Requests that were not counted, because `--statement` or `--peer` leaves them out.
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub left_out: u64,
    /// Requests by user and schema; [`Served::session`](crate::Served::session) is a place in this list. The first row
    /// is of connections whose login was not seen, the second of those beyond the limit of distinct ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionUse>,
    /// Requests by the client's address, the most time first; a last row without an address has all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerUse>,
    /// The connections with the most time, the most first; a last row without a number has all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busiest_connections: Vec<ConnectionUse>,
    /// The system calls, files and addresses that requests waited for longest, the most time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitUse>,
    /// Requests over the limit of `--slow`, with their reasons; absent while the record is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowRequests>,
    /// Who ran while requests that had been preempted waited for a CPU, the most time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preemptors: Vec<Preemptor>,
    /// What was not seen although it happened.
    pub losses: Losses,
    /// Requests that were not seen because their events were lost; absent if none were, and where too few were seen to
    /// tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedRequests>,
    /// Absent if the server was watched all the time: else all counts and times are of what was seen, and each maximum
    /// is a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    /// What was seen and cannot be reported exactly.
    #[serde(default, skip_serializing_if = "Inexact::is_empty")]
    pub inexact: Inexact,
    /// What watching cost, from the kernel's own statistics of its programs; empty where they were not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub self_cost: Vec<ProgramCost>,
    /// CPU time of the observer's own process; absent where it could not be read.
    pub self_cpu_ns: Option<u64>,
    /// What `served.parquet` holds, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// How many requests were missed, from the bytes and turns that were read of their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct MissedRequests {
    pub requests: u64,
    /// It may be this many more or fewer; 0 if it is exact.
    pub margin: u64,
}

/// Which server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct WatchSubject {
    /// How it was named: `-p 4711`, `--port 80`, `--comm nginx`.
    pub named: String,
    /// Its processes at the end, at most the first thousand.
    pub pids: Vec<u32>,
    /// The ports that it listened on, as far as they were asked for or found.
    pub ports: Vec<u16>,
    pub comm: Option<String>,
    /// What its connections carried, by requests, the most first.
    pub protocols: Vec<ProtocolCount>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ProtocolCount {
    pub protocol: Protocol,
    pub requests: u64,
}

/// How much of the kernel could be listened to. What a lower tier lacks is in `missing` of the record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Tier {
    /// One word, for people and programs.
    pub name: String,
    /// The places attached to, such as `tp_btf/sched_switch`.
    pub attached: Vec<String>,
}

/// The requests of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ClassResult {
    /// Its name; if it has none, the value that the function returned.
    pub class: String,
    pub requests: u64,
    pub preempted: u64,
    /// Absent while the record is in progress.
    pub response: Option<Distribution>,
    pub parts_ns: PartsNs,
}

impl ClassResult {
    /// The class `class`, of which no request is known.
    pub fn named(class: String) -> ClassResult {
        ClassResult { class, requests: 0, preempted: 0, response: None, parts_ns: PartsNs::default() }
    }
}

/// Requests that differ in their values only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Digest {
    /// The normalised statement, or method and route.
    pub text: String,
    pub protocol: Protocol,
    pub count: u64,
    /// Statements or commands that these requests executed, where that is not one each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<u64>,
    /// Read → done, summed.
    pub sum_ns: u64,
    /// Arrived → read, summed over those with a stamp of their arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_queue_ns: Option<u64>,
    pub parts_ns: PartsNs,
    /// Absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// Absent if no response said how many rows it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowCounts>,
    /// Places in `sessions`: the users and schemas that sent it, at most four.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<u32>,
    /// More of them sent it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_sessions: bool,
}

impl Digest {
    /// A statement or route without a request.
    pub fn named(text: String, protocol: Protocol) -> Digest {
        Digest {
            text,
            protocol,
            count: 0,
            statements: None,
            sum_ns: 0,
            socket_queue_ns: None,
            parts_ns: PartsNs::default(),
            times: None,
            rows: None,
            sessions: Vec::new(),
            more_sessions: false,
        }
    }
}

/// One who ran on a CPU that requests waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Preemptor {
    pub pid: u32,
    pub comm: String,
    /// Its path in the hierarchy; absent where it is not known.
    pub cgroup: Option<String>,
    /// For how long it ran in the meantime.
    pub time_ns: u64,
    /// How often it took the CPU away from a request.
    pub count: u64,
}

/// What one of the kernel's programs cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ProgramCost {
    pub name: String,
    pub runs: u64,
    /// Time in it, the kernel's own measuring of it included.
    pub ns: u64,
}

/// What `watch` says of one interval, next to the frame of the line. It counts the requests that were done in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct WatchLine {
    pub requests: u64,
    /// How much of the interval was seen; absent if all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_ns: Option<u64>,
    /// Of it, the times that ended in the interval; requests that were read in them are counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenSpan>,
    /// Of the response of the interval's sample, for plots; absent without a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<WatchQuantiles>,
    /// Requests that were preempted at least once.
    pub preempted: u64,
    /// Sums over the interval's requests.
    pub parts_ns: PartsNs,
    /// Likewise; absent without stamps of the arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_queue_ns: Option<u64>,
    /// What was lost in this interval.
    #[serde(default, skip_serializing_if = "Losses::is_empty")]
    pub losses: Losses,
    /// What cannot be reported exactly of this interval.
    #[serde(default, skip_serializing_if = "Inexact::is_empty")]
    pub inexact: Inexact,
    /// Requests by class, where classes are distinguished.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, u64>,
    /// Connections that were first seen in this interval.
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub connections: u64,
    /// Bytes of the interval's requests, and of their responses.
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub request_bytes: u64,
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub response_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct WatchQuantiles {
    pub p50: u64,
    pub p95: u64,
    pub p99: u64,
    pub max: u64,
}

/// A time for each [`Part`], in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct PartsNs {
    pub on_cpu: u64,
    pub stolen: u64,
    pub run_queue: u64,
    pub yielded: u64,
    pub throttled: u64,
    pub disk: u64,
    pub lock: u64,
    pub network: u64,
    pub other: u64,
    pub loop_wait: u64,
}

impl From<[Nanos; Part::COUNT]> for PartsNs {
    #[inline]
    fn from(parts: [Nanos; Part::COUNT]) -> PartsNs {
        let [on_cpu, stolen, run_queue, yielded, throttled, disk, lock, network, other, loop_wait] =
            parts.map(|part| part.0);
        PartsNs { on_cpu, stolen, run_queue, yielded, throttled, disk, lock, network, other, loop_wait }
    }
}

impl From<PartsNs> for [Nanos; Part::COUNT] {
    #[inline]
    fn from(parts: PartsNs) -> [Nanos; Part::COUNT] {
        let PartsNs { on_cpu, stolen, run_queue, yielded, throttled, disk, lock, network, other, loop_wait } =
            parts;
        [on_cpu, stolen, run_queue, yielded, throttled, disk, lock, network, other, loop_wait].map(Nanos)
    }
}

impl PartsNs {
    /// Adds the times of one request; sums saturate at the maximum of a u64, 584 years.
    #[inline]
    pub fn add(&mut self, parts: &[Nanos; Part::COUNT]) {
        let mut sums: [Nanos; Part::COUNT] = (*self).into();
        for (sum, part) in sums.iter_mut().zip(parts) {
            *sum = Nanos(sum.0.saturating_add(part.0));
        }
        *self = sums.into();
    }

    /// The sum of all parts.
    pub fn total(&self) -> u128 {
        <[Nanos; Part::COUNT]>::from(*self).iter().map(|part| u128::from(part.0)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::is_log_name;

    #[test]
    fn each_part_has_its_field() {
        for part in Part::ALL {
            let mut parts = [Nanos::ZERO; Part::COUNT];
            parts[part as usize] = Nanos(7);
            let wire = PartsNs::from(parts);
            assert_eq!(serde_json::to_value(wire).unwrap()[part.name()], 7);
            assert_eq!((<[Nanos; Part::COUNT]>::from(wire), wire.total()), (parts, 7));
            assert!(is_log_name(&part_log(part)));
        }
    }

    #[test]
    fn any_class_makes_a_log() {
        for (class, log) in
            [("hit", "response-class-hit"), ("../x", "response-class-.._x"), ("a.hlog", "response-class-a")]
        {
            assert_eq!(class_log(class), log);
        }
        for class in ["", "é", &"x".repeat(1_000), "-1"] {
            assert!(is_log_name(&class_log(class)), "{class}");
        }
    }
}
