//! The promise of the hot path: no allocation per response, and none that a peer can cause.

#![allow(clippy::unwrap_used, reason = "a panic here is the test failing")]

use allocation_counter::measure;
use codec::web::{Checks, Request, Turns, Url, Web, WebSession, WebSettings};
use codec::{DecodeError, Event, Key, Origin, Protocol, Session};

fn run(checks: &Checks) -> Web<Turns> {
    let request = Request::get(Url::parse("http://127.0.0.1/").unwrap());
    Web::turns(&[request], checks, WebSettings { pipeline: 2, ..WebSettings::default() }).unwrap()
}

fn answer_one(session: &mut WebSession<Turns>, pieces: &[&[u8]], out: &mut Vec<u8>) {
    out.clear();
    session.request(&0, Key(7), out);
    for (index, piece) in pieces.iter().enumerate() {
        let step = session.handle_input(piece, out).unwrap();
        let finished = matches!(step.event, Some(Event::Finished(..)));
        assert_eq!(finished, index + 1 == pieces.len());
    }
}

#[test]
fn an_answer_costs_no_allocation() {
    let checks = Checks {
        expect_status: "2xx".parse().ok(),
        expect_body_contains: Some(b"llo".to_vec()),
        expect_sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824".parse().ok(),
    };
    let whole: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: x\r\n\r\nhello"];
    let cut: &[&[u8]] =
        &[b"HTTP/1.1 200 OK\r\nTransfer-Enc", b"oding: chunked\r\n\r\n3\r\nhel", b"\r\n2\r\nlo\r\n0\r\n\r\n"];
    for checks in [Checks::default(), checks] {
        let run = run(&checks);
        let mut session = run.session(Origin(0));
        let mut out = Vec::with_capacity(1_024);
        let fast = measure(|| (0..100).for_each(|_| answer_one(&mut session, whole, &mut out)));
        assert_eq!(fast.count_total, 0, "a head whole in the input is read where it stands");
        // The first head that is cut allocates the buffer that later ones use.
        answer_one(&mut session, cut, &mut out);
        let slow = measure(|| (0..100).for_each(|_| answer_one(&mut session, cut, &mut out)));
        assert_eq!(slow.count_total, 0, "a cut head uses the buffer again");
    }
}

#[test]
fn a_length_that_a_peer_announces_takes_no_memory() {
    let run = run(&Checks { expect_body_contains: Some(b"x".to_vec()), ..Checks::default() });
    for announced in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8000000000000000\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\nabc",
    ] {
        let mut session = run.session(Origin(0));
        let out = &mut Vec::new();
        session.request(&0, Key(0), out);
        let taken = measure(|| match session.handle_input(announced, out) {
            Ok(step) => assert_eq!(step.event, Some(Event::Began(Key(0)))),
            Err(error) => assert!(matches!(error, DecodeError::TooLong { .. })),
        });
        assert_eq!(taken.bytes_total, 0, "{}", announced.escape_ascii());
    }
}

#[test]
fn a_head_without_an_end_takes_no_more_than_its_limit() {
    let run = run(&Checks::default());
    let mut session = run.session(Origin(0));
    let out = &mut Vec::new();
    session.request(&0, Key(0), out);
    let taken = measure(|| {
        session.handle_input(b"HTTP/1.1 200 OK\r\nX: ", out).unwrap();
        let endless = (0..10_000).find_map(|_| session.handle_input(&[b'x'; 1_000], out).err());
        assert!(matches!(endless, Some(DecodeError::TooLong { .. })));
    });
    // A vector that grows by doubling may hold twice what it was given.
    assert!(taken.bytes_max <= 3 * (64 << 10), "{taken:?}");
}
