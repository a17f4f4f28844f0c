//! What happened in one interval of a run, for one worker or for all: counts and histograms that can be added.

use std::borrow::Cow;

use units::{Code, Nanos};

mod counts;
mod journey;
mod kind;
mod lazy;
mod reach;
mod series;

pub use self::counts::Counts;
pub use self::journey::Journey;
pub use self::kind::KindFigures;
use self::lazy::{Lazy, add_to};
pub use self::reach::Reach;
pub use self::series::{JourneySeries, Lag, Series, TargetSeries};
use crate::durations::Durations;
use crate::outcome::{Failure, Outcome};
use crate::phase::Phase;
use crate::sample::SAMPLES_MAX;
use crate::surroundings::{HostSecond, LATE, WorkerSecond};
use crate::timeline::Timeline;

/// Everything measured in one interval. Requests belong to the interval in which they *ended*.
///
/// Histograms are allocated when their first value is recorded, and kept when the interval is cleared, so a worker that
/// reuses its intervals allocates nothing after the first seconds.
#[derive(Debug, Clone, Default)]
pub struct Interval {
    /// Its number since the run's start.
    pub index: u64,
    /// When it begins, as an offset from the run's start.
    pub start: Nanos,
    pub length: Nanos,
    pub counts: Counts,
    /// CPU time of the worker threads merged here.
    pub worker_cpu: Nanos,
    /// Time for which workers stayed awake only to be on time.
    pub worker_spin: Nanos,
    /// The busiest worker's CPU time, without the time for which it stayed awake.
    pub worker_cpu_max: Nanos,
    /// The longest time for which a worker that should have run did not.
    pub worker_stall_max: Nanos,
    /// How long the worker of this interval was runnable and waited for a CPU; for merged intervals this is in
    /// `workers`.
    pub run_queue: Option<Nanos>,
    /// The number of requests offered to the kernel and not ended, integrated over time: request-nanoseconds.
    pub outstanding_time: Option<u128>,
    /// Whether the servers can be reached. Not part of the record.
    pub reach: Reach,
    /// The workers merged here, each once.
    pub workers: Vec<WorkerSecond>,
    /// What the client's host reported about this interval.
    pub host: HostSecond,
    response: Lazy,
    service: Lazy,
    phases: [Lazy; Phase::COUNT],
    /// Ages of the requests at their end, by outcome; `ok` stays empty.
    failed: [Lazy; Outcome::COUNT],
    /// Lags of the requests that did not end `ok`; those of the `ok` requests are phases.
    failed_lags: [Lazy; Lag::ALL.len()],
    /// How late a thread of this client woke up that only sleeps.
    hiccup: Lazy,
    failures: Vec<(Failure, u64)>,
    codes: Vec<(Code, u64)>,
    other_codes: u64,
    /// Indexed by kind of request; empty if figures are not kept per kind.
    kinds: Vec<KindFigures>,
    /// Indexed by journey; empty if no request follows another.
    journeys: Vec<Journey>,
    reasons: Vec<((Outcome, Reason), u64)>,
    /// What the first responses that failed a check contained, by check.
    check_samples: Vec<(Reason, String)>,
}

/// Why a request failed: a fixed text for the protocol, or the server's own message.
pub type Reason = Cow<'static, str>;

/// The maximum number of distinguished codes. HTTP has 62 registered statuses, and the statements of a load meet some
/// hundred errors of MySQL; a server that invents codes must not make the table grow.
pub const CODES_MAX: usize = 256;

/// The maximum number of distinguished reasons, not counting [`OTHER_REASONS`] of each outcome.
pub const REASONS_MAX: usize = 64;

/// The reason under which reasons beyond [`REASONS_MAX`] are counted.
pub const OTHER_REASONS: &str = "other reasons";

/// The phases of a request on an open connection, and so of nearly every request.
const OF_EVERY_REQUEST: [Phase; 6] =
    [Phase::ScheduleLag, Phase::PoolWait, Phase::Send, Phase::Wait, Phase::Receive, Phase::ClientLag];

