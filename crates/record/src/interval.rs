//! What happened in one interval of a run, by one worker or by all: counts and histograms that add.

use units::Nanos;

use crate::durations::Durations;
use crate::outcome::{Failure, Outcome};
use crate::phase::Phase;
use crate::timeline::Timeline;

/// Everything measured in one interval. Requests belong to the interval in which they *ended*.
///
/// Histograms are made when their first value comes and kept when the interval is cleared, so a worker that
/// reuses its intervals allocates nothing after the first seconds.
#[derive(Debug, Clone, Default)]
pub struct Interval {
    /// Its number since the run's start.
    pub index: u64,
    /// Offset of its begin from the run's start.
    pub start: Nanos,
    pub length: Nanos,
    pub counts: Counts,
    /// CPU time of the worker threads merged here.
    pub worker_cpu: Nanos,
    /// The busiest worker's CPU time.
    pub worker_cpu_max: Nanos,
    /// The longest time for which a worker that should have run did not.
    pub worker_stall_max: Nanos,
    response: Lazy,
    service: Lazy,
    phases: [Lazy; Phase::COUNT],
    /// Age at the end, by outcome; `ok` stays empty.
    failed: [Lazy; Outcome::COUNT],
    failures: Vec<(Failure, u64)>,
    codes: Vec<(u16, u64)>,
}

/// Plain counters of one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests that became due.
    pub scheduled: u64,
    /// Requests whose first byte was handed to the kernel.
    pub sent: u64,
    pub ok: u64,
    /// Requests under way or queueing at the interval's end.
    pub outstanding: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Bytes of answers' bodies.
    pub body_bytes: u64,
    pub connections_opened: u64,
    /// Connections that the peer closed while no request was on them.
    pub idle_closes: u64,
    /// `ok` answers without kernel stamps: their `client_lag` is absent and lies within `wait` and `receive`.
    pub unstamped: u64,
    /// Kernel stamps that had to be moved by over a microsecond to keep their order.
    pub stamps_moved: u64,
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.ok += other.ok;
        self.outstanding += other.outstanding;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.body_bytes += other.body_bytes;
        self.connections_opened += other.connections_opened;
        self.idle_closes += other.idle_closes;
        self.unstamped += other.unstamped;
        self.stamps_moved += other.stamps_moved;
    }
}

impl Interval {
    /// Books a request that was answered and passed its checks.
    ///
    /// # Cost
    ///
    /// Seven to eight histogram increments on a connection that was already open.
    #[inline]
    pub fn record_ok(&mut self, timeline: &Timeline) {
        debug_assert!(timeline.is_complete());
        self.counts.ok += 1;
        self.response.record(timeline.response());
        self.service.record(timeline.service());
        for phase in Phase::ALL {
            if let Some(length) = timeline.phase(phase) {
                self.phases[phase as usize].record(length);
            }
        }
    }

    /// Books a request that ended otherwise, `age` after it was intended.
    pub fn record_failure(&mut self, failure: Failure, age: Nanos) {
        debug_assert!(failure.outcome != Outcome::Ok);
        self.failed[failure.outcome as usize].record(age);
        self.add_failures(failure, 1);
    }

    /// Counts the application's code of one answer (HTTP status and the like).
    #[inline]
    pub fn record_code(&mut self, code: u16) {
        self.add_codes(code, 1);
    }

    /// Adds all of `other`; `index`, `start` and `length` stay.
    pub fn merge(&mut self, other: &Interval) {
        self.counts.merge(&other.counts);
        self.worker_cpu += other.worker_cpu;
        self.worker_cpu_max = self.worker_cpu_max.max(other.worker_cpu_max);
        self.worker_stall_max = self.worker_stall_max.max(other.worker_stall_max);
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        for (mine, theirs) in self.phases.iter_mut().zip(&other.phases) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.failed.iter_mut().zip(&other.failed) {
            mine.merge(theirs);
        }
        for &(failure, count) in &other.failures {
            self.add_failures(failure, count);
        }
        for &(code, count) in &other.codes {
            self.add_codes(code, count);
        }
    }

    /// Empties everything, keeping the memory.
    pub fn clear(&mut self) {
        self.counts = Counts::default();
        self.worker_cpu = Nanos::ZERO;
        self.worker_cpu_max = Nanos::ZERO;
        self.worker_stall_max = Nanos::ZERO;
        self.response.clear();
        self.service.clear();
        self.phases.iter_mut().for_each(Lazy::clear);
        self.failed.iter_mut().for_each(Lazy::clear);
        self.failures.clear();
        self.codes.clear();
    }

    /// How many requests ended in this interval: the sum of all outcomes.
    pub fn ended(&self) -> u64 {
        self.counts.ok + self.failures.iter().map(|(_, count)| count).sum::<u64>()
    }

