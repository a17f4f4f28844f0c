//! One request on an HTTP/2 connection, from its headers to the end of its response.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::Response;
use units::Code;

use super::pipe::Flag;
use crate::web::{Expect, Facts, Intake, Kept};
use crate::{DecodeError, Key, Reply, StreamEnd};

/// A request in progress.
#[derive(Debug)]
pub(super) struct Stream {
    pub key: Key,
    expect: Expect,
    place: Place,
    request: Option<Upload>,
    intake: Intake,
    /// The `content-length` of the response.
    announced: Option<u64>,
    received: u64,
    interim_count: u32,
    /// Whether anything of the response has arrived.
    pub begun: bool,
    /// [`Event::Began`](crate::Event::Began) was reported for it.
    pub began_reported: bool,
    /// Set when there may be something to read or to send.
    pub flag: Arc<Flag>,
    /// Completely encoded, but waiting until the peer permits a stream for it.
    pub unopened: bool,
    /// It has been polled, so from then on it is woken.
    pub looked: bool,
    waker: Waker,
}

/// How far the response has been read.
#[derive(Debug)]
enum Place {
    Head(ResponseFuture),
    Body { body: RecvStream, data_over: bool },
}

/// The part of a request's body for which the peer has not made room.
#[derive(Debug)]
struct Upload {
    to: SendStream<Bytes>,
    rest: Bytes,
}

/// The result of polling a stream.
#[derive(Debug)]
pub(super) enum Looked {
    Waits,
    Finished(Reply, Option<Kept>),
    Failed(StreamEnd),
}

impl Stream {
    pub(super) fn new(key: Key, expect: Expect, facts: &Facts, head: ResponseFuture) -> Stream {
        let flag = Arc::new(Flag::default());
        Stream {
            key,
            expect,
            place: Place::Head(head),
            request: None,
            intake: Intake::new(facts),
            announced: None,
            received: 0,
            interim_count: 0,
            begun: false,
            began_reported: false,
            unopened: false,
            looked: false,
            waker: Waker::from(Arc::clone(&flag)),
            flag,
        }
    }

    /// Begins to send `body` as the peer makes room. Returns whether all of it has been passed to `h2`.
    pub(super) fn upload(&mut self, to: SendStream<Bytes>, body: Bytes) -> bool {
        self.request = Some(Upload { to, rest: body });
        self.send()
    }

    /// How much of the body is still to be sent; `None` if nothing.
    pub(super) fn left(&self) -> Option<usize> {
        self.request.as_ref().map(|upload| upload.rest.len())
    }

    /// Passes on what there is room for. Returns whether that was the rest of the body.
    pub(super) fn send(&mut self) -> bool {
        let mut context = Context::from_waker(&self.waker);
        while let Some(upload) = &mut self.request {
            upload.to.reserve_capacity(upload.rest.len());
            let room = match upload.to.poll_capacity(&mut context) {
                Poll::Ready(Some(Ok(room))) => room,
                Poll::Pending => return false,
                // The stream has ended; its response, or the lack of one, determines the outcome.
                Poll::Ready(_) => {
                    self.request = None;
                    return false;
                }
            };
            let piece = upload.rest.split_to(room.min(upload.rest.len()));
            let last = upload.rest.is_empty();
            let failed = upload.to.send_data(piece, last).is_err();
            if last || failed {
                self.request = None;
                return last && !failed;
            }
        }
        false
    }

    /// Reads what has arrived.
    pub(super) fn look(&mut self, facts: &Facts) -> Looked {
        let waker = self.waker.clone();
        let mut context = Context::from_waker(&waker);
        loop {
            let turn = match &mut self.place {
                Place::Head(_) => self.look_for_head(facts, &mut context),
                Place::Body { data_over: false, .. } => self.look_for_data(facts, &mut context),
                Place::Body { body, .. } => match body.poll_trailers(&mut context) {
                    Poll::Pending => Ok(Turn::Over(Looked::Waits)),
                    Poll::Ready(Ok(_)) => Ok(Turn::Over(self.finish(facts))),
                    Poll::Ready(Err(error)) => Ok(Turn::Over(self.end(&error, facts))),
                },
            };
            match turn {
                Ok(Turn::Again) => {}
                Ok(Turn::Over(looked)) => return looked,
                // Over one of our limits. When the stream is dropped, `h2` cancels it; the others continue.
                Err(_) => return Looked::Failed(StreamEnd::Malformed),
            }
        }
    }

