//! Whether to believe a run: one small rule a check, from what was measured to a finding.
//!
//! Pure: no file and no clock. The report calls it on a folder and the engine at a run's end, with the same
//! evidence. Every limit says where it comes from. A check that cannot be made, because nothing was measured
//! for it, finds nothing: that there was nothing is a finding of its own.

use units::Nanos;

use crate::document::{ArrivalStamps, Finding, Model, Stamps, State, Verdict, VerdictWord};
use crate::durations::Durations;
use crate::interval::Interval;
use crate::outcome::Outcome;
use crate::phase::Phase;
use crate::series::Second;

/// What a verdict rests on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The whole run; of a cut-off one, settled.
    pub total: &'a Interval,
    pub seconds: &'a [Second],
    pub model: Model,
    /// Requests that may be on connections at once: connections × pipeline.
    pub slots: u64,
    /// From the run's zero until nothing more was scheduled.
    pub window: Nanos,
    pub stamps: &'a Stamps,
    pub state: State,
}

/// Makes every check. Findings come gravest first; the gravest gives the word.
pub fn audit(evidence: &Evidence<'_>) -> Verdict {
    let checks: [fn(&Evidence<'_>) -> Option<Finding>; 16] = [
        conservation,
        nothing_measured,
        broken_off,
        cut_off,
        offered_load,
        kept_up,
        schedule_lag,
        client_lag,
        client_stall,
        client_late,
        worker_cpu,
        read_stamps,
        unstamped,
        stamps_moved,
        wall_clock,
        unknown_outcome,
    ];
    let mut findings: Vec<Finding> = checks.iter().filter_map(|check| check(evidence)).collect();
    // Stable: findings of one gravity stay in the order above.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.makes));
    let word = findings.first().map_or(VerdictWord::Valid, |finding| finding.makes);
    Verdict { word, findings }
}

/// Scheduled = the sum of all outcomes. Not a limit but a law: a run that breaks it has lost count.
fn conservation(evidence: &Evidence<'_>) -> Option<Finding> {
    let (scheduled, ended) = (evidence.total.counts.scheduled, evidence.total.ended());
    // While a run goes on, what is under way has not ended.
    let holds = scheduled == ended || (evidence.state == State::Running && ended < scheduled);
    (!holds).then(|| Finding {
        check: "conservation".to_owned(),
        makes: VerdictWord::Invalid,
        measured: format!("{scheduled} requests were scheduled, {ended} ended"),
        limit: "both are equal".to_owned(),
        advice: "a defect of this program: report it, with the run folder".to_owned(),
    })
}

fn nothing_measured(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.total.counts.ok == 0 && evidence.state != State::Running).then(|| Finding {
        check: "nothing_measured".to_owned(),
        makes: VerdictWord::Invalid,
        measured: format!("none of {} requests was answered well", evidence.total.counts.scheduled),
        limit: "at least one ok".to_owned(),
        advice: "see the outcomes for what happened instead, and mend that first".to_owned(),
    })
}

fn broken_off(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.state == State::Broken).then(|| Finding {
        check: "broken_off".to_owned(),
        makes: VerdictWord::Invalid,
        measured: "the run broke off through a fault of this program or of the host's event facility"
            .to_owned(),
        limit: "a run ends by itself or by the user".to_owned(),
        advice: "run again; should it recur, report the error message, with the run folder".to_owned(),
    })
}

fn cut_off(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.state == State::Recovered).then(|| Finding {
        check: "cut_off".to_owned(),
        makes: VerdictWord::Degraded,
        measured: "the run's process ended before the run did".to_owned(),
        limit: "a run ends by itself or by the user".to_owned(),
        advice: "at most the last second is missing; what came before it holds".to_owned(),
    })
}

/// At most 0.1 % of what was due may be left unsent: k6 counts them as `dropped_iterations`, Nighthawk as pool
/// overflow, and neither calls the run bad. METHODOLOGY.md, the load that was asked for.
const UNSENT_PER_MILLE: u64 = 1;

