//! What a watch under a budget saw, and what that says of the whole time.

use serde::{Deserialize, Serialize};

/// A watch that saw the server in windows at random times, where all would have cost more than its budget.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Windows {
    /// Of the server's CPU time: 0.02 is 2 %.
    pub budget: f64,
    /// What the windows' times were drawn from.
    pub seed: u64,
    pub windows: u64,
    /// The time in windows, and that in which everything was counted.
    pub in_windows_ns: u64,
    pub everything_ns: u64,
    /// Requests that were read in this time and had no response 500 ms after their window. They are part of the estimates
    /// of the rate and the percentiles, but not of the mean.
    pub unanswered: u64,
    /// What watching cost the server, by its own account, and CPU time of the server meanwhile.
    pub cost_ns: u64,
    /// The parts of `cost_ns`.
    pub cost: WindowCost,
    pub server_cpu_ns: u64,
    /// Bytes that the server read while not everything was counted, by the kernel's counters of its TCP connections: the
    /// rate of that time is the requests per byte within windows, times these. Absent where the rate follows from time:
    /// the requests per second within windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_read: Option<u64>,
    /// Why the rate follows from time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_by_time: Option<String>,
    /// By what share the server read fewer bytes per second within windows than outside of them, while not everything was
    /// counted: about 0 where it has idle time. Absent where the rate follows from time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<EstimatedRange>,
    /// Requests per second of the whole time. These four are absent with fewer than eight windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<EstimatedRange>,
    /// Read → done, of all requests of the whole time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<EstimatedRange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<EstimatedRange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<EstimatedRange>,
}

impl Windows {
    /// The time that was seen.
    pub fn seen_ns(&self) -> u64 {
        self.in_windows_ns + self.everything_ns
    }
}

/// What watching cost the server's CPUs, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct WindowCost {
    /// In the eBPF programs.
    pub programs_ns: u64,
    /// For calling them, by what one call took at the start.
    pub calls_ns: u64,
    /// Interrupts of attaching and detaching them.
    pub interrupts_ns: u64,
    /// CPU time of the observer's process on the server's CPUs.
    pub own_ns: u64,
}

/// A value with its 95 % interval, whose units of sampling are the windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct EstimatedRange {
    /// Absent where it is among requests that had no response: it is longer than all that was seen.
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// A time in which the server was seen, from the record's zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct SeenSpan {
    pub from_ns: u64,
    pub until_ns: u64,
}
