//! Hiccup meters on the CPUs of this host, and what they saw of one interval or of all. `parallax hiccup` starts them.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use host::{Accounts, Causes, HiccupMeter, MeterSettings, Priority, Wake, explain};
use record::Durations;
use record::document::MissingFact;
use record::observation::hiccup::{CausesNs, HiccupLine, Hiccups, Stall};
use units::Nanos;

/// When this process received SIGCONT: the most recent times.
pub type Continued = Arc<Mutex<Vec<Nanos>>>;

/// How meters measure.
pub struct MeterPlan {
    /// Time between two ticks.
    pub resolution: Nanos,
    pub priority: Priority,
    /// The priority, in the form its option takes.
    pub urgency: String,
    /// Stalls of at least this length are listed individually.
    pub threshold: Nanos,
}

/// The running meters, and the thread that reads the kernel's accounts.
pub struct Meters {
    each: Vec<(Option<usize>, HiccupMeter)>,
    accounts: Accounts,
    continued: Continued,
    threshold: Nanos,
    zero: Nanos,
}

/// What meters measured, as sums.
pub struct Tally {
    pub ticks: Durations,
    over: [u64; 3],
    stalls: u64,
    causes: CausesNs,
}

/// What was measured in one interval.
pub struct Seen {
    pub all: Tally,
    /// One entry per meter, in the order of the meters.
    pub each: Vec<Tally>,
    /// Longest first.
    pub stalls: Vec<Stall>,
    pub pressure: Option<Nanos>,
}

impl Meters {
    /// Starts one meter per entry of `cpus`, pinned to that CPU if the entry is not `None`.
    ///
    /// # Errors
    ///
    /// When a meter cannot be pinned to its CPU or cannot get its priority.
    pub fn start(plan: &MeterPlan, cpus: &[Option<usize>], continued: Continued) -> anyhow::Result<Meters> {
        let start = |&cpu: &Option<usize>| {
            let settings =
                MeterSettings { every: plan.resolution, cpu, priority: plan.priority, reads_run_queue: true };
            let place = cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
            let meter = HiccupMeter::start_with(settings).with_context(|| {
                let urgency = &plan.urgency;
                format!("cannot start a meter{place} at priority {urgency} (nice below 0 and fifo need root or CAP_SYS_NICE)")
            })?;
            Ok((cpu, meter))
        };
        let each = cpus.iter().map(start).collect::<anyhow::Result<Vec<_>>>()?;
        let accounts = Accounts::start().context("cannot start a thread for the accounts")?;
        let zero = clock::now();
        Ok(Meters { each, accounts, continued, threshold: plan.threshold, zero })
    }

    /// The zero of the record.
    pub fn zero(&self) -> Nanos {
        self.zero
    }

    /// What this host does not report.
    pub fn missing(&self) -> Vec<MissingFact> {
        let facts = self.accounts.missing().iter();
        facts.map(|missing| MissingFact { what: missing.what.to_owned(), why: missing.why.clone() }).collect()
    }

    /// The CPU of each meter; `None` for a meter that is not pinned.
    pub fn cpus(&self) -> impl Iterator<Item = Option<usize>> {
        self.each.iter().map(|(cpu, _)| *cpu)
    }

    /// Discards ticks that were due before `end`.
    pub fn skip_to(&self, end: Nanos) {
        for (_, meter) in &self.each {
            let _ = meter.take_before(end);
        }
    }

    /// The ticks that were due in `from..end` and have not been taken yet.
    pub fn take(&self, from: Nanos, end: Nanos) -> Seen {
        let continued = self.continued.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut seen = Seen { all: Tally::new(), each: Vec::new(), stalls: Vec::new(), pressure: None };
        for (cpu, meter) in &self.each {
            let mut tally = Tally::new();
            for wake in meter.take_before(end) {
                wake.ticks().for_each(|tick| tally.ticks.record(tick.late));
                if !wake.is_rest && wake.late() >= tally.least().min(self.threshold) {
                    seen.stalls.extend(tally.stall(&wake, *cpu, self, &continued));
                }
            }
            seen.all.merge(&tally);
            seen.each.push(tally);
        }
        seen.stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length_ns));
        seen.stalls.truncate(STALLS_KEPT);
        let around = self.accounts.around(from, end);
        seen.pressure =
            around.and_then(|(before, after)| Some(after.pressure?.saturating_sub(before.pressure?)));
        seen
    }
}

/// Maximum number of stalls kept per interval; the rest is only counted.
const STALLS_KEPT: usize = 100;

/// Stalls are counted in classes that begin at these lengths.
const OVER: [Nanos; 3] = [Nanos::from_millis(1), Nanos::from_millis(10), Nanos::from_millis(100)];

impl Default for Tally {
    fn default() -> Tally {
        Tally::new()
    }
}

impl Tally {
    /// A tally without ticks or stalls.
    pub fn new() -> Tally {
        Tally { ticks: Durations::new(), over: [0; 3], stalls: 0, causes: CausesNs::default() }
    }

    fn least(&self) -> Nanos {
        OVER[0]
    }

    /// Counts a stall, and lists it if it is long enough.
    fn stall(&mut self, wake: &Wake, cpu: Option<usize>, of: &Meters, continued: &[Nanos]) -> Option<Stall> {
        let length = wake.late();
        for (count, least) in self.over.iter_mut().zip(OVER) {
            *count += u64::from(length >= least);
        }
        if length < of.threshold {
            return None;
        }
        let around = of.accounts.around(wake.due, wake.at);
        let causes = explain(wake, cpu, around.as_ref(), continued);
        let causes_ns = wire(&causes);
        self.stalls += 1;
        self.causes.add(&causes_ns);
        Some(Stall {
            at_ns: wake.due.saturating_sub(of.zero).0,
            length_ns: length.0,
            cpu: cpu.map(|cpu| cpu as u64),
            causes_ns,
            cpu_pressure_ns: causes.pressure.map(|time| time.0),
        })
    }

    /// Adds the counts of `other` to this tally.
    pub fn merge(&mut self, other: &Tally) {
        self.ticks.merge(&other.ticks);
        for (count, more) in self.over.iter_mut().zip(other.over) {
            *count += more;
        }
        self.stalls += other.stalls;
        self.causes.add(&other.causes);
    }

    /// The figures for the record: `percentiles` of the ticks, with the counts and causes of this tally.
    pub fn hiccups(&self, percentiles: &Hiccups) -> Hiccups {
        let [over_1ms, over_10ms, over_100ms] = self.over;
        Hiccups {
            over_1ms,
            over_10ms,
            over_100ms,
            stalls: self.stalls,
            causes_ns: self.causes,
            ..percentiles.clone()
        }
    }
}

impl Seen {
    /// The line of this interval in the record's series, with the percentiles of its ticks.
    pub fn line(&self, percentiles: impl Fn(&Durations) -> Hiccups) -> HiccupLine {
        HiccupLine {
            saw: self.all.hiccups(&percentiles(&self.all.ticks)),
            stalls: self.stalls.clone(),
            cpu_pressure_ns: self.pressure.map(|time| time.0),
        }
    }
}

fn wire(causes: &Causes) -> CausesNs {
    CausesNs {
        run_queue: causes.run_queue.map(|time| time.0),
        throttled: causes.throttled.map(|time| time.0),
        stolen: causes.stolen.map(|time| time.0),
        stopped: causes.stopped.0,
        unknown: causes.unknown.0,
    }
}
