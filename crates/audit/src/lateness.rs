//! Whether the load generator was late: in sending, in reading responses, or because it did not run at all.

use units::Nanos;

use super::{Evidence, LATE_FEW, LATE_PER_MILLE, degraded, is_over_share, known_sum, percent, quantile};
use record::document::{Finding, Model, VerdictWord};
use record::{Check, Durations, Interval, LATE, Lag, Second, Series, WorkerSecond};

/// wrk2 and Rally measure how late they send; the limit of max(1 ms, 10 % of the median service time) is our own, and
/// at ten times that nothing is left of the schedule. Service time, because response time contains the lag. Only Lancet
/// refuses to report a schedule it missed.
const LAG_FLOOR: Nanos = Nanos::from_millis(1);
const LAG_SHARE: u64 = 10;

/// A run with a p99 of a lag over this many times its limit is invalid.
pub const LAG_INVALID_FACTOR: u64 = 10;

/// The limit of a lag's p99 if the median service time is `median_service`: 1 ms, or a tenth of the median if that is
/// more. What the pace allows is added to it.
pub fn lag_limit(median_service: Nanos) -> Nanos {
    Nanos(median_service.0 / LAG_SHARE).max(LAG_FLOOR)
}

/// The smallest number of requests whose p99 has a finite 95 % interval.
const FEWEST_FOR_P99: u64 = 368;

pub(super) fn schedule_lag(evidence: &Evidence<'_>) -> Option<Finding> {
    // In a closed loop the next request is due when the virtual user is free: there is no schedule to miss.
    if evidence.model != Model::Open {
        return None;
    }
    late(evidence, Check::ScheduleLag, Lag::Schedule, |level| {
        ("requests", format!("were started more than {level} behind schedule"))
    })
}

/// The same limit at the other end of a request: a response that waited in the socket buffer.
pub(super) fn client_lag(evidence: &Evidence<'_>) -> Option<Finding> {
    late(evidence, Check::ClientLag, Lag::Client, |level| {
        ("responses", format!("waited in the socket buffer for more than {level} before they were read"))
    })
}

/// The lags of all requests that got this far, whatever their outcome: a request that was started late and then
/// refused was late too.
pub(super) fn of_all(total: &Interval, lag: Lag) -> Durations {
    let of = |series| total.series(series).cloned().unwrap_or_default();
    let mut all = of(Series::Phase(lag.phase()));
    all.merge(&of(Series::FailedLag(lag)));
    all
}

fn late(
    evidence: &Evidence<'_>,
    check: Check,
    which: Lag,
    what: impl Fn(Nanos) -> (&'static str, String),
) -> Option<Finding> {
    let lag = &of_all(evidence.total, which);
    let of_service = lag_limit(quantile(evidence.total.service()?, 50)?);
    let limit = of_service + evidence.batch;
    let n = lag.count();
    let is_over = |&(level, _): &(Nanos, VerdictWord)| {
        let over = lag.count_over(level);
        over > LATE_FEW && is_over_share(over, n, LATE_PER_MILLE)
    };
    let ten_times = Nanos(limit.0.saturating_mul(LAG_INVALID_FACTOR));
    let levels = [(ten_times, VerdictWord::Invalid), (limit, VerdictWord::Degraded)];
    let (level, makes) = levels.into_iter().find(is_over)?;
    let over = lag.count_over(level);
    let (noun, was_late) = what(level);
    let p99 = quantile(lag, 99).filter(|p99| n >= FEWEST_FOR_P99 && p99.to_string() != level.to_string());
    let p99 = p99.map(|p99| format!(", p99 {p99}")).unwrap_or_default();
    let basis = if of_service > LAG_FLOOR {
        format!("; {of_service} is 10 % of the median service time")
    } else {
        String::new()
    };
    Some(Finding {
        check,
        makes,
        measured: format!("{} of {noun} ({over} of {n}) {}{p99}", percent(over, n), was_late),
        limit: format!("1 % or {LATE_FEW}, whichever is more{basis}"),
        advice: "the load generator was late, not the server: give it more CPU, or lower the load".to_owned(),
    })
}

/// Hyperfoil's jitter watchdog ticks every 50 ms and fails a run at 100 ms; jHiccup looks for the same.
pub const LONGEST_STALL: Nanos = Nanos::from_millis(100);

fn longest_stall<'a>(evidence: &Evidence<'a>) -> Option<(Nanos, &'a Second)> {
    let stalls = evidence.seconds.iter().map(|second| (Nanos(second.worker_stall_max_ns), second));
    stalls.filter(|(stall, _)| *stall > LONGEST_STALL).max_by_key(|(stall, _)| *stall)
}