fn offered_load(evidence: &Evidence<'_>) -> Option<Finding> {
    let unsent: u64 =
        [Outcome::QueueFull, Outcome::NotSent].map(|outcome| ended_in(evidence, outcome)).iter().sum();
    let scheduled = evidence.total.counts.scheduled;
    let over = evidence.model == Model::Open && is_over_share(unsent, scheduled, UNSENT_PER_MILLE);
    over.then(|| Finding {
        check: "offered_load".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!("{} of {scheduled} requests due were not sent", percent(unsent, scheduled)),
        limit: "0.1 %".to_owned(),
        advice: "the load asked for was not offered: lower the rate, or allow more connections".to_owned(),
    })
}

/// What may be left at the window's end where it is more than the connections hold: the share over which a
/// percentile that is printed, p99, would fall among them.
const BACKLOG_PER_MILLE: u64 = 10;

/// An open loop whose server is slower than its schedule has a backlog that grows all run.
fn kept_up(evidence: &Evidence<'_>) -> Option<Finding> {
    if evidence.model != Model::Open || evidence.state == State::Running {
        return None;
    }
    let within = |second: &&Second| second.start_ns.saturating_add(second.length_ns) <= evidence.window.0;
    let seconds: Vec<_> = evidence.seconds.iter().filter(within).collect();
    // Of a run that was given a count alone, the window may reach beyond the last request that was due.
    let due = seconds.iter().rposition(|second| second.scheduled > 0)?;
    let scheduled: u64 = seconds[..=due].iter().map(|second| second.scheduled).sum();
    let ended: u64 = seconds[..=due].iter().map(|second| ended_by_itself(second)).sum();
    let outstanding = scheduled.saturating_sub(ended);
    let over = outstanding > evidence.slots && is_over_share(outstanding, scheduled, BACKLOG_PER_MILLE);
    over.then(|| Finding {
        check: "kept_up".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!(
            "{outstanding} of {scheduled} requests were still outstanding at the end of the window: the server \
             did not keep up, so response grows with the length of the run"
        ),
        limit: format!("1 %, or the {} that its connections hold", evidence.slots),
        advice: "lower the rate, or look for the capacity with a closed loop".to_owned(),
    })
}

/// Without those that ended because the run did.
fn ended_by_itself(second: &Second) -> u64 {
    let by_the_run = [Outcome::NotSent.name(), Outcome::InFlight.name()];
    let failed = second.failures.iter().filter(|entry| !by_the_run.contains(&entry.outcome.as_str()));
    second.ok + failed.map(|entry| entry.count).sum::<u64>()
}

/// wrk2 and Rally measure how late they send; the limit of max(1 ms, 10 % of the median service) is the
/// methodology's own rule, and ten times that leaves nothing of the schedule. Service, because response has the
/// lag in it. Lancet alone refuses to report a schedule it missed.
const LAG_FLOOR: Nanos = Nanos::from_millis(1);
const LAG_SHARE: u64 = 10;
const LAG_INVALID_FACTOR: u64 = 10;

/// One request in a hundred may be over the limit, which is to say that the p99 may not.
const LATE_PER_MILLE: u64 = 10;

/// The fewest requests whose p99 has a finite 95 % interval, and one in a hundred of them: fewer late ones are
/// no finding in a sample of any size.
const FEWEST_FOR_P99: u64 = 368;
const LATE_FEW: u64 = 3;

fn schedule_lag(evidence: &Evidence<'_>) -> Option<Finding> {
    // In a closed loop the next request is due when the caller is free: there is no schedule to miss.
    if evidence.model != Model::Open {
        return None;
    }
    late(evidence, Phase::ScheduleLag, |level| {
        format!("requests were taken up over {level} after they were due")
    })
}

/// The same limit on the other end of a request: an answer that lay in the kernel, unread.
fn client_lag(evidence: &Evidence<'_>) -> Option<Finding> {
    late(evidence, Phase::ClientLag, |level| format!("answers lay in the kernel, unread, for over {level}"))
}