impl Interval {
    /// An empty interval with memory allocated for what nearly every request records. Otherwise the first requests of a
    /// run would wait for the kernel to provide it: some microseconds per page, 10 ms in total on a slow virtual
    /// machine.
    pub fn reserved() -> Interval {
        let mut interval = Interval::default();
        interval.response.reserve();
        interval.service.reserve();
        OF_EVERY_REQUEST.iter().for_each(|&phase| interval.phases[phase as usize].reserve());
        interval
    }

    /// Records a request whose response passed its checks.
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

    /// Records a request with another outcome, `age` after its intended start.
    pub fn record_failure(&mut self, failure: Failure, age: Nanos) {
        debug_assert!(failure.outcome != Outcome::Ok);
        self.failed[failure.outcome as usize].record(age);
        self.add_failures(failure, 1);
    }

    /// Records how late this client was for a request that did not end `ok`, for the phases that the request reached:
    /// its outcome does not excuse the client.
    pub fn record_failed_lags(&mut self, timeline: &Timeline) {
        for lag in Lag::ALL {
            if let Some(length) = timeline.phase(lag.phase()) {
                self.failed_lags[lag as usize].record(length);
            }
        }
    }

    /// Counts the server's own code in one response.
    #[inline]
    pub fn record_code(&mut self, code: Code) {
        self.add_codes(code, 1);
    }

    /// Records how late a tick of the hiccup meter was.
    pub fn record_hiccup(&mut self, late: Nanos) {
        self.hiccup.record(late);
    }

    /// Summarizes this interval as that of worker number `worker` alone, before it is merged with others.
    ///
    /// # Cost
    ///
    /// Visits two histograms: call it once per interval, on the collecting thread.
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

    /// Adds all of `other`; `index`, `start` and `length` are unchanged.
    pub fn merge(&mut self, other: &Interval) {
        self.counts.merge(&other.counts);
        self.worker_cpu += other.worker_cpu;
        self.worker_spin += other.worker_spin;
        self.worker_cpu_max = self.worker_cpu_max.max(other.worker_cpu_max);
        self.worker_stall_max = self.worker_stall_max.max(other.worker_stall_max);
        if let Some(theirs) = other.outstanding_time {
            self.outstanding_time = Some(self.outstanding_time.unwrap_or(0).saturating_add(theirs));
        }
        self.reach = self.reach.max(other.reach);
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
        self.other_codes += other.other_codes;
        for ((outcome, reason), count) in &other.reasons {
            self.add_reasons(*outcome, reason.clone(), *count);
        }
        for (check, got) in &other.check_samples {
            self.add_check_sample(check.clone(), got.clone());
        }
        for (index, theirs) in other.kinds.iter().enumerate() {
            self.kind_at(index).merge(theirs);
        }
        for (index, theirs) in (0..=u16::MAX).zip(&other.journeys) {
            self.journey(index).merge(theirs);
        }
    }

    /// The figures of one kind, created on first use.
    #[inline]
    pub fn kind(&mut self, kind: u16) -> &mut KindFigures {
        self.kind_at(usize::from(kind))
    }

    /// The figures of every kind, in order; empty if figures are not kept per kind.
    pub fn kinds(&self) -> &[KindFigures] {
        &self.kinds
    }

    /// The figures of one journey, created on first use.
    pub fn journey(&mut self, journey: u16) -> &mut Journey {
        let index = usize::from(journey);
        if index >= self.journeys.len() {
            self.journeys.resize_with(index + 1, Journey::default);
        }
        &mut self.journeys[index]
    }

    /// The figures of every journey, in order; empty if no request follows another.
    pub fn journeys(&self) -> &[Journey] {
        &self.journeys
    }

    #[inline]
    fn kind_at(&mut self, index: usize) -> &mut KindFigures {
        if index >= self.kinds.len() {
            self.kinds.extend((self.kinds.len()..=index).map(KindFigures::of));
        }
        &mut self.kinds[index]
    }

