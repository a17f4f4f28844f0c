//! `series.ndjson`: one line per second. In addition to what people plot, it contains everything that a histogram log
//! cannot, so that the intervals of a record can be restored exactly.

use std::collections::BTreeMap;

use intervals::{
    Blame, Durations, Failure, HostSecond, Interval, Journey, JourneySeries, LONGEST_REASON, Outcome, Phase,
    Reason, Series, TargetSeries, WorkerSecond,
};
use serde::{Deserialize, Serialize};
use units::{Code, Nanos};

use crate::document::{CheckSample, CodeCount, OutcomeCount, ReasonCount, TextCodeCount};
use crate::error::Damage;

/// One line of `series.ndjson`: an interval without its histograms. Writing it commits the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Second {
    /// Its number since the run's start. A gap means that a line could not be written.
    pub index: u64,
    /// Offset of its begin from the run's zero.
    pub start_ns: u64,
    /// About a second; the last is as long as it was.
    pub length_ns: u64,
    /// Requests that became due.
    pub scheduled: u64,
    /// Requests whose first byte was handed to the kernel.
    pub sent: u64,
    /// Requests that ended well in this interval.
    pub ok: u64,
    /// Requests that ended otherwise in it: the sum of `failures`.
    pub failed: u64,
    /// Requests in progress or queueing at its end.
    pub outstanding: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Bytes of responses' bodies.
    pub body_bytes: u64,
    pub connections_opened: u64,
    /// Connections that ended while no request was on them: the peer closed them, or sent bytes after a response.
    pub idle_closes: u64,
    /// `ok` answers without kernel stamps.
    pub unstamped: u64,
    /// Stamps moved by over a microsecond to keep their order.
    pub stamps_moved: u64,
    /// Connections that could not be opened because this process had no descriptor left.
    pub out_of_descriptors: u64,
    /// Connections that could not be opened because this host had no local port left for them.
    pub out_of_ports: u64,
    pub failures: Vec<OutcomeCount>,
    /// Why requests failed, where the protocol says it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonCount>,
    /// The run's first responses that failed a check, as far as they came in this interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub check_samples: Vec<CheckSample>,
    pub codes: Vec<CodeCount>,
    /// Codes that are no three-digit statuses, such as an SQLSTATE with its number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text_codes: Vec<TextCodeCount>,
    /// Responses with a code that found no room among those distinguished.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_codes: u64,
    /// The requests of each target that ended, where they are distinguished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetSecond>,
    /// The units of each journey that ended, in the order of `subject.journeys`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journeys: Vec<JourneySecond>,
    /// Requests whose transaction was tried again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Response of the `ok` requests; absent when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<ResponseNs>,
    /// The exact sum of each histogram of this interval, by its file's name without `.hlog`. Each histogram
    /// that has a line in its log has an entry here, and no other.
    pub sums_ns: BTreeMap<String, u64>,
    /// How many durations passed an hour and were kept as an hour, by histogram; only where there were any.
    pub out_of_range: BTreeMap<String, u64>,
    /// CPU time of all worker threads within this interval.
    pub worker_cpu_ns: u64,
    /// Time for which workers stayed awake for nothing but to be in time (`--pace precise`), a part of the above.
    #[serde(default)]
    pub worker_spin_ns: u64,
    /// CPU time of the busiest worker, without what it stayed awake for.
    pub worker_cpu_max_ns: u64,
    /// The longest time for which a worker that should have run did not.
    pub worker_stall_max_ns: u64,
    /// CPU time of the whole process within this interval; absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cpu_ns: Option<u64>,
    /// Requests offered to the kernel and not ended, integrated over this interval: request-nanoseconds. Divided
    /// by its length, their mean number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding_ns: Option<u64>,
    /// The latest that a thread of this client was that only sleeps; all of them are in `hiccup.hlog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hiccup_max_ns: Option<u64>,
    /// Each worker by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerSecond>,
    /// What the host told.
    #[serde(default, skip_serializing_if = "HostSecond::is_empty")]
    pub host: HostSecond,
}

/// The requests of one target that ended in an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct TargetSecond {
    pub ok: u64,
    pub failures: Vec<OutcomeCount>,
}

/// The units of one journey in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct JourneySecond {
    /// Units whose first request became due in this interval.
    pub begun: u64,
    /// Units whose last request ended `ok` in it.
    pub ok: u64,
    /// Units that ended in it by a request that did not end `ok`.
    pub failed: u64,
    /// Units that the end of the run ended.
    pub cut: u64,
    /// How often a unit was tried again.
    pub retries: u64,
}

impl JourneySecond {
    fn of(journey: &Journey) -> JourneySecond {
        let Journey { begun, ok, failed, cut, retries, .. } = *journey;
        JourneySecond { begun, ok, failed, cut, retries }
    }

