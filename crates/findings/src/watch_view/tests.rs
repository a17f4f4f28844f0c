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
