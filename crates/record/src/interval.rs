//! What happened in one interval of a run, by one worker or by all: counts and histograms that add.

use std::borrow::Cow;

use units::Nanos;

use crate::durations::Durations;
use crate::outcome::{Failure, Outcome};
use crate::phase::Phase;
use crate::surroundings::{HostSecond, LATE, WorkerSecond};
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
    /// Time that workers stayed awake for nothing but to be in time.
    pub worker_spin: Nanos,
    /// The busiest worker's CPU time, without what it stayed awake for.
    pub worker_cpu_max: Nanos,
    /// The longest time for which a worker that should have run did not.
    pub worker_stall_max: Nanos,
    /// How long the worker of this interval could run and waited for a CPU; of merged ones it lies in `workers`.
    pub run_queue: Option<Nanos>,
    /// The number of requests offered to the kernel and not ended, integrated over time: request-nanoseconds.
    pub outstanding_time: Option<u128>,
    /// The workers merged here, each once.
    pub workers: Vec<WorkerSecond>,
    /// What the client's host told of this interval.
    pub host: HostSecond,
    response: Lazy,
    service: Lazy,
    phases: [Lazy; Phase::COUNT],
    /// Age at the end, by outcome; `ok` stays empty.
    failed: [Lazy; Outcome::COUNT],
    /// Of the requests that ended otherwise than `ok`; those of the `ok` ones are phases.
    failed_lags: [Lazy; Lag::ALL.len()],
    /// How late a thread of this client was that only sleeps.
    hiccup: Lazy,
    failures: Vec<(Failure, u64)>,
    codes: Vec<(u16, u64)>,
    /// By the run's numbering of its requests; empty where all are of one kind.
    kinds: Vec<Kind>,
    reasons: Vec<((Outcome, Reason), u64)>,
}

/// What a protocol has to say of a failure. There are only so many, so they can be counted.
pub type Reason = Cow<'static, str>;

/// The figures of one kind of requests.
#[derive(Debug, Clone, Default)]
pub struct Kind {
    pub ok: u64,
    response: Lazy,
    service: Lazy,
    /// Ages of those that ended otherwise.
    failed: Lazy,
    failures: Vec<(Failure, u64)>,
}

impl Kind {
    /// See [`Interval::record_ok`].
    #[inline]
    pub fn record_ok(&mut self, timeline: &Timeline) {
        self.ok += 1;
        self.response.record(timeline.response());
        self.service.record(timeline.service());
    }

    /// See [`Interval::record_failure`].
    pub fn record_failure(&mut self, failure: Failure, age: Nanos) {
        self.failed.record(age);
        add_to(&mut self.failures, failure, 1);
    }

    /// Response of the `ok` ones, or `None` when there were none.
    pub fn response(&self) -> Option<&Durations> {
        self.response.get()
    }

    pub fn service(&self) -> Option<&Durations> {
        self.service.get()
    }

    pub fn failed(&self) -> Option<&Durations> {
        self.failed.get()
    }

    /// Every failure seen, with its count, in the order of first sight.
    pub fn failures(&self) -> &[(Failure, u64)] {
        &self.failures
    }

    /// Adds `count` requests that ended in `failure`, without their ages: for readers of files.
    pub fn add_failures(&mut self, failure: Failure, count: u64) {
        add_to(&mut self.failures, failure, count);
    }

    fn merge(&mut self, other: &Kind) {
        self.ok += other.ok;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.failed.merge(&other.failed);
        for &(failure, count) in &other.failures {
            add_to(&mut self.failures, failure, count);
        }
    }

    fn clear(&mut self) {
        self.ok = 0;
        self.response.clear();
        self.service.clear();
        self.failed.clear();
        self.failures.clear();
    }
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
    /// Connections that could not be opened because this process had no descriptor left.
    pub out_of_descriptors: u64,
    /// Connections that could not be opened because this host had no local port left for them.
    pub out_of_ports: u64,
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
        self.out_of_descriptors += other.out_of_descriptors;
        self.out_of_ports += other.out_of_ports;
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

    /// Books how late this client was for a request that ended otherwise than `ok`, as far as the request came: its
    /// outcome does not excuse the client.
    pub fn record_failed_lags(&mut self, timeline: &Timeline) {
        for lag in Lag::ALL {
            if let Some(length) = timeline.phase(lag.phase()) {
                self.failed_lags[lag as usize].record(length);
            }
        }
    }

