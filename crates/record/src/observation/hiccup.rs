//! What `hiccup` records: how long this host did not run, and why.
//!
//! Wire types only; the verb fills them, `report` and `explain` read them. The lateness of every tick is in the
//! histogram logs: `hiccup.hlog` for all meters, `hiccup-cpuN.hlog` for the meter on CPU N.

use serde::{Deserialize, Serialize};

/// What `hiccup` saw, over the whole record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct HiccupResults {
    /// From one tick of a meter to the next.
    pub resolution_ns: u64,
    /// How the meters were scheduled: `normal`, `nice:N`, `fifo:N`.
    pub priority: String,
    /// Stalls from this length on are reported one by one, with their causes.
    pub threshold_ns: u64,
    /// All meters together.
    pub all: Hiccups,
    /// Each meter: one for each CPU, or a single one that the scheduler may move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meters: Vec<Meter>,
    /// The command next to which was measured, and what was measured before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<CommandRun>,
}

/// What one or several meters saw.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Hiccups {
    /// Each counted with its own lateness, those that were due within a stall as well.
    pub ticks: u64,
    /// Left out without a tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<u64>,
    /// Left out where there are too few ticks to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_99_ns: Option<u64>,
    /// Stalls of a millisecond, of ten and of a hundred, or more.
    pub over_1ms: u64,
    pub over_10ms: u64,
    pub over_100ms: u64,
    /// Stalls from the threshold on, and what they were made of.
    pub stalls: u64,
    pub causes_ns: CausesNs,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Meter {
    /// Left out where it was not bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u64>,
    pub saw: Hiccups,
}

/// What stalls were made of; the parts sum to their length. One that the kernel does not report is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CausesNs {
    /// Ready to run, while others ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_queue: Option<u64>,
    /// The control group was out of its CPU quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<u64>,
    /// A hypervisor gave the CPU to others; the kernel tells it in steps of 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen: Option<u64>,
    /// The process was stopped (SIGSTOP, or a terminal) and then continued.
    pub stopped: u64,
    /// The kernel tells of none of these: interrupts, the kernel itself, a hypervisor that keeps no account.
    pub unknown: u64,
}

impl CausesNs {
    /// Adds the causes of another stall.
    pub fn add(&mut self, other: &CausesNs) {
        let sum = |ours: &mut Option<u64>, other: Option<u64>| {
            if let Some(other) = other {
                *ours = Some(ours.unwrap_or(0).saturating_add(other));
            }
        };
        sum(&mut self.run_queue, other.run_queue);
        sum(&mut self.throttled, other.throttled);
        sum(&mut self.stolen, other.stolen);
        self.stopped = self.stopped.saturating_add(other.stopped);
        self.unknown = self.unknown.saturating_add(other.unknown);
    }

    /// Name and time of each cause that is reported, in the order in which they are determined.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let parts = [
            ("throttled", self.throttled),
            ("run queue", self.run_queue),
            ("stolen", self.stolen),
            ("stopped", Some(self.stopped)),
            ("unknown", Some(self.unknown)),
        ];
        parts.into_iter().filter_map(|(name, part)| Some((name, part?))).collect()
    }
}

/// One stall of one meter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Stall {
    /// When the meter wanted to run, from the record's zero.
    pub at_ns: u64,
    /// How much later it did.
    pub length_ns: u64,
    /// Left out where the meter was not bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u64>,
    pub causes_ns: CausesNs,
    /// For how long of about that time some task of this host waited for a CPU (PSI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_ns: Option<u64>,
}

/// A command, and the time before it for comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CommandRun {
    pub command: Vec<String>,
    /// As a shell would tell it: 128 and the signal, where it died of one. Left out while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u64>,
    /// Begin and end, from the record's zero.
    pub from_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
    /// CPU time of the command and of its children that it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// What all meters saw before it began; `all` of the results is what they saw while it ran.
    pub idle: Hiccups,
}

/// What `hiccup` says of one interval, next to the frame of the line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct HiccupLine {
    pub saw: Hiccups,
    /// The longest of the stalls from the threshold on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stall>,
    /// For how long in it some task of this host waited for a CPU (PSI); left out where the kernel does not report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_ns: Option<u64>,
}
