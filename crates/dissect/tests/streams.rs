//! HTTP/2: streams are requests, whatever of them was captured, and whenever they were joined.

#![allow(clippy::unwrap_used, reason = "test code: a panic is the test failing")]

mod transcripts;

use dissect::{Direction, DissectorSettings, EndBy, Piece, Protocol, Sight, Start, Status};
use proptest::prelude::*;
use transcripts::{Dissected, Harness};

type Pieces = Vec<(Direction, Vec<u8>)>;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// GET, and a path that is added to the table; GET, and the newest header of the table.
const GET_A: &[u8] = b"\x82\x44\x02/a";
const GET_AGAIN: &[u8] = b"\x82\xbe";
const OK: &[u8] = b"\x88";
const END_STREAM: u8 = 1;
const WHOLE: u8 = 4;

fn client(frames: &[Vec<u8>]) -> (Direction, Vec<u8>) {
    (Direction::FromClient, frames.concat())
}

fn server(frames: &[Vec<u8>]) -> (Direction, Vec<u8>) {
    (Direction::FromServer, frames.concat())
}

/// Five requests: two that are answered in the other order, an upload, one whose headers are in two frames, and one
/// with trailers.
fn conversation() -> Pieces {
    vec![
        client(&[
            PREFACE.to_vec(),
            frame(4, 0, 0, b"\0\x03\0\0\0\x64"),
            frame(1, WHOLE | END_STREAM, 1, GET_A),
            frame(1, WHOLE | END_STREAM, 3, GET_AGAIN),
        ]),
        server(&[
            frame(4, 0, 0, b""),
            frame(4, 1, 0, b""),
            frame(1, WHOLE, 3, OK),
            frame(0, END_STREAM, 3, b"three"),
            frame(1, WHOLE | END_STREAM, 1, b"\x8d"),
        ]),
        client(&[
            frame(1, WHOLE, 5, b"\x83\x44\x82\x60\x7f"),
            frame(0, 0, 5, &[7; 200]),
            frame(0, END_STREAM, 5, &[7; 100]),
            frame(8, 0, 0, b"\0\0\0\x09"),
        ]),
        server(&[frame(1, WHOLE, 5, b"\x08\x03100"), frame(1, WHOLE | END_STREAM, 5, b"\x48\x03201")]),
        client(&[frame(1, END_STREAM, 7, b"\x82"), frame(9, WHOLE, 7, b"\x84")]),
        server(&[frame(1, WHOLE, 7, b"\xbe"), frame(0, 8, 7, b"\x02x\0\0"), frame(3, 0, 7, b"\0\0\0\0")]),
        client(&[
            frame(1, WHOLE | 32 | 8, 9, b"\x01\0\0\0\0\x10\x83\x84\0"),
            frame(1, WHOLE | END_STREAM, 9, b"\0\x01t\x01v"),
        ]),
        server(&[frame(1, WHOLE, 9, OK), frame(1, WHOLE | END_STREAM, 9, b"\0\x01t\x01v")]),
    ]
}

fn fresh() -> DissectorSettings {
    DissectorSettings { start: Start::Fresh, hint: None }
}

fn dissect(pieces: &[(Direction, Vec<u8>)], settings: DissectorSettings, capture: usize) -> Dissected {
    let mut harness = Harness::new(settings);
    for (direction, bytes) in pieces {
        let captured = &bytes[..bytes.len().min(capture)];
        harness.feed(&Piece { direction: *direction, length: bytes.len() as u64, captured, missed: None });
    }
    harness.close()
}

/// By order of completion: digest, status, and how the end is known.
fn requests(dissected: &Dissected) -> Vec<(&str, Status, EndBy)> {
    let all = dissected.exchanges.iter();
    let responses = all.filter_map(|one| one.response.map(|response| (one, response)));
    responses.map(|(one, response)| (one.digest.as_str(), response.status, response.end_by)).collect()
}