    /// Response of the `ok` requests, or `None` when there were none.
    pub fn response(&self) -> Option<&Durations> {
        self.response.get()
    }

    pub fn service(&self) -> Option<&Durations> {
        self.service.get()
    }

    pub fn phase(&self, phase: Phase) -> Option<&Durations> {
        self.phases[phase as usize].get()
    }

    /// Ages of the requests that ended in `outcome`.
    pub fn failed(&self, outcome: Outcome) -> Option<&Durations> {
        self.failed[outcome as usize].get()
    }

    /// Every failure seen, with its count, in the order of first sight.
    pub fn failures(&self) -> &[(Failure, u64)] {
        &self.failures
    }

    /// Every application code seen, with its count, in the order of first sight.
    pub fn codes(&self) -> &[(u16, u64)] {
        &self.codes
    }

    /// The slot of a histogram by what it holds, for readers of files.
    pub fn slot(&mut self, series: Series) -> &mut Durations {
        match series {
            Series::Response => &mut self.response,
            Series::Service => &mut self.service,
            Series::Phase(phase) => &mut self.phases[phase as usize],
            Series::Failed(outcome) => &mut self.failed[outcome as usize],
        }
        .get_or_make()
    }

    /// A histogram by what it holds, or `None` when it is empty.
    pub fn series(&self, series: Series) -> Option<&Durations> {
        match series {
            Series::Response => self.response(),
            Series::Service => self.service(),
            Series::Phase(phase) => self.phase(phase),
            Series::Failed(outcome) => self.failed(outcome),
        }
    }

    /// Adds `count` requests that ended in `failure`, without their ages: for readers of files.
    pub fn add_failures(&mut self, failure: Failure, count: u64) {
        add_to(&mut self.failures, failure, count);
    }

    /// Adds `count` answers with `code`.
    #[inline]
    pub fn add_codes(&mut self, code: u16, count: u64) {
        add_to(&mut self.codes, code, count);
    }
}

/// What one histogram of an interval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Series {
    Response,
    Service,
    Phase(Phase),
    /// Ages of failed requests.
    Failed(Outcome),
}

impl Series {
    /// Every histogram an interval can hold.
    pub fn all() -> impl Iterator<Item = Series> {
        let failed = Outcome::ALL.into_iter().filter(|&outcome| outcome != Outcome::Ok);
        [Series::Response, Series::Service]
            .into_iter()
            .chain(Phase::ALL.into_iter().map(Series::Phase))
            .chain(failed.map(Series::Failed))
    }

    /// `response`, `service`, `phase-wait`, `outcome-reset`: the name of its file without `.hlog`.
    pub fn name(self) -> String {
        match self {
            Series::Response => "response".to_owned(),
            Series::Service => "service".to_owned(),
            Series::Phase(phase) => format!("phase-{}", phase.name()),
            Series::Failed(outcome) => format!("outcome-{}", outcome.name()),
        }
    }

    pub fn from_name(name: &str) -> Option<Series> {
        match name.split_once('-') {
            None if name == "response" => Some(Series::Response),
            None if name == "service" => Some(Series::Service),
            Some(("phase", phase)) => Phase::from_name(phase).map(Series::Phase),
            Some(("outcome", outcome)) => {
                Outcome::from_name(outcome).filter(|&outcome| outcome != Outcome::Ok).map(Series::Failed)
            }
            _ => None,
        }
    }
}

// Few distinct keys occur, and the first is nearly always the one asked for: a list beats a map.
#[inline]
fn add_to<K: PartialEq>(list: &mut Vec<(K, u64)>, key: K, count: u64) {
    match list.iter_mut().find(|(known, _)| *known == key) {
        Some((_, sum)) => *sum += count,
        None => list.push((key, count)),
    }
}

/// A histogram that takes memory only once it has held a value.
#[derive(Debug, Clone, Default)]
struct Lazy(Option<Box<Durations>>);

impl Lazy {
    #[inline]
    fn get_or_make(&mut self) -> &mut Durations {
        self.0.get_or_insert_with(Box::default)
    }

    #[inline]
    fn record(&mut self, duration: Nanos) {
        self.get_or_make().record(duration);
    }

    fn get(&self) -> Option<&Durations> {
        self.0.as_deref().filter(|durations| !durations.is_empty())
    }

    fn merge(&mut self, other: &Lazy) {
        if let Some(theirs) = other.get() {
            self.get_or_make().merge(theirs);
        }
    }

    fn clear(&mut self) {
        if let Some(durations) = self.0.as_deref_mut().filter(|durations| !durations.is_empty()) {
            durations.clear();
        }
    }
}
