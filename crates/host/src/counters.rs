//! Counters of this host around a run: quotas, stolen time, pressure, drops, descriptors.
//!
//! Counters are read once per interval; the difference between two readings is used. A counter that cannot be read is
//! absent, and [`Counters::missing`] has the reason.

use std::fs;

use rustix::process::{Resource, getrlimit};
use rustix::thread::sched_getaffinity;
use units::Nanos;

use crate::cgroup::Quota;
use crate::net;

/// All counters of a run.
#[derive(Debug)]
pub struct Counters {
    quota: Option<Quota>,
    missing: Vec<Missing>,
    before: Reading,
}

/// A counter that cannot be read on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The name of the counter.
    pub what: &'static str,
    /// Why it cannot be read, for the record.
    pub why: String,
}

/// What happened between two readings. `None`: this host does not have the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Periods in which a CPU quota of the control groups around this process was used up.
    pub throttled: Option<u64>,
    /// How long the quota stopped CPUs, summed over CPUs.
    pub throttled_time: Option<Nanos>,
    /// Time that a hypervisor gave to other machines, summed over the CPUs this process may run on.
    pub steal: Option<Nanos>,
    /// Time in which at least one task of this host waited for a CPU (PSI `cpu some`).
    pub cpu_pressure: Option<Nanos>,
    /// Connections that were dropped because a listen queue in this network namespace was full.
    pub listen_drops: Option<u64>,
    /// TCP segments retransmitted in this network namespace.
    pub retransmits: Option<u64>,
    /// File descriptors open at the second reading.
    pub open_files: Option<u64>,
}

impl Counters {
    /// Takes the first reading, and notes which counters cannot be read.
    pub fn start() -> Counters {
        let mut missing = Vec::new();
        let quota = kept(&mut missing, "cpu_quota", Quota::find());
        kept(&mut missing, "steal", steal());
        kept(&mut missing, "cpu_pressure", cpu_pressure());
        kept(&mut missing, "listen_drops", net::listen_drops());
        kept(&mut missing, "retransmits", net::retransmits());
        kept(&mut missing, "open_files", open_files());
        let mut counters = Counters { quota, missing, before: Reading::default() };
        counters.before = counters.read();
        counters
    }

    /// The counters that cannot be read on this host, and why.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// What happened since the previous call, or since [`Counters::start`].
    ///
    /// # Cost
    ///
    /// Half a dozen small files of /proc, some 100 us: once per interval, not on a worker's thread.
    pub fn since_last(&mut self) -> Reading {
        let now = self.read();
        let before = std::mem::replace(&mut self.before, now);
        now.since(&before)
    }

    fn read(&self) -> Reading {
        let throttled = self.quota.as_ref().and_then(Quota::read);
        Reading {
            throttled: throttled.map(|throttled| throttled.times),
            throttled_time: throttled.map(|throttled| throttled.time),
            steal: steal().ok(),
            cpu_pressure: cpu_pressure().ok(),
            listen_drops: net::listen_drops().ok(),
            retransmits: net::retransmits().ok(),
            open_files: open_files().ok(),
        }
    }
}

impl Reading {
    fn since(&self, before: &Reading) -> Reading {
        let count = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        let time = |now: Option<Nanos>, before: Option<Nanos>| Some(now?.saturating_sub(before?));
        Reading {
            throttled: count(self.throttled, before.throttled),
            throttled_time: time(self.throttled_time, before.throttled_time),
            steal: time(self.steal, before.steal),
            cpu_pressure: time(self.cpu_pressure, before.cpu_pressure),
            listen_drops: count(self.listen_drops, before.listen_drops),
            retransmits: count(self.retransmits, before.retransmits),
            open_files: self.open_files,
        }
    }
}

/// How many file descriptors this process may have open; `None` without a limit.
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// File descriptors open now.
///
/// # Errors
///
/// Why it is unknown.
fn open_files() -> Result<u64, String> {
    const PATH: &str = "/proc/self/fd";
    let with_path = |error: std::io::Error| format!("{PATH}: {error}");
    // Since Linux 6.2 the size of the folder is their number; before, it was 0.
    match fs::metadata(PATH).map_err(with_path)?.len() {
        // Not counting the one that reads the folder.
        0 => Ok((fs::read_dir(PATH).map_err(with_path)?.count() as u64).saturating_sub(1)),
        size => Ok(size),
    }
}

