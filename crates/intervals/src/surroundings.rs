//! The state of the client and its host in one interval, in addition to the requests: evidence for the audit that is
//! not in a histogram.
//!
//! These are wire types of `series.ndjson`. Values that could not be read are absent; `run.json` states why.

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
    /// Adds the figures of the same worker from another interval.
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
    /// CPU time of the processes of `--watch-cpu` and their descendants, by the scheduler's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_ns: Option<u64>,
    /// Run-queue latency of their threads, summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_wait_ns: Option<u64>,
    /// What else these processes used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<GroupResources>,
}

/// Memory, page faults, storage and context switches of a group of processes, summed over them, in one interval.
///
/// Pages that processes share count in each. What could not be read is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct GroupResources {
    /// Processes at the end.
    pub processes: u64,
    /// Memory in RAM (RSS) at the end.
    pub resident_bytes: u64,
    /// Memory in swap at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_bytes: Option<u64>,
    /// Size of the address spaces at the end.
    pub virtual_bytes: u64,
    /// Page faults that needed no storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor_faults: Option<u64>,
    /// Page faults that waited for storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<u64>,
    /// Bytes read from storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written for storage, also those that are still in the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Voluntary context switches; a lower bound if threads or processes ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary: Option<u64>,
    /// Involuntary context switches; a lower bound if threads or processes ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary: Option<u64>,
}

/// Memory of a group of processes before and after a measurement, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct GroupMemory {
    /// Memory in RAM (RSS), pages that processes share counted in each.
    pub resident_before: u64,
    pub resident_after: u64,
    /// Size of the address spaces.
    pub virtual_before: u64,
    pub virtual_after: u64,
    /// Memory in RAM with each shared page divided among those who share it (PSS); absent where this user may not
    /// see it. Read only before and after a measurement, because the kernel walks the whole address space for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proportional_before: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proportional_after: Option<u64>,
}

impl GroupResources {
    /// Adds another group at the same time. A value is absent if either is.
    pub fn plus(self, other: GroupResources) -> GroupResources {
        let both = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(a, b)| a.saturating_add(b));
        GroupResources {
            processes: self.processes + other.processes,
            resident_bytes: self.resident_bytes.saturating_add(other.resident_bytes),
            swapped_bytes: both(self.swapped_bytes, other.swapped_bytes),
            virtual_bytes: self.virtual_bytes.saturating_add(other.virtual_bytes),
            minor_faults: both(self.minor_faults, other.minor_faults),
            major_faults: both(self.major_faults, other.major_faults),
            read_bytes: both(self.read_bytes, other.read_bytes),
            written_bytes: both(self.written_bytes, other.written_bytes),
            voluntary: both(self.voluntary, other.voluntary),
            involuntary: both(self.involuntary, other.involuntary),
        }
    }

    /// Adds the same group at another time: counts are summed; of sizes, the larger one is kept.
    pub fn merge(self, other: GroupResources) -> GroupResources {
        GroupResources {
            processes: self.processes.max(other.processes),
            resident_bytes: self.resident_bytes.max(other.resident_bytes),
            swapped_bytes: self.swapped_bytes.max(other.swapped_bytes),
            virtual_bytes: self.virtual_bytes.max(other.virtual_bytes),
            ..self.plus(other)
        }
    }
}

impl HostSecond {
    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
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
        self.server = match (self.server, other.server) {
            (Some(one), Some(other)) => Some(one.merge(other)),
            (one, other) => one.or(other),
        };
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

    #[test]
    fn resources_of_two_groups_add_and_those_of_two_times_do_not_add_sizes() {
        let one = GroupResources {
            processes: 2,
            resident_bytes: 100,
            minor_faults: Some(7),
            ..GroupResources::default()
        };
        let other = GroupResources { processes: 1, resident_bytes: 30, major_faults: Some(1), ..one };
        let sum = one.plus(other);
        assert_eq!((sum.processes, sum.resident_bytes, sum.minor_faults), (3, 130, Some(14)));
        // A value that is absent in one is absent in the sum.
        assert_eq!(sum.major_faults, None);
        let both = one.merge(other);
        assert_eq!((both.processes, both.resident_bytes, both.minor_faults), (2, 100, Some(14)));
    }
}
