//! The audit on planted evidence of each kind, and its verdict.

mod client;

use super::*;
use VerdictWord::{Degraded, Invalid};
use record::document::ArrivalStamps;
use record::document::LoadOrder;
use record::{Failure, Phase, Timeline, WorkerSecond};

const MS: u64 = 1_000_000;

/// One `ok` request with these lengths of its phases, in nanoseconds.
fn ok(schedule_lag: u64, wait: u64, client_lag: u64) -> Timeline {
    let mut timeline = Timeline::due(Nanos(0));
    timeline.end(Phase::ScheduleLag, Nanos(schedule_lag));
    timeline.end(Phase::Send, Nanos(schedule_lag));
    timeline.end(Phase::Wait, Nanos(schedule_lag + wait));
    timeline.end(Phase::Receive, Nanos(schedule_lag + wait));
    timeline.end(Phase::ClientLag, Nanos(schedule_lag + wait + client_lag));
    timeline
}

/// A thousand healthy requests.
fn healthy() -> Interval {
    let mut total = Interval::default();
    (0..1_000).for_each(|_| total.record_ok(&ok(1_000, 2 * MS, 1_000)));
    total.counts.scheduled = 1_000;
    total
}

fn add(total: &mut Interval, count: u64, timeline: &Timeline) {
    (0..count).for_each(|_| total.record_ok(timeline));
    total.counts.scheduled += count;
}

fn fail(total: &mut Interval, count: u64, outcome: Outcome) {
    total.add_failures(Failure::new(outcome, Phase::Wait), count);
    total.counts.scheduled += count;
}

fn second(length: Nanos, worker_cpu_max: Nanos) -> Second {
    let mut interval = Interval::default();
    interval.length = length;
    interval.worker_cpu_max = worker_cpu_max;
    Second::of(&interval, None)
}

const KERNEL: Stamps =
    Stamps { arrival: ArrivalStamps::Kernel, reason: None, pairing_error_ns: None, wall_clock_steps: 0 };

/// No kernel timestamps, because the user disabled them.
fn switched_off() -> Stamps {
    Stamps { arrival: ArrivalStamps::Read, reason: Some(Stamps::SWITCHED_OFF.to_owned()), ..KERNEL }
}

fn evidence(total: &Interval) -> Evidence<'_> {
    Evidence {
        total,
        seconds: &[],
        model: Model::Open,
        slots: 10,
        batch: Nanos::ZERO,
        window: Nanos::from_secs(10),
        stamps: &KERNEL,
        state: State::Finished,
        changes: &[],
        host: &HOST,
        address: Some("127.0.0.1:80"),
        warmup: None,
    }
}

/// A host with two CPUs and nothing else known.
static HOST: std::sync::LazyLock<Host> =
    std::sync::LazyLock::new(|| Host { cpus: Some(2), ..Host::default() });

fn names(evidence: &Evidence<'_>) -> Vec<(String, VerdictWord)> {
    let verdict = audit(evidence);
    let gravest = verdict.findings.iter().map(|finding| finding.makes).max();
    assert_eq!(verdict.word, gravest.unwrap_or(VerdictWord::Valid));
    assert!(verdict.findings.is_sorted_by(|a, b| a.makes >= b.makes), "{verdict:?}");
    verdict.findings.into_iter().map(|finding| (finding.check.name().to_owned(), finding.makes)).collect()
}

fn check(evidence: &Evidence<'_>, expected: &[(&str, VerdictWord)]) {
    let expected: Vec<_> = expected.iter().map(|&(name, word)| (name.to_owned(), word)).collect();
    assert_eq!(names(evidence), expected);
}

