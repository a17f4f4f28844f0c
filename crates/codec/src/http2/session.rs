//! One HTTP/2 connection: requests are streams, and responses are reported in the order in which they end.
//!
//! All input is passed to `h2`; the streams that it wakes are checked, and the results are reported one event at a
//! time. Driven by the engine.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::Reason;
use h2::client::{Builder, Connection, SendRequest};
use http::Request;

use super::frames::FrameWatch;
use super::pipe::{Flag, Pipe};
use super::stream::{Looked, Stream};
use crate::web::{Expect, Facts, Kept};
use crate::{CloseEvent, DecodeError, Encoded, Event, Key, Step, StreamEnd};

/// The client's side of one HTTP/2 connection.
pub(crate) struct Http2Session {
    facts: Arc<Facts>,
    pipe: Pipe,
    connection: Connection<Pipe, Bytes>,
    requests: SendRequest<Bytes>,
    /// Set when the connection has work to do.
    flag: Arc<Flag>,
    waker: Waker,
    frames: FrameWatch,
    streams: Vec<Stream>,
    /// How many requests have been sent or attempted on this connection.
    count: u64,
    /// Events to report, in the order in which they happened.
    events: VecDeque<(Event, Option<Kept>)>,
    /// Reported once all events are.
    failed: Option<DecodeError>,
    /// The response of the last event, if it was to be kept.
    kept: Option<Kept>,
    ended: bool,
}

impl std::fmt::Debug for Http2Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2Session").field("streams", &self.streams.len()).finish_non_exhaustive()
    }
}

