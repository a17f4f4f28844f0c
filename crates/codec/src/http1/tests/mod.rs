//! Reads transcripts of responses whole, byte by byte and at random cuts, and checks that the replies are the same.

mod golden;
mod hostile;
mod responses;
mod runs;

use proptest::prelude::*;

use crate::web::{Checks, Limits, Request, RequestError, Turns, Url, Web, WebSettings};
use crate::{CloseEvent, DecodeError, Encoded, Event, Judgement, Key, Origin, Protocol, Reply, Session};

/// How one outstanding request of a transcript ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Reply(Reply),
    /// Bytes that could not be parsed; nothing follows.
    Failed(DecodeError),
    /// What the close meant for the oldest request; nothing follows.
    Closed(CloseEvent),
}

/// A connection to be created: its requests by method, its depth, its checks and limits.
struct Connection {
    methods: Vec<&'static str>,
    checks: Checks,
    limits: Limits,
}

impl Connection {
    fn new(methods: &[&'static str]) -> Connection {
        Connection { methods: methods.to_vec(), checks: Checks::default(), limits: Limits::default() }
    }

    fn protocol(&self) -> Web<Turns> {
        let url = Url::parse("http://h/").unwrap();
        let request = |method: &&str| Request { method: (*method).to_owned(), ..Request::get(url.clone()) };
        let requests: Vec<Request> = self.methods.iter().map(request).collect();
        let settings =
            WebSettings { pipeline: self.methods.len(), limits: self.limits, ..WebSettings::default() };
        Web::turns(&requests, &self.checks, settings).unwrap()
    }

    /// Feeds `input` in `pieces`, then closes. Checks the contract of [`Session`] at every step.
    fn endings<'a>(&self, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Ending> {
        let mut session = self.protocol().session(Origin(0));
        for index in 0..self.methods.len() {
            session.request(&(index as u32), Key(index as u64), &mut Vec::new());
        }
        let mut key = 0;
        let mut endings = Vec::new();
        let mut has_begun = false;
        for piece in pieces {
            let mut rest = piece;
            while !rest.is_empty() {
                let step = match session.handle_input(rest, &mut Vec::new()) {
                    Ok(step) => step,
                    Err(error) => {
                        endings.push(Ending::Failed(error));
                        return endings;
                    }
                };
                assert!(step.consumed <= rest.len() && step.consumed > 0, "{step:?} of {}", rest.len());
                rest = &rest[step.consumed..];
                match step.event {
                    Some(Event::Finished(of, reply)) => {
                        assert_eq!(of, Key(key), "answers come in the order of the requests");
                        key += 1;
                        endings.push(Ending::Reply(reply));
                        has_begun = false;
                    }
                    Some(Event::Began(of)) => {
                        assert_eq!(of, Key(key), "answers come in the order of the requests");
                        assert!(rest.is_empty() && !has_begun, "said once, when the input is used up");
                        has_begun = true;
                    }
                    Some(other) => panic!("{other:?} is nothing that one request at a time meets"),
                    None => assert!(rest.is_empty() && has_begun, "everything is taken, and it had begun"),
                }
            }
        }
        let close = session.handle_close();
        if has_begun {
            assert!(matches!(close, CloseEvent::Finished(_) | CloseEvent::Incomplete), "{close:?}");
        }
        endings.push(Ending::Closed(close));
        endings
    }

    /// Reads `input` whole and byte by byte, checks that both agree, and returns the result.
    fn read(&self, input: &[u8]) -> Vec<Ending> {
        let whole = self.endings(std::iter::once(input));
        let bytes = self.endings(input.chunks(1));
        assert_eq!(whole, bytes, "whole and byte by byte: {}", input.escape_ascii());
        whole
    }
}

/// Splits `input` at `cuts`, each taken modulo its length.
fn split<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    at.extend([0, input.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect()
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<usize>(), 0..12)
}

fn reply(code: u16, judgement: Judgement, body_bytes: u64, keep: bool) -> Ending {
    Ending::Reply(Reply { code: Some(units::Code::status(code)), judgement, body_bytes, keep })
}

fn good(code: u16, body_bytes: u64) -> Ending {
    reply(code, Judgement::Good, body_bytes, true)
}

fn last(code: u16, body_bytes: u64) -> Ending {
    reply(code, Judgement::Good, body_bytes, false)
}

fn malformed(what: &'static str) -> Ending {
    Ending::Failed(DecodeError::Malformed { what })
}

fn too_long(what: &'static str, limit: u64) -> Ending {
    Ending::Failed(DecodeError::TooLong { what, limit })
}

const IDLE: Ending = Ending::Closed(CloseEvent::Idle);
const INCOMPLETE: Ending = Ending::Closed(CloseEvent::Incomplete);
const BEFORE_RESPONSE: Ending = Ending::Closed(CloseEvent::BeforeResponse);
const UNSOLICITED: Ending = Ending::Failed(DecodeError::Unsolicited);
