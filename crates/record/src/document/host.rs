//! The host on which a record was made, as far as readers and the audit need it.

use serde::{Deserialize, Serialize};

use super::MissingFact;

/// Facts of the host that made the load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Host {
    pub name: Option<String>,
    pub kernel: Option<String>,
    pub cpu_model: Option<String>,
    /// The number of CPUs that the process can run on.
    pub cpus: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub clock_source: Option<String>,
    /// The hypervisor as reported by the CPU; `none` on bare metal.
    pub hypervisor: Option<String>,
    /// The kernel's ID of this boot: monotonic timestamps of records with the same ID are on one clock, apart from
    /// `monotonic_offset_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The process that made the record; absent in a pid namespace, where it is not the number by which the host knows
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// In a time namespace: how far its monotonic clock is ahead of the kernel's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotonic_offset_ns: Option<i64>,
    /// Limits of the client on its host that the audit needs.
    #[serde(default)]
    pub limits: HostLimits,
    /// What this host does not report, and why: checks that need it were not made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingFact>,
}

/// Limits of a client on its host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct HostLimits {
    /// Maximum number of open descriptors of the process; absent if there is no limit.
    pub open_files: Option<u64>,
    /// The range of local ports for outgoing connections.
    pub local_ports: Option<PortRange>,
    /// The time between two ticks of the hiccup meter; absent if there was no meter.
    pub hiccup_tick_ns: Option<u64>,
    /// The load generator's own maximum against the built-in target; absent if it was never measured.
    pub ceiling: Option<Ceiling>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

impl PortRange {
    /// How many ports it has.
    pub fn len(&self) -> u64 {
        u64::from(self.last.saturating_sub(self.first)) + 1
    }

    /// A range has at least one port.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// The maximum that a load generator of this shape reached on this host against the built-in target, which responds
/// immediately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// `ok` responses per second in a closed loop.
    pub throughput_per_s: u64,
    /// The highest rate at which the schedule was kept; absent if there is none.
    pub rate_per_s: Option<u64>,
    /// When it was measured: RFC 3339, UTC.
    pub measured: String,
}
