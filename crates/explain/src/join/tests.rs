//! Tests of the join: by ends, by time through a relay, by order on two clocks; what is not found is counted.

use export::requests::Row;
use record::{Carried, Phase, Served};
use units::Nanos;

use super::*;
use crate::clocks::Known;
use crate::fixture::{row, served};

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

/// Sent at `sent` ms on the connection from `port`, with its response `wait` ms later.
fn sent(port: u16, nth: u64, sent: u64, wait: u64) -> Row {
    let mut lengths = [None; Phase::COUNT];
    lengths[Phase::Wait as usize] = Some(wait * 1_000_000);
    let carried = Carried { local: address(port), server: address(80), nth };
    Row { n: nth, carried: Some(carried), ..row(sent * 1_000_000, lengths) }
}

/// Read at `read` ms on the connection that the server knows by `port`.
fn read(port: u16, n: u64, read: u64, done: u64) -> Served {
    Served { n, peer: Some(address(port)), local: Some(address(80)), ..served(read, read, done) }
}

fn shared(served: &[Served]) -> Watched<'_> {
    about(served, 0)
}

/// Requests on a clock that is known within `error` ms.
fn about(served: &[Served], error: u64) -> Watched<'_> {
    let known = Known::Within(Nanos::from_millis(error));
    Watched { served, clocks: Clocks { zero: 0, known, same_host: error == 0 } }
}

/// Requests on a clock that is related to ours only by wall clocks.
fn far(served: &[Served], zero: i128) -> Watched<'_> {
    Watched { served, clocks: Clocks { zero, known: Known::ByWallClock, same_host: false } }
}

fn places(matches: &[Option<Match>]) -> Vec<Option<usize>> {
    matches.iter().map(|matched| matched.map(|matched| matched.place)).collect()
}

#[test]
fn requests_are_found_by_their_connection_and_time() {
    let rows = [sent(1, 0, 0, 10), sent(2, 0, 1, 10), sent(1, 1, 20, 10), sent(3, 0, 5, 10)];
    // The observer saw an earlier request of connection 1, but not its first of these.
    let at = [read(2, 0, 3, 9), read(1, 7, 22, 25), read(1, 6, 500, 501)];
    let (matches, counts) = join(&rows, &[shared(&at)]);
    assert_eq!(places(&matches), [None, Some(0), Some(1), None]);
    let expected = JoinCounts {
        rows: 4,
        by_ends: 2,
        request_not_seen: 1,
        connection_not_seen: 1,
        others_at_servers: 1,
        ..JoinCounts::default()
    };
    assert_eq!(counts, expected);
}

/// Pipelined requests are in progress at once, and one of them was lost.
#[test]
fn order_tells_pipelined_requests_apart() {
    let rows: Vec<_> = (0..6).map(|nth| sent(1, nth, 0, 100)).collect();
    let at: Vec<_> = (0..6).filter(|n| *n != 2).map(|n| read(1, n, 10, 20)).collect();
    let (matches, _) = join(&rows, &[shared(&at)]);
    assert_eq!(places(&matches), [Some(0), Some(1), None, Some(2), Some(3), Some(4)]);
}

#[test]
fn a_relay_between_is_seen_through_by_time() {
    // Four connections, a response held back by 50 ms; the server knows other ports.
    let rows: Vec<_> = (0..40).map(|i| sent(100 + (i % 4) as u16, i / 4, i * 25, 52)).collect();
    let at: Vec<_> = (0..40).map(|i| read(200 + (i % 4) as u16, i / 4, i * 25 + 1, i * 25 + 2)).collect();
    let (matches, counts) = join(&rows, &[shared(&at)]);
    assert_eq!((counts.by_time, counts.others_at_servers), (40, 0));
    assert_eq!(places(&matches), (0..40).map(Some).collect::<Vec<_>>());
    // With two clocks that would be a guess.
    let (_, counts) = join(&rows, &[far(&at, 0)]);
    assert_eq!((counts.by_time, counts.connection_not_seen), (0, 40));
}

#[test]
fn on_two_clocks_the_order_that_the_wall_clocks_agree_on_is_taken() {
    let rows: Vec<_> = (0..10).map(|nth| sent(1, nth, nth * 20, 10)).collect();
    // The server's clock is an hour ahead, its wall clock 3 ms; its observer started two requests late.
    let hour = 3_600_000;
    let at: Vec<_> = (0..8).map(|n| read(1, n, hour + (n + 2) * 20 + 5, hour + (n + 2) * 20 + 8)).collect();
    let watched = far(&at, i128::from(hour + 3) * 1_000_000);
    let (matches, _) = join(&rows, &[watched]);
    let expected: Vec<_> = [None, None].into_iter().chain((0..8).map(Some)).collect();
    assert_eq!(places(&matches), expected);
}

