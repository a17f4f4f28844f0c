//! One process at one instant.
#![expect(unsafe_code, reason = "the CPU clock of another process has no safe wrapper")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;

use units::Nanos;

use super::group::{Faults, Memory, Storage};
use super::text::{self, Reaped, SchedStat, Stat, Status};
use super::usage::{Switches, Ticks};

/// When something was read: the clock just before and just after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// Just before.
    pub before: Nanos,
    /// Just after.
    pub after: Nanos,
}

impl Moment {
    /// The best single value for the instant.
    pub fn middle(self) -> Nanos {
        Nanos(self.before.0 + self.width().0 / 2)
    }

    /// The uncertainty of the instant: it is anywhere between `before` and `after`.
    pub fn width(self) -> Nanos {
        self.after.saturating_sub(self.before)
    }
}

/// How much to read about each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Totals per process.
    Processes,
    /// Also user time, system time and name of each thread: one more file per thread.
    Threads,
}

/// What the kernel reports about a process at one instant. All counts are since the process began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessReading {
    pub pid: u32,
    pub started: u64,
    pub parent: u32,
    pub name: String,
    pub uid: u32,
    /// When [`run`](Self::run) was read.
    pub at: Moment,
    /// CPU time of all threads, including those that have ended.
    pub run: Nanos,
    /// It had used at most this much more: for a thread on a CPU, the kernel's account is as of its last tick.
    pub hidden: Nanos,
    /// How many of its threads were running or runnable; each may hide a tick.
    pub running: u64,
    /// The part of `hidden` that is not ticks: what it used while its threads were read.
    pub late: Nanos,
    /// All threads have ended; the parent has not reaped it yet.
    pub has_ended: bool,
    pub ticks: Ticks,
    pub faults: Faults,
    /// What its children used that have ended and were waited for.
    pub reaped: Reaped,
    /// It waits for no child, so what these used is counted nowhere.
    pub discards_children: bool,
    pub memory: Memory,
    /// `None` if this user may not see it, or it is not needed.
    pub storage: Option<Storage>,
    pub threads: BTreeMap<u32, ThreadReading>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ThreadReading {
    pub at: Moment,
    pub run: Nanos,
    pub hidden: Nanos,
    pub wait: Nanos,
    pub slices: u64,
    pub switches: Option<Switches>,
    /// With [`Detail::Threads`].
    pub named: Option<Named>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub name: String,
    pub started: u64,
    pub ticks: Ticks,
}

/// Whether bytes of storage are read: one more file per process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    Read,
    Skip,
}

/// Reads processes into one buffer.
#[derive(Debug)]
pub(super) struct Reader {
    detail: Detail,
    bytes: Bytes,
    tick: Nanos,
    cpus: u64,
    buffer: Vec<u8>,
}

impl Reader {
    pub(super) fn new(detail: Detail, bytes: Bytes) -> Reader {
        Reader {
            detail,
            bytes,
            tick: clock::tick(),
            cpus: cpus_online().unwrap_or(1),
            buffer: Vec::with_capacity(4_096),
        }
    }

    pub(super) fn tick(&self) -> Nanos {
        self.tick
    }

    pub(super) fn cpus(&self) -> u64 {
        self.cpus
    }

    /// The name of a process, and whether it is a kernel thread.
    pub(super) fn name(&mut self, pid: u32) -> io::Result<(String, bool)> {
        let text = self.read(&format!("/proc/{pid}/stat"))?;
        let stat = text::stat(&text).ok_or_else(not_of_form)?;
        Ok((stat.name.to_owned(), stat.kernel_thread))
    }

    /// The parent of a process and the process's own start time, by which a reused id is recognized.
    pub(super) fn parent(&mut self, pid: u32) -> io::Result<(u32, u64)> {
        let text = self.read(&format!("/proc/{pid}/stat"))?;
        text::stat(&text).map(|stat| (stat.parent, stat.started)).ok_or_else(not_of_form)
    }

