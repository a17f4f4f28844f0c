//! Frames written by hand, read whole, byte by byte and at random cuts; and frames that no peer should send.

use proptest::prelude::*;

use crate::web::{
    Checks, HttpVersion, Limits, OriginPlan, Request, Turns, Url, Web, WebSession, WebSettings,
};
use crate::{CloseEvent, DecodeError, Encoded, Event, Judgement, Key, Origin, Protocol, Session, StreamEnd};

/// How one request, or the connection, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Reply(u64, u16, Judgement, u64),
    Failed(u64, StreamEnd),
    Broke(DecodeError),
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [head.as_slice(), payload].concat()
}

/// Frames separated by spaces: `head1`, `HEAD1` (ends the stream), `data1:abc`, `DATA1:abc`, `reset1:8`, `away1`.
fn frames(text: &str) -> Vec<u8> {
    text.split_whitespace().flat_map(one_frame).collect()
}

fn one_frame(word: &str) -> Vec<u8> {
    let (name, rest) = word.split_at(word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len()));
    let (number, text) = rest.split_once(':').unwrap_or((rest, ""));
    let stream: u32 = number.parse().unwrap_or(0);
    // ":status: 200" is entry 8 of the static table of HPACK; "content-length" is entry 28, followed by its value.
    let length = |text: &str| [&[0x88, 0x0f, 0x0d, text.len() as u8], text.as_bytes()].concat();
    match name {
        "settings" => frame(4, 0, 0, &[0, 3, 0, 0, 0, stream as u8]),
        "head" if text.is_empty() => frame(1, 4, stream, &[0x88]),
        "head" => frame(1, 4, stream, &length(text)),
        "HEAD" => frame(1, 5, stream, &[0x88]),
        // "100", not indexed: the name is entry 8.
        "interim" => frame(1, 4, stream, b"\x08\x03100"),
        "lost" => frame(1, 5, stream, &[0x8d]),
        "data" => frame(0, 0, stream, text.as_bytes()),
        "DATA" => frame(0, 1, stream, text.as_bytes()),
        "reset" => frame(3, 0, stream, &text.parse::<u32>().unwrap().to_be_bytes()),
        "away" => frame(7, 0, 0, &[stream.to_be_bytes(), [0; 4]].concat()),
        "window" => frame(8, 0, stream, &text.parse::<u32>().unwrap().to_be_bytes()),
        "ping" => frame(6, 0, 0, &[7; 8]),
        other => panic!("{other} is no frame of these tests"),
    }
}

fn web(limits: Limits, body: usize) -> Web<Turns> {
    let url = Url::parse("http://h/").unwrap();
    let mut request = Request::get(url.clone());
    if body > 0 {
        (request.method, request.body) = ("POST".to_owned(), vec![b'x'; body]);
    }
    let plan = OriginPlan { version: HttpVersion::Http2, ..OriginPlan::plain(url) };
    let settings = WebSettings { streams: 8, limits, ..WebSettings::default() };
    Web::turns_over(&[plan], &[request], &Checks::default(), settings).unwrap()
}

/// A connection whose peer accepts 100 streams, with `count` requests on it.
fn session(limits: Limits, count: u64) -> WebSession<Turns> {
    let mut session = web(limits, 0).session(Origin(0));
    let out = &mut Vec::new();
    session.open(out);
    assert!(out.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    assert_eq!(session.capacity(), 1, "the peer has not said how many it takes");
    assert_eq!(session.handle_input(&frames("settings100"), out).unwrap().event, None);
    assert_eq!(session.capacity(), 8);
    for key in 0..count {
        out.clear();
        assert_eq!(session.request(&0, Key(key), out), Encoded::Whole);
        assert!(!out.is_empty());
    }
    session
}

fn endings<'a>(session: &mut WebSession<Turns>, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Ending> {
    let mut endings = Vec::new();
    let mut begun = Vec::new();
    for piece in pieces {
        let (mut rest, mut more) = (piece, false);
        while !rest.is_empty() || more {
            let step = match session.handle_input(rest, &mut Vec::new()) {
                Ok(step) => step,
                Err(error) => {
                    endings.push(Ending::Broke(error));
                    return endings;
                }
            };
            (rest, more) = (&rest[step.consumed..], step.more);
            match step.event {
                Some(Event::Finished(Key(key), reply)) => {
                    assert!(reply.keep, "other answers are under way");
                    endings.push(Ending::Reply(
                        key,
                        reply.code.unwrap().as_status().unwrap(),
                        reply.judgement,
                        reply.body_bytes,
                    ));
                }
                Some(Event::Failed(Key(key), end)) => endings.push(Ending::Failed(key, end)),
                Some(Event::Began(key)) => {
                    assert!(!begun.contains(&key), "said once");
                    begun.push(key);
                }
                other => assert_eq!(other, None),
            }
        }
    }
    endings
}

