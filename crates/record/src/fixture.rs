//! A run with fixed values, for the tests of records and for the golden files.

use std::collections::BTreeMap;

use intervals::{Failure, HostSecond, Interval, Outcome, Phase, Series, Timeline};
use units::{Code, Nanos};

use crate::check::Check;
use crate::document::*;
use crate::folder::Event;
use crate::served::{Culprit, Part, Protocol, Served};

/// The document as it is written at the start of a run.
pub(crate) fn document() -> Document {
    Document {
        envelope: envelope(),
        thresholds: Vec::new(),
        subject: Subject {
            url: "http://localhost:8080/plaintext".to_owned(),
            protocol: "http/1.1".to_owned(),
            request_kinds: 1,
            targets: Vec::new(),
            journeys: Vec::new(),
            address: Some("127.0.0.1:8080".to_owned()),
        },
        load: load(),
        stamps: Stamps {
            arrival: ArrivalStamps::Kernel,
            reason: None,
            pairing_error_ns: Some(120),
            wall_clock_steps: 0,
        },
        server_account: None,
        results: None,
    }
}

fn envelope() -> Envelope {
    let option = |value: &str, source| EffectiveOption { value: value.to_owned(), source };
    Envelope {
        command: ["parallax", "drive", "http://localhost:8080/plaintext", "--rate", "100/s"]
            .map(str::to_owned)
            .into(),
        options: BTreeMap::from([
            ("rate".to_owned(), option("100/s", OptionSource::Given)),
            ("timeout".to_owned(), option("30s", OptionSource::Default)),
            ("workers".to_owned(), option("2", OptionSource::Derived)),
        ]),
        time: Time {
            started: "2026-01-31T12:00:00.25Z".to_owned(),
            started_monotonic_ns: 86_400_123_456_789,
            elapsed_ns: None,
            window_ns: None,
        },
        host: Host {
            name: Some("client-1".to_owned()),
            cpus: Some(2),
            limits: HostLimits {
                open_files: Some(1_024),
                local_ports: Some(PortRange { first: 32_768, last: 60_999 }),
                hiccup_tick_ns: Some(10_000_000),
                ceiling: Some(Ceiling {
                    throughput_per_s: 90_000,
                    rate_per_s: Some(50_000),
                    measured: "2026-01-31T11:00:00Z".to_owned(),
                }),
            },
            missing: vec![MissingFact {
                what: "cpu_pressure".to_owned(),
                why: "/proc/pressure/cpu: No such file or directory (os error 2)".to_owned(),
            }],
            ..Host::default()
        },
        ..Envelope::new(RecordKind::Drive, "0.1.0")
    }
}

fn load() -> Load {
    Load {
        model: Model::Open,
        rate_per_s: Some(100.0),
        arrivals: None,
        think: None,
        pace: None,
        callers: 16,
        connections: 4,
        pipeline: 1,
        workers: 2,
        duration_ns: Some(3_000_000_000),
        request_limit: None,
        warmup: None,
        idle_connections: None,
        requests_per_connection: None,
        changes: Vec::new(),
    }
}