fn late(evidence: &Evidence<'_>, phase: Phase, what: impl Fn(Nanos) -> String) -> Option<Finding> {
    let lag = evidence.total.phase(phase)?;
    let share = Nanos(quantile(evidence.total.service()?, 50)?.0 / LAG_SHARE);
    let limit = share.max(LAG_FLOOR);
    let n = lag.count();
    let is_over = |&(level, _): &(Nanos, VerdictWord)| {
        let over = lag.count_over(level);
        over > LATE_FEW && is_over_share(over, n, LATE_PER_MILLE)
    };
    let ten_times = Nanos(limit.0.saturating_mul(LAG_INVALID_FACTOR));
    let levels = [(ten_times, VerdictWord::Invalid), (limit, VerdictWord::Degraded)];
    let (level, makes) = levels.into_iter().find(is_over)?;
    let over = lag.count_over(level);
    let p99 = quantile(lag, 99).filter(|p99| n >= FEWEST_FOR_P99 && p99.to_string() != level.to_string());
    let p99 = p99.map(|p99| format!(", p99 {p99}")).unwrap_or_default();
    let basis =
        if share > LAG_FLOOR { format!(" ({limit} is 10 % of the median service)") } else { String::new() };
    Some(Finding {
        check: phase.name().to_owned(),
        makes,
        measured: format!("{over} of {n} ({}) {}{p99}", percent(over, n), what(level)),
        limit: format!("1 % of them, or {LATE_FEW}, over {level}{basis}"),
        advice: "the client was late, not the server: give it more CPU, or lower the load".to_owned(),
    })
}

/// Hyperfoil's jitter watchdog ticks every 50 ms and fails a run at 100 ms; jHiccup looks for the same.
const LONGEST_STALL: Nanos = Nanos::from_millis(100);

fn longest_stall<'a>(evidence: &Evidence<'a>) -> Option<(Nanos, &'a Second)> {
    let stalls = evidence.seconds.iter().map(|second| (Nanos(second.worker_stall_max_ns), second));
    stalls.filter(|(stall, _)| *stall > LONGEST_STALL).max_by_key(|(stall, _)| *stall)
}

fn client_stall(evidence: &Evidence<'_>) -> Option<Finding> {
    let (stall, second) = longest_stall(evidence)?;
    let at = second.start_ns / 1_000_000_000;
    Some(Finding {
        check: "client_stall".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!("this client or its host did not run for {stall}, in the second from {at} s"),
        limit: LONGEST_STALL.to_string(),
        advice: "look for what stopped this host: other load, a CPU quota, a paused guest".to_owned(),
    })
}

/// A single long wait for a client that did run: it had too much to do at once. A stall explains such a wait,
/// and is told instead.
fn client_late(evidence: &Evidence<'_>) -> Option<Finding> {
    if longest_stall(evidence).is_some() {
        return None;
    }
    let longest = |phase| {
        let histogram = evidence.total.phase(phase)?.histogram();
        // The low end of its bucket: what was surely reached.
        Some((Nanos(histogram.lowest_equivalent(histogram.max())), phase))
    };
    let worst = [Phase::ScheduleLag, Phase::ClientLag].into_iter().filter_map(longest).max()?;
    let (wait, phase) = worst;
    (wait > LONGEST_STALL).then(|| Finding {
        check: "client_late".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!("a request waited {wait} for this client ({})", phase.name()),
        limit: LONGEST_STALL.to_string(),
        advice: "the client had more to do than it could: give it more CPU or workers, or lower the load"
            .to_owned(),
    })
}

/// Hyperfoil's CPU watchdog warns when a core is idle for less than 20 %; Locust warns at 90 % of its process.
const BUSY_PER_MILLE: u64 = 800;

/// Seconds shorter than this are the last of a run, where a worker waits for stragglers or not at all.
const FULL_SECOND: Nanos = Nanos::from_millis(900);

