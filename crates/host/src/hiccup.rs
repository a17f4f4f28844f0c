//! The hiccup meter: measures how late a thread wakes up that only sleeps, which is the time that the host takes from
//! every thread.
//!
//! A thread of this process sleeps from one tick to the next on an absolute schedule and notes how late each tick
//! was. It has no work of its own, so its lateness is that of the host, or of this whole process: stopped, throttled,
//! starved. On a core that it shares with a busy worker, the worker's time slices are included.
//!
//! The cause of a late tick comes from the kernel's accounts: the thread's own run-queue latency at each tick, and
//! the readings of [`Accounts`].
#![expect(unsafe_code, reason = "a real-time priority has no safe wrapper here")]

mod accounts;
mod causes;

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use units::Nanos;

pub use accounts::{Accounts, Sample};
pub use causes::{Causes, explain};

use crate::run_queue::RunQueue;

/// One tick of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// When the thread wanted to run.
    pub due: Nanos,
    /// How much later it ran.
    pub late: Nanos,
}

/// One time that the thread ran, and the ticks that this covers: several if it was late by more than a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// When the first of its ticks was due.
    pub due: Nanos,
    /// When the thread ran.
    pub at: Nanos,
    every: Nanos,
    ticks: u64,
    /// How long it was runnable but waiting for a CPU since it last slept; `None` if the kernel does not count that, or
    /// the meter does not read it.
    pub queued: Option<Nanos>,
    /// The second part of a wake that was split at an interval's end: not a separate stall.
    pub is_rest: bool,
}

impl Wake {
    /// Its ticks in order, each with its own lateness. Counting only the first would turn a stall of a second into
    /// one late tick among hundreds.
    pub fn ticks(&self) -> impl Iterator<Item = Tick> + use<> {
        let wake = *self;
        (0..wake.ticks).map(move |n| {
            let due = wake.due + Nanos(wake.every.0 * n);
            Tick { due, late: wake.at.saturating_sub(due) }
        })
    }

    /// How long the host did not run the thread: the lateness of its first tick.
    pub fn late(&self) -> Nanos {
        self.at.saturating_sub(self.due)
    }
}

/// How a meter runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterSettings {
    /// The time from one tick to the next.
    pub every: Nanos,
    /// The CPU it is bound to; `None` leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// How the scheduler ranks it.
    pub priority: Priority,
    /// Whether to read the thread's run-queue latency at each tick: one more system call per tick. With it a meter
    /// takes 2.5 % of its CPU at 1 ms, 0.4 % at 10 ms (2026-11-22, a virtual machine with two cores, both busy).
    pub reads_run_queue: bool,
}

/// How the scheduler treats a meter. It measures interference from higher-ranking threads, and none from
/// lower-ranking ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Like every thread: measures what a normal process experiences.
    #[default]
    Normal,
    /// The given nice value, -20 to 19.
    Nice(i32),
    /// Real time (`SCHED_FIFO`), from 1 to 99: measures what no normal process can cause.
    Fifo(i32),
}

/// A meter that runs in its own thread until it is dropped.
#[derive(Debug)]
pub struct HiccupMeter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    wakes: Mutex<Vec<Wake>>,
    stop: AtomicBool,
}

impl HiccupMeter {
    /// Starts a meter with a tick every `every`, with normal priority, on any CPU.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    ///
    /// # Cost
    ///
    /// One wake-up per tick; see [`HiccupMeter::TICK`].
    pub fn start(every: Nanos) -> io::Result<HiccupMeter> {
        HiccupMeter::start_with(MeterSettings {
            every,
            cpu: None,
            priority: Priority::Normal,
            reads_run_queue: false,
        })
    }

    /// Starts a meter with these settings.
    ///
    /// # Errors
    ///
    /// When no thread can be started, there is no such CPU, or the priority needs a privilege.
    pub fn start_with(settings: MeterSettings) -> io::Result<HiccupMeter> {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let (send_result, result) = sync_channel(1);
        let run = move || {
            let prepared = prepare(settings);
            let ready = prepared.is_ok();
            let _ = send_result.send(prepared);
            if ready {
                theirs.run(settings);
            }
        };
        let thread = thread::Builder::new().name("hiccup".to_owned()).spawn(run)?;
        let gone = |_| io::Error::other("its thread has ended");
        result.recv().map_err(gone)??;
        Ok(HiccupMeter { shared, thread: Some(thread) })
    }

    /// Removes and returns the wakes whose ticks were due before `end`, in order; a wake with ticks on both sides is
    /// split. Later ticks stay for the next call.
    pub fn take_before(&self, end: Nanos) -> Vec<Wake> {
        let mut wakes = self.shared.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        let later = wakes.partition_point(|wake| wake.due < end);
        let mut taken = wakes.drain(..later).collect::<Vec<_>>();
        if let Some(last) = taken.last_mut() {
            let before = (end - last.due).0.div_ceil(last.every.0).min(last.ticks);
            if before < last.ticks {
                let due = last.due + Nanos(last.every.0 * before);
                wakes.insert(0, Wake { due, ticks: last.ticks - before, is_rest: true, ..*last });
                last.ticks = before;
            }
        }
        taken
    }