/// The document of the finished run of `intervals`.
pub(crate) fn finished(intervals: &[Interval]) -> Document {
    let total = merged(intervals);
    let outcomes = total.failures().iter().map(|&(failure, count)| OutcomeCount {
        outcome: failure.outcome.name().to_owned(),
        phase: Some(failure.phase.name().to_owned()),
        blame: Some(failure.blame.name().to_owned()),
        count,
    });
    let ok = OutcomeCount { outcome: "ok".to_owned(), phase: None, blame: None, count: total.counts.ok };
    let run = document();
    let time = Time { elapsed_ns: Some(2_700_000_000), window_ns: Some(2_700_000_000), ..run.time.clone() };
    let envelope = Envelope { state: State::Finished, verdict: Some(verdict()), time, ..run.envelope };
    Document {
        envelope,
        thresholds: vec![
            threshold(
                "response.p99 > 50ms",
                Some(Reading::Above(Quantity::Ns(250_000_000))),
                Quantity::Ns(50_000_000),
            ),
            threshold(
                "error_share > 5%",
                Some(Reading::Known(Quantity::Share(0.015))),
                Quantity::Share(0.05),
            ),
            threshold("tls.p50 > 1ms", None, Quantity::Ns(1_000_000)),
        ],
        server_account: None,
        results: Some(Results {
            totals: totals(&total),
            outcomes: std::iter::once(ok).chain(outcomes).collect(),
            reasons: Vec::new(),
            check_samples: Vec::new(),
            targets: Vec::new(),
            journeys: Vec::new(),
            codes: CodeCount::of(&total),
            text_codes: Vec::new(),
            other_codes: 0,
            response: distribution(&total, Series::Response),
            service: distribution(&total, Series::Service),
            phases: Phase::ALL
                .map(|phase| PhaseResult {
                    phase: phase.name().to_owned(),
                    belongs_to: phase.belongs_to().to_owned(),
                    share: None,
                    distribution: total.phase(phase).map(|_| distribution(&total, Series::Phase(phase))),
                    absent: total.phase(phase).is_none().then(|| "no request passed it".to_owned()),
                })
                .into(),
            failed: Outcome::ALL
                .into_iter()
                .filter(|&outcome| total.failed(outcome).is_some())
                .map(|outcome| (outcome.name().to_owned(), distribution(&total, Series::Failed(outcome))))
                .collect(),
            cpu: Cpu { process_ns: Some(1_500_000), busiest_worker_share: Some(0.85), ..Cpu::default() },
            kept: Some(Kept { requests: "sample=1%".to_owned(), rows: 12, lost: 1 }),
        }),
        ..document()
    }
}

fn verdict() -> Verdict {
    Verdict {
        word: VerdictWord::Degraded,
        findings: vec![Finding {
            check: Check::WorkerCpu,
            makes: VerdictWord::Degraded,
            measured: "the busiest worker used 85.0 % of a CPU in the median second".to_owned(),
            limit: "80 %".to_owned(),
            advice: "use more workers, or lower the load".to_owned(),
        }],
        unchecked: vec![Unchecked { check: Check::Drift, reason: "1 of 8 full seconds".to_owned() }],
    }
}

fn threshold(fail_if: &str, measured: Option<Reading>, limit: Quantity) -> Threshold {
    let (result, reason) = match measured {
        Some(Reading::Above(_)) => (ThresholdResult::Missed, None),
        Some(Reading::Known(_)) => (ThresholdResult::Met, None),
        None => (ThresholdResult::Undecided, Some("tls is absent: no TLS".to_owned())),
    };
    Threshold { fail_if: fail_if.to_owned(), measured, limit, result, reason }
}

fn totals(total: &Interval) -> Totals {
    let counts = total.counts;
    Totals {
        scheduled: counts.scheduled,
        sent: counts.sent,
        ok: counts.ok,
        failed: total.ended() - counts.ok,
        throughput_per_s: counts.ok as f64 / 2.7,
        journeys_per_s: None,
        bytes_sent: counts.bytes_sent,
        bytes_received: counts.bytes_received,
        body_bytes: counts.body_bytes,
        connections_opened: counts.connections_opened,
        idle_closes: counts.idle_closes,
        unstamped: counts.unstamped,
        stamps_moved: counts.stamps_moved,
        out_of_range: Series::all().filter_map(|series| Some(total.series(series)?.out_of_range())).sum(),
        retries: 0,
    }
}

/// One quantile of each kind that a reader must distinguish.
fn distribution(total: &Interval, series: Series) -> Distribution {
    let durations = total.series(series).cloned().unwrap_or_default();
    let median = durations.at_rank(durations.count().div_ceil(2)).unwrap_or_default().0;
    Distribution {
        count: durations.count(),
        sum_ns: u64::try_from(durations.sum_ns()).unwrap(),
        min_ns: durations.min().map(|ns| ns.0),
        mean_ns: durations.mean().map(|ns| ns.0),
        max_ns: durations.max().map(|ns| ns.0),
        quantiles: vec![
            Quantile {
                q: 0.5,
                value: QuantileValue::Known { ns: median, low_ns: median / 2, high_ns: Some(median * 2) },
            },
            Quantile { q: 0.99, value: QuantileValue::Above { ns: median } },
            Quantile { q: 0.9999, value: QuantileValue::TooFew { needed: 36_890 } },
        ],
    }
}