    fn look_for_head(&mut self, facts: &Facts, context: &mut Context<'_>) -> Result<Turn, DecodeError> {
        let Place::Head(head) = &mut self.place else { return Ok(Turn::Again) };
        while let Poll::Ready(Some(Ok(_))) = head.poll_informational(context) {
            self.begun = true;
            self.interim_count += 1;
            if self.interim_count > facts.limits.interim_count {
                let limit = u64::from(facts.limits.interim_count);
                return Err(DecodeError::TooLong { what: "interim responses", limit });
            }
        }
        match Pin::new(head).poll(context) {
            Poll::Pending => Ok(Turn::Over(Looked::Waits)),
            Poll::Ready(Ok(response)) => {
                self.begin(facts, response)?;
                Ok(Turn::Again)
            }
            Poll::Ready(Err(error)) => Ok(Turn::Over(self.end(&error, facts))),
        }
    }

    fn begin(&mut self, facts: &Facts, response: Response<RecvStream>) -> Result<(), DecodeError> {
        self.begun = true;
        let status = response.status().as_u16();
        let length = response.headers().get(http::header::CONTENT_LENGTH);
        self.announced = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let headers = || {
            let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
                (name.as_str().to_owned(), value.as_bytes().to_vec())
            };
            response.headers().iter().map(field).collect()
        };
        self.intake.begin(facts, self.expect, status, headers);
        let limit = facts.limits.body_bytes;
        if self.announced.is_some_and(|length| length > limit) && !self.expect.form.head_only {
            return Err(DecodeError::TooLong { what: "bytes of body", limit });
        }
        self.place = Place::Body { body: response.into_body(), data_over: false };
        Ok(())
    }

    fn look_for_data(&mut self, facts: &Facts, context: &mut Context<'_>) -> Result<Turn, DecodeError> {
        let Place::Body { body, data_over } = &mut self.place else { return Ok(Turn::Again) };
        match body.poll_data(context) {
            Poll::Pending => Ok(Turn::Over(Looked::Waits)),
            Poll::Ready(Some(Ok(data))) => {
                self.received += data.len() as u64;
                self.intake.data(facts, &data)?;
                // Fails only for more than was received.
                let _ = body.flow_control().release_capacity(data.len());
                Ok(Turn::Again)
            }
            Poll::Ready(Some(Err(error))) => Ok(Turn::Over(self.end(&error, facts))),
            Poll::Ready(None) => {
                *data_over = true;
                Ok(Turn::Again)
            }
        }
    }

    fn finish(&mut self, facts: &Facts) -> Looked {
        let (code, judgement, body_bytes) = self.intake.end(facts);
        // Whether the connection accepts more requests is reported by its capacity, as others are in progress on it.
        let reply = Reply { code: Some(Code::status(code)), judgement, body_bytes, keep: true };
        Looked::Finished(reply, self.intake.take_kept())
    }

    /// What an error of `h2` means for the stream that it ended.
    fn end(&mut self, error: &h2::Error, facts: &Facts) -> Looked {
        let reason = error.reason();
        if error.is_remote() && error.is_go_away() {
            // A GOAWAY ends only streams that the peer has not processed.
            return Looked::Failed(StreamEnd::Unprocessed);
        }
        if error.is_remote() && error.is_reset() {
            // RFC 9113, section 8.1: the response is complete, and the peer does not want the rest of the request.
            let whole = reason == Some(Reason::NO_ERROR)
                && !matches!(self.place, Place::Head(_))
                && self.announced.is_none_or(|announced| announced == self.received);
            return match reason {
                _ if whole => self.finish(facts),
                Some(Reason::REFUSED_STREAM) => Looked::Failed(StreamEnd::Unprocessed),
                _ => Looked::Failed(StreamEnd::Reset),
            };
        }
        // `h2` refuses data beyond the announced length before it is visible here, so too much data cannot be distinguished from
        // too little; the latter is what happens in practice.
        let short = self.announced.is_some_and(|announced| self.received < announced);
        let cut = short && matches!(self.place, Place::Body { .. });
        Looked::Failed(if cut { StreamEnd::Incomplete } else { StreamEnd::Malformed })
    }
}

/// Whether there may be more to read immediately.
enum Turn {
    Again,
    Over(Looked),
}
