//! Which processes are measured, and when an id has come to mean another process.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use units::Nanos;

use super::reading::{Detail, Moment, ProcessReading, Reader, command_line, numbered};
use super::usage::{End, ProcessUse};

/// Which processes to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// These ids, as long as they are the processes that existed at the start.
    Pids(Vec<u32>),
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
    /// The last reading of each existing process.
    last: BTreeMap<u32, ProcessReading>,
    /// By id and start time: an id may come to mean another process.
    uses: BTreeMap<(u32, u64), ProcessUse>,
    commands: BTreeMap<(u32, u64), Option<String>>,
    begin: Moment,
    end: Moment,
    readings: u64,
    /// Hundredths of a second since boot, just before the last reading.
    looked: Option<u64>,
}

/// What processes used within a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuSpan {
    /// When the readings at its begin were taken, from the first to the last; each process has its own moment.
    pub begin: Moment,
    /// When the readings at its end were taken.
    pub end: Moment,
    /// Ordered by id and start time.
    pub processes: Vec<ProcessUse>,
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
    /// When a given process does not exist or cannot be read, or none has the name.
    pub fn start(wanted: Wanted, detail: Detail) -> Result<CpuMeter, CpuError> {
        let mut reader = Reader::new(detail);
        let looked = uptime();
        let before = clock::now();
        let first = match &wanted {
            Wanted::Pids(pids) => named(&mut reader, pids)?,
            Wanted::All | Wanted::Comm(_) => found(&mut reader, &wanted)
                .map_err(|source| CpuError::Unreadable { what: "/proc".to_owned(), source })?,
        };
        if let (Wanted::Comm(name), true) = (&wanted, first.is_empty()) {
            return Err(CpuError::NoneNamed { name: name.clone() });
        }
        let begin = Moment { before, after: clock::now() };
        let mut meter = CpuMeter {
            wanted,
            reader,
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

    /// Reads all of them again.
    ///
    /// # Cost
    ///
    /// Some 30 us per process and 20 us more per thread: see [`cost`](Self::cost).
    pub fn read(&mut self) {
        let looked = uptime();
        let before = clock::now();
        let mut now = match &self.wanted {
            // A process that cannot be read any more has ended.
            Wanted::Pids(_) => readings(&mut self.reader, self.last.keys().copied().collect()),
            // /proc does not disappear; without it all count as ended, which is reported.
            Wanted::All | Wanted::Comm(_) => found(&mut self.reader, &self.wanted).unwrap_or_default(),
        };
        self.end = Moment { before, after: clock::now() };
        self.readings += 1;
        self.follow(&now);
        match self.wanted {
            // A process that reuses an id is not the one that was asked for.
            Wanted::Pids(_) => now.retain(|pid, reading| self.last[pid].started == reading.started),
            Wanted::All | Wanted::Comm(_) => self.add_new(&now),
        }
        self.last = now;
        self.looked = looked;
        self.find_commands();
    }

    /// Adds what the known processes used.
    fn follow(&mut self, now: &BTreeMap<u32, ProcessReading>) {
        for before in self.last.values() {
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
    fn add_new(&mut self, now: &BTreeMap<u32, ProcessReading>) {
        for reading in now.values() {
            if self.last.get(&reading.pid).is_some_and(|last| last.started == reading.started) {
                continue;
            }
            // A process that took the name only now, or could not be read before, used its time earlier.
            let is_young = self.looked.is_some_and(|looked| reading.started >= looked);
            let used =
                if is_young { ProcessUse::of_new(reading, self.begin) } else { ProcessUse::from(reading) };
            self.uses.entry(key(reading)).or_insert(used);
        }
    }

    /// Ends the span at the last reading, and begins the next there.
    pub fn take(&mut self) -> CpuSpan {
        let mut processes: Vec<_> = std::mem::take(&mut self.uses).into_values().collect();
        for process in &mut processes {
            process.command = self.commands.get(&(process.pid, process.started)).cloned().flatten();
        }
        let span = CpuSpan { begin: self.begin, end: self.end, processes, readings: self.readings };
        self.begin = self.end;
        self.readings = 1;
        self.open();
        span
    }

    /// How long the last reading of all of them took.
    pub fn cost(&self) -> Nanos {
        self.end.width()
    }

    /// When the current span began.
    pub fn begin(&self) -> Moment {
        self.begin
    }

    /// Whether no process is left to measure.
    pub fn is_over(&self) -> bool {
        self.wanted != Wanted::All && self.last.values().all(|process| process.has_ended)
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
        let alive = self.last.values().filter(|reading| !reading.has_ended);
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
        // EINVAL: its CPU clock is gone before its folder in /proc is.
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

fn readings(reader: &mut Reader, pids: Vec<u32>) -> BTreeMap<u32, ProcessReading> {
    pids.into_iter().filter_map(|pid| Some((pid, reader.process(pid).ok()?))).collect()
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
