//! Adds up what happened between readings. Pure: readings in, usage out.

use std::collections::BTreeMap;

use units::Nanos;

use super::reading::{Moment, Named, ProcessReading, ThreadReading};

/// User and system time as /proc divides it, in hundredths of a second (`USER_HZ`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks {
    /// In user mode.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
}

/// How often something left a CPU: by itself, because it waited for something; or preempted, or by `sched_yield`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// By itself.
    pub voluntary: u64,
    /// Preempted, or by `sched_yield`.
    pub involuntary: u64,
}

/// What a process, or one thread of it, used within a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// When it was first read. If it began within the span: when the span began.
    pub from: Moment,
    /// When it was last read.
    pub to: Moment,
    /// Time on a CPU, by the scheduler's account.
    pub run: Nanos,
    /// The true time on a CPU between the two moments differs from `run` by at most this, as long as ticks come in
    /// time: a hypervisor may delay one.
    pub error: Nanos,
    /// Run-queue latency: time runnable without a CPU. For a process: summed over its threads while they were seen.
    pub wait: Nanos,
    /// How often it was put on a CPU.
    pub slices: u64,
    /// How often it left a CPU; `None` if the kernel does not count it.
    pub switches: Option<Switches>,
    /// User and system time; `None` if it was not read.
    pub ticks: Option<Ticks>,
}

impl Usage {
    /// The time between the two moments.
    pub fn elapsed(&self) -> Nanos {
        self.to.middle().saturating_sub(self.from.middle())
    }

    /// Adds what was used in the span that began where this one ended.
    pub(super) fn join(&mut self, later: &Usage) {
        self.to = later.to;
        self.run += later.run;
        // What was hidden between the two spans is not an error of their sum.
        self.error = self.error.max(later.error);
        self.wait += later.wait;
        self.slices += later.slices;
        self.switches = self.switches.zip(later.switches).map(|(sum, more)| sum.plus(more));
        self.ticks = self
            .ticks
            .zip(later.ticks)
            .map(|(sum, more)| Ticks { user: sum.user + more.user, system: sum.system + more.system });
    }

    /// The uncertainty of [`elapsed`](Self::elapsed): the account was read somewhere within each moment.
    pub fn elapsed_error(&self) -> Nanos {
        Nanos((self.from.width() + self.to.width()).0.div_ceil(2))
    }

    /// Divides [`run`](Self::run) into user and system time by what the kernel saw at its ticks; `None` if it saw
    /// nothing.
    pub fn split(&self, tick: Nanos) -> Option<Split> {
        Split::of(self.run, self.ticks?, tick)
    }
}

/// User and system time, as sampled at the ticks of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
    /// How many ticks could fall into it: the kernel does not report how many did.
    pub ticks: u64,
    /// 95 % of splits are right to within this, unless the program runs in lockstep with the ticks: then all of it
    /// may be wrong.
    pub error: Nanos,
}

impl Split {
    /// `None` when the counts of /proc did not change: no tick saw the process.
    fn of(run: Nanos, ticks: Ticks, tick: Nanos) -> Option<Split> {
        let counted = ticks.user.checked_add(ticks.system).filter(|&sum| sum > 0)? as f64;
        let user_share = ticks.user as f64 / counted;
        let fell = (run.0 / tick.0.max(1)).max(1);
        // /proc truncates both counts to whole hundredths of a second, at the start and at the end.
        let error = wilson(user_share, fell as f64) + 1.0 / counted;
        let user = Nanos((run.0 as f64 * user_share).round() as u64).min(run);
        let error = Nanos((run.0 as f64 * error.min(1.0)) as u64);
        Some(Split { user, system: run - user, ticks: fell, error })
    }

    /// Whether its error is at most a quarter of the whole. That takes some 15 ticks at even shares.
    pub fn is_reliable(&self) -> bool {
        self.error.0 <= (self.user + self.system).0 / 4
    }
}

/// The larger distance from a share to an end of its 95 % Wilson interval. The textbook interval would have no width
/// at shares of 0 and 1, however few samples there are.
fn wilson(share: f64, samples: f64) -> f64 {
    const Z: f64 = 1.96;
    let z2 = Z * Z;
    let centre = (share + z2 / (2.0 * samples)) / (1.0 + z2 / samples);
    let half =
        Z / (1.0 + z2 / samples) * (share * (1.0 - share) / samples + z2 / (4.0 * samples * samples)).sqrt();
    (centre + half - share).max(share - (centre - half))
}

/// How a measured process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It existed at the end of the span.
    Alive,
    /// It ended, and was read once more after its last instruction: nothing is missing.
    Whole,
    /// It ended; what it used after the last reading is missing.
    Cut,
    /// As [`End::Cut`], and its id was reused by a process that is not measured.
    Reused,
}