    fn restore(self, journey: &mut Journey) {
        let JourneySecond { begun, ok, failed, cut, retries } = self;
        (journey.begun, journey.ok, journey.failed, journey.cut) = (begun, ok, failed, cut);
        journey.retries = retries;
    }
}

/// Quantiles of the response of one interval, of the sample itself. For plots: to print them for a run, merge
/// the histograms instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ResponseNs {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

/// More threads than any host has CPUs.
const MOST_WORKERS: usize = 4_096;

/// The number of values in a line that are summed over a run.
pub(crate) const ADDENDS: usize = 18;

impl Second {
    /// The line for `interval`. `process_cpu` is the CPU time of the whole process within it.
    ///
    /// # Units
    ///
    /// A sum above 2^64 - 1 ns (584 years of waiting in one interval) is written as 2^64 - 1.
    pub fn of(interval: &Interval, process_cpu: Option<Nanos>) -> Second {
        let counts = interval.counts;
        let held =
            || Series::of(interval).filter_map(|series| Some((series.name(), interval.series(series)?)));
        Second {
            index: interval.index,
            start_ns: interval.start.0,
            length_ns: interval.length.0,
            scheduled: counts.scheduled,
            sent: counts.sent,
            ok: counts.ok,
            failed: interval.failures().iter().map(|(_, count)| count).sum(),
            outstanding: counts.outstanding,
            bytes_sent: counts.bytes_sent,
            bytes_received: counts.bytes_received,
            body_bytes: counts.body_bytes,
            connections_opened: counts.connections_opened,
            idle_closes: counts.idle_closes,
            unstamped: counts.unstamped,
            stamps_moved: counts.stamps_moved,
            out_of_descriptors: counts.out_of_descriptors,
            out_of_ports: counts.out_of_ports,
            failures: outcome_counts(interval.failures()),
            reasons: reason_counts(interval),
            check_samples: CheckSample::of(interval),
            targets: interval
                .kinds()
                .iter()
                .map(|kind| TargetSecond { ok: kind.ok, failures: outcome_counts(kind.failures()) })
                .collect(),
            journeys: interval.journeys().iter().map(JourneySecond::of).collect(),
            retries: counts.retries,
            codes: CodeCount::of(interval),
            text_codes: TextCodeCount::of(interval),
            other_codes: interval.other_codes(),
            response_ns: interval.response().map(ResponseNs::of),
            sums_ns: held()
                .map(|(name, durations)| (name, u64::try_from(durations.sum_ns()).unwrap_or(u64::MAX)))
                .collect(),
            out_of_range: held()
                .filter(|(_, durations)| durations.out_of_range() > 0)
                .map(|(name, durations)| (name, durations.out_of_range()))
                .collect(),
            worker_cpu_ns: interval.worker_cpu.0,
            worker_spin_ns: interval.worker_spin.0,
            worker_cpu_max_ns: interval.worker_cpu_max.0,
            worker_stall_max_ns: interval.worker_stall_max.0,
            process_cpu_ns: process_cpu.map(|cpu| cpu.0),
            outstanding_ns: interval.outstanding_time.map(|time| u64::try_from(time).unwrap_or(u64::MAX)),
            hiccup_max_ns: interval.series(Series::Hiccup).and_then(|late| Some(late.max()?.0)),
            workers: interval.workers.clone(),
            host: interval.host,
        }
    }

