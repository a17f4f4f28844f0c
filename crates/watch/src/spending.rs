//! What watching costs the server: its programs, as the kernel accounts for them; that they are called at all, which is
//! calibrated at the start; the CPU time of this process while it runs on the server's CPUs; and the interrupts of
//! attaching and detaching.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use units::Nanos;

use crate::duty::Spent;
use crate::kernel::{Kernel, LoadError};

/// What watching has cost the server's CPUs, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CostParts {
    /// In the programs.
    pub programs: Nanos,
    /// For calling them.
    pub calls: Nanos,
    /// Interrupts of attaching and detaching.
    pub interrupts: Nanos,
    /// CPU time of this process on the server's CPUs.
    pub own: Nanos,
}

/// The account, which only grows.
#[derive(Debug, Default)]
pub struct Spending {
    /// By the latest reading.
    parts: CostParts,
    /// What the kernel spends per call of a program that its account does not contain.
    firing: Nanos,
    /// Time that attaching and detaching took.
    toggling: Nanos,
    /// CPU time of this process, and what of it was on the server's CPUs.
    own: Nanos,
    own_there: Nanos,
    /// CPU time of the server's processes by their latest reading, and of all together.
    processes: HashMap<u32, Nanos>,
    server: Nanos,
    /// CPUs on which threads of the server ran lately, and how much each of these threads ran, in ticks.
    cpus: HashSet<usize>,
    ticks: HashMap<u32, u64>,
}

/// Attaching and detaching interrupt every other CPU for this part of the time that they take: about 170 interrupts of 3
/// µs in 2.0 ms (2026-11-25, virtual machine, eight tracepoints).
const INTERRUPTED: u64 = 4;

/// Threads that are asked for their CPU, at most.
const ASKED: usize = 256;

impl Spending {
    /// Calibrates, with all programs attached and their cost measured; takes some 10 ms. `paused` is called while they are
    /// detached.
    pub fn calibrate(kernel: &mut Kernel, paused: impl FnOnce(&mut Kernel)) -> Result<Spending, LoadError> {
        let attached = fastest_exchange(kernel);
        kernel.pause();
        paused(kernel);
        let alone = fastest_exchange(kernel);
        kernel.resume()?;
        let firing = match (attached, alone) {
            (Some(attached), Some(alone)) if attached.runs > 0 => {
                let more = attached.time.saturating_sub(alone.time).saturating_sub(attached.programs);
                Nanos(more.0 / attached.runs)
            }
            _ => FIRING_LEAST,
        };
        let firing = firing.clamp(FIRING_LEAST, FIRING_MOST);
        let own = host::process_cpu().unwrap_or_default();
        Ok(Spending { firing, own, ..Spending::default() })
    }

    /// Attaching or detaching took this long.
    pub fn add_toggle(&mut self, time: Nanos) {
        self.toggling += time;
    }

    /// Notes what this process used since the last call, if it runs on a CPU of the server now. Call often.
    pub fn note_own(&mut self) {
        let own = host::process_cpu().unwrap_or(self.own);
        let used = own.saturating_sub(self.own);
        self.own = own;
        let cpu = rustix::thread::sched_getcpu();
        if self.cpus.is_empty() || self.cpus.contains(&cpu) {
            self.own_there += used;
        }
    }

    /// What was spent so far, by watching and by these processes of the server.
    ///
    /// # Cost
    ///
    /// A system call per program and process, and a file of /proc per thread, of some hundred at most.
    pub fn so_far(&mut self, kernel: &Kernel, processes: &[u32]) -> Spent {
        self.note_own();
        for &process in processes {
            // One that has ended used nothing since.
            let Ok(now) = host::process::process_clock(process) else { continue };
            let before = self.processes.insert(process, now).unwrap_or(now);
            self.server += now.saturating_sub(before);
        }
        let threads = processes.iter().flat_map(|&process| threads_of(process)).take(ASKED);
        let before = std::mem::take(&mut self.ticks);
        let mut active = HashSet::new();
        for thread in threads {
            if thread.ticks > before.get(&thread.tid).copied().unwrap_or(0) {
                active.insert(thread.cpu);
            }
            self.ticks.insert(thread.tid, thread.ticks);
        }
        // None ran for a tick: where they run is as before.
        if !active.is_empty() {
            self.cpus = active;
        }
        let (mut programs, mut runs) = (Nanos::ZERO, 0);
        for cost in kernel.cost() {
            programs += cost.time;
            runs += cost.runs;
        }
        self.parts = CostParts {
            programs,
            calls: Nanos(runs * self.firing.0),
            interrupts: Nanos(self.toggling.0 / INTERRUPTED),
            own: self.own_there,
        };
        let CostParts { programs, calls, interrupts, own } = self.parts;
        Spent { watching: programs + calls + interrupts + own, attaching: interrupts, server: self.server }
    }

    /// By cause, as of the latest [`Spending::so_far`].
    pub fn parts(&self) -> CostParts {
        self.parts
    }
}

/// Bounds of what is believed of a calibration: on an idle machine 86 ns were measured.
const FIRING_LEAST: Nanos = Nanos(50);
const FIRING_MOST: Nanos = Nanos(400);

/// Messages of this process to itself.
struct Exchange {
    time: Nanos,
    /// What of it was in programs, and how often they ran.
    programs: Nanos,
    runs: u64,
}

/// The fastest of a few rounds of messages over a socket, which programs are called for and pass over.
fn fastest_exchange(kernel: &Kernel) -> Option<Exchange> {
    let (mut one, mut other) = UnixStream::pair().ok()?;
    let so_far = || {
        let costs = kernel.cost();
        costs.iter().fold((0, 0), |(time, runs), cost| (time + cost.time.0, runs + cost.runs))
    };
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let before = so_far();
        let began = clock::now();
        for _ in 0..MESSAGES {
            one.write_all(&[1]).ok()?;
            other.read_exact(&mut [0]).ok()?;
        }
        let time = clock::now() - began;
        let after = so_far();
        rounds.push(Exchange { time, programs: Nanos(after.0 - before.0), runs: after.1 - before.1 });
    }
    rounds.into_iter().min_by_key(|round| round.time)
}

const ROUNDS: usize = 10;
const MESSAGES: usize = 200;

/// Where a thread ran last, and how long it has run.
struct Thread {
    tid: u32,
    cpu: usize,
    ticks: u64,
}

fn threads_of(process: u32) -> Vec<Thread> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let thread = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        // A name may contain anything, spaces and parentheses included.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let tid = thread.file_name().to_str()?.parse().ok()?;
        // proc(5): utime, stime, and the processor.
        Some(Thread { tid, cpu: usize::try_from(number(36)?).ok()?, ticks: number(11)? + number(12)? })
    };
    threads.flatten().take(ASKED).filter_map(thread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_of_this_process_is_one_of_the_host() {
        let begun = clock::now();
        while threads_of(std::process::id()).iter().all(|thread| thread.ticks == 0) {
            assert!(clock::now() < begun + Nanos::from_secs(60), "it runs all the time");
        }
        let threads = threads_of(std::process::id());
        assert!(threads.iter().all(|thread| thread.cpu < 4_096 && thread.tid > 0));
    }
}
