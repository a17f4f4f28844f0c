//! Each route, and HTTP around it: order, persistence, bodies. Faults and refusals are elsewhere.

use std::io::Write;

use target::{Options, RouteKind, Server};
use units::Nanos;

use crate::client::{Client, End, get, start};

#[test]
fn fixed_responses() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    for (target, status, body) in [
        ("/plaintext", 200, "Hello, World!"),
        ("/json", 200, "{\"message\":\"Hello, World!\"}"),
        ("/status/418", 418, "418\n"),
        ("/status/205", 205, ""),
        ("/bytes/3", 200, "ABC"),
        ("/bytes/0", 200, ""),
        ("/bytes/3?chunked=1", 200, "ABC"),
        ("/bytes/0?chunked=1", 200, ""),
        ("/delay/0", 200, "Hello, World!"),
        ("/nothing", 404, "no such route; / lists them\n"),
        ("/status/101", 400, "the status must be 100 or 102 to 599"),
    ] {
        let response = client.get(target);
        assert_eq!(
            (response.status, String::from_utf8(response.body).unwrap().as_str()),
            (status, body),
            "{target}"
        );
    }
    assert!(String::from_utf8(client.get("/").body).unwrap().contains("/plaintext"));
    let head = client.get("/plaintext").head;
    let date = head.lines().find_map(|line| line.strip_prefix("Date: ")).unwrap();
    assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
}

#[test]
fn statuses_without_a_body_have_none() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    for status in [204, 304] {
        let response = client.get(&format!("/status/{status}"));
        assert_eq!(response.status, status);
        assert!(!response.head.contains("Content-"), "{}", response.head);
    }
    client.send(get("/status/103"));
    assert_eq!(client.response().head, "HTTP/1.1 103 Early Hints\r\n\r\n");
    assert_eq!(client.response().status, 200);
}

#[test]
fn a_head_request_gets_the_length_and_no_body() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    for target in ["/plaintext", "/bytes/13", "/drip?bytes=13&over_ms=0", "/nothing"] {
        client.send(format!("HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(client.head().head.contains("Content-Length: "), "{target}");
    }
    // Nothing may be left over between the responses.
    assert_eq!(client.get("/plaintext").body, b"Hello, World!");
}

#[test]
fn bodies_are_echoed_or_discarded() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    let body = vec![b'x'; 1 << 20];
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n");
    client.send(&body);
    assert!(client.response().body == body);
    client.send("PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: t\r\n\r\n");
    assert_eq!(client.response().body, b"hello world");
    client.send("POST /plaintext HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.response().body, b"Hello, World!");
}

#[test]
fn a_client_that_waits_gets_100_continue() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.response().head, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hi");
    assert_eq!(client.response().body, b"hi");
}

#[test]
fn connections_close_when_asked_to() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    client.send("GET /plaintext HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(client.response().head.contains("Connection: close"));
    assert_eq!(client.rest(), (vec![], End::Fin));

    let mut old = Client::connect(server.local_addr());
    old.send("GET /bytes/3?chunked=1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let response = old.response();
    assert!(response.head.contains("Connection: keep-alive") && response.head.contains("Content-Length: 3"));
    old.send("GET /plaintext HTTP/1.0\r\n\r\n");
    assert_eq!(old.response().body, b"Hello, World!");
    assert_eq!(old.rest(), (vec![], End::Fin));
    assert_eq!(server.stop().connections().closed_by_server, 2);
}

/// If this fails, a pipelining client gets one request's response for another.
#[test]
fn responses_keep_the_order_of_their_requests() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    let began = clock::now();
    client.send(["/delay?ms=30", "/status/201", "/delay?ms=5", "/json"].map(get).concat());
    let statuses: Vec<_> = (0..4).map(|_| client.response()).map(|a| (a.status, a.body.len())).collect();
    assert_eq!(statuses, [(200, 13), (201, 4), (200, 13), (200, 27)]);
    let took = clock::now() - began;
    // The second delay runs at the same time as the first, not after it.
    assert!(took >= Nanos::from_millis(30), "{took}");
    let truth = server.stop();
    assert_eq!((truth.responses(), truth.pipelined()), (4, 3));
    // The five milliseconds were over long before; the response is late only because of the one ahead of it.
    assert!(truth.lateness().max().unwrap() < truth.response().min().unwrap());
}

/// More than the queue of one connection holds, so reading pauses and continues.
#[test]
fn every_request_of_a_long_pipeline_gets_its_response() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    client.send(get("/delay?ms=20"));
    let mut sender = client.stream.try_clone().unwrap();
    let count = 20_000;
    std::thread::scope(|scope| {
        scope.spawn(move || sender.write_all(get("/plaintext").repeat(count).as_bytes()).unwrap());
        for _ in 0..=count {
            assert_eq!(client.response().body, b"Hello, World!");
        }
    });
    let truth = server.stop();
    assert_eq!((truth.requests(), truth.responses(), truth.in_flight()), (20_001, 20_001, 0));
}

#[test]
fn large_bodies_stream_without_loss() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    for target in ["/bytes/5000000", "/bytes/5000000?chunked=1"] {
        let body = client.get(target).body;
        assert_eq!(body.len(), 5_000_000);
        let period = &body[..64];
        assert!(body.chunks(64).all(|part| *part == period[..part.len()]), "{target}");
    }
}

#[test]
fn a_drip_is_spread_over_its_time() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    for target in [
        "/drip?bytes=5&over_ms=40&delay_ms=20",
        "/drip?numbytes=5&duration=0.04&delay=0.02",
        "/drip?bytes=1&over_ms=60",
    ] {
        let began = clock::now();
        client.send(get(target));
        let head = client.head();
        let length: usize = if head.head.contains("Content-Length: 5") { 5 } else { 1 };
        client.take(1);
        let first = clock::now() - began;
        client.take(length - 1);
        let last = clock::now() - began;
        let expected = if length == 5 { 20 } else { 60 };
        assert!(first >= Nanos::from_millis(expected), "{target}: {first}");
        assert!(last >= Nanos::from_millis(60), "{target}: {last}");
    }
    let truth = server.stop();
    assert_eq!(truth.lateness().count(), 3);
    assert!(truth.response().min().unwrap() >= Nanos::from_millis(60));
}

#[test]
fn several_threads_count_as_one_server() {
    let server = Server::start(Options { threads: 3, ..Options::default() }).unwrap();
    let mut clients: Vec<_> = (0..24).map(|_| Client::connect(server.local_addr())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/plaintext").status, 200);
    }
    let text = String::from_utf8(clients[0].get("/truth").body).unwrap();
    assert!(text.contains("\"read\": 24,") && text.contains("\"answered\": 24,"), "{text}");
    let truth = server.stop();
    assert_eq!((truth.requests_of(RouteKind::Plaintext), truth.connections().accepted), (24, 24));
}
