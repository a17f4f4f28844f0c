//! The audit on planted evidence about the client and its host.

use super::*;
use record::document::{Ceiling, HostLimits, PortRange};
use record::{HostSecond, WorkerSecond};

const SECOND: Nanos = Nanos::from_secs(1);

/// Seconds of one run; `of` fills in each one, by its number.
fn seconds(n: u64, of: impl Fn(u64, &mut Second)) -> Vec<Second> {
    (0..n)
        .map(|index| {
            let mut second = second(SECOND, Nanos::ZERO);
            (second.index, second.start_ns) = (index, index * SECOND.0);
            of(index, &mut second);
            second
        })
        .collect()
}

fn worker(worker: u64) -> WorkerSecond {
    WorkerSecond {
        worker,
        cpu_ns: 0,
        run_queue_ns: Some(0),
        stall_max_ns: 0,
        ok: 500,
        late: 0,
        lag_ns: 500_000,
    }
}

fn found(evidence: &Evidence<'_>, name: &str) -> Option<String> {
    let findings = audit(evidence).findings;
    findings.into_iter().find(|finding| finding.check.name() == name).map(|finding| finding.measured)
}

#[track_caller]
fn check_found(evidence: &Evidence<'_>, name: &str, expected: bool) {
    assert_eq!(found(evidence, name).is_some(), expected, "{name} in {:?}", audit(evidence).findings);
}

/// If this fails, other processes that take the client's CPU make the server look slow.
#[test]
fn a_worker_that_waits_for_a_cpu_is_named() {
    let total = healthy();
    for (waited_ms, expected) in [(0, false), (100, false), (101, true), (900, true)] {
        let seconds = seconds(3, |_, second| {
            let waits = WorkerSecond { run_queue_ns: Some(waited_ms * MS), ..worker(1) };
            second.workers = vec![worker(0), waits];
        });
        let run = Evidence { seconds: &seconds, ..evidence(&total) };
        check_found(&run, "run_queue", expected);
        if expected {
            assert!(found(&run, "run_queue").unwrap().starts_with("worker 1 was ready to run"));
        }
    }
    let unknown =
        seconds(3, |_, second| second.workers = vec![WorkerSecond { run_queue_ns: None, ..worker(0) }]);
    check_found(&Evidence { seconds: &unknown, ..evidence(&total) }, "run_queue", false);
}

#[test]
fn one_slow_worker_is_told_from_slow_ones() {
    let table = [
        // Late requests out of 500 responses: worker 0, worker 1.
        (0, 0, false),
        (0, 5, false),
        (0, 6, true),
        (20, 39, false),
        (20, 41, true),
    ];
    for (first, second, expected) in table {
        let mut total = healthy();
        let late = |late| WorkerSecond { late, lag_ns: late * 2 * MS, ..worker(0) };
        total.workers = vec![late(first), WorkerSecond { worker: 1, ..late(second) }];
        check_found(&evidence(&total), "slow_worker", expected);
        if expected {
            assert!(found(&evidence(&total), "slow_worker").unwrap().starts_with("worker 1 was"));
        }
        total.workers.remove(0);
        check_found(&evidence(&total), "slow_worker", false);
    }
}

/// If this fails, being late by 2 ms counts against a client whose server takes 100 ms.
#[test]
fn a_slow_worker_is_measured_by_the_service() {
    let mut total = Interval::default();
    add(&mut total, 1_000, &ok(0, 100 * MS, 0));
    let late = WorkerSecond { late: 100, lag_ns: 100 * 2 * MS, ..worker(1) };
    total.workers = vec![worker(0), late];
    check_found(&evidence(&total), "slow_worker", false);
    total.workers[1].lag_ns = 100 * 11 * MS;
    check_found(&evidence(&total), "slow_worker", true);
}

#[test]
fn what_a_quota_or_a_hypervisor_took_is_told() {
    let total = healthy();
    let check_host = |name: &str, host: HostSecond, expected: bool| {
        let seconds = seconds(2, |index, second| {
            if index == 1 {
                second.host = host;
            }
        });
        check_found(&Evidence { seconds: &seconds, ..evidence(&total) }, name, expected);
    };
    let throttled =
        |ms: u64| HostSecond { throttled: Some(3), throttled_ns: Some(ms * MS), ..HostSecond::default() };
    check_host("cpu_quota", throttled(20), false);
    check_host("cpu_quota", throttled(21), true);
    // 5 % of two CPUs over two seconds.
    let stolen = |ms: u64| HostSecond { steal_ns: Some(ms * MS), ..HostSecond::default() };
    check_host("steal", stolen(200), false);
    check_host("steal", stolen(210), true);
}