/// The three intervals of the golden run: the last is short, and the middle one has failures, one of them older than
/// the range of a histogram.
pub(crate) fn intervals() -> Vec<Interval> {
    let mut intervals = vec![Interval::default(), Interval::default(), Interval::default()];
    let mut at = 0;
    for (index, interval) in (0..).zip(&mut intervals) {
        interval.index = index;
        interval.start = Nanos(at);
        interval.length = Nanos([1_000_123_456, 999_876_544, 700_000_000][index as usize]);
        at += interval.length.0;
        let answered = [100, 90, 70][index as usize];
        for i in 0..answered {
            // 1 to 10 ms, and one of 250 ms in each interval.
            let wait = if i == 50 { 250_000_000 } else { 1_000_000 + (i * 7_919 % 1_000) * 9_000 };
            interval.record_ok(&ok(i * 100, wait, 5_000 + i, i < 4 && index == 0));
            interval.record_code(Code::status(200));
        }
        interval.counts.scheduled = answered;
        interval.counts.sent = answered;
        interval.counts.bytes_sent = answered * 120;
        interval.counts.bytes_received = answered * 150;
        interval.counts.body_bytes = answered * 13;
        interval.worker_cpu = Nanos(40_000_000 + index);
        interval.worker_spin = Nanos(3_000_000 + index);
        interval.worker_cpu_max = Nanos(25_000_000);
        interval.worker_stall_max = Nanos(40_000);
        interval.run_queue = Some(Nanos(3_000_000));
        interval.describe_worker(1);
        interval.outstanding_time = Some(u128::from(answered) * 5_000_000);
        (0..10).for_each(|tick| interval.record_hiccup(Nanos(60_000 + tick * 1_000)));
        interval.host = HostSecond {
            throttled: Some(index),
            throttled_ns: Some(index * 10_000_000),
            listen_drops: Some(0),
            retransmits: Some(0),
            open_files: Some(24),
            ports: Some(4),
            ..HostSecond::default()
        };
    }
    intervals[0].counts.connections_opened = 4;
    intervals[0].counts.outstanding = 2;
    let middle = &mut intervals[1];
    for (outcome, phase, age_s) in [
        (Outcome::RequestTimeout, Phase::Wait, 30),
        (Outcome::AppError, Phase::Receive, 1),
        (Outcome::AppError, Phase::Receive, 2),
        (Outcome::InFlight, Phase::Wait, 9_000),
    ] {
        middle.record_failure(Failure::new(outcome, phase), Nanos::from_secs(age_s));
        middle.counts.scheduled += 1;
        middle.counts.sent += 1;
    }
    middle.record_failed_lags(&ok(3_000, 900, 40, false));
    middle.record_failed_lags(&ok(5_000, 900, 60, false));
    middle.record_code(Code::status(503));
    middle.record_code(Code::status(503));
    middle.counts.unstamped = 1;
    intervals
}

/// Three intervals of few bytes: in the last one, no request ended.
pub(crate) fn short_intervals() -> Vec<Interval> {
    let mut intervals = intervals();
    for (n, interval) in (0..).zip(&mut intervals) {
        interval.clear();
        for i in 0..2 - n {
            interval.record_ok(&ok(2, 900 + n, 1, false));
            interval.record_code(Code::status(200 + u16::try_from(i).unwrap()));
            interval.counts.scheduled += 1;
        }
    }
    intervals[1].record_failure(Failure::new(Outcome::Reset, Phase::Wait), Nanos(77));
    intervals[1].counts.scheduled += 1;
    intervals
}

/// One request that succeeded.
pub(crate) fn answered(n: u64) -> Timeline {
    ok(2, 900 + n, 1, false)
}

fn ok(lag: u64, wait: u64, client_lag: u64, connects: bool) -> Timeline {
    let mut timeline = Timeline::due(Nanos(1_000));
    timeline.end(Phase::ScheduleLag, Nanos(1_000 + lag));
    timeline.end(Phase::PoolWait, Nanos(1_000 + lag));
    if connects {
        timeline.end(Phase::Connect, timeline.last() + Nanos(80_000));
    }
    timeline.end(Phase::Send, timeline.last() + Nanos(9_000));
    timeline.end(Phase::Wait, timeline.last() + Nanos(wait));
    timeline.end(Phase::Receive, timeline.last() + Nanos(3));
    timeline.end(Phase::ClientLag, timeline.last() + Nanos(client_lag));
    timeline
}

