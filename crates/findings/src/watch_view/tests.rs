//! The texts of a watch, from values alone.

use super::*;
use crate::progress::watch_line;

#[test]
fn a_line_says_what_there_was() {
    let line = watch::WatchLine {
        requests: 1_000,
        response_ns: Some(watch::WatchQuantiles {
            p50: 73_000,
            p95: 127_000,
            p99: 1_000_000,
            max: 2_000_000,
        }),
        preempted: 31,
        ..watch::WatchLine::default()
    };
    assert_eq!(
        watch_line(&line, Nanos::from_secs(2)),
        "throughput      500/s  p50   73.0 us  p95    127 us  p99   1.00 ms  preempted 3.1 %"
    );
    let empty = watch_line(&watch::WatchLine::default(), Nanos::from_secs(1));
    assert_eq!(empty, "throughput        0/s  no request");
}

/// If this fails, a server that was watched for a quarter of the time seems to be a quarter as fast.
#[test]
fn a_line_has_the_rate_of_what_was_seen() {
    let line =
        watch::WatchLine { requests: 1_000, seen_ns: Some(250_000_000), ..watch::WatchLine::default() };
    let text = watch_line(&line, Nanos::from_secs(1));
    assert_eq!(text, "throughput     4000/s  no request  preempted 0 %  saw 25.0 % of the time");
    let line = watch::WatchLine { seen_ns: Some(0), ..watch::WatchLine::default() };
    let text = watch_line(&line, Nanos::from_secs(1));
    assert_eq!(text, "throughput        0/s  not watched  saw 0 % of the time");
}

/// If this fails, a reader takes what was seen for all there was.
#[test]
fn windows_say_how_much_was_seen_and_what_follows() {
    let range = |value: f64| {
        Some(watch::EstimatedRange { value: Some(value), low: Some(value * 0.9), high: Some(value * 1.1) })
    };
    let seen = watch::Windows {
        budget: 0.02,
        windows: 412,
        in_windows_ns: 20_600_000_000,
        everything_ns: 300_000_000,
        unanswered: 3,
        cost_ns: 1_900_000_000,
        server_cpu_ns: 100_000_000_000,
        rate_per_s: range(8_120.0),
        mean_ns: range(73_000.0),
        p50_ns: range(61_000.0),
        p99_ns: Some(watch::EstimatedRange { value: Some(410_000.0), low: Some(380_000.0), high: None }),
        ..watch::Windows::default()
    };
    let mut text = Vec::new();
    for block in windows::windows(&seen, Nanos::from_secs(90)) {
        text.push(format!("{block:?}"));
    }
    let text = text.join("\n");
    for part in ["412", "8120", "lower bound", "no response 500 ms after"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(windows::windows(&watch::Windows::default(), Nanos::from_secs(90)).is_empty());
}

/// If this fails, a report with many reasons is longer than anybody reads, or rows are missing without a word.
#[test]
fn tables_have_as_many_rows_as_asked_for() {
    let reason = |requests| watch::SlowReason {
        part: "run_queue".to_owned(),
        what: Some(format!("preempted by hog-{requests}")),
        requests,
        sum_ns: 9_000_000,
        part_ns: 8_000_000,
    };
    let one = watch::SlowRequest {
        at_ns: 0,
        response_ns: 9_000_000,
        digest: 0,
        session: 0,
        peer: None,
        tid: 1,
        parts_ns: watch::PartsNs::default(),
        part: "on_cpu".to_owned(),
        what: None,
    };
    let slow = watch::SlowRequests {
        over_ns: 5_000_000,
        requests: 820,
        reasons: (1..=40).rev().map(reason).collect(),
        slowest: vec![one; 50],
    };
    let results = WatchResults { requests: 10_000, slow: Some(slow), ..WatchResults::default() };
    for (top, reasons, slowest) in [(None, 10, 5), (Some(3), 3, 3), (Some(100), 40, 50)] {
        let query = WatchQuery { top, ..WatchQuery::default() };
        let section = slow::slow(&results, &query).unwrap();
        let rows: Vec<usize> = section
            .blocks
            .iter()
            .filter_map(|block| if let Block::Table(table) = block { Some(table.rows.len()) } else { None })
            .collect();
        assert_eq!(rows, [reasons, slowest], "{top:?}");
        let note = section.blocks.iter().any(|block| format!("{block:?}").contains("more reasons"));
        assert_eq!(note, reasons < 40, "{top:?}");
    }
}

#[test]
fn every_loss_is_told() {
    let all = Losses { ring_full: 1, map_full: 2, recursion: 3, mid_connection: 4, unparsed: 5 };
    assert_eq!(losses(&all).len(), 5);
    assert!(losses(&Losses::default()).is_empty());
}

#[test]
fn missed_requests_have_their_margin() {
    let text = |requests, margin| missed(MissedRequests { requests, margin }).to_string();
    assert_eq!(text(121_791, 64), "121791 requests ± 64, not included in other figures");
    assert_eq!(text(1, 0), "1 request, not included in other figures");
}

#[test]
fn all_that_is_inexact_is_told() {
    let all = Inexact { forgotten_slices: 1, joined_arrivals: 2, missed_switches: 3 };
    assert_eq!(inexact(&all).len(), 3);
    assert!(inexact(&all)[1].to_string().starts_with("2 – arrivals were merged"));
    assert!(inexact(&Inexact::default()).is_empty());
}
