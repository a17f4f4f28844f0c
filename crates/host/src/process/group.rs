//! What processes used together: a process with its descendants, a single process, or a control group.
//!
//! A process that ends and is waited for leaves its account to its parent: CPU time in hundredths of a second, page
//! faults and bytes exactly. So the sum over a tree, children that were waited for included, loses nothing when a
//! member ends, and also has the children that began and ended between two readings. What a member used whose parent
//! does not wait for it (`SIGCHLD` ignored, or the parent ended first) is kept as of the last reading.
//!
//! Pure: readings in, usage out. Sources: `wait_task_zombie` in the kernel's kernel/exit.c; proc_pid_stat(5).

use std::collections::{BTreeMap, BTreeSet};

use units::Nanos;

use super::reading::{Moment, ProcessReading};
use super::usage::{ProcessUse, Switches, Ticks, Usage};

/// Page faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Those that needed no storage.
    pub minor: u64,
    /// Those that waited for storage.
    pub major: u64,
}

/// Bytes that storage delivered, and bytes for storage. What the page cache served is in neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Storage {
    /// Bytes read.
    pub read: u64,
    /// Bytes written, including those that are still in the page cache.
    pub written: u64,
}

/// Memory at one instant, in bytes, summed over processes. Pages that processes share count in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// In memory (RSS).
    pub resident: u64,
    /// In swap; `None` if one of the processes does not show it.
    pub swapped: Option<u64>,
    /// Size of the address spaces.
    pub virtual_size: u64,
}

impl Memory {
    /// The memory of a process that has ended.
    pub(super) const NONE: Memory = Memory { resident: 0, swapped: Some(0), virtual_size: 0 };

    fn plus(self, more: Memory) -> Memory {
        Memory {
            resident: self.resident + more.resident,
            swapped: self.swapped.zip(more.swapped).map(|(sum, more)| sum + more),
            virtual_size: self.virtual_size + more.virtual_size,
        }
    }
}

/// What a group consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupOf {
    /// A process and its descendants.
    Tree {
        /// The process.
        pid: u32,
        /// Its start, in hundredths of a second since boot.
        started: u64,
    },
    /// One process without its children.
    Process {
        /// The process.
        pid: u32,
        /// Its start, in hundredths of a second since boot.
        started: u64,
    },
    /// A control group with those below it.
    Cgroup {
        /// Its path, as it was specified.
        path: String,
    },
}

/// What a group used within a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupUse {
    /// What it consists of.
    pub of: GroupOf,
    /// The name of the process, or of the control group.
    pub name: String,
    /// Waits, slices and switches are sums over the processes that were seen, while they were seen.
    pub usage: Usage,
    /// How many processes existed at the end.
    pub processes: u64,
    /// How many of those seen began within the span.
    pub began: u64,
    /// How many of those seen ended within it.
    pub ended: u64,
    /// How many of those left their account to no process: what they used after the last reading is missing.
    pub cut: u64,
    /// A process that ignores SIGCHLD: what its children used after the last reading before they ended is missing.
    pub discarding: Option<String>,
    /// Whether waits and switches cover all processes for the whole span; otherwise they are lower bounds.
    pub counts_all: bool,
    /// At the begin of the span.
    pub memory_before: Memory,
    /// At its end.
    pub memory: Memory,
    /// Page faults; `None` if they are not counted.
    pub faults: Option<Faults>,
    /// Bytes read and written; `None` if this user may not see them.
    pub storage: Option<Storage>,
    doubt: Doubt,
}

/// The parts of the error of the CPU time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Doubt {
    /// Used, but not counted yet: at the begin or at the end, whichever is more.
    hidden: Nanos,
    /// Members whose account of ended children changed. /proc truncates that to hundredths of a second.
    heirs: BTreeSet<(u32, u64)>,
}

impl Doubt {
    /// Two counts, truncated at the begin and at the end.
    fn error(&self) -> Nanos {
        self.hidden + Nanos(2 * HUNDREDTH.0 * self.heirs.len() as u64)
    }
}

/// The unit of CPU time in /proc, `USER_HZ`.
const HUNDREDTH: Nanos = Nanos::from_millis(10);