    /// Counts the application's code of one answer (HTTP status and the like).
    #[inline]
    pub fn record_code(&mut self, code: u16) {
        self.add_codes(code, 1);
    }

    /// Books how late a tick was of a thread that only sleeps.
    pub fn record_hiccup(&mut self, late: Nanos) {
        self.hiccup.record(late);
    }

    /// Sums up this interval as that of worker number `worker` alone, before it is merged with others.
    ///
    /// # Cost
    ///
    /// Walks two histograms: once an interval, on the collecting thread.
    pub fn describe_worker(&mut self, worker: u64) {
        let lags =
            || [Phase::ScheduleLag, Phase::ClientLag].into_iter().filter_map(|phase| self.phase(phase));
        let lag: u128 = lags().map(Durations::sum_ns).sum();
        let described = WorkerSecond {
            worker,
            cpu_ns: self.worker_cpu.0,
            run_queue_ns: self.run_queue.map(|waited| waited.0),
            stall_max_ns: self.worker_stall_max.0,
            ok: self.counts.ok,
            late: lags().map(|lag| lag.count_over(LATE)).sum(),
            lag_ns: u64::try_from(lag).unwrap_or(u64::MAX),
        };
        self.workers.clear();
        self.workers.push(described);
    }

    /// Adds all of `other`; `index`, `start` and `length` stay.
    pub fn merge(&mut self, other: &Interval) {
        self.counts.merge(&other.counts);
        self.worker_cpu += other.worker_cpu;
        self.worker_spin += other.worker_spin;
        self.worker_cpu_max = self.worker_cpu_max.max(other.worker_cpu_max);
        self.worker_stall_max = self.worker_stall_max.max(other.worker_stall_max);
        if let Some(theirs) = other.outstanding_time {
            self.outstanding_time = Some(self.outstanding_time.unwrap_or(0).saturating_add(theirs));
        }
        for theirs in &other.workers {
            match self.workers.iter_mut().find(|mine| mine.worker == theirs.worker) {
                Some(mine) => mine.merge(theirs),
                None => self.workers.push(*theirs),
            }
        }
        self.host.merge(&other.host);
        self.hiccup.merge(&other.hiccup);
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        for (mine, theirs) in self.phases.iter_mut().zip(&other.phases) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.failed.iter_mut().zip(&other.failed) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.failed_lags.iter_mut().zip(&other.failed_lags) {
            mine.merge(theirs);
        }
        for &(failure, count) in &other.failures {
            self.add_failures(failure, count);
        }
        for &(code, count) in &other.codes {
            self.add_codes(code, count);
        }
        for ((outcome, reason), count) in &other.reasons {
            self.add_reasons(*outcome, reason.clone(), *count);
        }
        for (index, theirs) in other.kinds.iter().enumerate() {
            self.kind_at(index).merge(theirs);
        }
    }

    /// The figures of one kind, made on first use.
    #[inline]
    pub fn kind(&mut self, kind: u16) -> &mut Kind {
        self.kind_at(usize::from(kind))
    }

    /// The figures of every kind, in order; empty where all requests are of one.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    #[inline]
    fn kind_at(&mut self, index: usize) -> &mut Kind {
        if index >= self.kinds.len() {
            self.kinds.resize_with(index + 1, Kind::default);
        }
        &mut self.kinds[index]
    }

