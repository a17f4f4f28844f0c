//! The smallest protocol that pipelines, so that tests of the engine do not depend on a real one.
//!
//! A request is its number and a line feed, with optional padding in between. A response is one line: a word, a space,
//! the request's number, and anything after it.
//!
//! | word | means |
//! |---|---|
//! | `ok` | good |
//! | `bye` | good, and the connection ends |
//! | `err`, `bad`, `chk` | the server's error, the request's error, a failed check |
//! | `rest` | good; ends with the connection, not with the line |

use std::collections::VecDeque;
use std::io::Write;

use codec::{
    CloseEvent, DecodeError, Encoded, Event, Judgement, Key, Origin, Protocol, Reply, Route, Session, Step,
};

/// The protocol that the module describes: the settings of a run.
#[derive(Debug, Clone, Copy)]
pub struct LineProtocol {
    /// The maximum number of requests outstanding on one connection.
    pub pipeline: usize,
    /// Bytes of padding between the number and the line feed.
    pub padding: usize,
}

impl LineProtocol {
    /// The test protocol with up to `pipeline` requests in flight per connection.
    pub fn new(pipeline: usize) -> LineProtocol {
        LineProtocol { pipeline, padding: 0 }
    }
}

impl Protocol for LineProtocol {
    /// The request's number.
    type Journey = u64;
    type Session = LineSession;

    fn session(&self, _: Origin) -> LineSession {
        LineSession {
            capacity: self.pipeline,
            padding: self.padding,
            expected: VecDeque::with_capacity(self.pipeline),
            head: Vec::with_capacity(HEAD_BYTES),
            length: 0,
        }
    }

    fn begin(&self, n: u64) -> u64 {
        n
    }

    fn route(&self, _: &u64) -> Route {
        Route::default()
    }

    fn kinds(&self) -> usize {
        1
    }
}

/// The client's side of one connection.
#[derive(Debug)]
pub struct LineSession {
    capacity: usize,
    padding: usize,
    expected: VecDeque<(Key, u64)>,
    /// The beginning of the current response; the rest is only counted.
    head: Vec<u8>,
    length: u64,
}

impl Session for LineSession {
    type Journey = u64;

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn request(&mut self, &n: &u64, key: Key, out: &mut Vec<u8>) -> Encoded {
        write!(out, "{n}").expect("writing to memory does not fail");
        out.resize(out.len() + self.padding, b'.');
        out.push(b'\n');
        self.expected.push_back((key, n));
        Encoded::Whole
    }

    fn handle_input(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<Step, DecodeError> {
        if self.expected.is_empty() {
            return Err(DecodeError::Unsolicited);
        }
        let began = self.length == 0;
        let end = input.iter().position(|&byte| byte == b'\n').filter(|_| !self.until_close(input));
        let consumed = end.map_or(input.len(), |end| end + 1);
        let text = &input[..end.unwrap_or(consumed)];
        self.head.extend(text.iter().take(HEAD_BYTES - self.head.len()));
        self.length += consumed as u64;
        let event = match end {
            Some(_) => {
                let (key, reply) = self.finish()?;
                Some(Event::Finished(key, reply))
            }
            None => began.then_some(Event::Began(self.expected[0].0)),
        };
        let trailing = consumed < input.len() && self.expected.is_empty();
        Ok(Step { trailing, ..Step::new(consumed, event) })
    }

    fn handle_close(&mut self) -> CloseEvent {
        if self.expected.is_empty() {
            return CloseEvent::Idle;
        }
        if self.length == 0 {
            return CloseEvent::BeforeResponse;
        }
        match self.head.starts_with(REST).then(|| self.finish()) {
            Some(Ok((_, reply))) => CloseEvent::Finished(reply),
            _ => CloseEvent::Incomplete,
        }
    }
}

impl LineSession {
    /// Whether the current response, which continues with `input`, ends with the connection.
    fn until_close(&self, input: &[u8]) -> bool {
        let start = self.head.iter().chain(input);
        REST.len() <= self.head.len() + input.len() && start.zip(REST).all(|(a, b)| a == b)
    }

    fn finish(&mut self) -> Result<(Key, Reply), DecodeError> {
        let malformed = DecodeError::Malformed { what: "answer line" };
        let text = std::str::from_utf8(&self.head).map_err(|_| malformed)?;
        let mut words = text.split_ascii_whitespace();
        let (judgement, keep) = match words.next() {
            Some("ok") => (Judgement::Good, true),
            Some("bye" | "rest") => (Judgement::Good, false),
            Some("err") => (Judgement::ServerError, true),
            Some("bad") => (Judgement::RequestError, true),
            Some("chk") => (Judgement::CheckFailed, true),
            _ => return Err(malformed),
        };
        let number = words.next().and_then(|number| number.parse::<u64>().ok());
        let Some((key, _)) = self.expected.pop_front().filter(|(_, n)| number == Some(*n)) else {
            return Err(DecodeError::Malformed { what: "number: it answers another request" });
        };
        let body_bytes = self.length;
        self.head.clear();
        self.length = 0;
        Ok((key, Reply { code: None, judgement, body_bytes, keep }))
    }
}

const REST: &[u8] = b"rest ";

/// Room for the longest word and the longest number.
const HEAD_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn session(expected: u64) -> LineSession {
        let protocol = LineProtocol::new(8);
        let mut session = protocol.session(Origin(0));
        for n in 0..expected {
            session.request(&protocol.begin(n), Key(n), &mut Vec::new());
        }
        session
    }

    fn finished(text: &[u8], pieces: usize) -> usize {
        let mut session = session(3);
        let mut count = 0;
        for mut piece in text.chunks(pieces) {
            while !piece.is_empty() {
                let step = session.handle_input(piece, &mut Vec::new()).unwrap();
                count += usize::from(matches!(step.event, Some(Event::Finished(..))));
                piece = &piece[step.consumed..];
            }
        }
        count
    }

    #[test]
    fn any_split_gives_the_same_answers() {
        let text = b"ok 0\nerr 1 with more behind it than the head has room for\nok 2\n";
        for pieces in 1..=text.len() {
            assert_eq!(finished(text, pieces), 3, "in pieces of {pieces}");
        }
    }

    #[test]
    fn an_answer_to_another_request_is_an_error() {
        assert!(session(2).handle_input(b"ok 1\n", &mut Vec::new()).is_err());
        assert_eq!(session(0).handle_input(b"ok 0\n", &mut Vec::new()), Err(DecodeError::Unsolicited));
    }

    #[test]
    fn only_an_answer_without_an_end_ends_with_the_connection() {
        let mut until_close = session(1);
        until_close.handle_input(b"re", &mut Vec::new()).unwrap();
        until_close.handle_input(b"st 0 one\ntwo\n", &mut Vec::new()).unwrap();
        assert!(matches!(until_close.handle_close(), CloseEvent::Finished(_)));
        let mut cut = session(1);
        cut.handle_input(b"ok", &mut Vec::new()).unwrap();
        assert_eq!(cut.handle_close(), CloseEvent::Incomplete);
    }
}