/// Reads `input` whole and byte by byte, checks that both agree, and returns the result in the order of the bytes.
/// Responses that end in the same input are reported in the order of their requests.
#[track_caller]
fn read(limits: Limits, count: u64, input: &[u8]) -> Vec<Ending> {
    let mut whole = endings(&mut session(limits, count), std::iter::once(input));
    let bytes = endings(&mut session(limits, count), input.chunks(1));
    let mut sorted = bytes.clone();
    sorted.sort_by_key(Ending::key);
    whole.sort_by_key(Ending::key);
    assert_eq!(whole, sorted);
    bytes
}

impl Ending {
    fn key(&self) -> u64 {
        match self {
            Ending::Reply(key, ..) | Ending::Failed(key, _) => *key,
            Ending::Broke(_) => u64::MAX,
        }
    }
}

#[track_caller]
fn check(count: u64, text: &str, expected: &[Ending]) {
    assert_eq!(read(Limits::default(), count, &frames(text)), expected, "{text}");
}

fn good(key: u64, body_bytes: u64) -> Ending {
    Ending::Reply(key, 200, Judgement::Good, body_bytes)
}

#[test]
fn answers_end_as_they_come() {
    check(1, "HEAD1", &[good(0, 0)]);
    check(1, "head1 data1:abc DATA1:de", &[good(0, 5)]);
    check(1, "interim1 head1 DATA1:a", &[good(0, 1)]);
    check(1, "lost1", &[Ending::Reply(0, 404, Judgement::RequestError, 0)]);
    check(3, "head1 head3 DATA3:bb data1:a HEAD5 DATA1:a", &[good(1, 2), good(2, 0), good(0, 2)]);
    check(2, "head1:3 DATA1:abc ping ping HEAD3", &[good(0, 3), good(1, 0)]);
}

#[test]
fn a_stream_that_fails_leaves_the_others() {
    check(2, "reset1:8 HEAD3", &[Ending::Failed(0, StreamEnd::Reset), good(1, 0)]);
    check(2, "reset3:7 HEAD1", &[Ending::Failed(1, StreamEnd::Unprocessed), good(0, 0)]);
    check(2, "head1:9 DATA1:abc HEAD3", &[Ending::Failed(0, StreamEnd::Incomplete), good(1, 0)]);
    let tight = Limits { body_bytes: 4, ..Limits::default() };
    let over = read(tight, 2, &frames("head1 data1:abcde head3 DATA3:abcd"));
    assert_eq!(over, [Ending::Failed(0, StreamEnd::Malformed), good(1, 4)]);
}

/// If this fails, a response that broke off is counted as one that never began.
#[test]
fn an_answer_that_fails_in_the_input_in_which_it_begins_has_begun() {
    for (text, end) in
        [("head1:9 data1:abc reset1:2", StreamEnd::Reset), ("head1:9 DATA1:abc", StreamEnd::Incomplete)]
    {
        let mut session = session(Limits::default(), 1);
        let mut input = frames(text);
        let mut reported = Vec::new();
        loop {
            let step = session.handle_input(&input, &mut Vec::new()).unwrap();
            reported.extend(step.event);
            input.drain(..step.consumed);
            if !step.more && input.is_empty() {
                break;
            }
        }
        assert_eq!(reported, [Event::Began(Key(0)), Event::Failed(Key(0), end)], "{text}");
    }
}

/// If this fails, a server that is shut down gracefully looks as if it dropped requests.
#[test]
fn a_peer_that_goes_away_finishes_what_it_has_seen() {
    let mut session = session(Limits::default(), 3);
    let input = frames("away1 head1 DATA1:a");
    let reported = endings(&mut session, std::iter::once(input.as_slice()));
    let unprocessed = |key| Ending::Failed(key, StreamEnd::Unprocessed);
    assert_eq!(reported, [good(0, 1), unprocessed(1), unprocessed(2)]);
    assert_eq!(session.capacity(), 0);
    assert_eq!(session.handle_close(), CloseEvent::Idle);
}

