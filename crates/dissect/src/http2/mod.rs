//! HTTP/2, both sides: each stream is a request, and responses end in any order.
//!
//! A request is complete with its last frame, or when its response begins. Of its headers, method and path are read, of
//! its response the status; the data are skipped by the lengths of their frames. A connection that is joined is followed
//! from a piece that consists of frames: its headers may refer to some that were sent before, which are unknown.

mod hpack;
mod huffman;

use crate::digest::DigestId;
use crate::event::{EndBy, Event, Protocol, RequestComplete, RequestKind, ResponseComplete, Sight, Status};
use crate::exchanges::{Events, Exchanges};
use crate::protocols::Context;
use crate::tap::{HELD_BYTES, Step, View};
use hpack::{Headers, Table};

#[derive(Debug, Default)]
pub(crate) struct Http2 {
    /// The client's first bytes are to come.
    preface: bool,
    client: Side,
    server: Side,
    streams: Vec<Stream>,
    /// The last stream that the client has opened.
    newest: u32,
    /// Streams may have been opened in bytes that were not captured.
    has_gap: bool,
}

/// One direction.
#[derive(Debug, Default)]
struct Side {
    table: Table,
    /// Headers whose last frame is to come.
    block: Block,
    /// A stream whose last frame ends here, beyond what was seen so far.
    due: Option<(u32, u64)>,
    /// Framing was lost: the next piece that consists of frames begins one.
    is_lost: bool,
}

#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    stream: u32,
    began: u64,
    is_last: bool,
    is_cut: bool,
}

/// A request in flight.
#[derive(Debug)]
struct Stream {
    id: u32,
    /// Its number, once it was reported.
    n: Option<u64>,
    began: u64,
    /// Up to where it was read.
    read: u64,
    sight: Sight,
    digest: DigestId,
    response_began: Option<u64>,
    status: Status,
}

/// A frame, as far as its payload is wanted and was captured.
struct Frame<'a> {
    at: u64,
    end: u64,
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'a [u8],
    is_cut: bool,
}

impl Http2 {
    pub(crate) fn fresh() -> Http2 {
        Http2 { preface: true, ..Http2::default() }
    }

    /// The next bytes of the client begin a frame, and what it sent before is not known.
    pub(crate) fn restart_client(&mut self) {
        self.client = Side { is_lost: true, ..Side::default() };
        (self.preface, self.has_gap) = (false, true);
    }

    /// The connection is followed from here on: responses to streams that were opened before are not reported.
    pub(crate) fn join(&mut self) {
        self.has_gap = false;
        self.newest = 0;
    }

    /// As [`Http2::restart_client`], of the server.
    pub(crate) fn restart_server(&mut self) {
        self.server = Side { is_lost: true, ..Side::default() };
    }

    /// What follows of the client was not captured: requests that are being read are complete when their responses begin.
    pub(crate) fn client_cut(&mut self) {
        for stream in self.streams.iter_mut().filter(|stream| stream.n.is_none()) {
            (stream.read, stream.sight) = (u64::MAX, Sight::Cut);
        }
    }