#[test]
fn a_process_with_all_its_cpus_busy_is_named_once() {
    let total = healthy();
    for (process_ms, worker_ms, name, expected) in [
        (1_600, 0, "process_cpu", false),
        (1_602, 0, "process_cpu", true),
        (1_990, 900, "process_cpu", false),
        (1_990, 900, "worker_cpu", true),
    ] {
        let seconds = seconds(3, |_, second| {
            second.process_cpu_ns = Some(process_ms * MS);
            second.worker_cpu_max_ns = worker_ms * MS;
        });
        check_found(&Evidence { seconds: &seconds, ..evidence(&total) }, name, expected);
    }
}

/// If this fails, a paused host and a starved worker look alike.
#[test]
fn a_stall_says_who_stood_still() {
    let total = healthy();
    let reported = |hiccup: Option<u64>, throttled: Option<u64>| {
        // The stall began in the first second, and the ticks were due in the next.
        let seconds = seconds(2, |index, second| {
            if index == 0 {
                second.worker_stall_max_ns = 300 * MS;
                second.workers = vec![worker(0), WorkerSecond { stall_max_ns: 300 * MS, ..worker(1) }];
                return;
            }
            second.hiccup_max_ns = hiccup.map(|ms| ms * MS);
            second.host.throttled_ns = throttled.map(|ms| ms * MS);
        });
        found(&Evidence { seconds: &seconds, ..evidence(&total) }, "client_stall").unwrap()
    };
    assert!(
        reported(Some(290), None).starts_with("the whole load generator or its host did not run for 300 ms")
    );
    assert!(reported(Some(2), None).starts_with("worker 1 did not run"));
    assert!(reported(Some(290), Some(250)).contains("its CPU quota throttled it"));
    assert!(reported(None, None).starts_with("the load generator or its host"));
}

#[test]
fn hiccups_of_the_host_are_named() {
    for (late, expected) in [(3, false), (4, true)] {
        let mut total = healthy();
        (0..300 - late).for_each(|_| total.record_hiccup(Nanos(50_000)));
        (0..late).for_each(|_| total.record_hiccup(Nanos(3 * MS)));
        check_found(&evidence(&total), "hiccups", expected);
    }
    let total = healthy();
    for (ms, expected) in [(100, false), (101, true)] {
        let seconds = seconds(1, |_, second| second.hiccup_max_ns = Some(ms * MS));
        check_found(&Evidence { seconds: &seconds, ..evidence(&total) }, "host_stall", expected);
    }
}

#[test]
fn what_ran_out_is_named() {
    let mut total = healthy();
    total.counts.out_of_descriptors = 1;
    check(&evidence(&total), &[("descriptors", Degraded)]);
    total.counts.out_of_descriptors = 0;
    total.counts.out_of_ports = 1;
    check(&evidence(&total), &[("ports", Degraded)]);
    total.counts.out_of_ports = 0;
    let range = PortRange { first: 1_001, last: 2_000 };
    let limits = HostLimits { local_ports: Some(range), ..HostLimits::default() };
    let host = Host { limits, ..Host::default() };
    for (ports, expected) in [(800, false), (801, true)] {
        let seconds = seconds(1, |_, second| second.host.ports = Some(ports));
        check_found(&Evidence { seconds: &seconds, host: &host, ..evidence(&total) }, "ports", expected);
    }
}

#[test]
fn drops_count_only_where_the_server_is_here() {
    let total = healthy();
    let seconds = seconds(1, |_, second| second.host.listen_drops = Some(1));
    for (address, expected) in
        [(Some("127.0.0.1:80"), true), (Some("[::1]:80"), true), (Some("192.0.2.1:80"), false), (None, false)]
    {
        check_found(&Evidence { seconds: &seconds, address, ..evidence(&total) }, "listen_drops", expected);
    }
}

#[test]
fn segments_sent_again_are_counted_against_requests() {
    let mut total = healthy();
    total.counts.sent = 1_000;
    for (again, expected) in [(10, false), (11, true)] {
        let seconds = seconds(1, |_, second| second.host.retransmits = Some(again));
        check_found(&Evidence { seconds: &seconds, ..evidence(&total) }, "retransmits", expected);
    }
}