    /// Restores into `interval` what this line was made from, except for its histograms, which are in the histogram
    /// logs.
    ///
    /// # Errors
    ///
    /// [`Damage`] if a name is unknown or the counts are inconsistent.
    pub fn restore(&self, interval: &mut Interval) -> Result<(), Damage> {
        self.check()?;
        interval.clear();
        interval.index = self.index;
        interval.start = Nanos(self.start_ns);
        interval.length = Nanos(self.length_ns);
        interval.worker_cpu = Nanos(self.worker_cpu_ns);
        interval.worker_spin = Nanos(self.worker_spin_ns);
        interval.worker_cpu_max = Nanos(self.worker_cpu_max_ns);
        interval.worker_stall_max = Nanos(self.worker_stall_max_ns);
        interval.outstanding_time = self.outstanding_ns.map(u128::from);
        interval.workers.clone_from(&self.workers);
        interval.host = self.host;
        let counts = &mut interval.counts;
        counts.scheduled = self.scheduled;
        counts.sent = self.sent;
        counts.ok = self.ok;
        counts.outstanding = self.outstanding;
        counts.bytes_sent = self.bytes_sent;
        counts.bytes_received = self.bytes_received;
        counts.body_bytes = self.body_bytes;
        counts.connections_opened = self.connections_opened;
        counts.idle_closes = self.idle_closes;
        counts.unstamped = self.unstamped;
        counts.stamps_moved = self.stamps_moved;
        counts.out_of_descriptors = self.out_of_descriptors;
        counts.out_of_ports = self.out_of_ports;
        counts.retries = self.retries;
        for (journey, second) in (0..=u16::MAX).zip(&self.journeys) {
            second.restore(interval.journey(journey));
        }
        for entry in &self.failures {
            interval.add_failures(failure_of(entry)?, entry.count);
        }
        for entry in &self.reasons {
            let outcome = Outcome::from_name(&entry.outcome).ok_or_else(|| Damage::UnknownName {
                what: "a reason's outcome",
                name: entry.outcome.clone(),
            })?;
            interval.add_reasons(outcome, entry.reason.clone().into(), entry.count);
        }
        for sample in &self.check_samples {
            interval.add_check_sample(sample.check.clone().into(), sample.got.clone());
        }
        for entry in &self.codes {
            interval.add_codes(Code::status(entry.code), entry.count);
        }
        for entry in &self.text_codes {
            let code = Code::new(entry.code.as_bytes()).filter(|code| code.as_str() == entry.code);
            let unknown = || Damage::UnknownName { what: "code", name: entry.code.clone() };
            interval.add_codes(code.ok_or_else(unknown)?, entry.count);
        }
        interval.add_other_codes(self.other_codes);
        for (target, second) in (0..=u16::MAX).zip(&self.targets) {
            let kind = interval.kind(target);
            kind.ok = second.ok;
            for entry in &second.failures {
                kind.add_failures(failure_of(entry)?, entry.count);
            }
        }
        Ok(())
    }

    /// The minimum and maximum number of values in the histogram of `series` in this interval.
    pub(crate) fn expected_count(&self, series: Series) -> (u64, u64) {
        match series {
            Series::Response | Series::Service => (self.ok, self.ok),
            Series::Phase(_) => (1, self.ok),
            // Any number of ticks; they are not part of any request.
            Series::Hiccup => (1, u64::MAX),
            // Of the failures that reached the phase.
            Series::FailedLag(_) => (1, self.failed),
            // A failure may be counted without its age.
            Series::Failed(outcome) => {
                let of_it = self.failures.iter().filter(|entry| entry.outcome == outcome.name());
                (1, of_it.map(|entry| entry.count).sum())
            }
            Series::Journey(journey, of) => {
                let Some(second) = self.journeys.get(usize::from(journey)) else { return (0, 0) };
                match of {
                    JourneySeries::Response => (second.ok, second.ok),
                    JourneySeries::Failed => (second.failed, second.failed),
                }
            }
            Series::Target(target, of) => {
                let Some(second) = self.targets.get(usize::from(target)) else { return (0, 0) };
                match of {
                    TargetSeries::Response | TargetSeries::Service => (second.ok, second.ok),
                    TargetSeries::Failed => (1, second.failures.iter().map(|entry| entry.count).sum()),
                }
            }
        }
    }

    /// Every value of this line that is summed over a run.
    pub(crate) fn addends(&self) -> [u64; ADDENDS] {
        [
            self.scheduled,
            self.sent,
            self.ok,
            self.failed,
            self.bytes_sent,
            self.bytes_received,
            self.body_bytes,
            self.connections_opened,
            self.idle_closes,
            self.unstamped,
            self.stamps_moved,
            self.code_count(),
            self.worker_cpu_ns,
            self.outstanding,
            self.process_cpu_ns.unwrap_or(0),
            self.out_of_descriptors,
            self.out_of_ports,
            self.journeys
                .iter()
                .map(|one| one.begun.max(one.retries))
                .fold(self.retries, u64::saturating_add),
        ]
    }

    /// How many responses carried a code.
    fn code_count(&self) -> u64 {
        let statuses = self.codes.iter().map(|entry| entry.count);
        let texts = self.text_codes.iter().map(|entry| entry.count);
        statuses.chain(texts).fold(self.other_codes, u64::saturating_add)
    }