    /// Reads one process.
    ///
    /// # Errors
    ///
    /// When it does not exist or is not visible.
    ///
    /// # Cost
    ///
    /// Three system calls of about eight us, one more with [`Bytes::Read`], and 20 us per thread: /proc produces each
    /// text when it is read.
    pub(super) fn process(&mut self, pid: u32) -> io::Result<ProcessReading> {
        let stat_text = self.read(&format!("/proc/{pid}/stat"))?;
        let stat = text::stat(&stat_text).ok_or_else(not_of_form)?;
        let before = clock::now();
        let run = process_clock(pid)?;
        let at = Moment { before, after: clock::now() };
        let mut process = ProcessReading {
            discards_children: false,
            pid,
            started: stat.started,
            parent: stat.parent,
            name: stat.name.to_owned(),
            uid: 0,
            at,
            run,
            hidden: Nanos::ZERO,
            running: 0,
            late: Nanos::ZERO,
            has_ended: false,
            ticks: stat.ticks,
            faults: stat.faults,
            reaped: stat.reaped,
            memory: Memory { virtual_size: stat.virtual_size, ..Memory::NONE },
            storage: None,
            threads: BTreeMap::new(),
        };
        if self.bytes == Bytes::Read {
            process.storage =
                self.read(&format!("/proc/{pid}/io")).ok().and_then(|text| text::storage(&text));
        }
        self.threads(&mut process)?;
        // A thread that ran when the clock was read and is now found asleep has left its CPU since, which brought its
        // account up to date: the clock shows that now.
        process.late = process_clock(pid)?.saturating_sub(run);
        process.hidden = Nanos(process.running.min(self.cpus) * self.tick.0) + process.late;
        Ok(process)
    }

    /// Reads its threads.
    fn threads(&mut self, process: &mut ProcessReading) -> io::Result<()> {
        let mut alive = false;
        for tid in numbered(&format!("/proc/{}/task", process.pid))? {
            // Threads end at any moment; what such a thread used is in the clock of the process.
            let Ok((status, thread)) = self.thread(process.pid, tid) else { continue };
            if tid == process.pid {
                process.uid = status.uid;
                process.discards_children = status.discards_children;
                if let Some(resident) = status.resident {
                    (process.memory.resident, process.memory.swapped) = (resident, status.swapped);
                }
            }
            process.running += u64::from(status.state == 'R');
            alive |= !matches!(status.state, 'Z' | 'X' | 'x');
            process.threads.insert(tid, thread);
        }
        process.has_ended = !alive;
        Ok(())
    }

    fn thread(&mut self, pid: u32, tid: u32) -> io::Result<(Status, ThreadReading)> {
        let folder = format!("/proc/{pid}/task/{tid}");
        let named = match self.detail {
            Detail::Processes => None,
            Detail::Threads => Some(self.named(&folder)?),
        };
        let looked = clock::now();
        let status = text::status(&self.read(&format!("{folder}/status"))?).ok_or_else(not_of_form)?;
        let before = clock::now();
        let account = self.read(&format!("{folder}/schedstat"))?;
        let at = Moment { before, after: clock::now() };
        let SchedStat { run, wait, slices } = text::sched_stat(&account).ok_or_else(not_of_form)?;
        // The state is read first: a thread that was asleep then can only have run since.
        let unseen = if status.state == 'R' { self.tick } else { Nanos::ZERO };
        let hidden = unseen + (at.after - looked);
        Ok((status, ThreadReading { at, run, hidden, wait, slices, switches: status.switches, named }))
    }

    fn named(&mut self, folder: &str) -> io::Result<Named> {
        let text = self.read(&format!("{folder}/stat"))?;
        let Stat { name, started, ticks, .. } = text::stat(&text).ok_or_else(not_of_form)?;
        Ok(Named { name: name.to_owned(), started, ticks })
    }

