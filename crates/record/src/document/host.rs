//! The host on which a record was made, as far as readers and the audit need it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MissingFact;

/// Facts of the host that made the load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    pub name: Option<String>,
    pub kernel: Option<String>,
    pub cpu_model: Option<String>,
    /// CPUs this process may run on.
    pub cpus: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub clock_source: Option<String>,
    /// `none` on bare metal; else what the CPU says it runs under.
    pub hypervisor: Option<String>,
    /// The kernel's name for this boot: the monotonic stamps of records with the same one are on one clock, but
    /// for `monotonic_offset_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The process that made the record; absent in a pid namespace, where it is not the number by which the host knows
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// In a time namespace: how far its monotonic clock is ahead of the kernel's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotonic_offset_ns: Option<i64>,
    /// What this client may take from its host, as far as the audit needs it.
    #[serde(default)]
    pub limits: HostLimits,
    /// What this host does not report, and why: checks that rest on it were not made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingFact>,
}

/// What a client may take from its host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostLimits {
    /// Descriptors that the process may have open; absent without a limit.
    pub open_files: Option<u64>,
    /// Ports that the kernel gives to outgoing connections.
    pub local_ports: Option<PortRange>,
    /// From one tick of the hiccup meter to the next; absent where there was no meter.
    pub hiccup_tick_ns: Option<u64>,
    /// What this client reached against the built-in target; absent where it was never measured.
    pub ceiling: Option<Ceiling>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// What a client of this shape reached on this host against the built-in target, which answers at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// `ok` answers a second of a closed loop.
    pub throughput_per_s: u64,
    /// The highest rate at which its schedule was kept; absent where none was.
    pub rate_per_s: Option<u64>,
    /// When: RFC 3339, UTC.
    pub measured: String,
}