/// The clock is known within 30 ms, and a connection has a request every 20 ms: order must distinguish them.
#[test]
fn a_clock_that_is_known_within_an_error_joins_by_order() {
    let rows: Vec<_> = (0..10).map(|nth| sent(1, nth, 100 + nth * 20, 10)).collect();
    for off in [-25i64, -3, 0, 3, 25] {
        // The observer missed the third request.
        let instant = |n: u64| (100 + n * 20 + 5).saturating_add_signed(off);
        let at: Vec<_> =
            (0..10).filter(|n| *n != 2).map(|n| read(1, n, instant(n), instant(n) + 2)).collect();
        let (matches, _) = join(&rows, &[about(&at, 30)]);
        let expected: Vec<_> = [Some(0), Some(1), None].into_iter().chain((2..9).map(Some)).collect();
        assert_eq!(places(&matches), expected, "off by {off} ms");
    }
}

/// The same client port twice in a run: the requests of the two connections have the same numbers.
#[test]
fn a_port_that_is_used_again_is_another_connection() {
    let first = (0..5).map(|nth| sent(1, nth, nth * 20, 10));
    let rows: Vec<_> = first.chain((0..5).map(|nth| sent(1, nth, 1_000 + nth * 20, 10))).collect();
    let read_at = |n: u64, at: u64| read(1, n, at + 5, at + 8);
    let again = (0..5).map(|n| Served { connection: 2, ..read_at(n, 1_000 + n * 20) });
    let at: Vec<_> = (0..5).map(|n| read_at(n, n * 20)).chain(again).collect();
    for watched in [shared(&at), about(&at, 30), far(&at, 0)] {
        let (matches, _) = join(&rows, &[watched]);
        assert_eq!(places(&matches), (0..10).map(Some).collect::<Vec<_>>(), "{:?}", watched.clocks);
    }
}

/// Both hosts have a connection from 127.0.0.1: they are different connections.
#[test]
fn the_loopback_of_another_host_is_not_ours() {
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let carried = Some(Carried { local: local(1), server: local(80), nth: 0 });
    let rows = [Row { carried, ..sent(1, 0, 0, 10) }];
    let at = [Served { peer: Some(local(1)), local: Some(local(80)), ..read(1, 0, 3, 4) }];
    assert_eq!(places(&join(&rows, &[shared(&at)]).0), [Some(0)]);
    let (matches, counts) = join(&rows, &[far(&at, 0)]);
    assert_eq!((places(&matches), counts.connection_not_seen), (vec![None], 1));
}

/// Each side kept some of the requests, and not the same ones.
#[test]
fn samples_of_two_hosts_are_joined_by_their_numbers() {
    let rows: Vec<_> = [57, 90, 300].map(|nth| sent(1, nth, nth * 20, 10)).into();
    let at: Vec<_> = [3, 90, 120, 300].map(|n| read(1, n, n * 20 + 5, n * 20 + 8)).into();
    let (matches, _) = join(&rows, &[far(&at, 0)]);
    assert_eq!(places(&matches), [None, Some(1), Some(3)]);
}

#[test]
fn records_of_two_periods_are_not_joined() {
    let rows: Vec<_> = (0..10).map(|nth| sent(1, nth, nth * 20, 10)).collect();
    let at: Vec<_> = (0..10).map(|n| read(1, n, n * 20 + 5, n * 20 + 8)).collect();
    let (_, counts) = join(&rows, &[far(&at, 600_000_000_000)]);
    assert_eq!((counts.by_ends, counts.request_not_seen, counts.others_at_servers), (0, 10, 10));
}

#[test]
fn every_row_is_in_one_count() {
    let unanswered = Row { service: None, ..sent(1, 0, 0, 10) };
    let unknown = Row { carried: None, ..sent(1, 1, 0, 10) };
    let rows = [unanswered, unknown, sent(1, 2, 0, 10), sent(9, 0, 0, 10)];
    let at = [read(1, 2, 3, 4)];
    let (_, counts) = join(&rows, &[shared(&at)]);
    let JoinCounts { rows, by_ends, by_time, unanswered, no_connection, .. } = counts;
    let JoinCounts { connection_not_seen, request_not_seen, .. } = counts;
    assert_eq!((by_ends, unanswered, no_connection, connection_not_seen), (1, 1, 1, 1));
    let sum = by_ends + by_time + unanswered + no_connection + connection_not_seen + request_not_seen;
    assert_eq!((rows, sum), (4, 4));
}

#[test]
fn a_mapped_address_is_the_address_it_maps() {
    let mapped: SocketAddr = "[::ffff:10.0.0.1]:1".parse().unwrap();
    let at = [Served { peer: Some(mapped), ..read(1, 0, 3, 4) }];
    let (matches, _) = join(&[sent(1, 0, 0, 10)], &[shared(&at)]);
    assert_eq!(places(&matches), [Some(0)]);
    assert!(is_loopback("[::ffff:127.0.0.1]:80".parse().unwrap()));
    assert_eq!(Nanos(0), Nanos::ZERO);
}
