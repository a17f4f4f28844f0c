//! Each fault as its client sees it: the exact bytes, and whether a FIN or a reset ends them.

use std::io::Read;

use target::{Fault, RouteKind};
use units::Nanos;

use crate::client::{Client, End, get, start};

/// Checks what a client sees of a fault: the bytes, and the end.
fn check(name: &str, expected: impl Fn(&[u8]) -> bool, expected_end: &End) {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    // A response ahead of the fault must arrive whole nevertheless.
    client.send([get("/plaintext"), get(&format!("/fault/{name}"))].concat());
    assert_eq!(client.response().body, b"Hello, World!");
    let (bytes, end) = client.rest();
    assert!(expected(&bytes), "{name}: {:?}", String::from_utf8_lossy(&bytes));
    assert_eq!(end, *expected_end, "{name}");
    let truth = server.truth();
    let fault = Fault::from_name(name).unwrap();
    assert_eq!((truth.faults_of(fault), truth.ended_by_fault(), truth.responses()), (1, 1, 1), "{name}");
    let ended = truth.connections();
    assert_eq!(
        (ended.reset_by_server, ended.closed_by_server),
        match end {
            End::Reset => (1, 0),
            End::Fin => (0, 1),
        }
    );
    assert!(truth.is_conserved());
}

#[test]
fn close_sends_nothing_and_a_fin() {
    check("close", <[u8]>::is_empty, &End::Fin);
}

#[test]
fn reset_sends_nothing_and_a_reset() {
    check("reset", <[u8]>::is_empty, &End::Reset);
}

#[test]
fn short_body_ends_before_its_length() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    check("short-body", |bytes| bytes.starts_with(head) && bytes.len() == head.len() + 500, &End::Fin);
}

/// The bytes before the reset must have arrived: otherwise it is only another `/fault/reset`.
#[test]
fn reset_body_delivers_a_part_and_then_resets() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    check("reset-body", |bytes| bytes.starts_with(head) && bytes.len() == head.len() + 1_000, &End::Reset);
}

#[test]
fn garbage_is_not_http() {
    check("garbage", |bytes| bytes.starts_with(b"\x00\xff\xfe"), &End::Fin);
}

#[test]
fn half_head_breaks_off_in_the_status_line() {
    check("half-head", |bytes| bytes == b"HTTP/1.1 20", &End::Fin);
}

#[test]
fn chunk_garbage_begins_well() {
    let expected =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\nthis is no chunk size\r\n";
    check("chunk-garbage", |bytes| bytes == expected, &End::Fin);
}

#[test]
fn header_flood_does_not_end_and_does_not_starve_others() {
    let server = start();
    let mut flooded = Client::connect(server.local_addr());
    flooded.send(get("/fault/header-flood"));
    let bytes = flooded.take(3_000_000);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\nX-Flood-0: ") && !text.contains("\r\n\r\n"));
    assert_eq!(Client::connect(server.local_addr()).get("/plaintext").status, 200);
}

#[test]
fn never_is_silent_until_the_client_gives_up() {
    let server = start();
    for request in [get("/fault/never"), "GET /fault/never HTTP/1.0\r\n\r\n".to_owned()] {
        let mut client = Client::connect(server.local_addr());
        client.send(request);
        client.stream.set_read_timeout(Some(Nanos::from_millis(50).into())).unwrap();
        assert!(client.stream.read(&mut [0; 8]).is_err());
    }
    // Both have given up; the server must have noticed.
    let patience = clock::now() + Nanos::from_secs(5);
    while server.truth().connections().open > 0 {
        assert!(clock::now() < patience, "a connection that never gets a response is kept for ever");
    }
    let truth = server.stop();
    assert_eq!((truth.faults_of(Fault::Never), truth.connections().closed_by_peer), (2, 2));
}

#[test]
fn a_freeze_on_demand_stops_the_whole_thread() {
    let server = start();
    let mut frozen = Client::connect(server.local_addr());
    let mut other = Client::connect(server.local_addr());
    other.get("/plaintext");
    let began = clock::now();
    frozen.send(get("/fault/freeze?ms=50"));
    assert_eq!(frozen.response().status, 200);
    assert!(clock::now() - began >= Nanos::from_millis(50));
    let truth = server.stop();
    let [freeze] = truth.freezes() else { panic!("one freeze: {:?}", truth.freezes()) };
    assert_eq!(freeze.index, None);
    assert!(freeze.end - freeze.begin >= Nanos::from_millis(50) && freeze.begin >= began);
    assert_eq!((truth.faults_of(Fault::Freeze), truth.responses()), (1, 2));
}

/// If this fails, an experiment with one in ten faults cannot be reproduced.
#[test]
fn a_share_of_requests_is_drawn_the_same_each_time() {
    let pattern = || {
        let server = start();
        let mut client = Client::connect(server.local_addr());
        let drawn: Vec<bool> = (0..100)
            .map(|_| {
                client.send(get("/fault/close?p=0.3&seed=7"));
                // Without the fault there is a response in one write; with it the connection ends.
                if client.stream.read(&mut [0; 4_096]).unwrap() > 0 {
                    return false;
                }
                client = Client::connect(server.local_addr());
                true
            })
            .collect();
        let count = drawn.iter().filter(|fault| **fault).count() as u64;
        let truth = server.stop();
        assert_eq!((truth.faults_of(Fault::Close), truth.responses_with(200)), (count, 100 - count));
        assert_eq!(truth.requests_of(RouteKind::Fault), 100);
        drawn
    };
    let first = pattern();
    assert_eq!(first, pattern());
    assert!((15..45).contains(&first.iter().filter(|fault| **fault).count()));
}
