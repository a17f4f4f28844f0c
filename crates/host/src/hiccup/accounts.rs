//! The kernel's accounts that explain stalls: throttling, stolen time, pressure, read twenty times per second.
//!
//! Separate from the meters, because reading them takes tens of microseconds, and more on a host with many CPUs. A
//! stall falls between two samples; the growth of the accounts between these may have caused it.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use units::Nanos;

use crate::cgroup::Quota;
use crate::counters::{Missing, cpu_pressure, stolen_of};

/// The accounts at one moment; `None` if the kernel does not keep one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    /// When their reading began and had ended, on the monotonic clock. In between, a quota may stop the reader for long:
    /// they are at least as new as the one, and at least as old as the other.
    pub began: Nanos,
    pub at: Nanos,
    /// How long CPU quotas stopped this process's control groups since boot.
    pub throttled: Option<Nanos>,
    /// The time a hypervisor took from each CPU since boot, with the CPU's number.
    pub stolen: Option<Vec<(usize, Nanos)>>,
    /// How long at least one task of this host waited for a CPU since boot (PSI `cpu some`).
    pub pressure: Option<Nanos>,
}

/// Reads the accounts in its own thread until it is dropped.
#[derive(Debug)]
pub struct Accounts {
    shared: Arc<Shared>,
    missing: Vec<Missing>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    quota: Option<Quota>,
    samples: Mutex<VecDeque<Sample>>,
    stop: AtomicBool,
}

impl Accounts {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    ///
    /// # Cost
    ///
    /// Three small files of /proc and /sys every 50 ms: 0.27 % of a core (2026-11-22, a virtual machine with two
    /// cores, both busy, by the scheduler's account of its thread).
    pub fn start() -> io::Result<Accounts> {
        let mut missing = Vec::new();
        let mut miss = |what, why| missing.push(Missing { what, why });
        let quota = Quota::find().map_err(|why| miss("throttling", why)).ok();
        let shared = Shared { quota, samples: Mutex::default(), stop: AtomicBool::new(false) };
        let first = shared.read();
        if first.stolen.is_none() {
            miss("steal", "/proc/stat has no steal time".to_owned());
        }
        if let Err(why) = cpu_pressure() {
            miss("cpu_pressure", why);
        }
        shared.samples.lock().unwrap_or_else(PoisonError::into_inner).push_back(first);
        let shared = Arc::new(shared);
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("accounts".to_owned()).spawn(move || theirs.run())?;
        Ok(Accounts { shared, missing, thread: Some(thread) })
    }

    /// The accounts that this host does not keep, and why.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// The samples around `from..until`: the last one before and the first one after, as far as they exist.
    pub fn around(&self, from: Nanos, until: Nanos) -> Option<(Sample, Sample)> {
        let samples = self.shared.samples.lock().unwrap_or_else(PoisonError::into_inner);
        // A deque is in two slices.
        let (older, newer) = samples.as_slices();
        around([older, newer], from, until)
    }
}

fn around(slices: [&[Sample]; 2], from: Nanos, until: Nanos) -> Option<(Sample, Sample)> {
    let all = || slices.into_iter().flatten();
    let before = all().take_while(|sample| sample.at <= from).last().or_else(|| all().next())?;
    let after = all().find(|sample| sample.began >= until).or_else(|| all().last())?;
    Some((before.clone(), after.clone()))
}

impl Drop for Accounts {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut due = clock::now();
        while !self.stop.load(Ordering::Relaxed) {
            due = (due + EVERY).max(clock::now());
            clock::sleep_until(due);
            let sample = self.read();
            let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            samples.push_back(sample);
            if samples.len() > KEPT {
                samples.pop_front();
            }
        }
    }

    fn read(&self) -> Sample {
        let began = clock::now();
        let throttled = self.quota.as_ref().and_then(Quota::read).map(|throttled| throttled.time);
        let stat = fs::read_to_string("/proc/stat").ok();
        let stolen = stat.and_then(|text| stolen_of(&text));
        let pressure = cpu_pressure().ok();
        Sample { began, at: clock::now(), throttled, stolen, pressure }
    }
}

const EVERY: Nanos = Nanos::from_millis(50);

/// A minute of samples: for a longer stall the sample before it is lost, and more of the stall is unknown.
const KEPT: usize = 1_200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_between_two_samples() {
        let read = |began, at| Sample {
            began: Nanos::from_millis(began),
            at: Nanos::from_millis(at),
            ..Sample::default()
        };
        let at = |ms| read(ms, ms);
        let all = [at(0), at(50), at(100), at(150)];
        let find = |from, until| {
            let (before, after) =
                around([&all[..2], &all[2..]], Nanos::from_millis(from), Nanos::from_millis(until)).unwrap();
            (before.at.0 / 1_000_000, after.at.0 / 1_000_000)
        };
        assert_eq!(find(60, 70), (50, 100));
        assert_eq!(find(50, 100), (50, 100));
        assert_eq!(find(40, 120), (0, 150));
        // After the last sample: what is known so far.
        assert_eq!(find(160, 200), (150, 150));
        assert_eq!(around([&[], &[]], Nanos::ZERO, Nanos::ZERO), None);
        // A quota stopped the reader with old accounts in its hands, until after the stall.
        let stopped = [at(0), read(50, 131), at(150)];
        let (before, after) =
            around([&stopped, &[]], Nanos::from_millis(51), Nanos::from_millis(130)).unwrap();
        assert_eq!((before, after), (at(0), at(150)));
    }

    #[test]
    fn the_accounts_of_this_host_only_grow() {
        let accounts = Accounts::start().unwrap();
        let begin = clock::now();
        clock::sleep_until(begin + Nanos::from_millis(200));
        let (before, after) = accounts.around(begin, begin + Nanos::from_millis(100)).unwrap();
        assert!(before.at < after.at);
        assert!(after.pressure >= before.pressure && after.throttled >= before.throttled);
        assert!(accounts.missing().iter().all(|missing| !missing.why.is_empty()));
    }
}