pub(super) fn client_stall(evidence: &Evidence<'_>) -> Option<Finding> {
    let (stall, second) = longest_stall(evidence)?;
    let at = second.start_ns / 1_000_000_000;
    // A stall is recorded in the interval in which it began, and can extend into the next.
    let around =
        evidence.seconds.iter().filter(|other| (second.index..=second.index + 1).contains(&other.index));
    let (who, why, advice) = explained(stall, second, around);
    Some(degraded(
        Check::ClientStall,
        format!("{who} did not run for {stall}, in the second that began at {at} s{why}"),
        LONGEST_STALL.to_string(),
        advice,
    ))
}

/// Who was stalled, what else is known of that time, and what to do. The meter's thread only sleeps: if it was late
/// as well, nothing in this process ran.
fn explained<'a>(
    stall: Nanos,
    second: &Second,
    around: impl Iterator<Item = &'a Second> + Clone,
) -> (String, String, &'static str) {
    const ELSEWHERE: &str =
        "find out what stopped this host: other load, a CPU quota, a paused virtual machine";
    let throttled = known_sum(around.clone(), |second| second.host.throttled_ns);
    if let Some(throttled) = throttled.filter(|&ns| ns >= stall.0 / 2) {
        let why = format!(": its CPU quota throttled it for {}", Nanos(throttled));
        return ("the load generator".to_owned(), why, "give its control group more CPU, or lower the load");
    }
    let Some(late) = around.filter_map(|second| second.hiccup_max_ns).max() else {
        return ("the load generator or its host".to_owned(), String::new(), ELSEWHERE);
    };
    if late >= stall.0 / 2 {
        let why = format!("; its sleeping thread woke up {} late as well", Nanos(late));
        return ("the whole load generator or its host".to_owned(), why, ELSEWHERE);
    }
    let slowest = second.workers.iter().max_by_key(|worker| worker.stall_max_ns);
    let who = slowest.map_or("a worker".to_owned(), |worker| format!("worker {}", worker.worker));
    let why = format!("; the host was running: a sleeping thread woke up at most {} late", Nanos(late));
    (
        who,
        why,
        "find out what else runs on that worker's CPU, or pin the load generator to free CPUs (taskset)",
    )
}

/// A single long wait for a load generator that was running: it had too much to do at once. If a stall explains the
/// wait, only the stall is reported.
pub(super) fn client_late(evidence: &Evidence<'_>) -> Option<Finding> {
    if longest_stall(evidence).is_some() {
        return None;
    }
    let longest = |lag| {
        let durations = of_all(evidence.total, lag);
        let histogram = durations.histogram();
        // The lower bound of its bucket, which was certainly reached.
        (Nanos(histogram.lowest_equivalent(histogram.max())), lag.phase())
    };
    let (wait, phase) = Lag::ALL.into_iter().map(longest).max()?;
    (wait > LONGEST_STALL).then(|| Finding {
        check: Check::ClientLate,
        makes: VerdictWord::Degraded,
        measured: format!("a request waited {wait} for the load generator ({})", phase.name()),
        limit: LONGEST_STALL.to_string(),
        advice: "the load generator was overloaded: give it more CPU or workers, or lower the load"
            .to_owned(),
    })
}

