//! What users, peers, connections and waits take of a watched server, and its slow requests.

use serde::{Deserialize, Serialize};

use super::PartsNs;
use crate::document::QuantileValue;

/// Percentiles of the time at the server. Each has its 95 % interval, or says that the sample is too small.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Times {
    /// At most 1.6 % above the true value, as all of these except the maximum.
    pub p50: QuantileValue,
    pub p95: QuantileValue,
    pub p99: QuantileValue,
    /// Exact.
    pub max_ns: u64,
}

/// Rows of statements, of the requests whose responses say how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct RowCounts {
    /// Requests whose rows are known: responses that were captured whole.
    pub requests: u64,
    /// Rows of their result sets.
    pub sent: u64,
    /// Rows that they inserted, updated or deleted.
    pub affected: u64,
}

/// What some requests took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Usage {
    pub requests: u64,
    /// Read → done, summed.
    pub sum_ns: u64,
    pub times: Times,
    pub request_bytes: u64,
    pub response_bytes: u64,
    /// Absent if no response said how many rows it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowCounts>,
}

/// The requests of one user and schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct SessionUse {
    /// Absent if the login was not seen, or the protocol has none.
    pub user: Option<String>,
    /// The database of PostgreSQL; absent if none is selected, or it is not known.
    pub schema: Option<String>,
    /// Absent without a request.
    pub usage: Option<Usage>,
}

/// The requests of one client's address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct PeerUse {
    /// An IP address, or `unix` for all Unix sockets; absent for the row of all others.
    pub address: Option<String>,
    #[serde(flatten)]
    pub usage: Usage,
}

/// The requests of one connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ConnectionUse {
    /// Its number in the watch; absent for the row of all others.
    pub number: Option<u64>,
    /// The client's address and port; absent for a Unix socket.
    pub peer: Option<String>,
    /// A place in `sessions`: of its latest request.
    pub session: u32,
    #[serde(flatten)]
    pub usage: Usage,
}

/// What requests slept for: of each request, only its longest sleep counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct WaitUse {
    /// The system call, such as `futex`; `others` for the row of all waits beyond the limit.
    pub call: String,
    /// The file or address; absent where the call has none, or it could not be looked up in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub requests: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
}

/// The requests over a limit, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct SlowRequests {
    /// The limit: requests that took longer at the server are in here.
    pub over_ns: u64,
    pub requests: u64,
    /// By reason, the most requests first. They sum to `requests`.
    pub reasons: Vec<SlowReason>,
    /// The slowest of them, at most 50, the slowest first.
    pub slowest: Vec<SlowRequest>,
}

/// Slow requests whose largest part has the same cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct SlowReason {
    /// The largest part, as in `parts_ns`; `others` for all reasons beyond the limit of distinct ones.
    pub part: String,
    /// Who ran instead, the system call, the file or address; absent where none applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    pub requests: u64,
    /// Their time at the server, summed, and how much of it was this part.
    pub sum_ns: u64,
    pub part_ns: u64,
}

/// One slow request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct SlowRequest {
    /// When the server had read it, as an offset from the record's zero.
    pub at_ns: u64,
    pub response_ns: u64,
    /// Places in `digests` and `sessions`.
    pub digest: u32,
    pub session: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    pub tid: u32,
    pub parts_ns: PartsNs,
    /// As in [`SlowReason`].
    pub part: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}