/// If this fails, the mean over two rates is reported as the result for one.
#[test]
fn a_load_that_was_changed_by_hand_is_no_one_load() {
    let total = healthy();
    let change = |change, at_ns| LoadChange { at_ns, change, rate_per_s: None };
    let (pause, go_on, rate, end) = (
        change(LoadOrder::Paused, 1),
        change(LoadOrder::Resumed, 2),
        change(LoadOrder::Rate, 3),
        change(LoadOrder::Ended, 4),
    );
    let changes = [pause, go_on, rate, rate];
    let changed = Evidence { changes: &changes, ..evidence(&total) };
    check(&changed, &[("load_changed", Degraded)]);
    assert_eq!(
        audit(&changed).findings[0].measured,
        "the load was changed by hand during the run: 2 rate changes, 1 pause"
    );
    // A run that was ended early is complete for its shorter window.
    check(&Evidence { changes: &[end], ..evidence(&total) }, &[]);
}

#[test]
fn a_healthy_run_is_valid() {
    check(&evidence(&healthy()), &[]);
}

#[test]
fn a_run_that_lost_count_is_invalid() {
    let mut total = healthy();
    total.counts.scheduled += 1;
    check(&evidence(&total), &[("conservation", Invalid)]);
    check(&Evidence { state: State::Running, ..evidence(&total) }, &[]);
    total.counts.scheduled -= 2;
    check(&evidence(&total), &[("conservation", Invalid)]);
    check(&Evidence { state: State::Running, ..evidence(&total) }, &[("conservation", Invalid)]);
}

#[test]
fn a_run_without_an_answer_is_invalid() {
    check(&evidence(&Interval::default()), &[("nothing_measured", Invalid)]);
    let mut total = Interval::default();
    fail(&mut total, 10, Outcome::ConnectRefused);
    check(&evidence(&total), &[("nothing_measured", Invalid)]);
    check(&Evidence { state: State::Running, ..evidence(&total) }, &[]);
}

#[test]
fn a_cut_off_run_is_degraded() {
    check(&Evidence { state: State::Recovered, ..evidence(&healthy()) }, &[("cut_off", Degraded)]);
    check(&Evidence { state: State::Interrupted, ..evidence(&healthy()) }, &[]);
}

/// The limit of both lags: 1 ms, or a tenth of the median service time if that is more; ten times the limit is invalid.
#[test]
fn a_late_client_is_degraded_or_invalid() {
    let table: [(u64, u64, Option<VerdictWord>); 6] = [
        // The lag of one request in fifty, and the wait of all, in milliseconds.
        (0, 2, None),
        (2, 2, Some(Degraded)),
        (11, 2, Some(Invalid)),
        (2, 30, None),
        (4, 30, Some(Degraded)),
        (35, 30, Some(Invalid)),
    ];
    for (lag_ms, wait_ms, expected) in table {
        let lag = lag_ms * MS;
        for (name, late) in
            [("schedule_lag", ok(lag, wait_ms * MS, 0)), ("client_lag", ok(0, wait_ms * MS, lag))]
        {
            let mut total = Interval::default();
            add(&mut total, 980, &ok(0, wait_ms * MS, 0));
            add(&mut total, 20, &late);
            let expected: Vec<_> = expected.iter().map(|&word| (name, word)).collect();
            check(&evidence(&total), &expected);
            let closed = Evidence { model: Model::Closed, ..evidence(&total) };
            check(&closed, if name == "schedule_lag" { &[] } else { &expected });
        }
    }
}

#[test]
fn nine_late_requests_of_a_thousand_are_not_the_p99() {
    let mut total = healthy();
    add(&mut total, 9, &ok(50 * MS, 2 * MS, 0));
    check(&evidence(&total), &[]);
}

#[test]
fn one_long_wait_is_named_with_its_length() {
    for (lag, client_lag, phase) in [(120, 0, "schedule_lag"), (0, 120, "client_lag")] {
        let mut total = healthy();
        add(&mut total, 1, &ok(lag * MS, 2 * MS, client_lag * MS));
        check(&evidence(&total), &[("client_late", Degraded)]);
        check(&Evidence { model: Model::Closed, ..evidence(&total) }, &[("client_late", Degraded)]);
        let finding = audit(&evidence(&total)).findings.remove(0);
        assert_eq!(finding.measured, format!("a request waited 120 ms for the load generator ({phase})"));
    }
    let mut total = healthy();
    add(&mut total, 1, &ok(100 * MS, 2 * MS, 0));
    check(&evidence(&total), &[]);
}