#[test]
fn streams_are_requests_whose_responses_come_in_any_order() {
    let dissected = dissect(&conversation(), fresh(), usize::MAX);
    assert_eq!(dissected.protocols, [Protocol::Http2]);
    let http = |status| Status::Http(status);
    let want = [
        ("GET /a", http(404)),
        ("GET /a", http(200)),
        ("POST /a", http(201)),
        ("GET /", http(201)),
        ("POST /", http(200)),
    ];
    let want: Vec<_> = want.into_iter().map(|(text, status)| (text, status, EndBy::Framing)).collect();
    assert_eq!(requests(&dissected), want);
    let [first, second] = [&dissected.exchanges[0], &dissected.exchanges[1]];
    assert!(second.response.unwrap().end < first.response.unwrap().end);
    let upload = dissected.exchanges[2].request;
    assert_eq!(upload.complete - upload.began, 9 + 5 + 9 + 200 + 9 + 100);
    assert_eq!(dissected.counts.unsolicited, 1, "100");
}

#[test]
fn a_connection_cut_into_bytes_gives_the_same_events() {
    let whole = dissect(&conversation(), fresh(), usize::MAX);
    let bytes: Pieces = conversation()
        .into_iter()
        .flat_map(|(direction, bytes)| bytes.into_iter().map(move |byte| (direction, vec![byte])))
        .collect();
    assert_eq!(dissect(&bytes, fresh(), usize::MAX).render(), whole.render());
}

/// If this fails, a request has the route of another one: its headers refer to some that were sent before.
#[test]
fn headers_that_were_sent_before_watching_are_unknown() {
    let before = |stream| client(&[frame(1, WHOLE | END_STREAM, stream, GET_AGAIN)]);
    let after = |stream| server(&[frame(1, WHOLE | END_STREAM, stream, OK)]);
    // A stream is in progress.
    let mut pieces = vec![server(&[frame(0, 0, 99, b"data")])];
    pieces.extend([
        before(101),
        after(99),
        after(101),
        client(&[frame(1, WHOLE | END_STREAM, 103, GET_A)]),
        after(103),
    ]);
    pieces.extend([before(105), after(105)]);
    for hint in [None, Some(Protocol::Http1), Some(Protocol::Http2)] {
        let dissected = dissect(&pieces, DissectorSettings { start: Start::Joined, hint }, usize::MAX);
        let texts: Vec<&str> = requests(&dissected).into_iter().map(|(text, ..)| text).collect();
        let unknown = "GET (unknown path: compressed before watching began)";
        assert_eq!(texts, [unknown, "GET /a", "GET /a"], "{hint:?}");
    }
}

/// If this fails, requests are counted twice or not at all where a server writes more at once than is captured.
#[test]
fn a_response_that_was_not_captured_to_its_end_ends_with_its_turn() {
    let get = |stream| client(&[frame(1, WHOLE | END_STREAM, stream, GET_AGAIN)]);
    let mut pieces = conversation()[..2].to_vec();
    let data: Vec<Vec<u8>> = (0..20).map(|n| frame(0, u8::from(n == 19), 5, &[1; 100])).collect();
    pieces.extend([get(5), server(&[vec![frame(1, WHOLE, 5, OK)], data].concat())]);
    pieces.extend([get(7), server(&[frame(1, WHOLE | END_STREAM, 7, OK)])]);
    let dissected = dissect(&pieces, fresh(), 300);
    assert_eq!(dissected.exchanges.len(), 4);
    let [.., cut, last] = &requests(&dissected)[..] else { panic!("{dissected:?}") };
    assert_eq!((cut.2, last.2), (EndBy::Turn, EndBy::Framing));
    assert_eq!(dissected.counts.cut, 1);
}

