//! Decides which processes are measured, and detects when an id has been reused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use units::Nanos;

use super::control::{self, ControlGroup};
use super::family;
use super::group::{Group, GroupOf, GroupUse, Snapshot};
use super::reading::{Bytes, Detail, Moment, ProcessReading, Reader, command_line, numbered, proportional};
use super::usage::{End, ProcessUse};

/// Which processes to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// These processes and all their descendants, including those that begin and end meanwhile. One that is a
    /// descendant of another belongs to that one's tree.
    Trees(Vec<u32>),
    /// These processes alone.
    Only(Vec<u32>),
    /// The control group of this path, and those below it.
    Cgroup(String),
    /// All with this name, whenever they begin. The kernel keeps the first 15 bytes of a name.
    Comm(String),
    /// All visible processes, whenever they begin, kernel threads included.
    All,
}

/// Adds up what processes use, span by span.
///
/// A span is the time between two calls of [`take`](CpuMeter::take). Readings within it lose no precision: they
/// reduce what is unknown about processes that end within it.
#[derive(Debug)]
pub struct CpuMeter {
    wanted: Wanted,
    reader: Reader,
    /// The directories of a control group; `None` if none was requested, or it has been removed.
    control: Option<ControlGroup>,
    groups: Vec<Group>,
    /// The last reading of each existing process.
    last: Snapshot,
    /// By id and start time, because an id may be reused.
    uses: BTreeMap<(u32, u64), ProcessUse>,
    commands: BTreeMap<(u32, u64), Option<String>>,
    begin: Moment,
    end: Moment,
    readings: u64,
    /// Time since boot just before the last reading, in hundredths of a second.
    looked: Option<u64>,
}

/// What processes used within a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuSpan {
    /// When the readings at its begin were taken, from the first to the last; each process has its own moment.
    pub begin: Moment,
    /// When the readings at its end were taken.
    pub end: Moment,
    /// Ordered by id and start time. Of a tree or a control group: those that exist at the end, and the root.
    pub processes: Vec<ProcessUse>,
    /// What was requested by id or as a control group, in that order; empty for [`Wanted::Comm`] and [`Wanted::All`].
    pub groups: Vec<GroupUse>,
    /// How often each process was read, the begin included.
    pub readings: u64,
}

impl CpuSpan {
    /// Appends the span that began where this one ended.
    pub fn join(&mut self, later: CpuSpan) {
        self.end = later.end;
        // The begin of the later span is the end of this one.
        self.readings += later.readings - 1;
        let key = |process: &ProcessUse| (process.pid, process.started);
        // A member of a tree that has ended since is only in the sum of its group.
        self.processes.retain(|process| {
            process.end != End::Alive || later.processes.binary_search_by_key(&key(process), key).is_ok()
        });
        for (group, later) in self.groups.iter_mut().zip(later.groups) {
            group.join(later);
        }
        for mut process in later.processes {
            match self.processes.binary_search_by_key(&key(&process), key) {
                Ok(known) => self.processes[known].join(process),
                Err(place) => {
                    if process.began {
                        // It used nothing before that.
                        process.usage.from = self.begin;
                    }
                    self.processes.insert(place, process);
                }
            }
        }
    }
}

/// Why nothing can be measured. Messages are one line each.
#[derive(Debug)]
pub enum CpuError {
    NoProcess {
        pid: u32,
    },
    /// The id is that of a thread.
    Thread {
        tid: u32,
        process: u32,
    },
    NoneNamed {
        name: String,
    },
    NoCgroup {
        path: String,
    },
    /// No control group has the name of a unit, or several have it.
    NoUnit {
        name: String,
        found: Vec<String>,
    },
    Unreadable {
        what: String,
        source: io::Error,
    },
}

impl CpuMeter {
    /// Takes the first reading.
    ///
    /// # Errors
    ///
    /// When a given process or control group does not exist or cannot be read, or no process has the name.
    pub fn start(wanted: Wanted, detail: Detail) -> Result<CpuMeter, CpuError> {
        let bytes = if wanted.has_groups() { Bytes::Read } else { Bytes::Skip };
        let mut reader = Reader::new(detail, bytes);
        let looked = uptime();
        let before = clock::now();
        let control = match &wanted {
            Wanted::Cgroup(path) => {
                Some(ControlGroup::open(path).map_err(|source| CpuError::of_cgroup(path, source))?)
            }
            _ => None,
        };
        let first = first(&mut reader, &wanted, control.as_ref())?;
        let begin = Moment { before, after: clock::now() };
        let mut meter = CpuMeter {
            groups: groups(&wanted, &first, &reader),
            wanted,
            reader,
            control,
            last: first,
            uses: BTreeMap::new(),
            commands: BTreeMap::new(),
            begin,
            end: begin,
            readings: 1,
            looked,
        };
        meter.open();
        Ok(meter)
    }