fn worker_cpu(evidence: &Evidence<'_>) -> Option<Finding> {
    let full = evidence.seconds.iter().filter(|second| second.length_ns >= FULL_SECOND.0);
    let mut per_mille: Vec<u64> = full.map(busiest_per_mille).collect();
    per_mille.sort_unstable();
    // The lower of the two middle ones.
    let median = *per_mille.get(per_mille.len().checked_sub(1)? / 2)?;
    (median > BUSY_PER_MILLE).then(|| Finding {
        check: "worker_cpu".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!(
            "the busiest worker used {}.{} % of a CPU in the median second",
            median / 10,
            median % 10
        ),
        limit: "80 %".to_owned(),
        advice:
            "the client may be the limit: throughput is a lower bound, and its queueing is in client_lag and \
                 schedule_lag; use more workers, or lower the load"
                .to_owned(),
    })
}

fn busiest_per_mille(second: &Second) -> u64 {
    let share = u128::from(second.worker_cpu_max_ns) * 1_000 / u128::from(second.length_ns.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Asked for, it is no finding: the report says everywhere that `client_lag` is absent.
fn read_stamps(evidence: &Evidence<'_>) -> Option<Finding> {
    let reason = evidence.stamps.reason.as_deref();
    let chosen = reason == Some(Stamps::SWITCHED_OFF);
    (evidence.stamps.arrival == ArrivalStamps::Read && !chosen).then(|| Finding {
        check: "read_stamps".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!("the kernel stamped no arrival: {}", reason.unwrap_or("no reason is on record")),
        limit: "kernel stamps, unless they are switched off".to_owned(),
        advice: "client_lag lies within wait, receive and service, unseen: trust response alone, or switch stamps \
                 off to say that this is meant"
            .to_owned(),
    })
}

/// One answer in a hundred may lack its stamp before the p99 of `client_lag` is another one.
const STAMPS_PER_MILLE: u64 = 10;

fn unstamped(evidence: &Evidence<'_>) -> Option<Finding> {
    let counts = evidence.total.counts;
    let over = is_over_share(counts.unstamped, counts.ok, STAMPS_PER_MILLE);
    (evidence.stamps.arrival == ArrivalStamps::Kernel && over).then(|| Finding {
        check: "unstamped".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!("{} of the ok answers have no kernel stamp", percent(counts.unstamped, counts.ok)),
        limit: "1 %".to_owned(),
        advice: "their client_lag lies within wait and receive: trust response, not the split".to_owned(),
    })
}

fn stamps_moved(evidence: &Evidence<'_>) -> Option<Finding> {
    let counts = evidence.total.counts;
    is_over_share(counts.stamps_moved, counts.ok, STAMPS_PER_MILLE).then(|| Finding {
        check: "stamps_moved".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!(
            "{} stamps were out of order by over 1 us, for {} ok answers",
            counts.stamps_moved, counts.ok
        ),
        limit: "1 %".to_owned(),
        advice: "the kernel's clock and the monotonic one disagreed: trust response, not the split"
            .to_owned(),
    })
}

/// Kernel stamps are wall-clock times. Those read by the client are not, and no step can move them.
fn wall_clock(evidence: &Evidence<'_>) -> Option<Finding> {
    let steps = evidence.stamps.wall_clock_steps;
    (steps > 0 && evidence.stamps.arrival == ArrivalStamps::Kernel).then(|| Finding {
        check: "wall_clock".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!("steps of the wall clock during the run: {steps}"),
        limit: "0".to_owned(),
        advice: "arrival stamps around a step are wrong: keep time synchronisation from stepping, run again"
            .to_owned(),
    })
}

fn unknown_outcome(evidence: &Evidence<'_>) -> Option<Finding> {
    let count = ended_in(evidence, Outcome::Unknown);
    (count > 0).then(|| Finding {
        check: "unknown_outcome".to_owned(),
        makes: VerdictWord::Degraded,
        measured: format!("{count} requests ended in a way that has no name"),
        limit: "0".to_owned(),
        advice: "a gap in this program: report it, with the run folder".to_owned(),
    })
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

#[cfg(test)]
mod tests;