/// What one process used within a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessUse {
    /// Its process id.
    pub pid: u32,
    /// Its start, in hundredths of a second since boot; with the id it identifies the process until the next boot.
    pub started: u64,
    /// The kernel's short name (`comm`).
    pub name: String,
    /// The user id it runs as.
    pub uid: u32,
    /// Its command line; `None` for kernel threads, and for processes that ended at once.
    pub command: Option<String>,
    /// Whether it began within the span.
    pub began: bool,
    /// How it ended, if it did.
    pub end: End,
    /// What it used, all threads together.
    pub usage: Usage,
    /// By thread id; includes threads that ended within the span, as far as they were seen.
    pub threads: BTreeMap<u32, ThreadUse>,
    /// Threads whose id was reused, with that id.
    pub replaced: Vec<(u32, ThreadUse)>,
    /// What was hidden at the first reading.
    hidden: Nanos,
}

/// What one thread used within a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadUse {
    /// Its name; read with [`Detail::Threads`](super::Detail::Threads) only.
    pub name: Option<String>,
    /// Whether it began within the span.
    pub began: bool,
    /// Whether it ended; what it used after the last reading is counted in its process only.
    pub ended: bool,
    /// What it used.
    pub usage: Usage,
    started: Option<u64>,
    last: Counts,
    hidden: Nanos,
}

/// The counts since a thread began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    run: Nanos,
    wait: Nanos,
    slices: u64,
    switches: Option<Switches>,
    ticks: Option<Ticks>,
}

impl ProcessUse {
    /// Begins a span with `first`.
    pub(super) fn from(first: &ProcessReading) -> ProcessUse {
        let threads = first.threads.iter().map(|(&tid, thread)| (tid, ThreadUse::from(thread)));
        let usage = Usage {
            from: first.at,
            to: first.at,
            error: first.hidden,
            switches: Some(Switches::default()),
            ticks: Some(Ticks::default()),
            ..Usage::default()
        };
        ProcessUse {
            pid: first.pid,
            started: first.started,
            name: first.name.clone(),
            uid: first.uid,
            command: None,
            began: false,
            end: End::Alive,
            usage,
            threads: threads.collect(),
            replaced: Vec::new(),
            hidden: first.hidden,
        }
    }

    /// A process that began after `begin`, the begin of the span: all that it has used belongs to the span.
    pub(super) fn of_new(first: &ProcessReading, begin: Moment) -> ProcessUse {
        let nothing = ProcessReading {
            discards_children: false,
            at: begin,
            run: Nanos::ZERO,
            hidden: Nanos::ZERO,
            ticks: Ticks::default(),
            threads: BTreeMap::new(),
            ..first.clone()
        };
        let mut process = ProcessUse { began: true, ..ProcessUse::from(&nothing) };
        process.add(&nothing, first);
        process
    }

    /// Adds what happened from `before` to `now`.
    pub(super) fn add(&mut self, before: &ProcessReading, now: &ProcessReading) {
        let usage = &mut self.usage;
        usage.to = now.at;
        usage.run += now.run.saturating_sub(before.run);
        self.name.clone_from(&now.name);
        self.uid = now.uid;
        if let Some(ticks) = &mut usage.ticks {
            ticks.user += now.ticks.user.saturating_sub(before.ticks.user);
            ticks.system += now.ticks.system.saturating_sub(before.ticks.system);
        }
        // Hidden at the start: counted here although used before. Hidden at the end: used but not counted.
        usage.error = self.hidden.max(now.hidden);
        for thread in self.threads.values_mut() {
            thread.ended = true;
        }
        let begin = before.at;
        for (&tid, thread) in &now.threads {
            self.add_thread(tid, thread, begin);
        }
        if now.has_ended {
            self.end = End::Whole;
        }
        self.sum_threads();
    }

    fn add_thread(&mut self, tid: u32, reading: &ThreadReading, begin: Moment) {
        if let Some(known) = self.threads.get_mut(&tid) {
            if known.is(reading) {
                known.add(reading);
                return;
            }
            self.replaced.extend(self.threads.remove(&tid).map(|old| (tid, old)));
        }
        self.threads.insert(tid, ThreadUse::of_new(reading, begin));
    }

    fn sum_threads(&mut self) {
        let (mut wait, mut slices, mut switches) = (Nanos::ZERO, 0, Some(Switches::default()));
        for thread in self.all_threads() {
            wait += thread.usage.wait;
            slices += thread.usage.slices;
            switches = switches.zip(thread.usage.switches).map(|(sum, one)| sum.plus(one));
        }
        (self.usage.wait, self.usage.slices, self.usage.switches) = (wait, slices, switches);
    }