#[test]
fn a_request_in_bytes_that_were_not_captured_is_counted_by_its_response() {
    let many: Vec<Vec<u8>> = (0..40).map(|n| frame(1, WHOLE | END_STREAM, 5 + 2 * n, GET_AGAIN)).collect();
    let responses: Vec<Vec<u8>> = (0..40).map(|n| frame(1, WHOLE | END_STREAM, 5 + 2 * n, OK)).collect();
    let mut pieces = conversation()[..2].to_vec();
    pieces.push(client(&many));
    // What the server writes is captured.
    pieces.extend(responses.into_iter().map(|response| server(&[response])));
    let mut harness = Harness::new(fresh());
    for (direction, bytes) in &pieces {
        let captured = &bytes[..bytes.len().min(100)];
        harness.feed(&Piece { direction: *direction, length: bytes.len() as u64, captured, missed: None });
    }
    // The next turn finds the boundary again.
    let (direction, bytes) = client(&[frame(6, 0, 0, &[0; 8])]);
    harness.feed(&Piece::whole(direction, &bytes));
    let dissected = harness.close();
    let seen = dissected.exchanges.iter().filter(|one| one.request.sight == Sight::Framed).count();
    assert!(seen > 2 && seen < 42, "{seen}");
}

/// If this fails, an upload that is read in large pieces hides all requests that follow on its connection.
#[test]
fn an_upload_that_was_not_captured_is_complete_when_its_response_begins() {
    let mut pieces = conversation()[..2].to_vec();
    let data: Vec<Vec<u8>> = (0..5).map(|_| frame(0, 0, 5, &[b'o'; 1_000])).collect();
    let upload = [vec![frame(1, WHOLE, 5, b"\x83\x84")], data].concat().concat();
    let (first, rest) = upload.split_at(2_500);
    // The server updates its window while the client sends.
    pieces.extend([(Direction::FromClient, first.to_vec()), server(&[frame(8, 0, 0, b"\0\0\x0f\0")])]);
    pieces.extend([(Direction::FromClient, rest.to_vec()), client(&[frame(0, END_STREAM, 5, b"end")])]);
    pieces.push(server(&[frame(1, WHOLE | END_STREAM, 5, OK)]));
    pieces.extend([
        client(&[frame(1, WHOLE | END_STREAM, 7, b"\x82\x84")]),
        server(&[frame(1, WHOLE | END_STREAM, 7, OK)]),
    ]);
    let dissected = dissect(&pieces, fresh(), 300);
    let [.., upload, get] = &dissected.exchanges[..] else { panic!("{dissected:?}") };
    assert_eq!(
        (upload.digest.as_str(), upload.request.sight),
        ("POST /", Sight::Cut),
        "{}",
        dissected.render()
    );
    assert!(upload.request.complete - upload.request.began > 5_000, "{}", dissected.render());
    assert_eq!((get.digest.as_str(), get.request.sight), ("GET /", Sight::Framed));
}

#[test]
fn a_stream_that_the_client_gives_up_is_dropped() {
    let mut pieces = conversation()[..2].to_vec();
    pieces.push(client(&[frame(1, WHOLE | END_STREAM, 5, GET_AGAIN), frame(3, 0, 5, b"\0\0\0\x08")]));
    pieces.push(client(&[frame(1, WHOLE, 7, GET_AGAIN)]));
    let dissected = dissect(&pieces, fresh(), usize::MAX);
    assert_eq!((dissected.exchanges.len(), dissected.counts.dropped), (3, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// The harness checks the law, and that events refer to nothing that was given away.
    #[test]
    fn the_law_holds_whatever_is_captured_or_lost(
        captures in proptest::collection::vec(prop_oneof![Just(usize::MAX), 0usize..40], 1..20),
        losses in proptest::collection::vec(0u8..8, 1..20),
        start in prop_oneof![Just(Start::Fresh), Just(Start::Joined)],
        noise in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut harness = Harness::new(DissectorSettings { start, hint: Some(Protocol::Http2) });
        for (index, (direction, bytes)) in conversation().into_iter().enumerate() {
            let lost = losses[index % losses.len()] == 0;
            let captured = &bytes[..bytes.len().min(captures[index % captures.len()])];
            let length = bytes.len() as u64;
            harness.feed(&Piece { direction, length, captured, missed: lost.then_some(3) });
            if index == usize::from(losses[0]) {
                harness.feed(&Piece::whole(direction, &noise));
            }
        }
        harness.close();
    }
}