impl Http2Session {
    /// A session whose preface and settings are still to be sent; see [`Http2Session::open`].
    pub(crate) fn new(facts: Arc<Facts>) -> Http2Session {
        let pipe = Pipe::default();
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&flag));
        let handshake = builder(&facts).handshake::<_, Bytes>(pipe.clone());
        let opened = pin!(handshake).poll(&mut Context::from_waker(&waker));
        let Poll::Ready(Ok((requests, connection))) = opened else {
            unreachable!("the preface is written to a pipe that takes everything at once")
        };
        Http2Session {
            streams: Vec::new(),
            facts,
            pipe,
            connection,
            requests,
            flag,
            waker,
            frames: FrameWatch::default(),
            count: 0,
            events: VecDeque::new(),
            failed: None,
            kept: None,
            ended: false,
        }
    }

    /// Appends the preface and our settings.
    pub(crate) fn open(&mut self, out: &mut Vec<u8>) {
        self.pump();
        self.pipe.take_output(out);
    }

    /// One until the peer's settings state how many it accepts; they have not arrived before the first request.
    pub(crate) fn capacity(&self) -> usize {
        if self.ended || self.frames.leaving || self.count >= REQUESTS_MAX {
            return 0;
        }
        if !self.frames.settled {
            return 1;
        }
        self.facts.streams.min(self.connection.max_concurrent_send_streams())
    }

    /// Appends a request, as far as the peer allows it to be sent.
    pub(crate) fn request(
        &mut self,
        head: Request<()>,
        body: Bytes,
        (key, expect): (Key, Expect),
        out: &mut Vec<u8>,
    ) -> Encoded {
        self.count += 1;
        // A sender remembers a stream that waits for the peer's permission, and refuses the next; a new clone does not.
        let sent = self.requests.clone().send_request(head, body.is_empty());
        let Ok((response, upload)) = sent else {
            // It will not accept another request either.
            self.frames.leaving = true;
            self.events.push_back((Event::Failed(key, StreamEnd::Unprocessed), None));
            return Encoded::Whole;
        };
        let mut stream = Stream::new(key, expect, &self.facts, response);
        let whole = body.is_empty() || stream.upload(upload, body);
        self.streams.push(stream);
        let before = out.len();
        self.pump();
        self.pipe.take_output(out);
        // The room for a body is known only after the headers have been sent.
        let reported = self.events.iter().position(|(event, _)| *event == Event::Encoded(key));
        if let Some(reported) = reported {
            self.events.remove(reported);
        }
        if out.len() == before {
            // It waits until the peer permits another stream.
            if let Some(stream) = self.streams.last_mut().filter(|stream| stream.key == key) {
                stream.unopened = whole || reported.is_some();
            }
            return Encoded::Partly;
        }
        if whole || reported.is_some() { Encoded::Whole } else { Encoded::Partly }
    }

    /// The response of the last event, if it was to be kept.
    pub(crate) fn take_kept(&mut self) -> Option<Kept> {
        self.kept.take()
    }

    pub(crate) fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        if !input.is_empty() && self.failed.is_none() && !self.ended {
            let (good, wrong) = self.frames.handle_input(input);
            self.pipe.put_input(&input[..good]);
            let before = out.len();
            self.pump();
            self.failed = self.failed.or(wrong);
            self.pipe.take_output(out);
            if out.len() > before {
                self.note_opened();
            }
            self.note_begun();
        }
        match (self.events.pop_front(), self.failed) {
            (Some((event, kept)), _) => {
                self.kept = kept;
                let more = !self.events.is_empty() || self.failed.is_some();
                Ok(Step { more, ..Step::new(input.len(), Some(event)) })
            }
            (None, Some(error)) => {
                self.ended = true;
                Err(error)
            }
            (None, None) => Ok(Step::new(input.len(), None)),
        }
    }

    pub(crate) fn handle_close(&mut self) -> CloseEvent {
        self.ended = true;
        match self.streams.first() {
            None => CloseEvent::Idle,
            Some(stream) if stream.begun => CloseEvent::Incomplete,
            Some(_) => CloseEvent::BeforeResponse,
        }
    }

    /// Resets the stream of `key`, and appends the frame that informs the peer. Returns whether it could.
    pub(crate) fn cancel(&mut self, key: Key, out: &mut Vec<u8>) -> bool {
        if self.ended || self.failed.is_some() {
            return false;
        }
        // Dropping the stream makes `h2` reset it with CANCEL.
        self.streams.retain(|stream| stream.key != key);
        self.events.retain(|(event, _)| event.key() != Some(key));
        self.pump();
        self.pipe.take_output(out);
        true
    }

    /// Lets `h2` and the streams work until neither has anything left to do.
    fn pump(&mut self) {
        for _ in 0..TURNS_MAX {
            self.poll_connection();
            self.look_at_streams();
            if !self.flag.take() || self.ended {
                return;
            }
        }
        self.failed.get_or_insert(DecodeError::TooLong { what: "turns for one input", limit: TURNS_MAX });
    }

    fn poll_connection(&mut self) {
        if self.ended || self.failed.is_some() {
            return;
        }
        match Pin::new(&mut self.connection).poll(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => {}
            Poll::Ready(Err(error)) if !error.is_remote() => {
                self.failed = Some(refused(error.reason()));
            }
            // The peer has sent GOAWAY, and nothing is in progress.
            Poll::Ready(_) => self.frames.leaving = true,
        }
    }

    fn look_at_streams(&mut self) {
        let mut index = 0;
        while let Some(stream) = self.streams.get_mut(index) {
            if !stream.flag.take() && stream.looked {
                index += 1;
                continue;
            }
            stream.looked = true;
            let left = stream.left();
            if left.is_some() && stream.send() {
                self.events.push_back((Event::Encoded(stream.key), None));
            }
            if stream.left() < left {
                self.frames.note_upload();
            }
            let ended = match stream.look(&self.facts) {
                Looked::Waits => {
                    index += 1;
                    continue;
                }
                Looked::Finished(reply, kept) => (Event::Finished(stream.key, reply), kept),
                // The whole connection has failed, and reports the reason.
                Looked::Failed(_) if self.failed.is_some() => {
                    index += 1;
                    continue;
                }
                Looked::Failed(end) => {
                    if stream.begun && !stream.began_reported {
                        self.events.push_back((Event::Began(stream.key), None));
                    }
                    (Event::Failed(stream.key, end), None)
                }
            };
            self.events.push_back(ended);
            // `remove` preserves the order of the requests: when the connection ends, the oldest is reported.
            self.streams.remove(index);
        }
    }

    /// Something was sent: requests that waited for permission are assumed to be part of it.
    fn note_opened(&mut self) {
        for stream in self.streams.iter_mut().filter(|stream| stream.unopened) {
            stream.unopened = false;
            self.events.push_back((Event::Encoded(stream.key), None));
        }
    }

    /// Reports responses that have begun in this input and not ended in it.
    fn note_begun(&mut self) {
        for stream in &mut self.streams {
            if stream.begun && !stream.began_reported {
                stream.began_reported = true;
                self.events.push_back((Event::Began(stream.key), None));
            }
        }
    }
}

fn builder(facts: &Facts) -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_max_send_streams(1)
        // What a peer still sends on cancelled streams is dropped, and not treated as an error.
        .max_concurrent_reset_streams(facts.streams.max(RESETS_KNOWN))
        .max_header_list_size(u32::try_from(facts.limits.head_bytes).unwrap_or(u32::MAX));
    builder
}

/// The error for a fault of the peer that `h2` has detected.
fn refused(reason: Option<Reason>) -> DecodeError {
    let what = match reason {
        Some(Reason::FLOW_CONTROL_ERROR) => "use of the flow-control window",
        Some(Reason::FRAME_SIZE_ERROR) => "frame size",
        Some(Reason::COMPRESSION_ERROR) => "header compression",
        Some(Reason::STREAM_CLOSED) => "frame on a closed stream",
        Some(Reason::ENHANCE_YOUR_CALM) => "traffic: too much of what is not wanted",
        _ => "HTTP/2 frame",
    };
    DecodeError::Malformed { what }
}

/// What a peer may send before we have read it. Everything is read at once, so a large window costs no memory, and the
/// peer never has to wait.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// The minimum number of cancelled streams that are remembered.
const RESETS_KNOWN: usize = 100;

/// Slightly below 2^30, the number of streams that a client can open on one connection.
const REQUESTS_MAX: u64 = (1 << 30) - 1_000;

/// The maximum number of polls per input. `h2` wakes itself a few times per input, never many.
const TURNS_MAX: u64 = 10_000;
