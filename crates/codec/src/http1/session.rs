//! Reads the responses of one connection, in the order of its requests.
//!
//! A head that is complete in the input is parsed in place; only a head that is cut by the end of the input is copied,
//! up to its limit. Bodies are counted and passed to the checks, never stored. Driven by the engine; it uses no socket
//! and no clock.
//!
//! ```text
//!        ┌──── interim (1xx) ───┐
//!        ▼                      │
//!      Head ──── final head ────┴─► Body ─── its end ─► Head
//!                                     └─ until close ─► handle_close
//! ```
//!
//! # Cost
//!
//! No allocation per response, except for the first head of a connection that arrives in more than one piece.

use std::collections::VecDeque;
use std::sync::Arc;

use units::Code;

use super::chunked::ChunkDecoder;
use super::head::{Framing, Head, head_fields, parse_head};
use crate::web::{Expect, Facts, Intake, Kept};
use crate::{CloseEvent, DecodeError, Event, Key, Reply, Step};

/// The client's side of one HTTP/1.1 connection.
///
/// Every byte that arrives while a request is outstanding counts as the beginning of its response, including the bytes
/// of an interim (1xx) response: whether a cut head is interim is unknown, and what is reported must not depend on the
/// cuts. So a connection that closes after `100 Continue` alone is [`CloseEvent::Incomplete`].
#[derive(Debug)]
pub(crate) struct Http1Session {
    facts: Arc<Facts>,
    outstanding: VecDeque<(Key, Expect)>,
    state: State,
    /// The beginning of a head whose end has not arrived.
    partial_head: Vec<u8>,
    response: IncomingResponse,
    intake: Intake,
    /// A response announced that it is the last of this connection, or could not be parsed.
    ended: bool,
    /// A response has been read.
    answered: bool,
}

#[derive(Debug)]
enum State {
    Head,
    Length { left: u64 },
    Chunked(ChunkDecoder),
    UntilClose,
}

/// The state of the response that is being read.
#[derive(Debug)]
struct IncomingResponse {
    keep: bool,
    interim_count: u32,
    /// [`Event::Began`] was reported for it.
    began_reported: bool,
}