    fn check(&self) -> Result<(), Damage> {
        let failed = self.failures.iter().try_fold(0u64, |sum, entry| sum.checked_add(entry.count));
        if failed != Some(self.failed) {
            return Err(Damage::sum(format!("failed is {}, not the sum of its failures", self.failed)));
        }
        self.check_targets()?;
        if self.start_ns.checked_add(self.length_ns).is_none() {
            return Err(Damage::sum("start_ns and length_ns reach beyond 584 years"));
        }
        // Before the search below, which is quadratic: a record may be from an untrusted source.
        if self.workers.len() > MOST_WORKERS {
            return Err(Damage::sum(format!("it has over {MOST_WORKERS} workers")));
        }
        let has_twice = |i: usize| self.workers[..i].iter().any(|one| one.worker == self.workers[i].worker);
        if (0..self.workers.len()).any(has_twice) {
            return Err(Damage::sum("it has a worker twice"));
        }
        for name in self.sums_ns.keys().chain(self.out_of_range.keys()) {
            if Series::from_name(name).is_none() {
                return Err(Damage::UnknownName { what: "histogram", name: name.clone() });
            }
        }
        if let Some(name) = self.out_of_range.keys().find(|name| !self.sums_ns.contains_key(*name)) {
            return Err(Damage::sum(format!("{name} is out of range without a sum")));
        }
        for series in [Series::Response, Series::Service] {
            if self.sums_ns.contains_key(&series.name()) != (self.ok > 0) {
                return Err(Damage::sum(format!("ok is {}, and {} disagrees", self.ok, series.name())));
            }
        }
        Ok(())
    }
}

impl Second {
    /// Checks that each request belongs to at most one target, and that there are no more reasons than failures.
    fn check_targets(&self) -> Result<(), Damage> {
        let ok = self.targets.iter().try_fold(0u64, |sum, target| sum.checked_add(target.ok));
        let mut failures = self.targets.iter().flat_map(|target| &target.failures);
        let failed = failures.try_fold(0u64, |sum, entry| sum.checked_add(entry.count));
        if ok.is_none_or(|ok| ok > self.ok) || failed.is_none_or(|failed| failed > self.failed) {
            return Err(Damage::sum("its targets have more requests than there were"));
        }
        if self.journeys.len() > TARGETS_MAX {
            return Err(Damage::sum(format!("it has over {TARGETS_MAX} journeys")));
        }
        if self.targets.len() > TARGETS_MAX {
            return Err(Damage::sum(format!("it has over {TARGETS_MAX} targets")));
        }
        let reasons = self.reasons.iter().try_fold(0u64, |sum, entry| sum.checked_add(entry.count));
        if reasons.is_none_or(|reasons| reasons > self.failed) {
            return Err(Damage::sum("it has more reasons than failures"));
        }
        if let Some(entry) = self.reasons.iter().find(|entry| entry.reason.len() > LONGEST_REASON) {
            return Err(Damage::sum(format!("a reason has {} bytes", entry.reason.len())));
        }
        let texts = self.check_samples.iter().flat_map(|sample| [&sample.check, &sample.got]);
        if texts.map(String::len).any(|bytes| bytes > LONGEST_REASON) {
            return Err(Damage::sum("a sample is longer than a reason may be"));
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Limited by the type of their numbers.
const TARGETS_MAX: usize = 1 << 16;

impl ResponseNs {
    fn of(durations: &Durations) -> ResponseNs {
        let n = u128::from(durations.count());
        let at = |per_mille: u128| {
            let rank = u64::try_from((n * per_mille).div_ceil(1_000)).expect("a rank is at most the count");
            durations.at_rank(rank).map_or(0, |value| value.0)
        };
        let max = durations.max().map_or(0, |value| value.0);
        ResponseNs { p50: at(500), p90: at(900), p99: at(990), p999: at(999), max }
    }
}

fn outcome_counts(failures: &[(Failure, u64)]) -> Vec<OutcomeCount> {
    failures.iter().map(|&(failure, count)| outcome_count(failure, count)).collect()
}

fn reason_counts(interval: &Interval) -> Vec<ReasonCount> {
    let count = |((outcome, reason), count): &((Outcome, Reason), u64)| ReasonCount {
        outcome: outcome.name().to_owned(),
        reason: reason.clone().into_owned(),
        count: *count,
    };
    interval.reasons().iter().map(count).collect()
}

fn outcome_count(failure: Failure, count: u64) -> OutcomeCount {
    OutcomeCount {
        outcome: failure.outcome.name().to_owned(),
        phase: Some(failure.phase.name().to_owned()),
        blame: Some(failure.blame.name().to_owned()),
        count,
    }
}

fn failure_of(entry: &OutcomeCount) -> Result<Failure, Damage> {
    let unknown = |what, name: &str| Damage::UnknownName { what, name: name.to_owned() };
    let phase = entry.phase.as_deref().unwrap_or_default();
    let blame = entry.blame.as_deref().unwrap_or_default();
    Ok(Failure {
        outcome: Outcome::from_name(&entry.outcome)
            .filter(|&outcome| outcome != Outcome::Ok)
            .ok_or_else(|| unknown("failure's outcome", &entry.outcome))?,
        phase: Phase::from_name(phase).ok_or_else(|| unknown("phase", phase))?,
        blame: Blame::from_name(blame).ok_or_else(|| unknown("blame", blame))?,
    })
}