#[test]
fn a_stall_is_named_in_either_loop_and_in_place_of_the_wait_it_made() {
    let mut total = healthy();
    add(&mut total, 1, &ok(120 * MS, 2 * MS, 0));
    let stalled = |ms: u64| {
        let mut stalled = second(Nanos::from_secs(1), Nanos::ZERO);
        (stalled.start_ns, stalled.worker_stall_max_ns) = (3_000 * MS, ms * MS);
        [second(Nanos::from_secs(1), Nanos::ZERO), stalled]
    };
    for model in [Model::Open, Model::Closed] {
        for (ms, name) in [(100, "client_late"), (101, "client_stall")] {
            check(&Evidence { seconds: &stalled(ms), model, ..evidence(&total) }, &[(name, Degraded)]);
        }
    }
    let finding = audit(&Evidence { seconds: &stalled(150), ..evidence(&total) }).findings.remove(0);
    assert_eq!(
        finding.measured,
        "the load generator or its host did not run for 150 ms, in the second that began at 3 s"
    );
}

/// If this fails, an open loop that sent its requests in late bursts has kept its schedule, as long as the server
/// refuses late requests.
#[test]
fn a_request_that_failed_was_late_all_the_same() {
    for (name, timeline) in [("schedule_lag", ok(50 * MS, MS, 0)), ("client_lag", ok(0, MS, 50 * MS))] {
        let mut total = healthy();
        fail(&mut total, 100, Outcome::AppError);
        check(&evidence(&total), &[]);
        (0..100).for_each(|_| total.record_failed_lags(&timeline));
        check(&evidence(&total), &[(name, Invalid)]);
        let reported = audit(&evidence(&total)).findings[0].measured.clone();
        let counted = reported.starts_with("9.1 % of ") && reported.contains(" (100 of 1100) w");
        assert!(counted, "{reported}");
    }
    // A single wait that is too long.
    let mut total = healthy();
    fail(&mut total, 1, Outcome::Reset);
    total.record_failed_lags(&ok(120 * MS, MS, 0));
    check(&evidence(&total), &[("client_late", Degraded)]);
}

/// The response time contains the lag: a limit of a tenth of its median would move with what it limits.
#[test]
fn the_limit_of_a_lag_is_by_the_service() {
    let mut total = Interval::default();
    add(&mut total, 1_000, &ok(90 * MS, 2 * MS, 0));
    check(&evidence(&total), &[("schedule_lag", Invalid)]);
}

#[test]
fn three_late_requests_are_no_finding_in_a_sample_of_any_size() {
    for (of, late, expected) in [
        (20, 1, None),
        (20, 3, None),
        (20, 4, Some(Degraded)),
        (368, 3, None),
        (368, 4, Some(Degraded)),
        (1_000, 10, None),
        (1_000, 11, Some(Degraded)),
    ] {
        let mut total = Interval::default();
        add(&mut total, of - late, &ok(0, 2 * MS, 0));
        add(&mut total, late, &ok(1_800_000, 2 * MS, 0));
        let expected: Vec<_> = expected.iter().map(|&word| ("schedule_lag", word)).collect();
        check(&evidence(&total), &expected);
    }
    // Many are over the limit, and few over ten times the limit.
    let mut total = Interval::default();
    add(&mut total, 12, &ok(0, 2 * MS, 0));
    add(&mut total, 5, &ok(2 * MS, 2 * MS, 0));
    add(&mut total, 3, &ok(50 * MS, 2 * MS, 0));
    check(&evidence(&total), &[("schedule_lag", Degraded)]);
}