    pub(crate) fn client_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        self.settle_client(view.at, context.exchanges, context.events);
        if self.preface {
            if view.bytes.len() < PREFACE.len() {
                return if PREFACE.starts_with(view.bytes) { Step::Need } else { Step::Bad };
            }
            self.preface = false;
            let is_there = view.bytes.starts_with(PREFACE);
            return if is_there { Step::Taken(PREFACE.len() as u64) } else { Step::Bad };
        }
        if self.client.passes(view) {
            return Step::Taken(view.bytes.len() as u64);
        }
        let frame = match Frame::read(view) {
            Ok(frame) => frame,
            Err(step) => return step,
        };
        match frame.kind {
            HEADERS | CONTINUATION => match self.client.headers(&frame) {
                Ok(Some((block, headers))) => {
                    if !self.request(&block, &headers, frame.end, context) {
                        return Step::Bad;
                    }
                }
                Ok(None) => {}
                Err(step) => return step,
            },
            DATA => {
                if let Some(stream) = self.stream(frame.stream) {
                    stream.read = stream.read.max(frame.end);
                    if frame.flags & END_STREAM != 0 {
                        self.client.due = Some((frame.stream, frame.end));
                    }
                }
            }
            RESET => self.drop_stream(frame.stream, context),
            _ => {}
        }
        Step::Taken(frame.end - frame.at)
    }

    /// The headers of a request, or what follows its data. False when too many are in flight.
    fn request(&mut self, block: &Block, headers: &Headers, end: u64, context: &mut Context<'_>) -> bool {
        if self.stream(block.stream).is_none() {
            // A client's streams are odd, and only grow.
            if block.stream.is_multiple_of(2) || block.stream <= self.newest {
                return true;
            }
            if self.streams.len() >= STREAMS_MOST {
                return false;
            }
            self.newest = block.stream;
            let digest = match (&headers.method, &headers.path) {
                (Some(method), Some(path)) => context.digests.route_of(Protocol::Http2, method, path),
                (method, _) => {
                    let method = method.as_deref().unwrap_or(b"?").escape_ascii();
                    context.digests.named(Protocol::Http2, &format!("{method} (unknown {UNKNOWN})"))
                }
            };
            self.streams.push(Stream {
                id: block.stream,
                n: None,
                began: block.began,
                read: end,
                sight: Sight::Framed,
                digest,
                response_began: None,
                status: Status::Unknown,
            });
        }
        if block.is_last {
            self.client.due = Some((block.stream, end));
        }
        true
    }

    pub(crate) fn server_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        self.settle_server(view.at, context.exchanges, context.events);
        if self.server.passes(view) {
            return Step::Taken(view.bytes.len() as u64);
        }
        let frame = match Frame::read(view) {
            Ok(frame) => frame,
            Err(step) => return step,
        };
        match frame.kind {
            HEADERS | CONTINUATION | PUSH_PROMISE => match self.server.headers(&frame) {
                Ok(Some((block, headers))) => self.response(&block, &headers, frame.end, context),
                Ok(None) => {}
                Err(step) => return step,
            },
            DATA if frame.flags & END_STREAM != 0 => self.server.due = Some((frame.stream, frame.end)),
            RESET => self.server.due = Some((frame.stream, frame.end)),
            _ => {}
        }
        Step::Taken(frame.end - frame.at)
    }

    fn response(&mut self, block: &Block, headers: &Headers, end: u64, context: &mut Context<'_>) {
        self.open_unseen(block.stream, context);
        let Some(stream) = self.stream(block.stream) else { return };
        if stream.response_began.is_none() {
            if headers.status.is_some_and(|status| status < 200) {
                context.exchanges.counts.unsolicited += 1;
                return;
            }
            stream.response_began = Some(block.began);
            stream.status = headers.status.map_or(Status::Unknown, Status::Http);
            stream.report(context.exchanges.client_at, context.exchanges, context.events);
        }
        if block.is_last {
            self.server.due = Some((block.stream, end));
        }
    }

    /// A response to a stream that was opened in bytes that were not captured.
    fn open_unseen(&mut self, id: u32, context: &mut Context<'_>) {
        let is_possible = self.has_gap && !id.is_multiple_of(2) && id > self.newest;
        if !is_possible || self.streams.len() >= STREAMS_MOST {
            return;
        }
        self.newest = id;
        let n = context.exchanges.take_number();
        let at = context.exchanges.client_at;
        let digest = context.digests.named(Protocol::Http2, "(request not captured)");
        let (began, read, status, sight) = (at, at, Status::Unknown, Sight::Unseen);
        self.streams.push(Stream {
            id,
            n: Some(n),
            began,
            read,
            sight,
            digest,
            response_began: None,
            status,
        });
        context.events.push(Event::RequestComplete(RequestComplete {
            n,
            began,
            complete: at,
            digest,
            kind: RequestKind::Http,
            sight,
            no_response: false,
        }));
    }

    /// Reports the request whose last frame ends where the client's bytes have come to.
    pub(crate) fn settle_client(&mut self, reached: u64, exchanges: &mut Exchanges, events: &mut Events) {
        if let Some((id, end)) = self.client.due.filter(|(_, end)| *end <= reached) {
            self.client.due = None;
            if let Some(stream) = self.stream(id) {
                stream.report(end, exchanges, events);
            }
        }
    }

    /// Reports the response whose last frame ends where the server's bytes have come to.
    pub(crate) fn settle_server(&mut self, reached: u64, exchanges: &mut Exchanges, events: &mut Events) {
        if let Some((id, end)) = self.server.due.filter(|(_, end)| *end <= reached) {
            self.server.due = None;
            if let Some(place) = self.streams.iter().position(|stream| stream.id == id) {
                let stream = self.streams.remove(place);
                stream.end((end, end), EndBy::Framing, exchanges, events);
            }
        }
    }

    /// The server's bytes are not framed: responses to all complete requests have ended with the last write.
    pub(crate) fn end_all(
        &mut self,
        (begun, at): (u64, u64),
        end_by: EndBy,
        exchanges: &mut Exchanges,
        events: &mut Events,
    ) {
        self.server.due = None;
        let (complete, open) =
            std::mem::take(&mut self.streams).into_iter().partition(|stream| stream.n.is_some());
        self.streams = open;
        let complete: Vec<Stream> = complete;
        complete.into_iter().for_each(|stream| stream.end((begun, at), end_by, exchanges, events));
    }

    /// Drops the requests in flight.
    pub(crate) fn drop_all(&mut self, exchanges: &mut Exchanges, events: &mut Events) {
        (self.client.due, self.server.due) = (None, None);
        for stream in self.streams.drain(..) {
            stream.drop(exchanges, events);
        }
    }

    fn drop_stream(&mut self, id: u32, context: &mut Context<'_>) {
        if let Some(place) = self.streams.iter().position(|stream| stream.id == id) {
            self.streams.remove(place).drop(context.exchanges, context.events);
        }
    }

    fn stream(&mut self, id: u32) -> Option<&mut Stream> {
        // Most frames are of the newest streams.
        self.streams.iter_mut().rev().find(|stream| stream.id == id)
    }

    /// The lowest positions in the client's bytes and in the server's that future events may refer to.
    pub(crate) fn named_from(&self) -> (Option<u64>, Option<u64>) {
        let streams = || self.streams.iter();
        let block = |side: &Side| (!side.block.bytes.is_empty()).then_some(side.block.began);
        let client = streams().filter(|stream| stream.n.is_none()).map(|stream| stream.began);
        let server = streams().filter_map(|stream| stream.response_began);
        (client.chain(block(&self.client)).min(), server.chain(block(&self.server)).min())
    }
}

