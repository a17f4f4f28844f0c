//! Reads the answers of one connection, in the order of its requests.
//!
//! A head that is whole in the input is parsed where it stands; only a head cut by the end of the input is kept,
//! within its limit. Bodies are counted and shown to the checks, never stored. The engine drives it; it knows no
//! socket and no time.
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
//! No allocation for an answer, but for the first head of a connection that came in more than one piece.

use std::collections::VecDeque;
use std::sync::Arc;

use super::checks::{BodyChecks, PreparedChecks};
use super::chunked::ChunkDecoder;
use super::head::{Framing, Head, parse_head};
use super::limits::Limits;
use crate::{CloseEvent, DecodeError, Event, Expect, Judgement, Reply, Session, Step};

/// The client's side of one HTTP/1.1 connection.
///
/// Every byte that comes while a request is outstanding counts as the beginning of its answer, also the bytes of
/// an interim (1xx) answer: whether a cut head is interim cannot be known, and what is reported must not depend
/// on the cuts. So a connection that closes after `100 Continue` alone is [`CloseEvent::Incomplete`].
#[derive(Debug)]
pub struct Http1Session {
    run: Arc<RunFacts>,
    outstanding: VecDeque<AnswerForm>,
    state: State,
    /// The beginning of a head whose end has not come yet.
    partial_head: Vec<u8>,
    answer: Answer,
    body_checks: BodyChecks,
    /// An answer said that it is the last of this connection, or could not be read.
    ended: bool,
}

/// What all sessions of a run share.
#[derive(Debug)]
pub(super) struct RunFacts {
    pub pipeline: usize,
    pub limits: Limits,
    pub checks: PreparedChecks,
    /// By [`Expect`].
    pub forms: Vec<AnswerForm>,
}

/// What a request decides about the form of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnswerForm {
    /// The request was HEAD: the answer ends with its head, whatever that says of a body.
    pub head_only: bool,
    /// The request asked for the connection to be closed after it.
    pub last: bool,
}

#[derive(Debug)]
enum State {
    Head,
    Length { left: u64 },
    Chunked(ChunkDecoder),
    UntilClose,
}

/// What is known of the answer that is being read.
#[derive(Debug)]
struct Answer {
    code: u16,
    judgement: Judgement,
    keep: bool,
    body_bytes: u64,
    interim_count: u32,
    /// [`Event::Began`] was given for it.
    said_began: bool,
}

impl Http1Session {
    pub(super) fn new(run: Arc<RunFacts>) -> Http1Session {
        Http1Session {
            outstanding: VecDeque::with_capacity(run.pipeline.min(QUEUE_AT_START)),
            state: State::Head,
            partial_head: Vec::new(),
            answer: Answer::NEW,
            body_checks: BodyChecks::new(&run.checks),
            ended: false,
            run,
        }
    }
}

impl Session for Http1Session {
    fn capacity(&self) -> usize {
        self.run.pipeline
    }

    fn expect(&mut self, expect: Expect) {
        let form = usize::try_from(expect.0).ok().and_then(|index| self.run.forms.get(index));
        debug_assert!(form.is_some(), "{expect:?} was given by this run's protocol");
        debug_assert!(self.outstanding.len() < self.run.pipeline, "no more requests than capacity");
        self.outstanding.push_back(form.copied().unwrap_or(AnswerForm { head_only: false, last: false }));
    }

    fn handle_input(&mut self, input: &[u8]) -> Result<Step, DecodeError> {
        if input.is_empty() {
            return Ok(Step { consumed: 0, event: None });
        }
        if self.outstanding.is_empty() || self.ended {
            return Err(DecodeError::Unsolicited);
        }
        let result = self.advance(input);
        // What follows an answer that could not be read is not read as answers, whoever gives it.
        self.ended |= result.is_err();
        result
    }

    fn handle_close(&mut self) -> CloseEvent {
        let event = if self.outstanding.is_empty() {
            CloseEvent::Idle
        } else if matches!(self.state, State::UntilClose) {
            CloseEvent::Finished(self.finish())
        } else if self.has_begun() {
            CloseEvent::Incomplete
        } else {
            CloseEvent::BeforeResponse
        };
        self.ended = true;
        event
    }
}

