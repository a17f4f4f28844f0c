//! Divides CPU time into user and system time: by eBPF programs at the boundaries of system calls if they can be
//! loaded, otherwise by the kernel's ticks.

use host::process::Wanted;
use record::document::MissingFact;
use record::observation::cpu::CpuLine;

/// What divides CPU time into user and system time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitBy {
    /// `Ebpf` for processes given by ID, if eBPF programs can be loaded; otherwise `Ticks`.
    Auto,
    /// The mode the kernel sees at its timer ticks. Needs no privileges; can be completely wrong.
    Ticks,
    /// eBPF programs at the boundaries of system calls and interrupts. While they run, every system call on this host
    /// takes slightly longer.
    Ebpf,
}

#[cfg(feature = "ebpf")]
pub use self::boundaries::Splitter;

#[cfg(feature = "ebpf")]
mod boundaries {
    use std::collections::BTreeMap;

    use record::observation::cpu::{CpuBoundary, CpuGroup, CpuGroupKind, CpuSplit, CpuUse, SplitMethod};
    use units::Nanos;
    use watch::cpu::{Boundaries, ThreadClocks, Watched};

    use super::*;

    /// Reads the threads' clocks whenever the meter is read.
    #[derive(Default)]
    pub struct Splitter {
        /// `None` if user and system time come from ticks.
        clocks: Option<ThreadClocks>,
        why_not: Option<String>,
        begin: Option<Seen>,
        before: Seen,
        now: Seen,
    }

    /// Times by pid, and by pid and tid.
    #[derive(Debug, Clone, Default)]
    struct Seen {
        processes: BTreeMap<u32, Boundaries>,
        /// By the pid of the tree's root process.
        trees: BTreeMap<u32, Boundaries>,
        threads: BTreeMap<(u32, u32), Boundaries>,
    }

    impl Splitter {
        /// Attaches the programs to the processes whose use is measured, if the split comes from them.
        ///
        /// # Errors
        ///
        /// When eBPF was requested and its programs cannot be loaded.
        pub fn start(by: SplitBy, wanted: &Wanted) -> anyhow::Result<Splitter> {
            let watched = match (by, wanted) {
                (SplitBy::Ticks, _) | (SplitBy::Auto, Wanted::All | Wanted::Comm(_) | Wanted::Cgroup(_)) => {
                    return Ok(Splitter::default());
                }
                (_, Wanted::Trees(pids)) => Watched::Trees(pids.clone()),
                (_, Wanted::Only(pids)) => Watched::Pids(pids.clone()),
                (SplitBy::Ebpf, Wanted::All | Wanted::Comm(_) | Wanted::Cgroup(_)) => Watched::Everybody,
            };
            match ThreadClocks::start(&watched) {
                Ok(clocks) => Ok(Splitter { clocks: Some(clocks), ..Splitter::default() }),
                Err(error) if by == SplitBy::Ebpf => {
                    Err(anyhow::Error::new(error).context("--split ebpf failed; use --split ticks instead"))
                }
                Err(error) => Ok(Splitter { why_not: Some(error.to_string()), ..Splitter::default() }),
            }
        }

        /// Reads the clocks of all threads; does nothing if the split comes from ticks.
        pub fn read(&mut self) {
            let Some(clocks) = &mut self.clocks else { return };
            let reading = clocks.read();
            (self.now.processes, self.now.trees) = (reading.processes, reading.trees);
            // A thread that ended is reported once, and its last values stay.
            let threads = reading.threads.into_iter().map(|thread| ((thread.pid, thread.tid), thread.time));
            self.now.threads.extend(threads);
        }

        /// Ends a span with the latest reading; the first call begins the first span.
        pub fn close(&mut self) {
            self.before = self.now.clone();
            self.begin.get_or_insert_with(|| self.now.clone());
        }

        /// Replaces the division by ticks with what was seen in the current span.
        pub fn split_span(&self, line: &mut CpuLine) {
            self.split(line, &self.before);
        }

        /// Replaces the division by ticks with what was seen since the beginning.
        pub fn split_all(&self, line: &mut CpuLine) {
            if let Some(begin) = &self.begin {
                self.split(line, begin);
            }
        }

