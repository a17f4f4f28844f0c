use super::*;
use crate::outcome::Failure;
use crate::timeline::Timeline;
use VerdictWord::{Degraded, Invalid};

const MS: u64 = 1_000_000;

/// One `ok` request, the lengths of whose phases are given in nanoseconds.
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

fn evidence(total: &Interval) -> Evidence<'_> {
    Evidence {
        total,
        seconds: &[],
        model: Model::Open,
        arrival: ArrivalStamps::Kernel,
        wall_clock_steps: 0,
        state: State::Finished,
    }
}

fn names(evidence: &Evidence<'_>) -> Vec<(String, VerdictWord)> {
    let verdict = audit(evidence);
    let gravest = verdict.findings.iter().map(|finding| finding.makes).max();
    assert_eq!(verdict.word, gravest.unwrap_or(VerdictWord::Valid));
    assert!(verdict.findings.is_sorted_by(|a, b| a.makes >= b.makes), "{verdict:?}");
    verdict.findings.into_iter().map(|finding| (finding.check, finding.makes)).collect()
}

fn check(evidence: &Evidence<'_>, expected: &[(&str, VerdictWord)]) {
    let expected: Vec<_> = expected.iter().map(|&(name, word)| (name.to_owned(), word)).collect();
    assert_eq!(names(evidence), expected);
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

/// The limit of both lags: 1 ms, or a tenth of the median where that is more; ten times it is invalid.
#[test]
fn a_late_client_is_degraded_or_invalid() {
    let table: [(u64, u64, Option<VerdictWord>); 6] = [
        // The lag of one request in fifty, the wait of all, in milliseconds.
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
fn one_stall_is_named_with_its_length() {
    for (lag, client_lag, phase) in [(120, 0, "schedule_lag"), (0, 120, "client_lag")] {
        let mut total = healthy();
        add(&mut total, 1, &ok(lag * MS, 2 * MS, client_lag * MS));
        check(&evidence(&total), &[("client_stall", Degraded)]);
        check(&Evidence { model: Model::Closed, ..evidence(&total) }, &[("client_stall", Degraded)]);
        let finding = audit(&evidence(&total)).findings.remove(0);
        assert_eq!(
            finding.measured,
            format!("a {phase} of 120 ms: the client or its host did not run for that long")
        );
    }
    let mut total = healthy();
    add(&mut total, 1, &ok(100 * MS, 2 * MS, 0));
    check(&evidence(&total), &[]);
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
        let expected: &[_] = if found { &[("offered_load", Degraded)] } else { &[] };
        check(&evidence(&total), expected);
        check(&Evidence { model: Model::Closed, ..evidence(&total) }, &[]);
    }
}

#[test]
fn bad_stamps_are_named() {
    for (count, found) in [(0, false), (10, false), (11, true)] {
        let mut total = healthy();
        total.counts.unstamped = count;
        let expected: &[_] = if found { &[("unstamped", Degraded)] } else { &[] };
        check(&evidence(&total), expected);
        check(&Evidence { arrival: ArrivalStamps::Read, ..evidence(&total) }, &[]);
        total.counts.unstamped = 0;
        total.counts.stamps_moved = count;
        let expected: &[_] = if found { &[("stamps_moved", Degraded)] } else { &[] };
        check(&evidence(&total), expected);
    }
    let total = healthy();
    check(&Evidence { wall_clock_steps: 1, ..evidence(&total) }, &[("wall_clock", Degraded)]);
    check(&Evidence { wall_clock_steps: 1, arrival: ArrivalStamps::Read, ..evidence(&total) }, &[]);
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