#[test]
fn a_lag_is_told_by_the_share_over_its_limit() {
    let reported = |of: u64, late: u64, lag: u64| {
        let mut total = Interval::default();
        add(&mut total, of - late, &ok(0, 60 * MS, 0));
        add(&mut total, late, &ok(0, 60 * MS, lag));
        let finding = audit(&evidence(&total)).findings.remove(0);
        (finding.measured, finding.limit)
    };
    let limit = "1 % or 3, whichever is more; 6.00 ms is 10 % of the median service time".to_owned();
    let of_few = "25.0 % of responses (5 of 20) waited in the socket buffer for more than 6.00 ms before they were read";
    assert_eq!(reported(20, 5, 7 * MS), (of_few.to_owned(), limit.clone()));
    let of_many = "2.0 % of responses (20 of 1000) waited in the socket buffer for more than 6.00 ms before they were read, p99 7.00 ms";
    assert_eq!(reported(1_000, 20, 7 * MS), (of_many.to_owned(), limit));
}

/// 15 per second to a server that manages 10 per second.
fn falling_behind() -> (Interval, Vec<Second>) {
    let mut total = Interval::default();
    let mut seconds = Vec::new();
    for at in 0..15 {
        let mut interval = Interval::default();
        (interval.index, interval.start) = (at, Nanos::from_secs(at));
        interval.length = Nanos::from_secs(1);
        interval.counts.scheduled = if at < 10 { 15 } else { 0 };
        (0..10).for_each(|_| interval.record_ok(&ok(0, 100 * MS, 0)));
        total.merge(&interval);
        seconds.push(Second::of(&interval, None));
    }
    (total, seconds)
}

#[test]
fn a_backlog_at_the_end_of_the_window_is_named() {
    let (total, seconds) = falling_behind();
    let run = Evidence { seconds: &seconds, ..evidence(&total) };
    check(&run, &[("kept_up", Degraded)]);
    let finding = audit(&run).findings.remove(0);
    // None took longer than the fastest.
    assert!(finding.measured.starts_with("connections saturated: 10/s of 15/s"), "{}", finding.measured);
    assert!(finding.measured.contains("50 of 150 requests were still outstanding"), "{}", finding.measured);
    // A window that extends beyond the last request due, and connections that hold as many.
    check(&Evidence { window: Nanos::from_secs(15), ..run }, &[("kept_up", Degraded)]);
    check(&Evidence { slots: 49, ..run }, &[("kept_up", Degraded)]);
    check(&Evidence { slots: 50, ..run }, &[]);
    check(&Evidence { model: Model::Closed, ..run }, &[]);
    check(&Evidence { state: State::Running, ..run }, &[]);
}

#[test]
fn what_the_runs_end_cut_off_did_not_keep_up() {
    let mut total = Interval::default();
    let mut seconds = Vec::new();
    for at in 0..10 {
        let mut interval = Interval::default();
        (interval.index, interval.start) = (at, Nanos::from_secs(at));
        interval.length = Nanos::from_secs(1);
        add(&mut interval, 100, &ok(0, 2 * MS, 0));
        if at == 9 {
            fail(&mut interval, 11, Outcome::InFlight);
        }
        total.merge(&interval);
        seconds.push(Second::of(&interval, None));
    }
    let run = Evidence { seconds: &seconds, slots: 1, ..evidence(&total) };
    check(&run, &[("kept_up", Degraded)]);
    check(&Evidence { slots: 11, ..run }, &[]);
}

#[test]
fn a_busy_worker_is_named_in_either_loop() {
    let total = healthy();
    let s = Nanos::from_secs(1);
    let busy = |ms| second(s, Nanos::from_millis(ms));
    let table: [(Vec<Second>, bool); 6] = [
        (vec![], false),
        (vec![busy(800)], false),
        (vec![busy(801)], true),
        (vec![busy(100), busy(990), busy(990)], true),
        (vec![busy(100), busy(100), busy(990)], false),
        (vec![second(Nanos::from_millis(500), Nanos::from_millis(500))], false),
    ];
    for (seconds, found) in table {
        for model in [Model::Open, Model::Closed] {
            let expected: &[_] = if found { &[("worker_cpu", Degraded)] } else { &[] };
            check(&Evidence { seconds: &seconds, model, ..evidence(&total) }, expected);
        }
    }
}