        fn split(&self, line: &mut CpuLine, since: &Seen) {
            let Some(clocks) = &self.clocks else { return };
            for group in line.groups.iter_mut().filter(|group| group.kind == CpuGroupKind::Tree) {
                let Some(pid) = group.pid else { continue };
                set(&mut group.used, clocks, self.now.trees.get(&pid), since.trees.get(&pid));
                count_unwaited(group);
            }
            for process in &mut line.processes {
                let pid = process.pid;
                set(&mut process.used, clocks, self.now.processes.get(&pid), since.processes.get(&pid));
                for thread in &mut process.threads {
                    let key = (pid, thread.tid);
                    set(&mut thread.used, clocks, self.now.threads.get(&key), since.threads.get(&key));
                }
            }
        }

        /// Why ticks are used although they were not requested.
        pub fn missing(&self) -> Option<MissingFact> {
            self.why_not.clone().map(|why| MissingFact { what: "split_by_ebpf".to_owned(), why })
        }

        /// Threads whose clocks did not fit, for the record; `None` if all did.
        pub fn lost(&self) -> Option<MissingFact> {
            let lost = self.clocks.as_ref().map_or(0, ThreadClocks::lost);
            let why =
                format!("the table of threads was full: user and system time of {lost} threads is missing");
            (lost > 0).then(|| MissingFact { what: "threads".to_owned(), why })
        }
    }

    /// How long before a switch the slice of the next thread begins, at most: nanoseconds.
    const SLICE_LEAD: u64 = 2_000;

    /// The programs follow every descendant, also those that nobody waits for and those that were never seen in /proc.
    /// What the scheduler charged them is then more than the accounts of the tree contain.
    fn count_unwaited(group: &mut CpuGroup) {
        let Some(boundary) = group.used.split.as_ref().and_then(|split| split.boundary.as_ref()) else {
            return;
        };
        let charged = boundary.wall_ns.saturating_add_signed(-boundary.stolen_ns);
        if charged > group.used.run_ns.saturating_add(group.used.error_ns) {
            group.used.run_ns = charged;
            group.cut = 0;
        }
        group.discarding = None;
    }

    fn set(used: &mut CpuUse, clocks: &ThreadClocks, now: Option<&Boundaries>, before: Option<&Boundaries>) {
        let Some(now) = now else {
            // It has not run since the programs were attached, or there was no room for its clock.
            if used.run_ns == 0 {
                used.split = None;
            }
            return;
        };
        let seen = before.map_or(*now, |before| now.since(before));
        // The scheduler's slices begin a little before the switches that are seen. Whatever exceeds that was not seen.
        let switches = used.voluntary.unwrap_or(0) + used.involuntary.unwrap_or(0);
        let unseen = (-seen.stolen_ns - SLICE_LEAD.cast_signed() * switches.cast_signed()).max(0);
        let error = clocks.error(&seen).max(Nanos(unseen.unsigned_abs()));
        used.split = Some(CpuSplit {
            method: SplitMethod::Ebpf,
            user_ns: seen.user.0,
            system_ns: seen.system.0,
            error_ns: error.0,
            reliable: error.0 <= (seen.user + seen.system).0 / 4,
            ticks: None,
            boundary: Some(CpuBoundary {
                wall_ns: seen.wall().0,
                interrupt_ns: seen.interrupt.0,
                stolen_ns: seen.stolen_ns,
                system_calls: seen.calls,
                faults: seen.faults,
                interrupts: seen.interrupts,
                missed_switches: seen.missed,
            }),
        });
    }
}

/// Built without eBPF: always ticks.
#[cfg(not(feature = "ebpf"))]
#[derive(Debug)]
pub struct Splitter;

#[cfg(not(feature = "ebpf"))]
impl Splitter {
    /// Without eBPF, only ticks are available.
    ///
    /// # Errors
    ///
    /// When `--split ebpf` was given.
    pub fn start(by: SplitBy, _: &Wanted) -> anyhow::Result<Splitter> {
        anyhow::ensure!(
            by != SplitBy::Ebpf,
            "--split ebpf: this parallax was built without eBPF; use --split ticks"
        );
        Ok(Splitter)
    }

    /// Does nothing without eBPF.
    pub fn read(&mut self) {}

    /// Does nothing without eBPF.
    pub fn close(&mut self) {}

    /// Does nothing without eBPF: the split by ticks stays.
    pub fn split_span(&self, _: &mut CpuLine) {}

    /// Does nothing without eBPF: the split by ticks stays.
    pub fn split_all(&self, _: &mut CpuLine) {}

    /// What the record lacks because there is no eBPF.
    pub fn missing(&self) -> Option<MissingFact> {
        Some(MissingFact {
            what: "split_by_ebpf".to_owned(),
            why: "this program was built without it".to_owned(),
        })
    }

    /// Nothing is lost without eBPF.
    pub fn lost(&self) -> Option<MissingFact> {
        None
    }
}