    /// Reads all processes again.
    ///
    /// # Cost
    ///
    /// Some 40 us per process and 20 us more per thread, for trees also 10 us per process of the host: see
    /// [`cost`](Self::cost).
    pub fn read(&mut self) {
        let looked = uptime();
        let before = clock::now();
        let mut now = self.snapshot();
        self.end = Moment { before, after: clock::now() };
        self.readings += 1;
        self.follow(&now.processes);
        if let Wanted::Only(_) = self.wanted {
            // A process that reuses an id is not the requested one.
            let last = &self.last.processes;
            now.processes.retain(|pid, reading| last[pid].started == reading.started);
        }
        // A process that took the name only now, or could not be read before, used its earlier time before the span.
        let since = self.looked;
        let is_young = |reading: &ProcessReading| since.is_some_and(|looked| reading.started >= looked);
        for group in &mut self.groups {
            group.follow(&self.last, &now, is_young);
        }
        if let Wanted::Trees(_) = self.wanted {
            let members: BTreeSet<u32> = self.groups.iter().flat_map(Group::members).collect();
            now.processes.retain(|pid, _| members.contains(pid));
        }
        self.add_new(&now.processes, is_young);
        self.last = now;
        self.looked = looked;
        self.find_commands();
    }

    fn snapshot(&mut self) -> Snapshot {
        let (reader, last) = (&mut self.reader, &self.last);
        match &self.wanted {
            Wanted::Trees(_) => family::snapshot(reader, last),
            // A process that can no longer be read has ended.
            Wanted::Only(_) => Snapshot::of(readings(reader, last.processes.keys().copied().collect())),
            Wanted::Cgroup(_) => {
                let now = self.control.as_ref().and_then(|control| of_control(reader, control).ok());
                if now.is_none() {
                    self.control = None;
                }
                now.unwrap_or_else(|| Snapshot { cgroup: last.cgroup, ..Snapshot::default() })
            }
            // /proc does not disappear; without it all count as ended, which is reported.
            Wanted::All | Wanted::Comm(_) => Snapshot::of(found(reader, &self.wanted).unwrap_or_default()),
        }
    }

    /// Adds what the known processes used.
    fn follow(&mut self, now: &BTreeMap<u32, ProcessReading>) {
        for before in self.last.processes.values() {
            let Some(process) = self.uses.get_mut(&key(before)) else { continue };
            match now.get(&before.pid) {
                Some(reading) if reading.started == before.started => process.add(before, reading),
                // Read to its end, and reaped since.
                _ if process.end == End::Whole => {}
                Some(_) => process.end = End::Reused,
                None => process.end = End::Cut,
            }
        }
    }

    /// Adds those that did not exist at the last reading.
    fn add_new(&mut self, now: &BTreeMap<u32, ProcessReading>, is_young: impl Fn(&ProcessReading) -> bool) {
        for reading in now.values() {
            if self.last.processes.get(&reading.pid).is_some_and(|last| last.started == reading.started) {
                continue;
            }
            let used = if is_young(reading) {
                ProcessUse::of_new(reading, self.begin)
            } else {
                ProcessUse::from(reading)
            };
            self.uses.entry(key(reading)).or_insert(used);
        }
    }

    /// Ends the span at the last reading, and begins the next there.
    pub fn take(&mut self) -> CpuSpan {
        let mut processes: Vec<_> = std::mem::take(&mut self.uses).into_values().collect();
        for process in &mut processes {
            process.command = self.commands.get(&(process.pid, process.started)).cloned().flatten();
        }
        let moments = (self.begin, self.end);
        let groups = self.groups.iter_mut().map(|group| group.take(moments, &processes)).collect();
        let folds = |pid: u32| match &self.wanted {
            Wanted::Trees(roots) => !roots.contains(&pid),
            Wanted::Cgroup(_) => true,
            Wanted::Only(_) | Wanted::Comm(_) | Wanted::All => false,
        };
        processes.retain(|process| process.end == End::Alive || !folds(process.pid));
        let span = CpuSpan { begin: self.begin, end: self.end, processes, groups, readings: self.readings };
        self.begin = self.end;
        self.readings = 1;
        self.open();
        span
    }