impl Http1Session {
    pub(crate) fn new(facts: Arc<Facts>) -> Http1Session {
        Http1Session {
            outstanding: VecDeque::with_capacity(facts.pipeline.min(QUEUE_AT_START)),
            state: State::Head,
            partial_head: Vec::new(),
            response: IncomingResponse::NEW,
            intake: Intake::new(&facts),
            ended: false,
            answered: false,
            facts,
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.facts.pipeline
    }

    /// Request `key` has been encoded after those outstanding.
    #[inline]
    pub(crate) fn expect(&mut self, key: Key, expect: Expect) {
        debug_assert!(self.outstanding.len() < self.facts.pipeline, "no more requests than capacity");
        self.outstanding.push_back((key, expect));
    }

    /// The response that has just ended, if it was to be kept.
    #[inline]
    pub(crate) fn take_kept(&mut self) -> Option<Kept> {
        self.intake.take_kept()
    }

    #[inline]
    pub(crate) fn handle_input(&mut self, input: &[u8]) -> Result<Step, DecodeError> {
        if input.is_empty() {
            return Ok(Step::new(0, None));
        }
        if self.outstanding.is_empty() || self.ended {
            let is_late = self.answered && self.outstanding.is_empty();
            return Err(if is_late { DecodeError::AfterResponse } else { DecodeError::Unsolicited });
        }
        let result = self.advance(input);
        // Bytes after a response that could not be parsed are not parsed as responses.
        self.ended |= result.is_err();
        result
    }

    pub(crate) fn handle_close(&mut self) -> CloseEvent {
        let event = if self.outstanding.is_empty() {
            CloseEvent::Idle
        } else if matches!(self.state, State::UntilClose) {
            CloseEvent::Finished(self.finish().1)
        } else if self.has_begun() {
            CloseEvent::Incomplete
        } else {
            CloseEvent::BeforeResponse
        };
        self.ended = true;
        event
    }

    /// Reads until a response ends or the input is used up.
    fn advance(&mut self, input: &[u8]) -> Result<Step, DecodeError> {
        let mut consumed = 0;
        while consumed < input.len() {
            let rest = &input[consumed..];
            let (taken, end) = match self.state {
                State::Head => self.read_head(rest)?,
                _ => self.read_body(rest)?,
            };
            consumed += taken;
            if end {
                let (key, reply) = self.finish();
                let trailing = consumed < input.len() && self.outstanding.is_empty();
                return Ok(Step { trailing, ..Step::new(consumed, Some(Event::Finished(key, reply))) });
            }
        }
        let event = if self.response.began_reported { None } else { Some(Event::Began(self.oldest().0)) };
        self.response.began_reported = true;
        Ok(Step::new(consumed, event))
    }

    /// Reads as much of a head as there is. Returns the bytes taken, and whether the response ended with it.
    fn read_head(&mut self, input: &[u8]) -> Result<(usize, bool), DecodeError> {
        let limit = self.facts.limits.head_bytes;
        let held = self.partial_head.len();
        let room = limit.saturating_sub(held).min(input.len());
        let window = if held == 0 {
            &input[..room]
        } else {
            // Parsed from its start again: a head that arrives in single bytes has quadratic cost, but only up to the
            // limit.
            self.partial_head.extend_from_slice(&input[..room]);
            &self.partial_head
        };
        let window_bytes = window.len();
        let is_late = || self.answered && !b"HTTP/".starts_with(&window[..window.len().min(5)]);
        let parsed = parse_head(window);
        let parsed = parsed.map_err(|error| if is_late() { DecodeError::AfterResponse } else { error });
        let Some(head) = parsed? else {
            if window_bytes >= limit {
                return Err(DecodeError::TooLong { what: "bytes of head", limit: limit as u64 });
            }
            if held == 0 {
                self.partial_head.extend_from_slice(input);
            }
            return Ok((input.len(), false));
        };
        // A head that ended within the bytes held would have been parsed before.
        let taken = head.head_bytes.saturating_sub(held);
        let end = self.handle_head(head, input)?;
        self.partial_head.clear();
        Ok((taken, end))
    }

    /// Decides what follows the head: another head, a body, or nothing. The head is in `partial_head`, or complete in
    /// `input`.
    fn handle_head(&mut self, head: Head, input: &[u8]) -> Result<bool, DecodeError> {
        if head.status == 101 {
            return Err(DecodeError::Unsupported { what: "switch of protocols (101)" });
        }
        let limits = &self.facts.limits;
        if head.status < 200 {
            self.response.interim_count += 1;
            if self.response.interim_count > limits.interim_count {
                let limit = u64::from(limits.interim_count);
                return Err(DecodeError::TooLong { what: "interim responses", limit });
            }
            return Ok(false);
        }
        let (_, expect) = self.oldest();
        let form = expect.form;
        self.response.keep = head.keep && !form.last;
        let held = &self.partial_head;
        let headers = || head_fields(if held.is_empty() { input } else { held });
        self.intake.begin(&self.facts, expect, head.status, headers);
        if form.head_only || matches!(head.status, 204 | 304) {
            return Ok(true);
        }
        match head.framing {
            Framing::Length(length) if length > limits.body_bytes => {
                return Err(DecodeError::TooLong { what: "bytes of body", limit: limits.body_bytes });
            }
            Framing::Length(0) => return Ok(true),
            Framing::Length(left) => self.state = State::Length { left },
            Framing::Chunked => self.state = State::Chunked(ChunkDecoder::new()),
            Framing::UntilClose => {
                self.response.keep = false;
                self.state = State::UntilClose;
            }
        }
        Ok(false)
    }

    /// Reads as much of a body as there is. Returns the bytes taken, and whether the body ended.
    fn read_body(&mut self, input: &[u8]) -> Result<(usize, bool), DecodeError> {
        let limits = &self.facts.limits;
        let (taken, data, end) = match &mut self.state {
            State::Head => return Ok((0, false)),
            State::Length { left } => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= taken as u64;
                (taken, &input[..taken], *left == 0)
            }
            State::Chunked(decoder) => {
                let piece = decoder.decode(input, limits)?;
                (piece.consumed, piece.data, piece.end)
            }
            State::UntilClose => (input.len(), input, false),
        };
        // Announced lengths and chunks were checked before; this limits a body without an announced length.
        self.intake.data(&self.facts, data)?;
        Ok((taken, end))
    }

    /// The oldest outstanding request, whose response is being read.
    fn oldest(&self) -> (Key, Expect) {
        *self.outstanding.front().expect("input and closes are looked at only while a request is outstanding")
    }

    /// Ends the response to the oldest request: returns its key and the reply, and prepares for the next response.
    fn finish(&mut self) -> (Key, Reply) {
        let response = std::mem::replace(&mut self.response, IncomingResponse::NEW);
        self.state = State::Head;
        let (key, _) = self.oldest();
        self.outstanding.pop_front();
        self.ended = !response.keep;
        self.answered = true;
        let (code, judgement, body_bytes) = self.intake.end(&self.facts);
        (key, Reply { code: Some(Code::status(code)), judgement, body_bytes, keep: response.keep })
    }

    fn has_begun(&self) -> bool {
        !matches!(self.state, State::Head) || !self.partial_head.is_empty() || self.response.interim_count > 0
    }
}

impl IncomingResponse {
    const NEW: IncomingResponse = IncomingResponse { keep: false, interim_count: 0, began_reported: false };
}

/// The queue of requests is allocated for at most this depth and grows as needed, so that a mistyped option does not
/// take memory.
const QUEUE_AT_START: usize = 4_096;