#[test]
fn a_close_is_about_the_oldest_request() {
    for (count, text, event) in [
        (0, "", CloseEvent::Idle),
        (1, "", CloseEvent::BeforeResponse),
        (2, "head3", CloseEvent::BeforeResponse),
        (2, "head1 data1:a", CloseEvent::Incomplete),
    ] {
        let mut session = session(Limits::default(), count);
        endings(&mut session, std::iter::once(frames(text).as_slice()));
        assert_eq!(session.handle_close(), event, "{text}");
        assert_eq!(session.capacity(), 0);
    }
}

#[test]
fn streams_are_as_many_as_the_peer_takes() {
    let mut session = session(Limits::default(), 0);
    for (text, capacity) in [("settings3", 3), ("settings0", 0), ("settings200", 8)] {
        session.handle_input(&frames(text), &mut Vec::new()).unwrap();
        assert_eq!(session.capacity(), capacity, "{text}");
    }
}

/// If this fails, a large body counts as sent while the peer has no room for it.
#[test]
fn a_body_waits_for_room() {
    let mut session = web(Limits::default(), 100_000).session(Origin(0));
    let out = &mut Vec::new();
    session.open(out);
    session.handle_input(&frames("settings100"), out).unwrap();
    out.clear();
    assert_eq!(session.request(&0, Key(5), out), Encoded::Partly);
    // The windows of RFC 9113, section 6.9.2, and some headers and frames.
    assert!((65_535..66_000).contains(&out.len()), "{}", out.len());
    out.clear();
    let room = frames("window0:50000 window1:50000");
    let step = session.handle_input(&room, out).unwrap();
    assert_eq!(step.event, Some(Event::Encoded(Key(5))));
    assert!((34_465..35_000).contains(&out.len()), "{}", out.len());
    let step = session.handle_input(&frames("HEAD1"), out).unwrap();
    let Some(Event::Finished(Key(5), reply)) = step.event else { panic!("{step:?}") };
    assert_eq!(reply.code, Some(units::Code::status(200)));
}

/// If this fails, an upload of a gigabyte fails, because the server makes room for it.
#[test]
fn a_large_upload_takes_any_number_of_window_updates() {
    let mut session = web(Limits::default(), 250_000).session(Origin(0));
    let out = &mut Vec::new();
    session.open(out);
    session.handle_input(&frames("settings100"), out).unwrap();
    session.request(&0, Key(0), out);
    let room = frames("window0:10 window1:10");
    let mut encoded = false;
    for _ in 0..19_000 {
        let step = session.handle_input(&room, out).unwrap();
        encoded |= step.event == Some(Event::Encoded(Key(0)));
    }
    assert!(encoded);
    let step = session.handle_input(&frames("HEAD1"), out).unwrap();
    assert!(matches!(step.event, Some(Event::Finished(Key(0), _))));
}

/// If this fails, a cancelled stream takes the others with it, or its late response is taken for another's.
#[test]
fn a_request_is_cancelled_alone() {
    let mut session = session(Limits::default(), 2);
    let mut out = Vec::new();
    assert!(session.cancel(Key(0), &mut out));
    assert_eq!(out, frames("reset1:8"));
    let late = frames("head1 data1:a head3 DATA1:b DATA3:cc");
    assert_eq!(endings(&mut session, std::iter::once(late.as_slice())), [good(1, 2)]);
    assert_eq!(session.handle_close(), CloseEvent::Idle);
    // Begun but not complete, with its event not yet reported.
    let mut session = super::tests::session(Limits::default(), 2);
    let begun = session.handle_input(&frames("head1 head3"), &mut Vec::new()).unwrap();
    assert_eq!((begun.event, begun.more), (Some(Event::Began(Key(0))), true));
    assert!(session.cancel(Key(1), &mut Vec::new()));
    assert_eq!(session.handle_input(&[], &mut Vec::new()).unwrap().event, None);
    assert_eq!(session.handle_close(), CloseEvent::Incomplete);
    assert!(!session.cancel(Key(0), &mut Vec::new()), "the connection is gone");
}

