//! What preceded the run's zero: the warm-up, and connections that carry nothing.

use serde::{Deserialize, Serialize};

use super::{OutcomeCount, ReasonCount};

/// The load before the run's zero. None of it is in the results: the run began when all its requests had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct WarmUpFacts {
    /// For how long requests were scheduled.
    pub window_ns: u64,
    /// From its beginning until its last request had ended. The difference to `window_ns` is the time that its backlog
    /// took.
    pub elapsed_ns: u64,
    /// Requests that became due. Equals the sum of all outcomes.
    pub scheduled: u64,
    /// Every outcome that occurred: `ok` first, the others by count.
    pub outcomes: Vec<OutcomeCount>,
    /// Reasons of failures as the protocol gives them, by count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonCount>,
    /// Connections that were opened, and used by the run too unless they were closed.
    pub connections_opened: u64,
    /// The exact mean of the response times of its `ok` requests; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_mean_ns: Option<u64>,
}

impl WarmUpFacts {
    /// The number of its requests that ended `ok`.
    pub fn ok(&self) -> u64 {
        self.outcomes.iter().filter(|row| row.outcome == "ok").map(|row| row.count).sum()
    }

    /// The sum of all outcomes.
    pub fn ended(&self) -> u64 {
        self.outcomes.iter().map(|row| row.count).fold(0, u64::saturating_add)
    }
}

/// Connections that were opened before the run's zero and carried nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct IdleFacts {
    /// Connections that were requested, to all servers together.
    pub wanted: u64,
    /// Connections that were opened, and logged in where the protocol has a login.
    pub opened: u64,
    /// Opened connections that the server closed before the run ended.
    pub lost: u64,
    /// Why the first one that failed could not be opened: an outcome, and the server's own words if it sent any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