/// If this fails, a request that was lost or counted twice goes unnoticed.
#[test]
fn littles_law_is_held() {
    // A thousand requests of 2 ms and 1 us in flight: 2.001 s.
    let mut total = healthy();
    for (ms, expected) in [(2_001, false), (2_040, false), (2_042, true), (1_962, false), (1_960, true)] {
        let seconds = seconds(2, |_, second| second.outstanding_ns = Some(ms * MS / 2));
        total.outstanding_time = Some(u128::from(ms * MS));
        let run = Evidence { seconds: &seconds, ..evidence(&total) };
        check_found(&run, "littles_law", expected);
        check_found(&Evidence { state: State::Running, ..run }, "littles_law", false);
    }
    total.outstanding_time = Some(1);
    let unknown = seconds(2, |index, second| second.outstanding_ns = (index == 0).then_some(1));
    check_found(&Evidence { seconds: &unknown, ..evidence(&total) }, "littles_law", false);
}

fn unchecked(evidence: &Evidence<'_>) -> Vec<(String, String)> {
    audit(evidence).unchecked.into_iter().map(|one| (one.check.name().to_owned(), one.reason)).collect()
}

/// If this fails, a check that was not made looks like one that passed.
#[test]
fn what_could_not_be_checked_is_told_with_its_reason() {
    let total = healthy();
    let range = PortRange { first: 1_001, last: 2_000 };
    let ceiling = Ceiling { throughput_per_s: 10_000, rate_per_s: None, measured: String::new() };
    let limits = HostLimits { local_ports: Some(range), ceiling: Some(ceiling), ..HostLimits::default() };
    let host = Host { limits, ..Host::default() };
    let whole = |n| {
        seconds(n, |_, second| {
            (second.ok, second.scheduled) = (100, 100);
            second.workers = vec![worker(0)];
            second.host.ports = Some(4);
        })
    };
    let nine = whole(9);
    let run = Evidence { seconds: &nine, host: &host, model: Model::Closed, ..evidence(&total) };
    assert_eq!(unchecked(&run), []);

    let reported = |run: &Evidence<'_>| -> Vec<String> {
        unchecked(run).into_iter().map(|(check, reason)| format!("{check}: {reason}")).collect()
    };
    let eight = whole(8);
    assert_eq!(
        reported(&Evidence { seconds: &eight, ..run }),
        ["drift: 7 full seconds, needs 8", "independence: 7 full seconds, needs 8"]
    );
    assert_eq!(
        reported(&Evidence { model: Model::Open, ..run }),
        ["ceiling: no calibration for a run of this shape"]
    );
    let mut other = whole(9);
    for second in &mut other {
        second.workers[0].run_queue_ns = None;
        second.host.ports = None;
        second.ok = 0;
    }
    assert_eq!(
        reported(&Evidence { seconds: &other, ..run }),
        [
            "run_queue: not reported by this kernel",
            "ports: several servers, or not reported by this host",
            "independence: responses in 0 seconds, needs 8",
        ]
    );
    // A Unix domain socket uses no port.
    let unix = Evidence { seconds: &other, address: Some("unix:/run/s"), ..run };
    assert!(unchecked(&unix).iter().all(|(check, _)| check != "ports"));
    let mut ramp = whole(9);
    ramp.iter_mut().for_each(|second| second.scheduled += second.index * 50);
    let ramp = Evidence { seconds: &ramp, model: Model::Open, ..run };
    assert!(reported(&ramp).contains(&"drift: the load was meant to change".to_owned()));
    assert!(reported(&Evidence { seconds: &[], ..run }).contains(&"worker_cpu: no full second".to_owned()));
}

/// A closed loop with this many responses per second and this median response time.
fn series(of: impl Fn(u64) -> (u64, u64)) -> (Interval, Vec<Second>) {
    series_of(20, of)
}

fn series_of(n: u64, of: impl Fn(u64) -> (u64, u64)) -> (Interval, Vec<Second>) {
    let mut total = Interval::default();
    let mut seconds = Vec::new();
    for at in 0..n {
        let (count, micros) = of(at);
        let mut interval = Interval::default();
        (interval.index, interval.start) = (at, Nanos::from_secs(at));
        interval.length = SECOND;
        // Spread by half to either side, so that one request does not predict another.
        (0..count).for_each(|i| interval.record_ok(&ok(0, micros * (500 + 1_000 * i / count), 0)));
        interval.counts.scheduled = count;
        total.merge(&interval);
        seconds.push(Second::of(&interval, None));
    }
    (total, seconds)
}