impl Http1Session {
    /// Reads on until an answer ends or the input is used up.
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
                return Ok(Step { consumed, event: Some(Event::Finished(self.finish())) });
            }
        }
        let event = if self.answer.said_began { None } else { Some(Event::Began) };
        self.answer.said_began = true;
        Ok(Step { consumed, event })
    }

    /// Reads what it can of a head. Gives the bytes taken and whether the answer ended with it.
    fn read_head(&mut self, input: &[u8]) -> Result<(usize, bool), DecodeError> {
        let limit = self.run.limits.head_bytes;
        let held = self.partial_head.len();
        let room = limit.saturating_sub(held).min(input.len());
        let window = if held == 0 {
            &input[..room]
        } else {
            // Read again from its start: a head trickled in by single bytes costs a square, but of the limit.
            self.partial_head.extend_from_slice(&input[..room]);
            &self.partial_head
        };
        let window_bytes = window.len();
        let Some(head) = parse_head(window)? else {
            if window_bytes >= limit {
                return Err(DecodeError::TooLong { what: "bytes of head", limit: limit as u64 });
            }
            if held == 0 {
                self.partial_head.extend_from_slice(input);
            }
            return Ok((input.len(), false));
        };
        self.partial_head.clear();
        // A head that had ended in the bytes held would have been read before.
        let taken = head.head_bytes.saturating_sub(held);
        Ok((taken, self.handle_head(head)?))
    }

    /// Decides what follows the head: another head, a body, or nothing.
    fn handle_head(&mut self, head: Head) -> Result<bool, DecodeError> {
        if head.status == 101 {
            return Err(DecodeError::Unsupported { what: "switch of protocols (101)" });
        }
        let limits = &self.run.limits;
        if head.status < 200 {
            self.answer.interim_count += 1;
            if self.answer.interim_count > limits.interim_count {
                let limit = u64::from(limits.interim_count);
                return Err(DecodeError::TooLong { what: "interim answers", limit });
            }
            return Ok(false);
        }
        let form = self.outstanding.front().copied().unwrap_or(AnswerForm { head_only: false, last: true });
        self.answer.code = head.status;
        self.answer.judgement = self.run.checks.judge_status(head.status);
        self.answer.keep = head.keep && !form.last;
        self.body_checks.begin(self.answer.judgement == Judgement::Good && !form.head_only);
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
                self.answer.keep = false;
                self.state = State::UntilClose;
            }
        }
        Ok(false)
    }

    /// Reads what it can of a body. Gives the bytes taken and whether the body ended.
    fn read_body(&mut self, input: &[u8]) -> Result<(usize, bool), DecodeError> {
        let limits = &self.run.limits;
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
        self.answer.body_bytes += data.len() as u64;
        // Lengths and chunks were refused when announced; this bounds a body that announces nothing.
        if self.answer.body_bytes > limits.body_bytes {
            return Err(DecodeError::TooLong { what: "bytes of body", limit: limits.body_bytes });
        }
        self.body_checks.update(&self.run.checks, data);
        Ok((taken, end))
    }

    /// The oldest request has its answer: says which, and makes ready for the next.
    fn finish(&mut self) -> Reply {
        let answer = std::mem::replace(&mut self.answer, Answer::NEW);
        self.state = State::Head;
        self.outstanding.pop_front();
        self.ended = !answer.keep;
        let held = self.body_checks.hold(&self.run.checks);
        let judgement = if held { answer.judgement } else { Judgement::CheckFailed };
        Reply { code: answer.code, judgement, body_bytes: answer.body_bytes, keep: answer.keep }
    }

    fn has_begun(&self) -> bool {
        !matches!(self.state, State::Head) || !self.partial_head.is_empty() || self.answer.interim_count > 0
    }
}

impl Answer {
    const NEW: Answer = Answer {
        code: 0,
        judgement: Judgement::Good,
        keep: false,
        body_bytes: 0,
        interim_count: 0,
        said_began: false,
    };
}

/// Beyond this depth the queue of requests grows as it is used, so that a slip in an option takes no memory.
const QUEUE_AT_START: usize = 4_096;