    /// Memory of each group in bytes, in the order of [`CpuSpan::groups`], with shared pages divided among the
    /// processes that share them (PSS); `None` if this user may not see it.
    ///
    /// # Cost
    ///
    /// The kernel walks each address space under its lock, some milliseconds per GiB, during which the process
    /// cannot map memory: before and after a measurement, not within.
    pub fn proportional(&self) -> Vec<Option<u64>> {
        let of = |group: &Group| {
            let alive = |pid: &u32| self.last.processes.get(pid).is_some_and(|reading| !reading.has_ended);
            group.members().filter(alive).map(proportional).sum()
        };
        self.groups.iter().map(of).collect()
    }

    /// How long the last reading of all processes took.
    pub fn cost(&self) -> Nanos {
        self.end.width()
    }

    /// When the current span began.
    pub fn begin(&self) -> Moment {
        self.begin
    }

    /// Whether no process is left to measure.
    pub fn is_over(&self) -> bool {
        match self.wanted {
            Wanted::All => false,
            Wanted::Cgroup(_) => self.control.is_none(),
            Wanted::Trees(_) => self.groups.iter().all(Group::is_over),
            Wanted::Only(_) | Wanted::Comm(_) => {
                self.last.processes.values().all(|process| process.has_ended)
            }
        }
    }

    /// The kernel's tick: a running thread may have used up to this much that is not counted yet.
    pub fn tick(&self) -> Nanos {
        self.reader.tick()
    }

    /// The number of CPUs that are online.
    pub fn cpus(&self) -> u64 {
        self.reader.cpus()
    }

    fn open(&mut self) {
        let alive = self.last.processes.values().filter(|reading| !reading.has_ended);
        self.uses = alive.map(|reading| (key(reading), ProcessUse::from(reading))).collect();
        self.find_commands();
    }

    fn find_commands(&mut self) {
        let uses = &self.uses;
        self.commands.retain(|key, _| uses.contains_key(key));
        for &key in uses.keys() {
            self.commands.entry(key).or_insert_with(|| command_line(key.0));
        }
    }
}

impl Wanted {
    /// Whether groups are summed, and memory and storage are read.
    fn has_groups(&self) -> bool {
        matches!(self, Wanted::Trees(_) | Wanted::Only(_) | Wanted::Cgroup(_))
    }

    /// The control group of a systemd unit; a name without a type is that of a service.
    ///
    /// # Errors
    ///
    /// When no control group has its name, or several do.
    pub fn unit(name: &str) -> Result<Wanted, CpuError> {
        let name = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
        let unreadable = |source| CpuError::Unreadable { what: "/proc/self/mountinfo".to_owned(), source };
        match control::unit(&name).map_err(unreadable)? {
            Ok(path) => Ok(Wanted::Cgroup(path)),
            Err(found) => Err(CpuError::NoUnit { name, found }),
        }
    }
}

fn first(reader: &mut Reader, wanted: &Wanted, control: Option<&ControlGroup>) -> Result<Snapshot, CpuError> {
    let unreadable = |source| CpuError::Unreadable { what: "/proc".to_owned(), source };
    match wanted {
        Wanted::Trees(pids) => {
            let roots = Snapshot::of(named(reader, pids)?);
            Ok(family::snapshot(reader, &roots))
        }
        Wanted::Only(pids) => named(reader, pids).map(Snapshot::of),
        Wanted::Cgroup(path) => {
            let control = control.expect("the control group was opened");
            of_control(reader, control).map_err(|source| CpuError::of_cgroup(path, source))
        }
        Wanted::All => found(reader, wanted).map(Snapshot::of).map_err(unreadable),
        Wanted::Comm(name) => match found(reader, wanted).map_err(unreadable)? {
            none if none.is_empty() => Err(CpuError::NoneNamed { name: name.clone() }),
            some => Ok(Snapshot::of(some)),
        },
    }
}

fn of_control(reader: &mut Reader, control: &ControlGroup) -> io::Result<Snapshot> {
    let processes = readings(reader, control.processes()?);
    Ok(Snapshot { cgroup: Some(control.level()?), ..Snapshot::of(processes) })
}

