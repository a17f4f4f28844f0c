//! Whether the server reports what it did: counts after known requests, times of known delays.

use std::net::Shutdown;

use target::{RouteKind, Truth};
use units::Nanos;

use crate::client::{Client, get, start};

#[test]
fn counts_are_exact() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    let mut read = 0;
    let mut written = 0;
    for (target, count) in
        [("/plaintext", 7), ("/json", 3), ("/status/500", 2), ("/bytes/1000", 4), ("/x", 1)]
    {
        for _ in 0..count {
            read += get(target).len();
            let response = client.get(target);
            written += response.head.len() + response.body.len();
        }
    }
    let truth = server.truth();
    let by_kind = [
        RouteKind::Plaintext,
        RouteKind::Json,
        RouteKind::Status,
        RouteKind::Bytes,
        RouteKind::NotFound,
        RouteKind::Delay,
    ];
    assert_eq!(by_kind.map(|kind| truth.requests_of(kind)), [7, 3, 2, 4, 1, 0]);
    assert_eq!([200, 404, 500].map(|status| truth.responses_with(status)), [14, 1, 2]);
    assert_eq!((truth.bytes_read(), truth.bytes_written()), (read as u64, written as u64));
    assert_eq!((truth.response().count(), truth.lateness().count()), (17, 0));
    assert_eq!((truth.connections().accepted, truth.connections().open), (1, 1));
    assert!(truth.is_conserved());
}

/// If this fails, calibration compares the instrument with a server that misreports its own delay.
#[test]
fn a_delay_is_never_shorter_than_asked_for() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    for _ in 0..100 {
        let began = clock::now();
        client.get("/delay?us=2000");
        assert!(clock::now() - began >= Nanos::from_micros(2_000));
    }
    let truth = server.stop();
    assert_eq!((truth.response().count(), truth.lateness().count(), truth.unstamped()), (100, 100, 0));
    assert!(truth.response().min().unwrap() >= Nanos::from_micros(2_000));
    // The same responses from two starting points: the difference is exactly the delay.
    let (response, lateness) = (truth.response().durations(), truth.lateness().durations());
    assert_eq!(response.sum_ns() - lateness.sum_ns(), 100 * 2_000_000);
}

#[test]
fn jitter_adds_between_nothing_and_its_width() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    for _ in 0..50 {
        client.get("/delay?us=500&jitter_us=4000&seed=1");
    }
    let truth = server.stop();
    let added = truth.response().durations().sum_ns() - truth.lateness().durations().sum_ns() - 50 * 500_000;
    // The mean of 50 uniform draws is within 1 ms of the middle, except once in some ten thousand seeds.
    assert!((50_000_000..150_000_000).contains(&added), "{added}");
}

#[test]
fn the_document_does_not_count_itself() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    client.get("/plaintext");
    let first = text(&mut client, "/truth");
    assert!(first.contains("\"read\": 1,") && first.contains("\"histogram\": \"HISTFAAAA"), "{first}");
    let before = server.truth();
    assert!(text(&mut client, "/truth/reset").contains("\"read\": 1,"));
    let after = server.truth();
    assert_eq!((before.requests(), before.responses()), (1, 1));
    assert_eq!(
        (after.requests(), after.responses(), after.bytes_written(), after.bytes_read()),
        (0, 0, 0, 0)
    );
    assert_eq!((after.connections().open, after.connections().accepted), (1, 0));
    assert!(after.since() > before.since());
}

fn text(client: &mut Client, target: &str) -> String {
    String::from_utf8(client.get(target).body).unwrap()
}

#[test]
fn requests_in_flight_carry_over_a_reset() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    client.send(get("/delay?ms=200"));
    wait_for(|| server.truth(), |truth| truth.in_flight() == 1);
    server.reset_truth();
    client.response();
    let truth = server.stop();
    assert_eq!((truth.carried(), truth.requests(), truth.responses()), (1, 0, 1));
    assert!(truth.is_conserved());
}

#[test]
fn a_client_that_leaves_is_counted_by_how_it_left() {
    let server = start();
    let mut half = Client::connect(server.local_addr());
    half.send(get("/delay?ms=20"));
    // It has sent everything it will send, and still gets its response.
    half.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(half.response().status, 200);
    let mut gone = Client::connect(server.local_addr());
    gone.send(get("/delay?ms=3600000"));
    // Bytes that it has not read turn its close into a reset.
    gone.send(get("/delay?ms=3600000"));
    let mut unread = Client::connect(server.local_addr());
    unread.send(get("/bytes/1073741824"));
    unread.take(10);
    wait_for(|| server.truth(), |truth| truth.requests() == 4);
    drop(unread);
    drop(half);
    let truth = wait_for(|| server.truth(), |truth| truth.connections().open == 1);
    assert_eq!((truth.connections().closed_by_peer, truth.connections().reset_by_peer), (1, 1));
    assert_eq!((truth.abandoned(), truth.in_flight()), (1, 2));
    let end = server.stop();
    assert_eq!((end.abandoned(), end.in_flight(), end.connections().open), (3, 0, 0));
    assert!(end.is_conserved());
}

/// Polls until the condition holds; what the kernel reports to the server takes a moment to arrive.
fn wait_for(ask: impl Fn() -> Truth, is_so: impl Fn(&Truth) -> bool) -> Truth {
    let patience = clock::now() + Nanos::from_secs(5);
    loop {
        let truth = ask();
        if is_so(&truth) {
            return truth;
        }
        assert!(clock::now() < patience, "{}", truth.to_json());
    }
}
