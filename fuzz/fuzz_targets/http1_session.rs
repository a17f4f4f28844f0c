//! Any bytes, cut anywhere: no panic, the contract of `Session` holds at every step, and the cuts change nothing.
//!
//! The first byte chooses methods, limits and checks, the second the cuts; the rest is what the peer sends.

#![no_main]

use codec::web::{Checks, Limits, Request, WebSettings, Turns, Url, Web};
use codec::{CloseEvent, DecodeError, Event, Key, Origin, Protocol, Reply, Session};
use libfuzzer_sys::fuzz_target;

const OUTSTANDING: u64 = 3;

fuzz_target!(|data: &[u8]| {
    let [options, seed, input @ ..] = data else { return };
    let run = run(*options);
    let whole = endings(&run, std::iter::once(input));
    assert_eq!(endings(&run, input.chunks(1)), whole);
    assert_eq!(endings(&run, cuts(input, *seed).into_iter()), whole);
});

/// How one outstanding request ended.
#[derive(Debug, PartialEq)]
enum Ending {
    Reply(Reply),
    Failed(DecodeError),
    Closed(CloseEvent),
}

fn run(options: u8) -> Web<Turns> {
    let bit = |place: u8| options >> place & 1 == 1;
    let url = Url::parse("http://h/").expect("a URL");
    let request = |place| {
        let method = if bit(place) { "HEAD" } else { "GET" };
        Request { method: method.to_owned(), ..Request::get(url.clone()) }
    };
    let requests: Vec<Request> = (0..3).map(request).collect();
    let tight =
        Limits { head_bytes: 64, body_bytes: 16, chunk_line_bytes: 8, trailer_bytes: 12, interim_count: 1 };
    let checks = Checks {
        expect_status: bit(4).then(|| "2xx,404".parse().expect("statuses")),
        expect_body_contains: bit(5).then(|| b"aba".to_vec()),
        expect_sha256: bit(6).then(|| "00".repeat(32).parse().expect("a digest")),
    };
    let limits = if bit(3) { tight } else { Limits::default() };
    let settings = WebSettings { pipeline: requests.len(), limits, ..WebSettings::default() };
    Web::turns(&requests, &checks, settings).expect("requests that can be sent")
}

fn endings<'a>(run: &Web<Turns>, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Ending> {
    let mut session = run.session(Origin(0));
    let mut out = Vec::new();
    for n in 0..OUTSTANDING {
        session.request(&run.begin(n), Key(n), &mut out);
    }
    let mut endings = Vec::new();
    let mut began_reported = false;
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let step = match session.handle_input(rest, &mut out) {
                Ok(step) => step,
                Err(error) => {
                    endings.push(Ending::Failed(error));
                    return endings;
                }
            };
            assert!(step.consumed > 0 && step.consumed <= rest.len());
            rest = &rest[step.consumed..];
            match step.event {
                Some(Event::Finished(_, reply)) => {
                    endings.push(Ending::Reply(reply));
                    began_reported = false;
                }
                Some(Event::Began(_)) => {
                    assert!(rest.is_empty() && !began_reported);
                    began_reported = true;
                }
                Some(other) => panic!("{other:?} is nothing that one request at a time meets"),
                None => assert!(rest.is_empty() && began_reported),
            }
        }
    }
    endings.push(Ending::Closed(session.handle_close()));
    endings
}

/// Pieces of 0 to 15 bytes, by a small generator.
fn cuts(input: &[u8], seed: u8) -> Vec<&[u8]> {
    let (mut state, mut rest, mut pieces) = (u32::from(seed) + 1, input, Vec::new());
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, after) = rest.split_at((state >> 28).min(rest.len() as u32) as usize);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