fn groups(wanted: &Wanted, first: &Snapshot, reader: &Reader) -> Vec<Group> {
    let group = |of: GroupOf, name: String| Group::start(of, name, first, (reader.cpus(), reader.tick()));
    let of_pids = |pids: &[u32], make: fn(u32, u64) -> GroupOf| {
        let known = pids.iter().filter_map(|pid| first.processes.get(pid));
        let of = |reading: &ProcessReading| group(make(reading.pid, reading.started), reading.name.clone());
        known.map(of).collect()
    };
    match wanted {
        Wanted::Trees(pids) => {
            let tops = family::tops(pids, &first.processes);
            of_pids(&tops, |pid, started| GroupOf::Tree { pid, started })
        }
        Wanted::Only(pids) => of_pids(pids, |pid, started| GroupOf::Process { pid, started }),
        Wanted::Cgroup(path) => {
            let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
            vec![group(GroupOf::Cgroup { path: path.clone() }, name)]
        }
        Wanted::Comm(_) | Wanted::All => Vec::new(),
    }
}

fn key(reading: &ProcessReading) -> (u32, u64) {
    (reading.pid, reading.started)
}

/// Hundredths of a second since boot, the unit of process start times.
fn uptime() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, hundredths) = text.split_ascii_whitespace().next()?.split_once('.')?;
    seconds.parse::<u64>().ok()?.checked_mul(100)?.checked_add(hundredths.parse().ok()?)
}

fn named(reader: &mut Reader, pids: &[u32]) -> Result<BTreeMap<u32, ProcessReading>, CpuError> {
    let mut first = BTreeMap::new();
    for &pid in pids {
        let process = reader.group(pid).map_err(|source| refused(pid, source))?;
        if process != pid {
            return Err(CpuError::Thread { tid: pid, process });
        }
        let reading = reader.process(pid).map_err(|source| refused(pid, source))?;
        if reading.has_ended {
            return Err(CpuError::NoProcess { pid });
        }
        first.insert(pid, reading);
    }
    Ok(first)
}

fn refused(pid: u32, source: io::Error) -> CpuError {
    match source.kind() {
        // EINVAL: its CPU clock disappears before its directory in /proc does.
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => CpuError::NoProcess { pid },
        _ if source.raw_os_error() == Some(libc::ESRCH) => CpuError::NoProcess { pid },
        _ => CpuError::Unreadable { what: format!("process {pid}"), source },
    }
}

fn found(reader: &mut Reader, wanted: &Wanted) -> io::Result<BTreeMap<u32, ProcessReading>> {
    let mut pids = numbered("/proc")?;
    if let Wanted::Comm(name) = wanted {
        let known = &name.as_bytes()[..name.len().min(MOST_NAME)];
        pids.retain(|&pid| reader.name(pid).is_ok_and(|(name, _)| name.as_bytes() == known));
    }
    Ok(readings(reader, pids))
}

/// `TASK_COMM_LEN`, less the zero at its end.
const MOST_NAME: usize = 15;

pub(super) fn readings(reader: &mut Reader, pids: Vec<u32>) -> BTreeMap<u32, ProcessReading> {
    pids.into_iter().filter_map(|pid| Some((pid, reader.process(pid).ok()?))).collect()
}

impl CpuError {
    fn of_cgroup(path: &str, source: io::Error) -> CpuError {
        match source.kind() {
            io::ErrorKind::NotFound => CpuError::NoCgroup { path: path.to_owned() },
            _ => CpuError::Unreadable { what: format!("control group {path}"), source },
        }
    }
}

impl fmt::Display for CpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuError::NoProcess { pid } => {
                write!(f, "no process has the id {pid}; `pgrep NAME` finds the ids of a name")
            }
            CpuError::Thread { tid, process } => {
                write!(
                    f,
                    "{tid} is a thread of process {process}; name that one, and --threads shows each thread"
                )
            }
            CpuError::NoneNamed { name } => {
                write!(
                    f,
                    "no process is named `{name}`; a name is that of /proc/PID/comm, without path or arguments"
                )
            }
            CpuError::NoCgroup { path } => {
                write!(
                    f,
                    "no control group `{path}`; /proc/PID/cgroup shows the path of a process's, for example \
                     /system.slice/nginx.service"
                )
            }
            CpuError::NoUnit { name, found } if found.is_empty() => {
                write!(
                    f,
                    "no control group is named `{name}`; is the unit running? `systemctl status {name}` shows it"
                )
            }
            CpuError::NoUnit { name, found } => {
                write!(f, "several control groups are named `{name}`; write one of them with --cgroup: ")?;
                write!(f, "{}", found.join(", "))
            }
            CpuError::Unreadable { what, source } => {
                write!(
                    f,
                    "cannot read {what}: {source}; /proc must be there, and show other users' processes"
                )
            }
        }
    }
}

impl std::error::Error for CpuError {}