    /// Empties everything, keeping the memory.
    pub fn clear(&mut self) {
        self.counts = Counts::default();
        self.worker_cpu = Nanos::ZERO;
        self.worker_spin = Nanos::ZERO;
        self.worker_cpu_max = Nanos::ZERO;
        self.worker_stall_max = Nanos::ZERO;
        self.run_queue = None;
        self.outstanding_time = None;
        self.workers.clear();
        self.host = HostSecond::default();
        self.hiccup.clear();
        self.response.clear();
        self.service.clear();
        self.phases.iter_mut().for_each(Lazy::clear);
        self.failed.iter_mut().for_each(Lazy::clear);
        self.failed_lags.iter_mut().for_each(Lazy::clear);
        self.failures.clear();
        self.codes.clear();
        self.kinds.iter_mut().for_each(Kind::clear);
        self.reasons.clear();
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

    /// Why `count` requests ended in `outcome`, where the protocol says it.
    pub fn add_reasons(&mut self, outcome: Outcome, reason: Reason, count: u64) {
        add_to(&mut self.reasons, (outcome, reason), count);
    }

    /// Every reason seen, with its outcome and its count, in the order of first sight.
    pub fn reasons(&self) -> &[((Outcome, Reason), u64)] {
        &self.reasons
    }

    /// The slot of a histogram by what it holds, for readers of files.
    pub fn slot(&mut self, series: Series) -> &mut Durations {
        match series {
            Series::Response => &mut self.response,
            Series::Service => &mut self.service,
            Series::Phase(phase) => &mut self.phases[phase as usize],
            Series::Failed(outcome) => &mut self.failed[outcome as usize],
            Series::FailedLag(lag) => &mut self.failed_lags[lag as usize],
            Series::Target(target, of) => {
                let kind = self.kind(target);
                match of {
                    TargetSeries::Response => &mut kind.response,
                    TargetSeries::Service => &mut kind.service,
                    TargetSeries::Failed => &mut kind.failed,
                }
            }
            Series::Hiccup => &mut self.hiccup,
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
            Series::FailedLag(lag) => self.failed_lags[lag as usize].get(),
            Series::Target(target, of) => {
                let kind = self.kinds.get(usize::from(target))?;
                match of {
                    TargetSeries::Response => kind.response(),
                    TargetSeries::Service => kind.service(),
                    TargetSeries::Failed => kind.failed(),
                }
            }
            Series::Hiccup => self.hiccup.get(),
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
    /// How late this client was for failed requests.
    FailedLag(Lag),
    /// How late a thread of this client was that only sleeps: no part of any request.
    Hiccup,
    /// Of one target alone, in a run of several.
    Target(u16, TargetSeries),
}

/// A lateness of this client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lag {
    /// Behind the schedule.
    Schedule,
    /// Behind the answers.
    Client,
}

impl Lag {
    pub const ALL: [Lag; 2] = [Lag::Schedule, Lag::Client];

    /// The phase that it is.
    pub fn phase(self) -> Phase {
        match self {
            Lag::Schedule => Phase::ScheduleLag,
            Lag::Client => Phase::ClientLag,
        }
    }
}

units::named_enum! {
    /// What one histogram of a target holds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TargetSeries {
        Response = "response",
        Service = "service",
        /// Ages of all that failed.
        Failed = "failed",
    }
}

impl Series {
    /// Every histogram an interval of a run with `targets` targets can hold; 0 where they are not told apart.
    pub fn of(targets: usize) -> impl Iterator<Item = Series> {
        let one = |target| TargetSeries::ALL.map(|of| Series::Target(target, of));
        Series::all().chain((0..=u16::MAX).take(targets).flat_map(one))
    }

    /// Every histogram of the run as a whole.
    pub fn all() -> impl Iterator<Item = Series> {
        let failed = Outcome::ALL.into_iter().filter(|&outcome| outcome != Outcome::Ok);
        [Series::Response, Series::Service]
            .into_iter()
            .chain(Phase::ALL.into_iter().map(Series::Phase))
            .chain(failed.map(Series::Failed))
            .chain(Lag::ALL.into_iter().map(Series::FailedLag))
            .chain([Series::Hiccup])
    }

    /// `response`, `service`, `phase-wait`, `outcome-reset`: the name of its file without `.hlog`.
    pub fn name(self) -> String {
        match self {
            Series::Response => "response".to_owned(),
            Series::Service => "service".to_owned(),
            Series::Phase(phase) => format!("phase-{}", phase.name()),
            Series::Failed(outcome) => format!("outcome-{}", outcome.name()),
            Series::FailedLag(lag) => format!("failed-{}", lag.phase().name()),
            Series::Hiccup => "hiccup".to_owned(),
            Series::Target(target, of) => format!("target-{target}-{}", of.name()),
        }
    }

    pub fn from_name(name: &str) -> Option<Series> {
        match name.split_once('-') {
            None if name == "response" => Some(Series::Response),
            None if name == "service" => Some(Series::Service),
            None if name == "hiccup" => Some(Series::Hiccup),
            Some(("phase", phase)) => Phase::from_name(phase).map(Series::Phase),
            Some(("outcome", outcome)) => {
                Outcome::from_name(outcome).filter(|&outcome| outcome != Outcome::Ok).map(Series::Failed)
            }
            Some(("failed", phase)) => {
                Lag::ALL.into_iter().find(|lag| lag.phase().name() == phase).map(Series::FailedLag)
            }
            Some(("target", rest)) => {
                let (target, of) = rest.split_once('-')?;
                let of = TargetSeries::from_name(of)?;
                let series = Series::Target(target.parse().ok()?, of);
                // One name each: no sign and no zero in front.
                (series.name() == name).then_some(series)
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
