//! `series.ndjson`: one line a second. Besides what people plot it holds all that a histogram log cannot, so
//! that a folder gives back its intervals exactly.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::document::{CodeCount, OutcomeCount};
use crate::durations::Durations;
use crate::error::Damage;
use crate::interval::{Interval, Series};
use crate::outcome::{Blame, Failure, Outcome};
use crate::phase::Phase;

/// One line of `series.ndjson`: an interval without its histograms. Writing it commits the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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
    /// Requests under way or queueing at its end.
    pub outstanding: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Bytes of answers' bodies.
    pub body_bytes: u64,
    pub connections_opened: u64,
    /// Connections that the peer closed while no request was on them.
    pub idle_closes: u64,
    /// `ok` answers without kernel stamps.
    pub unstamped: u64,
    /// Stamps moved by over a microsecond to keep their order.
    pub stamps_moved: u64,
    pub failures: Vec<OutcomeCount>,
    pub codes: Vec<CodeCount>,
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
    /// The same, of the busiest one.
    pub worker_cpu_max_ns: u64,
    /// The longest time for which a worker that should have run did not.
    pub worker_stall_max_ns: u64,
    /// CPU time of the whole process within this interval; absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cpu_ns: Option<u64>,
}

/// Quantiles of the response of one interval, of the sample itself. For plots: to print them for a run, merge
/// the histograms instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseNs {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

impl Second {
    /// The line of `interval`. `process_cpu` is what the whole process used within it.
    ///
    /// # Units
    ///
    /// A sum above 2^64 - 1 ns, 584 years of waiting in one interval, is written as that.
    pub fn of(interval: &Interval, process_cpu: Option<Nanos>) -> Second {
        let counts = interval.counts;
        let held = || Series::all().filter_map(|series| Some((series.name(), interval.series(series)?)));
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
            failures: interval
                .failures()
                .iter()
                .map(|&(failure, count)| outcome_count(failure, count))
                .collect(),
            codes: interval.codes().iter().map(|&(code, count)| CodeCount { code, count }).collect(),
            response_ns: interval.response().map(ResponseNs::of),
            sums_ns: held()
                .map(|(name, durations)| (name, u64::try_from(durations.sum_ns()).unwrap_or(u64::MAX)))
                .collect(),
            out_of_range: held()
                .filter(|(_, durations)| durations.out_of_range() > 0)
                .map(|(name, durations)| (name, durations.out_of_range()))
                .collect(),
            worker_cpu_ns: interval.worker_cpu.0,
            worker_cpu_max_ns: interval.worker_cpu_max.0,
            worker_stall_max_ns: interval.worker_stall_max.0,
            process_cpu_ns: process_cpu.map(|cpu| cpu.0),
        }
    }

    /// Makes `interval` what this line was made of, but for its histograms, which lie in the histogram logs.
    ///
    /// # Errors
    ///
    /// [`Damage`] when a name is not known or the counts do not add up.
    pub fn restore(&self, interval: &mut Interval) -> Result<(), Damage> {
        self.check()?;
        interval.clear();
        interval.index = self.index;
        interval.start = Nanos(self.start_ns);
        interval.length = Nanos(self.length_ns);
        interval.worker_cpu = Nanos(self.worker_cpu_ns);
        interval.worker_cpu_max = Nanos(self.worker_cpu_max_ns);
        interval.worker_stall_max = Nanos(self.worker_stall_max_ns);
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
        for entry in &self.failures {
            interval.add_failures(failure_of(entry)?, entry.count);
        }
        for entry in &self.codes {
            interval.add_codes(entry.code, entry.count);
        }
        Ok(())
    }

    /// How many values the histogram of `series` may hold in this interval, least and most.
    pub(crate) fn expected_count(&self, series: Series) -> (u64, u64) {
        match series {
            Series::Response | Series::Service => (self.ok, self.ok),
            Series::Phase(_) => (1, self.ok),
            // A failure may be booked without its age.
            Series::Failed(outcome) => {
                let of_it = self.failures.iter().filter(|entry| entry.outcome == outcome.name());
                (1, of_it.map(|entry| entry.count).sum())
            }
        }
    }

    /// Every number of this line that is added up over a run.
    pub(crate) fn addends(&self) -> [u64; 15] {
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
            self.codes.iter().map(|entry| entry.count).fold(0, u64::saturating_add),
            self.worker_cpu_ns,
            self.outstanding,
            self.process_cpu_ns.unwrap_or(0),
        ]
    }

    fn check(&self) -> Result<(), Damage> {
        let failed = self.failures.iter().try_fold(0u64, |sum, entry| sum.checked_add(entry.count));
        if failed != Some(self.failed) {
            return Err(Damage::sum(format!("failed is {}, not the sum of its failures", self.failed)));
        }
        if self.start_ns.checked_add(self.length_ns).is_none() {
            return Err(Damage::sum("start_ns and length_ns reach beyond 584 years"));
        }
        for name in self.sums_ns.keys().chain(self.out_of_range.keys()) {
            if Series::from_name(name).is_none() {
                return Err(Damage::UnknownName { what: "a histogram", name: name.clone() });
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
            .ok_or_else(|| unknown("a failure's outcome", &entry.outcome))?,
        phase: Phase::from_name(phase).ok_or_else(|| unknown("a phase", phase))?,
        blame: Blame::from_name(blame).ok_or_else(|| unknown("a blame", blame))?,
    })
}
