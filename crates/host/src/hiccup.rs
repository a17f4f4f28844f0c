//! How late a thread is that does nothing but sleep: what the host alone takes from everybody on it.
//!
//! A thread of this process sleeps from one tick to the next on an absolute schedule and notes how late each was.
//! It has no work of its own, so its lateness is that of the host, or of this whole process: stopped, throttled,
//! starved. On a core that it shares with a busy worker, the worker's time slices are in it, too.

use std::io;
use std::mem;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use units::Nanos;

/// One tick of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// When the thread wanted to run.
    pub due: Nanos,
    /// How much later it did.
    pub late: Nanos,
}

/// A meter that runs until it is dropped.
#[derive(Debug)]
pub struct HiccupMeter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    ticks: Mutex<Vec<Tick>>,
    stop: AtomicBool,
}

impl HiccupMeter {
    /// Starts the thread, with a tick every `every`.
    ///
    /// # Errors
    ///
    /// When there can be no thread.
    ///
    /// # Cost
    ///
    /// A wake-up a tick; see [`HiccupMeter::TICK`].
    pub fn start(every: Nanos) -> io::Result<HiccupMeter> {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("hiccup".to_owned()).spawn(move || theirs.run(every))?;
        Ok(HiccupMeter { shared, thread: Some(thread) })
    }

    /// Takes the ticks that were due before `end`, in order. Later ones stay for the next call.
    pub fn take_before(&self, end: Nanos) -> Vec<Tick> {
        let mut ticks = self.shared.ticks.lock().unwrap_or_else(PoisonError::into_inner);
        let later = ticks.partition_point(|tick| tick.due < end);
        let rest = ticks.split_off(later);
        mem::replace(&mut *ticks, rest)
    }

    /// What a run uses. A tick takes 6.6 us of CPU (2026-11-22, a virtual machine with two cores, 500 ticks by the
    /// scheduler's account): 0.07 % of a core at 10 ms, where 1 ms would take 0.7 % of the core that a pinned client
    /// has.
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

impl Shared {
    fn run(&self, every: Nanos) {
        // The kernel may fire a timer late by the thread's slack, 50 us unless changed.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut due = clock::now() + every;
        while !self.stop.load(Ordering::Relaxed) {
            clock::sleep_until(due);
            let now = clock::now();
            let mut ticks = self.ticks.lock().unwrap_or_else(PoisonError::into_inner);
            // A stall takes the ticks that were due within it, each with its own lateness: to note but the
            // first would count a stall of a second as one late tick of a hundred.
            while due <= now {
                ticks.push(Tick { due, late: now - due });
                due += every;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tick_is_there_once_and_none_is_early() {
        let begin = clock::now();
        let every = Nanos::from_millis(1);
        let meter = HiccupMeter::start(every).unwrap();
        clock::sleep_until(begin + Nanos::from_millis(60));
        let middle = begin + Nanos::from_millis(30);
        let mut ticks = meter.take_before(middle);
        assert!(ticks.iter().all(|tick| tick.due < middle));
        ticks.extend(meter.take_before(Nanos::MAX));
        assert!(ticks.len() > 2, "{}", ticks.len());
        assert!(ticks.windows(2).all(|pair| pair[1].due == pair[0].due + every));
        assert!(meter.take_before(middle).is_empty());
    }

    /// If this fails, a stall of a second counts as much as one of a millisecond.
    #[test]
    fn a_stall_is_noted_by_every_tick_within_it() {
        let shared = Shared::default();
        let begin = clock::now();
        thread::scope(|scope| {
            scope.spawn(|| shared.run(Nanos::from_millis(1)));
            clock::sleep_until(begin + Nanos::from_millis(10));
            let held = shared.ticks.lock().unwrap();
            // The meter waits for the lock as it would for a CPU, and finds the time gone.
            clock::sleep_until(clock::now() + Nanos::from_millis(30));
            drop(held);
            clock::sleep_until(clock::now() + Nanos::from_millis(10));
            shared.stop.store(true, Ordering::Relaxed);
        });
        let ticks = shared.ticks.into_inner().unwrap();
        let late = ticks.iter().filter(|tick| tick.late > Nanos::from_millis(5)).count();
        assert!(late >= 20, "{late} of {} ticks", ticks.len());
    }
}