    /// Removes all values but keeps the memory.
    pub fn clear(&mut self) {
        self.counts = Counts::default();
        self.worker_cpu = Nanos::ZERO;
        self.worker_spin = Nanos::ZERO;
        self.worker_cpu_max = Nanos::ZERO;
        self.worker_stall_max = Nanos::ZERO;
        self.run_queue = None;
        self.outstanding_time = None;
        self.reach = Reach::Unknown;
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
        self.other_codes = 0;
        self.kinds.iter_mut().for_each(KindFigures::clear);
        self.journeys.iter_mut().for_each(Journey::clear);
        self.reasons.clear();
        self.check_samples.clear();
    }

    /// Whether any response came in this interval, good or bad.
    pub fn has_response(&self) -> bool {
        let is_response = |outcome: Outcome| {
            matches!(outcome, Outcome::IncompleteResponse | Outcome::ProtocolError)
                || !outcome.is_unanswered()
        };
        self.counts.ok > 0 || self.failures.iter().any(|(failure, _)| is_response(failure.outcome))
    }

    /// How many requests ended in this interval: the sum of all outcomes.
    pub fn ended(&self) -> u64 {
        self.counts.ok + self.failures.iter().map(|(_, count)| count).sum::<u64>()
    }

    /// Response time of the `ok` requests, or `None` if there were none.
    pub fn response(&self) -> Option<&Durations> {
        self.response.get()
    }

    /// Service time of the `ok` requests, or `None` if there were none.
    pub fn service(&self) -> Option<&Durations> {
        self.service.get()
    }

    /// One phase of the `ok` requests that passed through it, or `None` if there were none.
    pub fn phase(&self, phase: Phase) -> Option<&Durations> {
        self.phases[phase as usize].get()
    }

    /// Ages of the requests that ended in `outcome`.
    pub fn failed(&self, outcome: Outcome) -> Option<&Durations> {
        self.failed[outcome as usize].get()
    }

    /// Every failure that occurred, with its count, in the order of first occurrence.
    pub fn failures(&self) -> &[(Failure, u64)] {
        &self.failures
    }

    /// Every code that the server sent, with its count, in the order of first occurrence; at most [`CODES_MAX`].
    pub fn codes(&self) -> &[(Code, u64)] {
        &self.codes
    }

    /// Responses whose code is beyond the [`CODES_MAX`] that are distinguished.
    pub fn other_codes(&self) -> u64 {
        self.other_codes
    }

    /// Counts `count` responses whose codes are not distinguished. For readers of files.
    pub fn add_other_codes(&mut self, count: u64) {
        self.other_codes += count;
    }

    /// Counts why `count` requests ended in `outcome`, if the protocol gives a reason. A server may word each failure
    /// differently, so beyond [`REASONS_MAX`] reasons the rest are counted as [`OTHER_REASONS`].
    pub fn add_reasons(&mut self, outcome: Outcome, reason: Reason, count: u64) {
        let key = (outcome, reason);
        let is_full = self.reasons.len() >= REASONS_MAX;
        if is_full && !self.reasons.iter().any(|(known, _)| *known == key) {
            return add_to(&mut self.reasons, (outcome, OTHER_REASONS.into()), count);
        }
        add_to(&mut self.reasons, key, count);
    }

    /// Every reason that occurred, with its outcome and count, in the order of first occurrence.
    pub fn reasons(&self) -> &[((Outcome, Reason), u64)] {
        &self.reasons
    }

    /// Keeps what a response that failed `check` contained: at most [`SAMPLES_MAX`] per check, and [`REASONS_MAX`] in
    /// total.
    pub fn add_check_sample(&mut self, check: Reason, got: String) {
        if self.has_room_for(&check) {
            self.check_samples.push((check, got));
        }
    }

    fn has_room_for(&self, check: &Reason) -> bool {
        let of_it = self.check_samples.iter().filter(|(known, _)| known == check).count();
        of_it < SAMPLES_MAX && self.check_samples.len() < REASONS_MAX
    }