#[test]
fn a_load_that_was_not_offered_is_named() {
    for (queue_full, not_sent, found) in [(1, 0, false), (1, 1, true), (0, 2, true), (2, 0, true)] {
        let mut total = healthy();
        fail(&mut total, queue_full, Outcome::QueueFull);
        fail(&mut total, not_sent, Outcome::NotSent);
        let expected: &[_] = if found { &[("kept_up", Degraded)] } else { &[] };
        check(&evidence(&total), expected);
        check(&Evidence { model: Model::Closed, ..evidence(&total) }, &[]);
    }
}

/// 1000 `ok` requests of 16,000 that were due in 10 s: each was in flight for `wait` milliseconds, on 10 connections.
fn mostly_unsent(wait: u64) -> Interval {
    let mut total = Interval::default();
    add(&mut total, 1_000, &ok(0, wait * MS, 0));
    fail(&mut total, 15_000, Outcome::QueueFull);
    total.outstanding_time = Some(u128::from(1_000 * wait * MS));
    total
}

/// If this fails, a load generator that is too slow reports the server as saturated, or the other way round.
#[test]
fn a_rate_that_was_missed_is_the_fault_of_the_side_that_waited_least() {
    let of_cpu = |cpu| Second { ok: 1_000, ..second(Nanos::from_secs(10), cpu) };
    let busy = [of_cpu(Nanos::from_millis(9_900))];
    let idle = [of_cpu(Nanos::from_millis(3_000))];
    // The connections wait for this client: 1000 × 2 ms are 2 % of 10 connections × 10 s.
    let total = mostly_unsent(2);
    let run = Evidence { seconds: &busy, ..evidence(&total) };
    check(&run, &[("offered_load", Invalid), ("worker_cpu", Degraded)]);
    let measured = audit(&run).findings.remove(0).measured;
    assert!(measured.starts_with("this client offered"), "{measured}");
    assert!(measured.contains("of 1600/s"), "{measured}");
    assert!(measured.contains("93.8 % of 16000 requests due were not sent"), "{measured}");
    // This client waits for the server: 1000 × 95 ms are 95 %.
    let total = mostly_unsent(95);
    let run = Evidence { seconds: &busy, ..evidence(&total) };
    check(&run, &[("kept_up", Degraded), ("worker_cpu", Degraded)]);
    let measured = audit(&run).findings.remove(0).measured;
    assert!(measured.starts_with("connections saturated: 100/s of 1600/s"), "{measured}");
    // Most requests take far longer than the fastest: they queue in the server.
    let mut queued = mostly_unsent(95);
    queued.record_ok(&ok(0, 20 * MS, 0));
    queued.counts.scheduled += 1;
    let measured = audit(&Evidence { seconds: &busy, ..evidence(&queued) }).findings.remove(0).measured;
    assert!(measured.starts_with("server saturated: 100/s of 1600/s"), "{measured}");
    // Connections that are idle on both sides, such as those of transactions that pause.
    let total = mostly_unsent(2);
    check(&Evidence { seconds: &idle, ..evidence(&total) }, &[("kept_up", Degraded)]);
}

