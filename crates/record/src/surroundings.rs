//! What the client and its host went through in one interval, next to the requests: the evidence of the audit that
//! no histogram holds.
//!
//! These are wire types of `series.ndjson`. What could not be read is absent; `run.json` says why.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// A request is late if the client picked it up, or read its response, this much later than it could have.
pub const LATE: Nanos = Nanos::from_millis(1);

/// One worker in one interval: the figures that show whether one worker is slower than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct WorkerSecond {
    /// Its number, from 0; its thread is named `worker-NUMBER`.
    pub worker: u64,
    pub cpu_ns: u64,
    /// Run-queue latency: how long it was ready to run but waited for a CPU; absent if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_queue_ns: Option<u64>,
    /// The longest time for which it should have run but did not.
    pub stall_max_ns: u64,
    /// Its requests that ended `ok`.
    pub ok: u64,
    /// How many of these had a `schedule_lag` above 1 ms, plus how many had a `client_lag` above 1 ms.
    pub late: u64,
    /// `schedule_lag` and `client_lag` of all of them, summed.
    pub lag_ns: u64,
}

impl WorkerSecond {
    /// Adds what the same worker did at another time.
    pub(crate) fn merge(&mut self, other: &WorkerSecond) {
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.run_queue_ns = sum(self.run_queue_ns, other.run_queue_ns);
        self.stall_max_ns = self.stall_max_ns.max(other.stall_max_ns);
        self.ok = self.ok.saturating_add(other.ok);
        self.late = self.late.saturating_add(other.late);
        self.lag_ns = self.lag_ns.saturating_add(other.lag_ns);
    }
}

/// This client's host in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct HostSecond {
    /// Periods in which a CPU quota of a control group around this process was used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<u64>,
    /// How long the CPU quota throttled it, summed over CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
    /// Time that the hypervisor gave to others, summed over the CPUs this process may run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
    /// CPU pressure (PSI some): the time in which some task of the host waited for a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_ns: Option<u64>,
    /// Connections dropped by a full listen queue, in the network namespace of this client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_drops: Option<u64>,
    /// TCP segments that were retransmitted, in the network namespace of this client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Descriptors that this process had open at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Local ports in use at the end by connections to the server's port, including TIME_WAIT; an upper bound if it is
    /// far from the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<u64>,
    /// CPU time of the processes of `--watch-cpu`, by the scheduler's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_ns: Option<u64>,
    /// Run-queue latency of their threads, summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_wait_ns: Option<u64>,
}

impl HostSecond {
    pub(crate) fn is_empty(&self) -> bool {
        *self == HostSecond::default()
    }

    /// Adds another interval: counters are summed; of values at the end, the higher one is kept.
    pub(crate) fn merge(&mut self, other: &HostSecond) {
        self.throttled = sum(self.throttled, other.throttled);
        self.throttled_ns = sum(self.throttled_ns, other.throttled_ns);
        self.steal_ns = sum(self.steal_ns, other.steal_ns);
        self.cpu_pressure_ns = sum(self.cpu_pressure_ns, other.cpu_pressure_ns);
        self.listen_drops = sum(self.listen_drops, other.listen_drops);
        self.retransmits = sum(self.retransmits, other.retransmits);
        self.open_files = self.open_files.max(other.open_files);
        self.ports = self.ports.max(other.ports);
        self.server_cpu_ns = sum(self.server_cpu_ns, other.server_cpu_ns);
        self.server_wait_ns = sum(self.server_wait_ns, other.server_wait_ns);
    }
}

/// The sum of the known values; absent only if neither is known.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_adds_and_what_stood_does_not() {
        let one = HostSecond { throttled: Some(2), open_files: Some(9), ..HostSecond::default() };
        let mut both = HostSecond { throttled: Some(3), steal_ns: Some(4), open_files: Some(7), ..one };
        both.merge(&one);
        let expected = HostSecond { throttled: Some(5), steal_ns: Some(4), open_files: Some(9), ..one };
        assert_eq!(both, expected);
        assert!(HostSecond::default().is_empty() && !both.is_empty());
    }
}