    /// The tick of the meter in a run. A tick takes 6.6 us of CPU (2026-11-22, a virtual machine with two cores, 500
    /// ticks by the scheduler's account): 0.07 % of a core at 10 ms, where 1 ms would take 0.7 % of the core of a
    /// pinned client.
    pub const TICK: Nanos = Nanos::from_millis(10);
}

impl Drop for HiccupMeter {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Applies `settings` to the calling thread.
fn prepare(settings: MeterSettings) -> io::Result<()> {
    // The kernel may fire a timer late by the thread's slack, 50 us unless changed.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if let Some(cpu) = settings.cpu {
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only)?;
    }
    match settings.priority {
        Priority::Normal => Ok(()),
        // This is the priority of one thread, although the call is named after processes.
        Priority::Nice(nice) => Ok(rustix::process::setpriority_process(Some(gettid()), nice)?),
        Priority::Fifo(priority) => {
            let parameters = libc::sched_param { sched_priority: priority };
            // SAFETY: the kernel reads the parameters within the call; 0 is the calling thread.
            match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}

impl Shared {
    fn run(&self, settings: MeterSettings) {
        let run_queue = settings.reads_run_queue.then(RunQueue::of_this_thread).and_then(Result::ok);
        let waited = || run_queue.as_ref().and_then(RunQueue::waited);
        let every = settings.every;
        let mut before = waited();
        let mut due = clock::now() + every;
        // The thread does not block while a caller takes the wakes: it would measure its own lock.
        let mut own = Vec::with_capacity(64);
        while !self.stop.load(Ordering::Relaxed) {
            clock::sleep_until(due);
            let now = clock::now();
            let after = waited();
            let queued = after.zip(before).map(|(after, before)| after.saturating_sub(before));
            before = after;
            let wake = wake(due, now, every, queued);
            due = wake.due + Nanos(every.0 * wake.ticks);
            own.push(wake);
            if let Ok(mut wakes) = self.wakes.try_lock() {
                wakes.append(&mut own);
            }
        }
    }
}

/// The wake of a thread that wanted to run at `due` and ran at `now`.
fn wake(due: Nanos, now: Nanos, every: Nanos, queued: Option<Nanos>) -> Wake {
    let ticks = now.saturating_sub(due).0 / every.0 + 1;
    Wake { due, at: now.max(due), every, ticks, queued, is_rest: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    fn ticks(wakes: &[Wake]) -> Vec<Tick> {
        wakes.iter().flat_map(Wake::ticks).collect()
    }

    #[test]
    fn every_tick_is_there_once_and_none_is_early() {
        let begin = clock::now();
        let meter = HiccupMeter::start(MS).unwrap();
        clock::sleep_until(begin + Nanos::from_millis(60));
        let middle = begin + Nanos::from_millis(30);
        let mut all = ticks(&meter.take_before(middle));
        assert!(all.iter().all(|tick| tick.due < middle));
        all.extend(ticks(&meter.take_before(Nanos::MAX)));
        assert!(all.len() > 2, "{}", all.len());
        assert!(all.windows(2).all(|pair| pair[1].due == pair[0].due + MS));
        assert!(meter.take_before(middle).is_empty());
    }

    /// If this fails, a stall of a second counts as much as one of a millisecond.
    #[test]
    fn a_stall_is_noted_by_every_tick_within_it() {
        let stall = wake(Nanos::from_millis(10), Nanos(40_500_000), MS, None);
        assert_eq!(stall.late(), Nanos(30_500_000));
        let all: Vec<Tick> = stall.ticks().collect();
        // Due at 10, 11 … 40 ms.
        assert_eq!(all.len(), 31);
        assert_eq!(all[30], Tick { due: Nanos::from_millis(40), late: Nanos(500_000) });
        let on_time = wake(Nanos(100), Nanos(100), MS, None);
        assert_eq!(on_time.ticks().collect::<Vec<_>>(), [Tick { due: Nanos(100), late: Nanos::ZERO }]);
    }

    /// If this fails, a stall across the end of a second is counted in one second only, or twice.
    #[test]
    fn a_stall_across_the_end_of_an_interval_is_split() {
        let meter = HiccupMeter { shared: Arc::default(), thread: None };
        let stall = wake(Nanos::from_millis(10), Nanos::from_millis(40), MS, None);
        meter.shared.wakes.lock().unwrap().push(stall);
        let first = meter.take_before(Nanos::from_millis(20));
        assert_eq!(ticks(&first).len(), 10);
        let second = meter.take_before(Nanos::from_millis(100));
        assert!(!first[0].is_rest && second[0].is_rest);
        assert_eq!(ticks(&[first, second].concat()), stall.ticks().collect::<Vec<_>>());
    }

    #[test]
    fn a_meter_on_a_missing_cpu_is_refused() {
        let settings =
            MeterSettings { every: MS, cpu: Some(1_000), priority: Priority::Normal, reads_run_queue: true };
        assert!(HiccupMeter::start_with(settings).is_err());
    }

    #[test]
    fn a_meter_reads_its_run_queue_latency() {
        let settings =
            MeterSettings { every: MS, cpu: None, priority: Priority::Normal, reads_run_queue: true };
        let meter = HiccupMeter::start_with(settings).unwrap();
        clock::sleep_until(clock::now() + Nanos::from_millis(20));
        let wakes = meter.take_before(Nanos::MAX);
        assert!(wakes.iter().all(|wake| wake.queued.is_some()));
    }
}