impl GroupUse {
    /// Adds what the same group used in the span that began where this one ended.
    pub(super) fn join(&mut self, later: GroupUse) {
        self.usage.join(&later.usage);
        self.doubt.hidden = self.doubt.hidden.max(later.doubt.hidden);
        self.doubt.heirs.extend(later.doubt.heirs);
        self.usage.error = self.doubt.error();
        self.processes = later.processes;
        self.began += later.began;
        self.ended += later.ended;
        self.cut += later.cut;
        self.discarding = self.discarding.take().or(later.discarding);
        self.counts_all &= later.counts_all;
        self.memory = later.memory;
        self.faults = self
            .faults
            .zip(later.faults)
            .map(|(sum, more)| Faults { minor: sum.minor + more.minor, major: sum.major + more.major });
        self.storage = self
            .storage
            .zip(later.storage)
            .map(|(sum, more)| Storage { read: sum.read + more.read, written: sum.written + more.written });
    }
}

/// All that a group has ever used, as far as it is known: differences of these are usage. Signed, because what a
/// process used before it joined is subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    pub run_ns: i128,
    pub user: i128,
    pub system: i128,
    pub faults: Option<(i128, i128)>,
    pub storage: Option<(i128, i128)>,
}

impl Level {
    pub(super) const ZERO: Level =
        Level { run_ns: 0, user: 0, system: 0, faults: Some((0, 0)), storage: Some((0, 0)) };

    /// `Extent::Alone` leaves out the children that ended, except for their bytes, which the kernel adds to those of
    /// the process itself.
    fn of(reading: &ProcessReading, extent: Extent) -> Level {
        let reaped = match extent {
            Extent::Tree => reading.reaped,
            Extent::Alone => super::text::Reaped::default(),
        };
        let (ticks, faults) = (reading.ticks, reading.faults);
        let of_reaped = u128::from(reaped.ticks.user + reaped.ticks.system) * u128::from(HUNDREDTH.0);
        let sum = |own: u64, reaped: u64| i128::from(own) + i128::from(reaped);
        Level {
            run_ns: i128::from(reading.run.0) + of_reaped.cast_signed(),
            user: sum(ticks.user, reaped.ticks.user),
            system: sum(ticks.system, reaped.ticks.system),
            faults: Some((sum(faults.minor, reaped.faults.minor), sum(faults.major, reaped.faults.major))),
            storage: reading.storage.map(|io| (i128::from(io.read), i128::from(io.written))),
        }
    }

    fn plus(self, more: Level, sign: i128) -> Level {
        let pair = |a: Option<(i128, i128)>, b: Option<(i128, i128)>| {
            a.zip(b).map(|(a, b)| (a.0 + sign * b.0, a.1 + sign * b.1))
        };
        Level {
            run_ns: self.run_ns + sign * more.run_ns,
            user: self.user + sign * more.user,
            system: self.system + sign * more.system,
            faults: pair(self.faults, more.faults),
            storage: pair(self.storage, more.storage),
        }
    }
}

/// Whether a process means its descendants, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Tree,
    Alone,
}

/// The readings of all measured processes at one instant.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    pub processes: BTreeMap<u32, ProcessReading>,
    /// CPU time of processes that ended while the others were read: it may be in no account, or in two.
    pub unsettled: Nanos,
    /// What a control group reports about itself.
    pub cgroup: Option<Level>,
}

impl Snapshot {
    pub(super) fn of(processes: BTreeMap<u32, ProcessReading>) -> Snapshot {
        Snapshot { processes, ..Snapshot::default() }
    }
}

/// A group in progress.
#[derive(Debug)]
pub(super) struct Group {
    of: GroupOf,
    extent: Extent,
    name: String,
    cpus: u64,
    tick: Nanos,
    /// By id, with the start time of each; including those that have ended and were not waited for.
    members: BTreeMap<u32, u64>,
    /// All processes that were members within the span.
    seen: BTreeSet<(u32, u64)>,
    begin: Level,
    now: Level,
    /// What ended members used whose account no process received, minus what members used before they joined.
    correction: Level,
    alive: u64,
    alive_at_begin: u64,
    began: u64,
    discarding: Option<String>,
    cut: u64,
    memory: Memory,
    memory_at_begin: Memory,
    hidden: Nanos,
    hidden_at_begin: Nanos,
    /// Minor faults of the ended children of each member.
    reaped: BTreeMap<(u32, u64), u64>,
    reaped_at_begin: BTreeMap<(u32, u64), u64>,
}

