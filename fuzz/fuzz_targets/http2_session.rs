//! Any bytes as the output of an HTTP/2 peer: no panic, no endless work, no more events than requests, and never more
//! bytes sent back than a small multiple of what came.

#![no_main]

use codec::web::{Checks, OriginPlan, Request, WebSettings, HttpVersion, Url, Web};
use codec::{Event, Key, Origin, Protocol, Session};
use libfuzzer_sys::fuzz_target;

const OUTSTANDING: u64 = 4;

fuzz_target!(|input: &[u8]| {
    let (&options, rest) = input.split_first().unwrap_or((&0, &[]));
    // Most inputs would fail at the first frame: the settings that must come first are given.
    let settings: &[u8] = if options & 1 == 0 { b"\0\0\0\x04\0\0\0\0\0" } else { b"" };
    let input = [settings, rest].concat();
    let url = Url::parse("http://h/").expect("a URL");
    let body = vec![b'x'; if options & 2 == 0 { 0 } else { 100_000 }];
    let request = Request { method: "POST".to_owned(), body, ..Request::get(url.clone()) };
    let plan = OriginPlan { version: HttpVersion::Http2, ..OriginPlan::plain(url) };
    let settings = WebSettings { streams: 8, ..WebSettings::default() };
    let web = Web::turns_over(&[plan], &[request], &Checks::default(), settings).expect("it can be sent");
    let mut session = web.session(Origin(0));
    let mut out = Vec::new();
    session.open(&mut out);
    for key in 0..OUTSTANDING {
        session.request(&0, Key(key), &mut out);
    }
    let mut ended = Vec::new();
    'input: for piece in input.chunks(1 + usize::from(options >> 2)) {
        let (mut rest, mut more) = (piece, false);
        while !rest.is_empty() || more {
            let Ok(step) = session.handle_input(rest, &mut out) else { break 'input };
            assert!(step.consumed <= rest.len());
            (rest, more) = (&rest[step.consumed..], step.more);
            if let Some(Event::Finished(key, _) | Event::Failed(key, _)) = step.event {
                assert!(key.0 < OUTSTANDING && !ended.contains(&key), "ends once");
                ended.push(key);
            }
        }
    }
    session.handle_close();
    assert!(out.len() < 500_000 + 4 * input.len(), "{} said for {}", out.len(), input.len());
});
