//! Reads a process with its descendants as of one instant.

use std::collections::{BTreeMap, BTreeSet};

use units::Nanos;

use super::group::Snapshot;
use super::meter::readings;
use super::reading::{ProcessReading, Reader, numbered};

/// A process that ends while the others are read leaves its account to its parent, which may be read before or after
/// that: the account is then in neither, or in both. So a reading counts only if no process ended during it. Servers
/// that fork for each connection need two or three tries at 1,000 connections per second.
const TRIES: usize = 10;

/// The processes of `last` that still exist, and all their descendants.
///
/// # Cost
///
/// One file per process of the host, besides the reading of the family.
pub(super) fn snapshot(reader: &mut Reader, last: &Snapshot) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for _ in 0..TRIES {
        let family = family(reader, &last.processes);
        snapshot = Snapshot::of(readings(reader, family.iter().copied().collect()));
        snapshot.unsettled = unsettled(reader, &family, &snapshot.processes, &last.processes);
        if snapshot.unsettled == Nanos::ZERO {
            break;
        }
    }
    snapshot
}

/// CPU time of the processes that ended since `family` was listed, but at least a nanosecond each.
fn unsettled(
    reader: &mut Reader,
    family: &BTreeSet<u32>,
    read: &BTreeMap<u32, ProcessReading>,
    last: &BTreeMap<u32, ProcessReading>,
) -> Nanos {
    let mut sum = Nanos::ZERO;
    for pid in family {
        let is_there = read
            .get(pid)
            .is_some_and(|seen| reader.parent(*pid).is_ok_and(|(_, began)| began == seen.started));
        if !is_there {
            let used = read.get(pid).or_else(|| last.get(pid)).map_or(Nanos::ZERO, |reading| reading.run);
            sum += used.max(Nanos(1));
        }
    }
    sum
}

fn family(reader: &mut Reader, known: &BTreeMap<u32, ProcessReading>) -> BTreeSet<u32> {
    let mut family = BTreeSet::new();
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in numbered("/proc").unwrap_or_default() {
        let Ok((parent, started)) = reader.parent(pid) else { continue };
        if known.get(&pid).is_some_and(|reading| reading.started == started) {
            family.insert(pid);
        }
        children.entry(parent).or_default().push(pid);
    }
    let mut to_visit: Vec<u32> = family.iter().copied().collect();
    while let Some(pid) = to_visit.pop() {
        for &child in children.get(&pid).into_iter().flatten() {
            if family.insert(child) {
                to_visit.push(child);
            }
        }
    }
    family
}

/// The members of `pids` that are not descendants of another one.
pub(super) fn tops(pids: &[u32], processes: &BTreeMap<u32, ProcessReading>) -> Vec<u32> {
    let is_top = |pid: &u32| {
        let mut parent = processes.get(pid).map(|reading| reading.parent);
        // No chain is longer than there are processes.
        for _ in 0..processes.len() {
            match parent {
                Some(above) if pids.contains(&above) => return false,
                Some(above) => parent = processes.get(&above).map(|reading| reading.parent),
                None => break,
            }
        }
        true
    };
    pids.iter().copied().filter(is_top).collect()
}