fn kept<T>(missing: &mut Vec<Missing>, what: &'static str, read: Result<T, String>) -> Option<T> {
    read.map_err(|why| missing.push(Missing { what, why })).ok()
}

/// Ticks of /proc/stat are hundredths of a second on every Linux (USER_HZ).
const TICK: Nanos = Nanos::from_millis(10);

fn steal() -> Result<Nanos, String> {
    let text = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
    let allowed = sched_getaffinity(None).map_err(|error| format!("the CPUs of this process: {error}"))?;
    stolen(&text, |cpu| allowed.is_set(cpu)).ok_or_else(|| "/proc/stat has no steal time".to_owned())
}

/// `cpu0 user nice system idle iowait irq softirq steal guest guest_nice`, summed over the CPUs `of`.
fn stolen(text: &str, of: impl Fn(usize) -> bool) -> Option<Nanos> {
    let each: Vec<u64> =
        stolen_of(text)?.into_iter().filter(|(cpu, _)| of(*cpu)).map(|(_, time)| time.0).collect();
    (!each.is_empty()).then(|| Nanos(each.iter().sum()))
}

/// The time stolen from each CPU since boot, with the CPU's number; `None` if the kernel does not count it.
pub(crate) fn stolen_of(text: &str) -> Option<Vec<(usize, Nanos)>> {
    let each = text.lines().filter_map(|line| {
        let (cpu, numbers) = line.strip_prefix("cpu")?.split_once(' ')?;
        let cpu: usize = cpu.parse().ok()?;
        let ticks = numbers.split_ascii_whitespace().nth(7).and_then(|ticks| ticks.parse::<u64>().ok());
        Some(ticks.map(|ticks| (cpu, Nanos(ticks * TICK.0))))
    });
    each.collect()
}

pub(crate) fn cpu_pressure() -> Result<Nanos, String> {
    const PATH: &str = "/proc/pressure/cpu";
    let text = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    pressure(&text).ok_or_else(|| format!("{PATH} has no total"))
}

/// `some avg10=4.96 avg60=2.99 avg300=2.45 total=4427871873`, in microseconds.
fn pressure(text: &str) -> Option<Nanos> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.rsplit_once("total=")?.1.trim().parse::<u64>().ok()?.checked_mul(1_000).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_that_of_the_cpus_of_this_process() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 1 1 1 1 1 1 3 0 0\ncpu1 1 1 1 1 1 1 1 5 0 0\nintr 1\n";
        assert_eq!(stolen(text, |cpu| cpu == 1), Some(Nanos::from_millis(50)));
        assert_eq!(stolen(text, |_| true), Some(Nanos::from_millis(80)));
        assert_eq!(stolen(text, |_| false), None);
        assert_eq!(stolen("cpu0 1 2 3\n", |_| true), None);
    }

    #[test]
    fn pressure_is_of_some_tasks() {
        let text = "some avg10=4.96 avg60=2.99 avg300=2.45 total=4427\nfull avg10=0.00 total=1\n";
        assert_eq!(pressure(text), Some(Nanos(4_427_000)));
        assert_eq!(pressure("full total=1\n"), None);
    }

    #[test]
    fn open_files_are_counted() {
        let before = open_files().unwrap();
        let held: Vec<_> = (0..10).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        let now = open_files().unwrap();
        // Other tests of this process open files, too.
        assert!(now >= before.saturating_sub(5) + held.len() as u64 - 5, "{before}, then {now}");
        assert!(open_files_limit().is_none_or(|limit| limit >= now));
    }

    #[test]
    fn every_counter_is_present_or_reported_missing() {
        let mut counters = Counters::start();
        let reading = counters.since_last();
        let absent = |what| counters.missing().iter().any(|missing| missing.what == what);
        assert_eq!(reading.retransmits.is_none(), absent("retransmits"));
        assert_eq!(reading.throttled.is_none(), absent("cpu_quota"));
        assert_eq!(reading.steal.is_none(), absent("steal"));
        assert_eq!(reading.cpu_pressure.is_none(), absent("cpu_pressure"));
    }
}
