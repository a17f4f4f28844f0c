//! Whether to trust a run: one small rule per check, from what was measured to a finding.
//!
//! Pure: no file and no clock. It is called at the end of a run, and by the report of a record, with the same
//! evidence. Every limit states its source. A check without measurements finds nothing; the missing measurement is
//! reported by another finding, in `host.missing`, or in `verdict.unchecked`.

mod cpu;
mod lateness;
mod load;
mod resources;
mod run;
mod saturation;
mod stamps;
mod statistics;

pub use cpu::BUSY_PER_MILLE;
pub use lateness::{LAG_INVALID_FACTOR, LONGEST_STALL, lag_limit};
pub use stamps::STAMPS_PER_MILLE;

use units::Nanos;

use record::document::{
    Document, Finding, Host, LoadChange, Model, Stamps, State, Unchecked, Verdict, VerdictWord, WarmUpFacts,
};
use record::{Check, Durations, Interval, Outcome, Second};

/// The data that a verdict is based on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The sum of the whole run; of a run that was cut off, with its open requests counted as `in_flight`.
    pub total: &'a Interval,
    pub seconds: &'a [Second],
    pub model: Model,
    /// Requests that may be on connections at once: connections × pipeline.
    pub slots: u64,
    /// By how much the pace allows a request to be sent, or a response to be read, late.
    pub batch: Nanos,
    /// From the run's zero to the end of the schedule.
    pub window: Nanos,
    pub stamps: &'a Stamps,
    pub state: State,
    /// Changes of the load by hand during the run.
    pub changes: &'a [LoadChange],
    /// Facts and limits of the client's host.
    pub host: &'a Host,
    /// The server's address, if it was reached.
    pub address: Option<&'a str>,
    /// What preceded the run, if anything did.
    pub warmup: Option<&'a WarmUpFacts>,
}

impl<'a> Evidence<'a> {
    /// The evidence of a run, from its document so far, its sum and its seconds.
    pub fn of(document: &'a Document, total: &'a Interval, seconds: &'a [Second]) -> Evidence<'a> {
        Evidence {
            total,
            seconds,
            model: document.load.model,
            slots: document.load.slots(),
            batch: document.load.batch(),
            window: Nanos(document.time.window_ns.unwrap_or(0)),
            stamps: &document.stamps,
            state: document.state,
            changes: &document.load.changes,
            host: &document.host,
            address: document.subject.address.as_deref(),
            warmup: document.load.warmup.as_ref(),
        }
    }

    /// Seconds long enough for shares of them to be meaningful.
    fn full_seconds(&self) -> impl Iterator<Item = &'a Second> {
        self.seconds.iter().filter(|second| second.length_ns >= FULL_SECOND.0)
    }
}

type Rule = fn(&Evidence<'_>) -> Option<Finding>;

/// In the order in which findings of equal weight are reported: what happened first, then what explains it.
const RULES: [Rule; 32] = [
    run::conservation,
    run::nothing_measured,
    run::broken_off,
    saturation::offered_load,
    saturation::kept_up,
    run::cut_off,
    resources::descriptors,
    resources::ports,
    load::load_changed,
    lateness::schedule_lag,
    lateness::client_lag,
    lateness::client_stall,
    lateness::client_late,
    lateness::slow_worker,
    lateness::host_stall,
    lateness::hiccups,
    cpu::cpu_quota,
    cpu::run_queue,
    cpu::steal,
    cpu::worker_cpu,
    cpu::process_cpu,
    load::ceiling,
    resources::listen_drops,
    resources::retransmits,
    stamps::read_stamps,
    stamps::unstamped,
    stamps::stamps_moved,
    stamps::wall_clock,
    statistics::littles_law,
    statistics::drift,
    run::unknown_outcome,
    statistics::independence,
];

/// Why a check could not be made; `None` if it was made.
type Gap = fn(&Evidence<'_>) -> Option<String>;

const GAPS: [(Check, Gap); 7] = [
    (Check::WorkerCpu, cpu::no_full_second),
    (Check::ProcessCpu, cpu::no_full_second),
    (Check::RunQueue, cpu::no_run_queue),
    (Check::Ports, resources::no_ports),
    (Check::Ceiling, load::no_ceiling),
    (Check::Drift, statistics::no_drift),
    (Check::Independence, statistics::no_independence),
];

/// Makes every check. The most severe findings come first, and the most severe one determines the verdict.
pub fn audit(evidence: &Evidence<'_>) -> Verdict {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| rule(evidence)).collect();
    // A stable sort: findings of equal severity stay in the order above.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.makes));
    let word = findings.first().map_or(VerdictWord::Valid, |finding| finding.makes);
    Verdict { word, findings, unchecked: unchecked(evidence) }
}

fn unchecked(evidence: &Evidence<'_>) -> Vec<Unchecked> {
    let not_made =
        |(check, gap): &(Check, Gap)| Some(Unchecked { check: check.clone(), reason: gap(evidence)? });
    GAPS.iter().filter_map(not_made).collect()
}

/// Seconds shorter than this are the last one of a run, in which few requests end.
const FULL_SECOND: Nanos = Nanos::from_millis(900);

/// One request in a hundred can be over a limit; in other words, the p99 must not.
const LATE_PER_MILLE: u64 = 10;

/// p99 needs at least 368 requests for a finite 95 % interval, and 1 % of those is 3: three late requests or fewer are
/// never a finding, whatever the sample size.
const LATE_FEW: u64 = 3;

fn degraded(check: Check, measured: String, limit: String, advice: &str) -> Finding {
    Finding { check, makes: VerdictWord::Degraded, measured, limit, advice: advice.to_owned() }
}

fn ended_in(evidence: &Evidence<'_>, outcome: Outcome) -> u64 {
    let failures = evidence.total.failures().iter();
    failures.filter(|(failure, _)| failure.outcome == outcome).map(|(_, count)| count).sum()
}

/// The smallest value with at least `percent` of all at or below it.
fn quantile(durations: &Durations, percent: u64) -> Option<Nanos> {
    let rank = (u128::from(durations.count()) * u128::from(percent)).div_ceil(100);
    durations.at_rank(u64::try_from(rank).ok()?)
}

fn is_over_share(part: u64, whole: u64, per_mille: u64) -> bool {
    u128::from(part) * 1_000 > u128::from(whole) * u128::from(per_mille)
}

fn percent(part: u64, whole: u64) -> String {
    match part as f64 * 100.0 / whole.max(1) as f64 {
        share if share < 1.0 => format!("{share:.2} %"),
        share => format!("{share:.1} %"),
    }
}

/// The sum of the known values of all seconds; `None` if no second has one.
fn known_sum<'a>(
    seconds: impl Iterator<Item = &'a Second>,
    of: impl Fn(&Second) -> Option<u64>,
) -> Option<u64> {
    seconds.filter_map(of).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests;