impl Group {
    /// Begins with the first snapshot.
    pub(super) fn start(of: GroupOf, name: String, first: &Snapshot, (cpus, tick): (u64, Nanos)) -> Group {
        let (extent, members) = match of {
            GroupOf::Tree { pid, started } => (Extent::Tree, BTreeMap::from([(pid, started)])),
            GroupOf::Process { pid, started } => (Extent::Alone, BTreeMap::from([(pid, started)])),
            GroupOf::Cgroup { .. } => (Extent::Alone, BTreeMap::new()),
        };
        let mut group = Group {
            of,
            extent,
            name,
            cpus,
            tick,
            members,
            seen: BTreeSet::new(),
            begin: Level::ZERO,
            now: Level::ZERO,
            correction: Level::ZERO,
            alive: 0,
            alive_at_begin: 0,
            began: 0,
            cut: 0,
            discarding: None,
            memory: Memory::default(),
            memory_at_begin: Memory::default(),
            hidden: Nanos::ZERO,
            hidden_at_begin: Nanos::ZERO,
            reaped: BTreeMap::new(),
            reaped_at_begin: BTreeMap::new(),
        };
        let others = group.find_new(first);
        group.members.extend(others.into_iter().map(|reading| (reading.pid, reading.started)));
        group.sum(first);
        group.reopen();
        group
    }

    /// The processes that belong to it, including those that have ended and were not waited for.
    pub(super) fn members(&self) -> impl Iterator<Item = u32> {
        self.members.keys().copied()
    }

    /// Processes the next snapshot. `is_young` returns whether a process began after the previous one.
    pub(super) fn follow(
        &mut self,
        before: &Snapshot,
        now: &Snapshot,
        is_young: impl Fn(&ProcessReading) -> bool,
    ) {
        let is_same = |pid: &u32, started: &u64| {
            now.processes.get(pid).is_some_and(|reading| reading.started == *started)
        };
        let gone: Vec<&ProcessReading> = self
            .members
            .iter()
            .filter(|(pid, started)| !is_same(pid, started))
            .filter_map(|(pid, _)| before.processes.get(pid))
            .collect();
        self.members.retain(|pid, started| is_same(pid, started));
        if now.cgroup.is_none() {
            self.bury(gone, before, now);
        }
        for reading in self.find_new(now) {
            self.members.insert(reading.pid, reading.started);
            self.seen.insert((reading.pid, reading.started));
            if is_young(reading) {
                self.began += 1;
            } else {
                // It was not a member before.
                self.correction = self.correction.plus(Level::of(reading, self.extent), -1);
                self.alive_at_begin += 1;
            }
        }
        self.sum(now);
    }

    /// Keeps what ended members used, unless a member received their accounts. Minor faults show that: each process
    /// has some, and the account of its parent grows by exactly as many.
    fn bury(&mut self, mut gone: Vec<&ProcessReading>, before: &Snapshot, now: &Snapshot) {
        let faults = |reading: &ProcessReading| reading.faults.minor + reading.reaped.faults.minor;
        gone.sort_by_key(|reading| std::cmp::Reverse(faults(reading)));
        let mut received: BTreeMap<u32, u64> = BTreeMap::new();
        for reading in gone {
            let heir = self.heir(reading, before).and_then(|pid| now.processes.get(&pid));
            let is_received = self.extent == Extent::Tree
                && heir.is_some_and(|heir| {
                    let earlier =
                        before.processes.get(&heir.pid).filter(|earlier| earlier.started == heir.started);
                    let earlier = earlier.map_or(0, |earlier| earlier.reaped.faults.minor);
                    let left = received
                        .entry(heir.pid)
                        .or_insert_with(|| heir.reaped.faults.minor.saturating_sub(earlier));
                    let enough = *left >= faults(reading);
                    *left -= if enough { faults(reading) } else { 0 };
                    enough
                });
            if !is_received {
                self.correction = self.correction.plus(Level::of(reading, self.extent), 1);
                self.cut += u64::from(!reading.has_ended);
            }
        }
    }

    /// The closest ancestor that is still a member.
    fn heir(&self, reading: &ProcessReading, before: &Snapshot) -> Option<u32> {
        let mut parent = reading.parent;
        // No chain is longer than there are processes.
        for _ in 0..=before.processes.len() {
            if self.members.contains_key(&parent) {
                return Some(parent);
            }
            parent = before.processes.get(&parent)?.parent;
        }
        None
    }