#[track_caller]
fn check_series(model: Model, of: impl Fn(u64) -> (u64, u64), name: &str, expected: bool) {
    let (total, seconds) = series(of);
    let window = Nanos::from_secs(20);
    check_found(&Evidence { seconds: &seconds, model, window, ..evidence(&total) }, name, expected);
}

#[test]
fn a_run_that_drifts_is_named_and_a_noisy_one_is_not() {
    let noise = |at: u64| at * 7_919 % 13;
    for model in [Model::Open, Model::Closed] {
        check_series(model, |at| (500, 1_000 + noise(at) * 20), "drift", false);
        check_series(model, |at| (500, 1_000 + at * 30 + noise(at) * 5), "drift", true);
        // A step of less than the margin, and one slow second.
        check_series(model, |at| (500, 1_000 + at * 3), "drift", false);
        check_series(model, |at| (500, if at == 15 { 9_000 } else { 1_000 }), "drift", false);
    }
    check_series(Model::Closed, |at| (500 - at * 10, 1_000), "drift", true);
    // A ramp was requested, so it is no drift.
    check_series(Model::Open, |at| (100 + at * 20, 1_000 + at * 100), "drift", false);
}

/// If this fails, a run is valid although the server died, or came to life, in the middle of it.
#[test]
fn a_half_without_answers_is_named_and_a_sparse_run_is_not() {
    let noise = |at: u64| at * 7_919 % 13;
    let stops = |at: u64| if at < 10 { 500 + noise(at) } else { 0 };
    check_series(Model::Closed, |at| (stops(at), 1_000), "drift", true);
    check_series(Model::Closed, |at| (stops(19 - at), 1_000), "drift", true);
    // Responses in every second second; in odd halves the medians differ.
    for n in [9, 10, 11, 12, 15] {
        let (_, seconds) = series_of(n, |at| (if at % 2 == 0 { 40 } else { 0 }, 1_000));
        let total = healthy();
        let run = Evidence {
            seconds: &seconds,
            model: Model::Closed,
            window: Nanos::from_secs(n),
            ..evidence(&total)
        };
        check_found(&run, "drift", false);
    }
}

/// If this fails, the shortest common run, of 10 s, is not checked for drift.
#[test]
fn a_server_that_dies_is_seen_in_eight_seconds() {
    let dies = |at: u64| (if at < 5 { 500 + at * 7 % 5 } else { 0 }, 1_000);
    for (n, expected) in [(8, false), (9, true), (10, true)] {
        let (total, seconds) = series_of(n, dies);
        let window = Nanos::from_secs(n);
        let run = Evidence { seconds: &seconds, model: Model::Closed, window, ..evidence(&total) };
        check_found(&run, "drift", expected);
        if expected {
            let measured = "the second half of the run had no ok response in most of its seconds, the other half had some";
            assert_eq!(found(&run, "drift").unwrap(), measured);
        }
    }
}

/// If this fails, intervals are too narrow for the variation between runs, without a note.
#[test]
fn requests_that_resemble_their_neighbours_are_noted() {
    check_series(Model::Closed, |_| (500, 1_000), "independence", false);
    let waves = |at: u64| (500, if (at / 4).is_multiple_of(2) { 1_000 } else { 3_000 });
    check_series(Model::Closed, waves, "independence", true);
    let (total, seconds) = series(waves);
    let run = Evidence { seconds: &seconds, window: Nanos::from_secs(20), ..evidence(&total) };
    assert_eq!(audit(&run).word, VerdictWord::Valid);
}

#[test]
fn a_client_near_its_own_ceiling_is_named() {
    let ceiling = Ceiling { throughput_per_s: 1_000, rate_per_s: Some(500), measured: String::new() };
    let limits = HostLimits { ceiling: Some(ceiling), ..HostLimits::default() };
    let host = Host { limits, ..Host::default() };
    for (model, per_s, expected) in [
        (Model::Closed, 800, false),
        (Model::Closed, 802, true),
        (Model::Open, 400, false),
        (Model::Open, 402, true),
    ] {
        let total = healthy();
        let seconds = seconds(10, |_, second| (second.ok, second.scheduled) = (per_s, per_s));
        let run = Evidence { seconds: &seconds, model, host: &host, ..evidence(&total) };
        check_found(&run, "ceiling", expected);
        check_found(&Evidence { host: &HOST, ..run }, "ceiling", false);
    }
}