/// Client and server share the CPUs, so both are slow, and how long the connections wait for either depends on chance:
/// the figures of `-r 1M/s` and `-r 100k/s` to nginx on two CPUs. If this fails, the verdict on such a run does, too.
#[test]
fn a_rate_beyond_this_client_is_not_the_servers_fault() {
    let verdict = |due: u64, workers: u64, cpu_ms: u64, in_use_percent: u64| {
        let mut total = Interval::default();
        add(&mut total, 10_000, &ok(0, MS, 0));
        fail(&mut total, due - 80_000, Outcome::QueueFull);
        total.counts.scheduled = due;
        total.outstanding_time = Some(u128::from(10 * 1_000 * MS * in_use_percent / 100));
        let mut second =
            Second { ok: 80_000, sent: 80_000, ..second(Nanos::from_secs(1), Nanos::from_millis(cpu_ms)) };
        (second.scheduled, second.worker_cpu_ns) = (due, workers * cpu_ms * MS);
        let one = WorkerSecond {
            worker: 0,
            cpu_ns: cpu_ms * MS,
            run_queue_ns: None,
            stall_max_ns: 0,
            ok: 0,
            late: 0,
            lag_ns: 0,
        };
        second.workers = (0..workers).map(|worker| WorkerSecond { worker, ..one }).collect();
        let run = Evidence { seconds: &[second], window: Nanos::from_secs(1), ..evidence(&total) };
        let finding = saturation::offered_load(&run).or_else(|| saturation::kept_up(&run)).unwrap();
        (finding.check, finding.makes, finding.measured)
    };
    // 5.75 us per request.
    for in_use in [30, 49, 51, 70, 89] {
        let (check, makes, measured) = verdict(1_000_000, 1, 460, in_use);
        assert_eq!((check, makes), (Check::OfferedLoad, Invalid), "{in_use}: {measured}");
        assert!(
            measured.starts_with("this client offered 80k/s of 1M/s: 92.0 % of 1000000 requests"),
            "{measured}"
        );
        let why = "; at its CPU time per request, this rate takes 5.8 CPUs, and its 1 worker can use 1";
        assert!(measured.ends_with(why), "{measured}");
        let (check, makes, measured) = verdict(1_000_000, 2, 340, in_use);
        assert_eq!((check, makes), (Check::OfferedLoad, Invalid), "{in_use}: {measured}");
        // It could have sent these: 0.58 CPUs.
        let (check, makes, measured) = verdict(100_000, 1, 460, in_use);
        assert_eq!((check, makes), (Check::KeptUp, Degraded), "{in_use}: {measured}");
    }
    // The boundaries: of the CPUs that are needed, of those that are used, and of connections that are all in use.
    for (due, cpu, in_use, is_client) in [
        (261_000, 460, 70, true),
        (260_000, 460, 70, false),
        (1_000_000, 301, 70, true),
        (1_000_000, 300, 70, false),
        (1_000_000, 460, 89, true),
        (1_000_000, 460, 90, false),
    ] {
        let (check, _, measured) = verdict(due, 1, cpu, in_use);
        assert_eq!(check == Check::OfferedLoad, is_client, "{due} {cpu} {in_use}: {measured}");
    }
}

/// A second in which all 10 connections had a request and these requests ended.
fn occupied(at: u64, fill: impl FnOnce(&mut Interval)) -> Second {
    let mut interval = Interval::default();
    interval.start = Nanos::from_secs(at);
    interval.length = Nanos::from_secs(1);
    interval.outstanding_time = Some(10 * 1_000_000_000);
    fill(&mut interval);
    Second::of(&interval, None)
}

/// If this fails, a server that sends nothing any more is a lack of connections, or a lack of connections is a server.
#[test]
fn a_server_without_responses_is_saturated_however_fast_it_was_before() {
    let total = mostly_unsent(95);
    let measured = |seconds: &[Second]| {
        let run = Evidence { seconds, window: Nanos::from_secs(4), ..evidence(&total) };
        audit(&run).findings.remove(0).measured
    };
    let works = |at| occupied(at, |interval| interval.record_ok(&ok(0, 95 * MS, 0)));
    let silent = |at| occupied(at, |interval| fail(interval, 2, Outcome::RequestTimeout));
    let refuses = |at| occupied(at, |interval| fail(interval, 2, Outcome::AppError));
    let of_connections = [
        [works(0), works(1), works(2), silent(3)],
        [works(0), refuses(1), refuses(2), refuses(3)],
        [works(0), works(1), works(2), works(3)],
    ];
    for seconds in of_connections {
        let measured = measured(&seconds);
        assert!(measured.starts_with("connections saturated"), "{measured}");
    }
    let measured = measured(&[works(0), works(1), silent(2), silent(3)]);
    assert!(measured.starts_with("server saturated"), "{measured}");
}