impl Side {
    /// Whether framing is lost, and this is not where it is found again.
    fn passes(&mut self, view: View<'_>) -> bool {
        // Of a piece that was not captured to its end, the last frame ends beyond what is here.
        let length = view.bytes.len() as u64 + u64::from(view.cut);
        self.is_lost = self.is_lost && !is_frames(view.bytes, length);
        self.is_lost
    }

    /// Takes a frame of headers; returns them once they are whole.
    fn headers(&mut self, frame: &Frame<'_>) -> Result<Option<(Block, Headers)>, Step> {
        let mut fragment = frame.payload;
        if frame.kind == CONTINUATION {
            if self.block.stream != frame.stream || frame.stream == 0 {
                // Its first frame was not seen.
                self.table.clear();
                return Ok(None);
            }
        } else {
            fragment = frame.fragment().ok_or(Step::Bad)?;
            let is_last = frame.flags & END_STREAM != 0 && frame.kind == HEADERS;
            // The headers of a promise are read, because they are added to the table, and belong to no request.
            let stream = if frame.kind == HEADERS { frame.stream } else { frame.stream & !1 };
            self.block = Block { bytes: Vec::new(), stream, began: frame.at, is_last, is_cut: false };
        }
        let room = HELD_BYTES - self.block.bytes.len();
        self.block.is_cut |= frame.is_cut || fragment.len() > room;
        self.block.bytes.extend_from_slice(&fragment[..fragment.len().min(room)]);
        if frame.flags & END_HEADERS == 0 {
            return Ok(None);
        }
        let block = std::mem::take(&mut self.block);
        let headers = self.table.read(&block.bytes, !block.is_cut).ok_or(Step::Bad)?;
        Ok(Some((block, headers)))
    }
}

impl Stream {
    /// The request is complete with what was read up to `at`, unless it was before.
    fn report(&mut self, at: u64, exchanges: &mut Exchanges, events: &mut Events) {
        if self.n.is_some() {
            return;
        }
        let n = exchanges.take_number();
        self.n = Some(n);
        events.push(Event::RequestComplete(RequestComplete {
            n,
            began: self.began,
            complete: self.read.min(at).max(self.began),
            digest: self.digest,
            kind: RequestKind::Http,
            sight: self.sight,
            no_response: false,
        }));
    }

