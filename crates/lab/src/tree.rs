//! All processes below this one: those that a trial started, whatever they did to their parents, groups and sessions.
//!
//! As a subreaper, this process becomes the parent of every orphan below it, so nothing escapes by a double fork.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// The processes below this one that have not been waited for, except `spared` and what is below it.
///
/// # Cost
///
/// Two files per process.
pub(crate) fn below_this_process(spared: Option<u32>) -> BTreeSet<u32> {
    below_except(std::process::id(), spared)
}

/// The processes below `pid`, without those that outlived their parents.
///
/// # Cost
///
/// Two files per process.
pub(crate) fn below(pid: u32) -> BTreeSet<u32> {
    below_except(pid, None)
}

fn below_except(pid: u32, spared: Option<u32>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut to_visit = vec![pid];
    while let Some(pid) = to_visit.pop() {
        for child in children(pid) {
            if Some(child) != spared && found.len() < MOST_PROCESSES && found.insert(child) {
                to_visit.push(child);
            }
        }
    }
    found
}

/// A tree of more processes than this is not followed further: the limit of a list that a trial makes long.
const MOST_PROCESSES: usize = 100_000;

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let texts = threads.filter_map(Result::ok).filter_map(of_thread);
    texts
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Memory of processes at one moment, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TreeMemory {
    /// The sum of what each has in memory; pages that two of them share count twice.
    pub(crate) resident: u64,
    /// The most that one of them ever had in memory.
    pub(crate) highest: u64,
}

impl TreeMemory {
    /// The larger of each.
    pub(crate) fn or(self, other: TreeMemory) -> TreeMemory {
        TreeMemory { resident: self.resident.max(other.resident), highest: self.highest.max(other.highest) }
    }
}

/// The memory of these processes; one that has ended has none.
pub(crate) fn memory(pids: &BTreeSet<u32>) -> TreeMemory {
    let mut memory = TreeMemory::default();
    for status in pids.iter().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/status")).ok()) {
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            kib.unwrap_or(0).saturating_mul(1024)
        };
        memory.resident = memory.resident.saturating_add(bytes("VmRSS:"));
        memory.highest = memory.highest.max(bytes("VmHWM:"));
    }
    memory
}

/// Sends a signal to these processes.
pub(crate) fn signal(pids: &BTreeSet<u32>, signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        let _ = kill_process(pid, signal);
    }
}

/// Waits for the orphans that have ended, so that their CPU time is counted and their ids are free.
pub(crate) fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