/// If this fails, a run that was ended before the first response was due calls the server saturated.
#[test]
fn without_a_response_nothing_is_called_saturated() {
    let mut total = Interval::default();
    fail(&mut total, 15_000, Outcome::QueueFull);
    let findings = audit(&evidence(&total)).findings;
    let kept_up = findings.iter().find(|finding| finding.check == Check::KeptUp).unwrap();
    assert!(kept_up.measured.starts_with("100.0 % of 15000 requests due were not sent"), "{kept_up:?}");
}

/// If this fails, requests count as offered that were sent after the window, or never.
#[test]
fn what_was_offered_is_what_was_sent_in_the_window() {
    let total = mostly_unsent(2);
    let mut within = Second { ok: 400, ..second(Nanos::from_secs(10), Nanos::from_millis(9_900)) };
    within.failures = occupied(0, |interval| fail(interval, 15_000, Outcome::QueueFull)).failures;
    let drain = second(Nanos::from_secs(5), Nanos::from_millis(4_950));
    let drain = Second { ok: 600, start_ns: 10_000 * MS, ..drain };
    let measured =
        audit(&Evidence { seconds: &[within, drain], ..evidence(&total) }).findings.remove(0).measured;
    assert!(measured.starts_with("this client offered 40/s of 1600/s"), "{measured}");
}

/// If this fails, the reason that explains the others comes after them.
#[test]
fn saturation_is_the_first_reason_among_its_equals() {
    let mut total = mostly_unsent(95);
    add(&mut total, 4, &ok(120 * MS, 95 * MS, 0));
    let changes = [LoadChange { at_ns: 1, change: LoadOrder::Paused, rate_per_s: None }];
    let run = Evidence { changes: &changes, state: State::Recovered, ..evidence(&total) };
    let found = names(&run);
    assert_eq!(found[0].0, "kept_up", "{found:?}");
    assert!(found.len() >= 3, "{found:?}");
}

#[test]
fn missing_kernel_stamps_are_named_unless_they_were_switched_off() {
    let total = healthy();
    check(&Evidence { stamps: &switched_off(), ..evidence(&total) }, &[]);
    for reason in [None, Some("this kernel has no SO_TIMESTAMPNS".to_owned())] {
        let stamps = Stamps { reason, ..switched_off() };
        check(&Evidence { stamps: &stamps, ..evidence(&total) }, &[("read_stamps", Degraded)]);
    }
}

#[test]
fn a_run_that_broke_off_is_invalid() {
    check(&Evidence { state: State::Broken, ..evidence(&healthy()) }, &[("broken_off", Invalid)]);
}

#[test]
fn bad_stamps_are_named() {
    for (count, found) in [(0, false), (10, false), (11, true)] {
        let mut total = healthy();
        total.counts.unstamped = count;
        let expected: &[_] = if found { &[("unstamped", Degraded)] } else { &[] };
        check(&evidence(&total), expected);
        check(&Evidence { stamps: &switched_off(), ..evidence(&total) }, &[]);
        total.counts.unstamped = 0;
        total.counts.stamps_moved = count;
        let expected: &[_] = if found { &[("stamps_moved", Degraded)] } else { &[] };
        check(&evidence(&total), expected);
    }
    let total = healthy();
    let stepped = Stamps { wall_clock_steps: 1, ..KERNEL };
    check(&Evidence { stamps: &stepped, ..evidence(&total) }, &[("wall_clock", Degraded)]);
    let stepped = Stamps { wall_clock_steps: 1, ..switched_off() };
    check(&Evidence { stamps: &stepped, ..evidence(&total) }, &[]);
}

#[test]
fn an_outcome_without_a_name_is_named() {
    let mut total = healthy();
    fail(&mut total, 1, Outcome::Unknown);
    check(&evidence(&total), &[("unknown_outcome", Degraded)]);
}

#[test]
fn the_gravest_comes_first() {
    let mut total = healthy();
    add(&mut total, 100, &ok(20 * MS, 2 * MS, 0));
    fail(&mut total, 1, Outcome::Unknown);
    let recovered = Evidence { state: State::Recovered, ..evidence(&total) };
    check(&recovered, &[("schedule_lag", Invalid), ("cut_off", Degraded), ("unknown_outcome", Degraded)]);
}