    fn all_threads(&self) -> impl Iterator<Item = &ThreadUse> {
        self.threads.values().chain(self.replaced.iter().map(|(_, thread)| thread))
    }

    /// Adds what the same process used in the span that began where this one ended.
    pub(super) fn join(&mut self, later: ProcessUse) {
        self.usage.join(&later.usage);
        (self.name, self.uid, self.end) = (later.name, later.uid, later.end);
        self.command = later.command.or(self.command.take());
        self.replaced.extend(later.replaced);
        for (tid, thread) in later.threads {
            match self.threads.get_mut(&tid) {
                Some(known) if !thread.began => {
                    known.usage.join(&thread.usage);
                    known.ended = thread.ended;
                }
                _ => self.replaced.extend(self.threads.insert(tid, thread).map(|old| (tid, old))),
            }
        }
    }

    /// CPU time of threads that could no longer be read: some ended after a reading, some began and ended between
    /// readings. Their waits and switches are not counted.
    pub fn unseen(&self) -> Nanos {
        let seen: u64 = self.all_threads().map(|thread| thread.usage.run.0).sum();
        self.usage.run.saturating_sub(Nanos(seen))
    }

    /// Whether waits and switches cover all threads for the whole span. If threads ended, the counts are lower bounds.
    pub fn counts_all(&self) -> bool {
        let gone = self.all_threads().any(|thread| thread.ended);
        self.end != End::Cut && self.end != End::Reused && !gone && self.unseen() <= self.usage.error
    }
}

impl ThreadUse {
    fn from(first: &ThreadReading) -> ThreadUse {
        let counts = Counts::of(first);
        let usage = Usage {
            from: first.at,
            to: first.at,
            error: first.hidden,
            switches: counts.switches.map(|_| Switches::default()),
            ticks: counts.ticks.map(|_| Ticks::default()),
            ..Usage::default()
        };
        ThreadUse {
            name: first.named.as_ref().map(|named| named.name.clone()),
            began: false,
            ended: false,
            usage,
            started: first.named.as_ref().map(|named| named.started),
            last: counts,
            hidden: first.hidden,
        }
    }

    fn of_new(reading: &ThreadReading, begin: Moment) -> ThreadUse {
        let mut thread = ThreadUse::from(reading);
        thread.began = true;
        thread.usage.from = begin;
        thread.last = Counts {
            switches: thread.last.switches.map(|_| Switches::default()),
            ticks: thread.last.ticks.map(|_| Ticks::default()),
            ..Counts::default()
        };
        thread.add(reading);
        thread
    }

    /// Whether a reading belongs to this thread, not to another one that reused its id.
    fn is(&self, reading: &ThreadReading) -> bool {
        let started = reading.named.as_ref().map(|named: &Named| named.started);
        started == self.started && reading.run >= self.last.run && reading.slices >= self.last.slices
    }

    fn add(&mut self, reading: &ThreadReading) {
        let now = Counts::of(reading);
        let before = std::mem::replace(&mut self.last, now);
        let usage = &mut self.usage;
        usage.to = reading.at;
        usage.run += now.run.saturating_sub(before.run);
        usage.wait += now.wait.saturating_sub(before.wait);
        usage.slices += now.slices.saturating_sub(before.slices);
        usage.error = self.hidden.max(reading.hidden);
        let switches = now.switches.zip(before.switches).map(|(now, before)| now.minus(before));
        usage.switches = usage.switches.zip(switches).map(|(sum, more)| sum.plus(more));
        let ticks = now.ticks.zip(before.ticks);
        usage.ticks = usage.ticks.zip(ticks).map(|(sum, (now, before))| Ticks {
            user: sum.user + now.user.saturating_sub(before.user),
            system: sum.system + now.system.saturating_sub(before.system),
        });
        self.ended = false;
    }
}

impl Counts {
    fn of(reading: &ThreadReading) -> Counts {
        Counts {
            run: reading.run,
            wait: reading.wait,
            slices: reading.slices,
            switches: reading.switches,
            ticks: reading.named.as_ref().map(|named| named.ticks),
        }
    }
}

impl Switches {
    pub(super) fn plus(self, more: Switches) -> Switches {
        Switches {
            voluntary: self.voluntary.saturating_add(more.voluntary),
            involuntary: self.involuntary.saturating_add(more.involuntary),
        }
    }

    fn minus(self, before: Switches) -> Switches {
        Switches {
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

#[cfg(test)]
mod tests;