/// If this fails, a server that goes away while there is room on its connection loses the requests put there.
#[test]
fn a_peer_that_goes_away_takes_no_more() {
    let mut session = session(Limits::default(), 2);
    assert_eq!(endings(&mut session, std::iter::once(frames("away3").as_slice())), []);
    assert_eq!(session.capacity(), 0);
    // A later request gets the same result without more input.
    let mut out = Vec::new();
    assert_eq!(session.request(&0, Key(7), &mut out), Encoded::Whole);
    assert!(out.is_empty());
    let refused = session.handle_input(&[], &mut out).unwrap().event;
    assert_eq!(refused, Some(Event::Failed(Key(7), StreamEnd::Unprocessed)));
    let rest = frames("HEAD3 head1 DATA1:a");
    assert_eq!(endings(&mut session, std::iter::once(rest.as_slice())), [good(0, 1), good(1, 0)]);
}

#[track_caller]
fn check_broken(input: &[u8], words: &str) {
    match read(Limits::default(), 2, input).last() {
        Some(Ending::Broke(error)) => assert!(error.to_string().contains(words), "{error}"),
        other => panic!("{other:?} of {}", input[..input.len().min(40)].escape_ascii()),
    }
}

#[test]
fn what_no_peer_should_send_ends_the_connection() {
    check_broken(&frame(0, 0, 1, b"x"), "HTTP/2 frame");
    check_broken(&frame(1, 4, 1, &[0xff; 5]), "HTTP/2 frame");
    check_broken(&frame(0, 0, 0, b"x"), "HTTP/2 frame");
    check_broken(&[0xff; 9], "frame");
    check_broken(&frame(5, 4, 1, &[0, 0, 0, 2, 0x82]), "HTTP/2 frame");
    check_broken(&frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), "malformed");
}

#[test]
fn floods_are_bounded() {
    let calm = "frames without a response over the limit of 10000";
    check_broken(&frames(&"ping ".repeat(10_001)), calm);
    check_broken(&frames(&"settings9 ".repeat(10_001)), calm);
    check_broken(&frames(&"window0:1 ".repeat(10_001)), calm);
    check_broken(&frames(&format!("head1 {}", "data1: ".repeat(10_001))), "traffic");
    let open = frame(1, 0, 1, &[0x88]);
    let endless = [open, frame(9, 0, 1, b"\x00\x01a\x01b").repeat(1_000)].concat();
    check_broken(&endless, "traffic");
}

#[test]
fn a_peer_of_another_protocol_is_named() {
    let mut session = web(Limits::default(), 0).session(Origin(0));
    session.open(&mut Vec::new());
    session.request(&0, Key(0), &mut Vec::new());
    let error = session.handle_input(b"HTTP/1.1 400 Bad Request\r\n\r\n", &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("does not speak HTTP/2"), "{error}");
}

#[test]
fn a_head_over_the_limit_is_refused() {
    let limits = Limits { head_bytes: 100, ..Limits::default() };
    let long = [b"\x88\x00\x01a\x7f\x80\x01".as_slice(), &[b'x'; 255]].concat();
    let reported = read(limits, 2, &[frame(1, 5, 1, &long), frames("HEAD3")].concat());
    assert_eq!(reported, [Ending::Failed(0, StreamEnd::Malformed), good(1, 0)]);
}

fn cut<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    at.extend([0, input.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn cuts_do_not_change_the_answers(cuts in prop::collection::vec(any::<usize>(), 0..12)) {
        let input = frames("interim1 head1 ping head3:2 data3:b data1:a reset5:8 DATA3:b HEAD7 DATA1:aa");
        let pieces = cut(&input, &cuts);
        let reported = endings(&mut session(Limits::default(), 4), pieces.into_iter());
        let reset = Ending::Failed(2, StreamEnd::Reset);
        prop_assert_eq!(reported.len(), 4);
        for ending in [good(0, 3), good(1, 2), reset, good(3, 0)] {
            prop_assert!(reported.contains(&ending), "{:?}", reported);
        }
    }

    #[test]
    fn any_bytes_are_an_answer_or_an_error(input in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..10, stream in 0u32..8) {
        let input = [frame(kind, 4, stream, &input[..input.len() / 2]), input].concat();
        endings(&mut session(Limits::default(), 3), input.chunks(7));
    }
}