/// A stall that affected no worker, because all were idle. It may have stopped the server too.
pub(super) fn host_stall(evidence: &Evidence<'_>) -> Option<Finding> {
    if longest_stall(evidence).is_some() {
        return None;
    }
    let late = |second: &Second| second.hiccup_max_ns.map_or(Nanos::ZERO, Nanos);
    let second = evidence.seconds.iter().max_by_key(|second| late(second))?;
    (late(second) > LONGEST_STALL).then(|| {
        degraded(
            Check::HostStall,
            format!(
                "this host was stalled: a sleeping thread woke up {} late, in the second that began at {} s",
                late(second),
                second.start_ns / 1_000_000_000
            ),
            LONGEST_STALL.to_string(),
            "find out what stopped this host: other load, a CPU quota, a paused virtual machine",
        )
    })
}

/// What delays a sleeping thread at random moments also delays requests at random moments, so the same share of ticks
/// as of requests can be late, by the same limit. jHiccup uses its meter in the same way.
pub(super) fn hiccups(evidence: &Evidence<'_>) -> Option<Finding> {
    let ticks = evidence.total.series(Series::Hiccup)?;
    let limit = lag_limit(quantile(evidence.total.service()?, 50)?);
    let (over, n) = (ticks.count_over(limit), ticks.count());
    let is_finding = over > LATE_FEW && is_over_share(over, n, LATE_PER_MILLE);
    is_finding.then(|| {
        let longest = ticks.max().unwrap_or_default();
        degraded(
            Check::Hiccups,
            format!(
                "{} of the wake-ups of a sleeping thread ({over} of {n}) were more than {limit} late, at most \
                 {longest}",
                percent(over, n)
            ),
            format!("1 % or {LATE_FEW}, whichever is more"),
            "this host is scheduling threads late, and a server running here would be affected too: stop other \
             workloads, or pin the load generator to free CPUs",
        )
    })
}

/// Treadmill flags an agent whose p99 is more than twice that of the others: one bad client biases a pooled tail. The
/// share of late requests takes the place of the p99 here, because shares can be added over a run.
const SLOW_FACTOR: u64 = 2;

pub(super) fn slow_worker(evidence: &Evidence<'_>) -> Option<Finding> {
    let workers = &evidence.total.workers;
    let late_share = |worker: &WorkerSecond| worker.late as f64 / worker.ok.max(1) as f64;
    let slowest = workers.iter().max_by(|a, b| late_share(a).total_cmp(&late_share(b)))?;
    let others = || workers.iter().filter(|worker| worker.worker != slowest.worker);
    let (others_late, others_ok) =
        others().fold((0u64, 0u64), |(late, ok), worker| (late + worker.late, ok + worker.ok));
    if others_ok == 0 {
        return None;
    }
    // If 10 % of the service time is more than the 1 ms from which requests count as late, the mean lateness decides.
    let limit = lag_limit(quantile(evidence.total.service()?, 50)?) + evidence.batch;
    let is_late = slowest.late > LATE_FEW
        && is_over_share(slowest.late, slowest.ok, LATE_PER_MILLE)
        && slowest.lag_ns / slowest.late >= limit.0;
    // late / ok > 2 × others_late / others_ok, without dividing.
    let is_alone = u128::from(slowest.late) * u128::from(others_ok)
        > u128::from(SLOW_FACTOR) * u128::from(others_late) * u128::from(slowest.ok);
    let waited = |worker: &WorkerSecond| {
        let waited = worker.run_queue_ns.map(|ns| format!(", and it waited {} for a CPU", Nanos(ns)));
        waited.unwrap_or_default()
    };
    (is_late && is_alone).then(|| {
        degraded(
            Check::SlowWorker,
            format!(
                "worker {} was more than {LATE} late in {} of its responses ({} of {}){}; the other workers in {}",
                slowest.worker,
                percent(slowest.late, slowest.ok),
                slowest.late,
                slowest.ok,
                waited(slowest),
                percent(others_late, others_ok),
            ),
            format!("{SLOW_FACTOR} times the share of the others, and 1 %"),
            "one slow worker distorts the high percentiles of the run: find out what else runs on its CPU, or use fewer \
             workers",
        )
    })
}