    /// What the first responses that failed a check contained, with the check.
    pub fn check_samples(&self) -> &[(Reason, String)] {
        &self.check_samples
    }

    /// Drops the samples for which `whole`, the sum of earlier intervals, has no room: a run keeps its first samples.
    pub fn keep_first_samples(&mut self, whole: &Interval) {
        let mut sum = Interval { check_samples: whole.check_samples.clone(), ..Interval::default() };
        self.check_samples.retain(|(check, got)| {
            let keeps = sum.has_room_for(check);
            if keeps {
                sum.check_samples.push((check.clone(), got.clone()));
            }
            keeps
        });
    }

    /// The histogram of `series`, created on first use. For readers of files.
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
            Series::Journey(journey, of) => {
                let journey = self.journey(journey);
                match of {
                    JourneySeries::Response => &mut journey.response,
                    JourneySeries::Failed => &mut journey.failed_ages,
                }
            }
            Series::Hiccup => &mut self.hiccup,
        }
        .get_or_make_with(series.digits())
    }

    /// The histogram of `series`, or `None` if it is empty.
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
            Series::Journey(journey, of) => {
                let journey = self.journeys.get(usize::from(journey))?;
                match of {
                    JourneySeries::Response => journey.response(),
                    JourneySeries::Failed => journey.failed_ages(),
                }
            }
            Series::Hiccup => self.hiccup.get(),
        }
    }

    /// Adds `count` requests that ended in `failure`, without their ages. For readers of files.
    pub fn add_failures(&mut self, failure: Failure, count: u64) {
        add_to(&mut self.failures, failure, count);
    }

    /// Adds `count` responses with `code`; beyond [`CODES_MAX`] different codes, to [`Interval::other_codes`].
    #[inline]
    pub fn add_codes(&mut self, code: Code, count: u64) {
        let is_full = self.codes.len() >= CODES_MAX;
        match self.codes.iter_mut().find(|(known, _)| *known == code) {
            Some((_, sum)) => *sum += count,
            None if is_full => self.other_codes += count,
            None => self.codes.push((code, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a server that words each error differently, or invents codes, makes a worker take memory.
    #[test]
    fn codes_and_reasons_are_bounded_and_none_is_lost() {
        let (mut interval, mut other) = (Interval::default(), Interval::default());
        for n in 0..1_000 {
            let interval = if n % 2 == 0 { &mut interval } else { &mut other };
            interval.record_code(Code::status(n));
            interval.add_reasons(Outcome::AuthFailed, format!("denied {n}").into(), 1);
        }
        interval.merge(&other);
        assert_eq!(interval.codes().len(), CODES_MAX);
        assert_eq!(interval.other_codes(), 1_000 - CODES_MAX as u64);
        assert_eq!(interval.reasons().len(), REASONS_MAX + 1);
        assert_eq!(interval.reasons().iter().map(|(_, count)| count).sum::<u64>(), 1_000);
    }

    /// If this fails, a run in which every response fails a check keeps all of them.
    #[test]
    fn a_run_keeps_the_first_samples_of_a_check() {
        let mut whole = Interval::default();
        for second in 0..5 {
            let mut interval = Interval::default();
            (0..9).for_each(|n| interval.add_check_sample("status".into(), format!("{second}.{n}")));
            (0..2).for_each(|n| interval.add_check_sample("body".into(), format!("{second}.{n}")));
            interval.keep_first_samples(&whole);
            whole.merge(&interval);
            let kept = if second == 0 {
                5
            } else if second == 1 {
                1
            } else {
                0
            };
            assert_eq!(interval.check_samples().len(), kept);
        }
        let of = |check: &str| {
            let of_it = whole.check_samples().iter().filter(|(known, _)| known == check);
            of_it.map(|(_, got)| got.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of("status"), ["0.0", "0.1", "0.2"]);
        assert_eq!(of("body"), ["0.0", "0.1", "1.0"]);
    }
}