    /// The processes that joined: descendants of members, or for a control group all that are not members yet.
    fn find_new<'a>(&self, now: &'a Snapshot) -> Vec<&'a ProcessReading> {
        let others = || now.processes.values().filter(|reading| !self.members.contains_key(&reading.pid));
        if now.cgroup.is_some() {
            return others().collect();
        }
        let mut found: Vec<&ProcessReading> = Vec::new();
        if self.extent == Extent::Tree {
            let mut known: BTreeSet<u32> = self.members().collect();
            loop {
                let more: Vec<_> = others()
                    .filter(|reading| known.contains(&reading.parent) && !known.contains(&reading.pid))
                    .collect();
                if more.is_empty() {
                    break;
                }
                known.extend(more.iter().map(|reading| reading.pid));
                found.extend(more);
            }
        }
        found
    }

    fn sum(&mut self, now: &Snapshot) {
        let readings = || self.members.keys().filter_map(|pid| now.processes.get(pid));
        let levels = readings().map(|reading| Level::of(reading, self.extent));
        self.now = now.cgroup.unwrap_or_else(|| levels.fold(Level::ZERO, |sum, one| sum.plus(one, 1)));
        self.alive = readings().filter(|reading| !reading.has_ended).count() as u64;
        if now.cgroup.is_none() && self.extent == Extent::Tree {
            self.discarding =
                readings().find(|reading| reading.discards_children).map(|reading| reading.name.clone());
        }
        self.memory = readings().fold(Memory::NONE, |sum, reading| sum.plus(reading.memory));
        // No more threads can run than there are CPUs.
        let running: u64 = readings().map(|reading| reading.running).sum();
        let late: Nanos = readings().map(|reading| reading.late).fold(Nanos::ZERO, |sum, one| sum + one);
        self.hidden = Nanos(running.min(self.cpus) * self.tick.0) + late + now.unsettled;
        self.reaped = match self.extent {
            Extent::Tree => readings()
                .map(|reading| ((reading.pid, reading.started), reading.reaped.faults.minor))
                .collect(),
            Extent::Alone => BTreeMap::new(),
        };
    }

    /// Ends the span at the last snapshot, and begins the next there. `processes` are all those seen in it.
    pub(super) fn take(&mut self, (from, to): (Moment, Moment), processes: &[ProcessUse]) -> GroupUse {
        let is_seen = |process: &&ProcessUse| self.seen.contains(&(process.pid, process.started));
        let seen: Vec<&ProcessUse> = processes.iter().filter(is_seen).collect();
        let level = self.now.plus(self.correction, 1).plus(self.begin, -1);
        let whole = |amount: i128| u64::try_from(amount.max(0)).unwrap_or(u64::MAX);
        let heirs = self
            .reaped
            .iter()
            .filter(|(key, faults)| **faults != self.reaped_at_begin.get(key).copied().unwrap_or(0));
        let doubt = Doubt {
            hidden: self.hidden.max(self.hidden_at_begin),
            heirs: heirs.map(|(key, _)| *key).collect(),
        };
        let usages = || seen.iter().map(|process| &process.usage);
        let switches = usages().try_fold(Switches::default(), |sum, usage| Some(sum.plus(usage.switches?)));
        let ended = (self.alive_at_begin + self.began).saturating_sub(self.alive);
        let counts_all =
            ended == 0 && doubt.heirs.is_empty() && seen.iter().all(|process| process.counts_all());
        let used = GroupUse {
            of: self.of.clone(),
            name: self.name.clone(),
            usage: Usage {
                from,
                to,
                run: Nanos(whole(level.run_ns)),
                error: doubt.error(),
                wait: Nanos(usages().map(|usage| usage.wait.0).sum()),
                slices: usages().map(|usage| usage.slices).sum(),
                switches,
                ticks: Some(Ticks { user: whole(level.user), system: whole(level.system) }),
            },
            processes: self.alive,
            began: self.began,
            ended,
            cut: self.cut,
            discarding: self.discarding.clone(),
            counts_all,
            memory_before: self.memory_at_begin,
            memory: self.memory,
            faults: level.faults.map(|(minor, major)| Faults { minor: whole(minor), major: whole(major) }),
            storage: level
                .storage
                .map(|(read, written)| Storage { read: whole(read), written: whole(written) }),
            doubt,
        };
        self.reopen();
        used
    }

    fn reopen(&mut self) {
        self.seen = self.members.iter().map(|(pid, started)| (*pid, *started)).collect();
        self.begin = self.now;
        self.correction = Level::ZERO;
        (self.alive_at_begin, self.began, self.cut) = (self.alive, 0, 0);
        self.memory_at_begin = self.memory;
        self.hidden_at_begin = self.hidden;
        self.reaped_at_begin.clone_from(&self.reaped);
    }

    /// Whether all members have ended.
    pub(super) fn is_over(&self) -> bool {
        self.alive == 0
    }
}

#[cfg(test)]
mod tests;