    /// The kernel writes at most one page into each of these files.
    fn read(&mut self, path: &str) -> io::Result<String> {
        self.buffer.clear();
        File::open(path)?.take(MOST_TEXT).read_to_end(&mut self.buffer)?;
        Ok(String::from_utf8_lossy(&self.buffer).into_owned())
    }

    /// The id of the process that a thread belongs to.
    pub(super) fn group(&mut self, tid: u32) -> io::Result<u32> {
        let text = self.read(&format!("/proc/{tid}/status"))?;
        text::status(&text).map(|status| status.group).ok_or_else(not_of_form)
    }
}

const MOST_TEXT: u64 = 64 * 1024;

/// The numeric names in a folder of /proc.
pub(super) fn numbered(folder: &str) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(folder)?;
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(ids.collect())
}

/// The number of CPUs of this host that are online; `None` if the kernel does not report it.
pub fn cpus_online() -> Option<u64> {
    text::cpu_count(&fs::read_to_string("/sys/devices/system/cpu/online").ok()?)
}

/// Whether a user-space process has this id now.
pub fn is_process(pid: u32) -> bool {
    let mut reader = Reader::new(Detail::Processes, Bytes::Skip);
    reader.name(pid).is_ok_and(|(_, kernel_thread)| !kernel_thread)
}

/// Memory of a process in bytes, each page divided by the number of processes that share it (PSS); `None` if this
/// user may not see it.
///
/// # Cost
///
/// The kernel walks the whole address space under the process's own lock, some milliseconds per GiB: not during a
/// measurement.
pub(super) fn proportional(pid: u32) -> Option<u64> {
    text::proportional(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

/// The command line of a process; `None` if it has none, or has ended.
pub(super) fn command_line(pid: u32) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/{pid}/cmdline")).ok()?.take(MOST_COMMAND).read_to_end(&mut bytes).ok()?;
    text::command_line(&bytes)
}

/// As much of a command line as a table can use.
const MOST_COMMAND: u64 = 512;

/// The scheduler's account of all threads of a process, ended ones included.
///
/// For another process than our own it is up to date to the last tick or switch of each thread: see the kernel's
/// `posix-cpu-timers.c`.
///
/// # Errors
///
/// When the process has ended.
pub fn process_clock(pid: u32) -> io::Result<Nanos> {
    let pid = i32::try_from(pid).map_err(|_| not_of_form())?;
    // Computed as clock_getcpuclockid(3) does, without the check that costs another call.
    let id: libc::clockid_t = (!pid << 3) | CPUCLOCK_SCHED;
    // SAFETY: all-zero is a valid timespec.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    #[expect(
        clippy::disallowed_methods,
        reason = "this is not a time but an account: the CPU use of a process"
    )]
    // SAFETY: `time` outlives the call; an id of no process is refused by the kernel.
    let result = unsafe { libc::clock_gettime(id, &raw mut time) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64))
}

/// `include/linux/posix-timers_types.h`: part of the kernel's interface, glibc relies on it.
const CPUCLOCK_SCHED: libc::clockid_t = 2;

fn not_of_form() -> io::Error {
    io::Error::other("its content does not have the form of proc(5)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_process_is_the_sum_of_its_threads() {
        let mut reader = Reader::new(Detail::Threads, Bytes::Read);
        let own = reader.process(std::process::id()).unwrap();
        assert!(own.threads.len() >= 2 && !own.has_ended, "the tests have a thread each");
        let sum: u64 = own.threads.values().map(|thread| thread.run.0).sum();
        // Threads of tests that have ended are only in the clock; those that run continue between the two readings.
        assert!(sum <= (own.run + own.hidden).0, "{sum} of {} + {}", own.run, own.hidden);
    }

    #[test]
    fn no_process_is_an_error() {
        let mut reader = Reader::new(Detail::Processes, Bytes::Skip);
        assert!(reader.process(u32::MAX).is_err());
        assert!(process_clock(u32::MAX).is_err());
        assert!(!is_process(u32::MAX) && is_process(std::process::id()));
    }
}