pub(crate) fn events() -> Vec<Event> {
    vec![Event::new(1_500_000_000, "warning", "2 requests wait for a connection".to_owned())]
}

/// The sum of `intervals`, as the reader of a record computes it.
pub(crate) fn merged(intervals: &[Interval]) -> Interval {
    let mut total = Interval::default();
    intervals.iter().for_each(|interval| total.merge(interval));
    if let (Some(first), Some(last)) = (intervals.first(), intervals.last()) {
        total.start = first.start;
        total.length = last.start + last.length - first.start;
        total.counts.outstanding = last.counts.outstanding;
    }
    total
}

/// Fails if two intervals differ in anything.
pub(crate) fn assert_same(one: &Interval, other: &Interval) {
    assert_eq!(one.counts, other.counts);
    assert_eq!((one.start, one.length), (other.start, other.length));
    assert_eq!((one.worker_cpu, one.worker_cpu_max), (other.worker_cpu, other.worker_cpu_max));
    assert_eq!((one.worker_spin, one.worker_stall_max), (other.worker_spin, other.worker_stall_max));
    assert_eq!(one.outstanding_time, other.outstanding_time);
    assert_eq!((&one.workers, one.host), (&other.workers, other.host));
    assert_eq!(one.failures(), other.failures());
    // Statuses and other codes are separate lists in a file, so their common order is not preserved.
    let codes = |interval: &Interval| {
        let mut codes = interval.codes().to_vec();
        codes.sort_unstable();
        (codes, interval.other_codes())
    };
    assert_eq!(codes(one), codes(other));
    assert_eq!(one.reasons(), other.reasons());
    let counts = |interval: &Interval| -> Vec<_> {
        interval.kinds().iter().map(|kind| (kind.ok, kind.failures().to_vec())).collect()
    };
    assert_eq!(counts(one), counts(other));
    let journeys = |interval: &Interval| -> Vec<_> {
        let of = |one: &crate::Journey| (one.begun, one.ok, one.failed, one.cut, one.retries);
        interval.journeys().iter().map(of).collect()
    };
    assert_eq!(journeys(one), journeys(other));
    for series in Series::of(one) {
        let parts = |interval: &Interval| {
            let durations = interval.series(series)?;
            Some((durations.count(), durations.sum_ns(), durations.out_of_range()))
        };
        assert_eq!(parts(one), parts(other), "{series:?}");
        let (Some(one), Some(other)) = (one.series(series), other.series(series)) else { continue };
        assert_eq!(one.histogram(), other.histogram(), "{series:?}");
    }
}

/// One request at a server, which takes 1 ms plus `n` nanoseconds.
pub(crate) fn served(n: u64) -> Served {
    let mut parts = [Nanos::ZERO; Part::COUNT];
    parts[Part::OnCpu as usize] = Nanos(700_000 + n);
    parts[Part::RunQueue as usize] = Nanos(200_000);
    parts[Part::Disk as usize] = Nanos(100_000);
    Served {
        connection: 3,
        peer: Some("127.0.0.1:41000".parse().unwrap()),
        local: Some("127.0.0.1:8080".parse().unwrap()),
        n,
        arrived: Some(Nanos(9_960)),
        read: Nanos(10_000),
        socket_run_queue: Nanos(15),
        socket_throttled: Nanos::ZERO,
        first_sent: Nanos(900_000),
        done: Nanos(1_010_000 + n),
        parts,
        preempted: Nanos(150_000),
        preemptions: 2,
        culprit: Some(Culprit { pid: 77, comm: "hog".to_owned(), time: Nanos(140_000) }),
        contended: Nanos(200_000),
        socket_contended: Nanos(10),
        waits: None,
        pid: 10,
        tid: 12,
        hand_offs: 1,
        protocol: Protocol::Http1,
        digest: 0,
        session: 0,
        rows: None,
        sleep: None,
        status: Some(200),
        class: None,
        request_bytes: 90,
        statements: 1,
        response_bytes: 300,
    }
}