    /// The response has ended at the second position; it began at the first one, if its beginning was not seen.
    fn end(mut self, (begun, at): (u64, u64), end_by: EndBy, exchanges: &mut Exchanges, events: &mut Events) {
        self.report(exchanges.client_at, exchanges, events);
        let Some(n) = self.n else { return };
        events.push(Event::ResponseComplete(ResponseComplete {
            n,
            began: self.response_began.unwrap_or(begun),
            end: at,
            status: self.status,
            end_by,
            rows: None,
            statements: 1,
            data_bytes: 0,
        }));
    }

    fn drop(self, exchanges: &mut Exchanges, events: &mut Events) {
        if let Some(n) = self.n {
            exchanges.counts.dropped += 1;
            events.push(Event::Dropped { n });
        }
    }
}

impl<'a> Frame<'a> {
    /// A frame; of headers with their payload.
    fn read(view: View<'a>) -> Result<Frame<'a>, Step> {
        let &[a, b, c, kind, flags, d, e, f, g, ref payload @ ..] = view.bytes else {
            return Err(Step::Need);
        };
        let length = u32::from_be_bytes([0, a, b, c]);
        let stream = u32::from_be_bytes([d, e, f, g]) & 0x7fff_ffff;
        if !is_plausible(kind, length, stream) {
            return Err(Step::Bad);
        }
        let is_of_headers = matches!(kind, HEADERS | CONTINUATION | PUSH_PROMISE);
        let whole = usize::try_from(length).unwrap_or(usize::MAX);
        let wanted = if is_of_headers { whole.min(PAYLOAD_MOST) } else { 0 };
        if payload.len() < wanted && !view.cut {
            return Err(Step::Need);
        }
        let payload = &payload[..payload.len().min(wanted)];
        let end = view.at + HEADER_BYTES + u64::from(length);
        let is_cut = is_of_headers && payload.len() < whole;
        Ok(Frame { at: view.at, end, kind, flags, stream, payload, is_cut })
    }

    /// The headers within the payload of a frame that begins them.
    fn fragment(&self) -> Option<&'a [u8]> {
        let mut payload = self.payload;
        let mut padding = 0;
        if self.flags & PADDED != 0 {
            let (first, rest) = payload.split_first()?;
            (padding, payload) = (usize::from(*first), rest);
        }
        let before = match self.kind {
            HEADERS if self.flags & PRIORITY != 0 => 5,
            PUSH_PROMISE => 4,
            _ => 0,
        };
        payload = payload.get(before..)?;
        if self.is_cut {
            return Some(payload);
        }
        payload.get(..payload.len().checked_sub(padding)?)
    }
}

/// Whether a piece of `length` bytes, of which the first are here, consists of frames.
pub(crate) fn is_frames(bytes: &[u8], length: u64) -> bool {
    let mut at = 0_u64;
    while at < length {
        let here = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let &[a, b, c, kind, _, d, e, f, g, ..] = here else {
            return at > 0 && (bytes.len() as u64) < length;
        };
        let size = u32::from_be_bytes([0, a, b, c]);
        // The reserved bit is 0.
        if d & 0x80 != 0 || kind > CONTINUATION || !is_plausible(kind, size, u32::from_be_bytes([d, e, f, g]))
        {
            return false;
        }
        at += HEADER_BYTES + u64::from(size);
    }
    at == length
}

/// Whether a kind of frame can have this length and stream (RFC 9113, section 6).
fn is_plausible(kind: u8, length: u32, stream: u32) -> bool {
    match kind {
        DATA | HEADERS | CONTINUATION | PUSH_PROMISE => stream != 0,
        PRIORITY_FRAME => length == 5 && stream != 0,
        RESET => length == 4 && stream != 0,
        SETTINGS => length.is_multiple_of(6) && stream == 0,
        PING => length == 8 && stream == 0,
        GOAWAY => length >= 8 && stream == 0,
        WINDOW_UPDATE => length == 4,
        // Extensions: small ones.
        _ => length <= EXTENSION_MOST,
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADER_BYTES: u64 = 9;
/// Of headers in one frame, so much is read; a longer beginning of a frame is not kept.
const PAYLOAD_MOST: usize = HELD_BYTES - HEADER_BYTES as usize;
/// The default of the longest frame.
const EXTENSION_MOST: u32 = 16_384;
/// Servers allow 100 to 250 by default.
const STREAMS_MOST: usize = 1_024;
const UNKNOWN: &str = "path: compressed before watching began";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY_FRAME: u8 = 2;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;
