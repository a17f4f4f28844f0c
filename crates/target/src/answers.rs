//! The answers of one connection: in the order of the requests, each when it is due. Touches no socket and
//! reads no clock; `connection.rs` drives it: [`accept`](Answers::accept) requests, [`fill`](Answers::fill)
//! the buffer, hand [`unsent`](Answers::unsent) bytes to the kernel, and say what it [`took`](Answers::took).

use std::collections::VecDeque;

use units::Nanos;

use crate::context::Context;
use crate::encode::{self, Framing, Head};
use crate::fault::{Fault, FaultPlan, draw};
use crate::request::{Refusal, Request};
use crate::route::{Drip, Route};
use crate::stream::{Flow, Stream};

#[derive(Default)]
pub(crate) struct Answers {
    queue: VecDeque<Pending>,
    /// The rest of the answer that has begun.
    stream: Option<Stream>,
    /// What becomes of the mark when the stream is done.
    streamed: Option<Mark>,
    out: Vec<u8>,
    /// How much of `out` the kernel has.
    sent: usize,
    /// Bytes of this connection that the kernel has taken, all told.
    taken: u64,
    marks: VecDeque<Mark>,
    ending: Option<Ending>,
    /// No request after the last one accepted will be answered.
    sealed: bool,
    /// The text for the `/truth` that is next.
    truth: Option<String>,
    /// Requests neither answered nor ended by a fault.
    open: u64,
    /// Bytes of bodies waiting to be echoed.
    held_bytes: usize,
    last_intended: Nanos,
}

/// Something to answer.
struct Pending {
    what: What,
    arrival: Nanos,
    /// Not before this.
    due: Nanos,
    /// The instant meant for the last byte, of answers that are delayed on purpose.
    intended: Option<Nanos>,
    head_only: bool,
    http10: bool,
    keep_alive: bool,
    body: Vec<u8>,
}

enum What {
    Route(Route),
    /// `100 Continue`.
    Continue,
    Refusal(Refusal),
}

/// Where in the sent bytes an answer ends, and what is then known.
#[derive(Debug)]
struct Mark {
    end: u64,
    arrival: Nanos,
    intended: Option<Nanos>,
    /// `None`: an answer to `/truth`, this many bytes long, which does not count.
    status: Option<u16>,
    bytes: u64,
}

/// How the connection ends after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Close,
    /// Close, but not before the peer had time to read: it may still be sending.
    Linger,
    /// Reset, when what was sent is acknowledged.
    Reset,
}

/// What [`Answers::fill`] needs before it can go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: every request is answered.
    Idle,
    /// Room.
    Full,
    Until(Nanos),
    Truth {
        reset: bool,
    },
    /// Everything before this sent, and then a pause of the whole thread.
    Freeze(Nanos),
    End(Ending),
    /// Nothing will come any more; the peer must give up.
    Never,
}

impl Answers {
    /// Takes a request in; decides now whether a fault drawn by chance will occur, and how long a delay is.
    #[inline]
    pub(crate) fn accept(&mut self, request: Request, arrival: Nanos, ctx: &mut Context) {
        let mut route = request.route;
        if let Some(kind) = route.kind() {
            ctx.tally.requests[kind.index()] += 1;
            ctx.tally.bytes_read += request.wire_bytes;
            ctx.tally.in_flight += 1;
            self.open += 1;
        }
        let (mut due, mut intended) = (arrival, None);
        match route {
            Route::Delay { delay, jitter } => {
                let extra = jitter.map_or(Nanos::ZERO, |jitter| {
                    Nanos(uniform(draw(jitter.seed, ctx.shared.next_draw(None)), jitter.up_to.0))
                });
                due = arrival + delay + extra;
                intended = Some(due);
            }
            Route::Drip(Drip { count, over, delay }) => {
                due = arrival + delay;
                intended = Some(if count == 0 || request.head_only { due } else { due + over });
            }
            Route::Fault(FaultPlan { fault, share: Some(share), .. })
                if !share.holds(ctx.shared.next_draw(Some(fault))) =>
            {
                route = Route::Plaintext;
            }
            _ => {}
        }
        // An answer cannot be meant for before the one ahead of it.
        if let Some(instant) = &mut intended {
            *instant = (*instant).max(self.last_intended);
            self.last_intended = *instant;
        }
        let Request { head_only, http10, keep_alive, body, .. } = request;
        self.sealed |= !keep_alive;
        self.held_bytes += body.len();
        let what = What::Route(route);
        self.queue.push_back(Pending { what, arrival, due, intended, head_only, http10, keep_alive, body });
    }

    /// Will ask for the body that the peer holds back, when its turn comes.
    pub(crate) fn ask_for_body(&mut self) {
        self.queue.push_back(Pending::plain(What::Continue));
    }

    /// Will say why, when its turn comes, and end the connection. Nothing is accepted after it.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.sealed = true;
        self.queue.push_back(Pending::plain(What::Refusal(refusal)));
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Whether so much waits here that no more should be read.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.queue.len() >= MOST_QUEUED || self.held_bytes >= MOST_HELD_BYTES
    }

    pub(crate) fn give_truth(&mut self, text: String) {
        self.truth = Some(text);
    }

    /// The pause that [`Next::Freeze`] asked for is over.
    pub(crate) fn thawed(&mut self) {
        if let Some(front) = self.queue.front_mut() {
            front.what = What::Route(Route::Plaintext);
        }
    }

    /// How many requests are left without an answer, now that the connection is gone.
    pub(crate) fn open(&self) -> u64 {
        self.open
    }

    #[inline]
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// The kernel has accepted `count` more bytes, at `now`.
    #[inline]
    pub(crate) fn took(&mut self, count: usize, now: Nanos, ctx: &mut Context) {
        self.sent += count;
        self.taken += count as u64;
        ctx.tally.bytes_written += count as u64;
        while let Some(mark) = self.marks.front()
            && mark.end <= self.taken
        {
            match mark.status {
                Some(status) => {
                    ctx.tally.answers[usize::from(status)] += 1;
                    ctx.tally.in_flight -= 1;
                    self.open -= 1;
                    ctx.tally.response.record(now.saturating_sub(mark.arrival));
                    if let Some(intended) = mark.intended {
                        ctx.tally.lateness.record(now.saturating_sub(intended));
                    }
                }
                None => ctx.tally.bytes_written = ctx.tally.bytes_written.saturating_sub(mark.bytes),
            }
            self.marks.pop_front();
        }
        if self.sent == self.out.len() {
            self.sent = 0;
            self.out.clear();
            // A long answer's buffer is not kept for the short ones after it.
            self.out.shrink_to(FULL_BYTES);
        }
    }

    /// Encodes what is due, up to a bufferful.
    pub(crate) fn fill(&mut self, ctx: &mut Context) -> Next {
        loop {
            if self.out.len() - self.sent >= FULL_BYTES {
                return Next::Full;
            }
            if let Some(stream) = &mut self.stream {
                let room = FULL_BYTES - (self.out.len() - self.sent);
                match stream.fill(&mut self.out, room, ctx.now) {
                    Flow::More => {}
                    Flow::Until(due) => return Next::Until(due),
                    Flow::Never => return Next::Never,
                    Flow::Done => {
                        self.stream = None;
                        if let Some(mark) = self.streamed.take() {
                            self.mark(mark);
                        }
                    }
                }
                continue;
            }
            if let Some(ending) = self.ending {
                return Next::End(ending);
            }
            let Some(front) = self.queue.front() else { return Next::Idle };
            if front.due > ctx.now {
                return Next::Until(front.due);
            }
            if let Some(next) = self.precondition() {
                if let Next::Freeze(_) = next {
                    ctx.tally.faults[Fault::Freeze.index()] += 1;
                }
                return next;
            }
            let pending = self.queue.pop_front().expect("its front was just looked at");
            self.begin(pending, ctx);
        }
    }

    /// What must happen outside before the answer at the front can begin.
    fn precondition(&self) -> Option<Next> {
        match self.queue.front()?.what {
            What::Route(Route::Truth { reset }) if self.truth.is_none() => Some(Next::Truth { reset }),
            What::Route(Route::Fault(FaultPlan { fault: Fault::Freeze, length, .. })) => {
                // What is encoded goes out first: a frozen thread sends nothing.
                Some(if self.unsent().is_empty() { Next::Freeze(length) } else { Next::Full })
            }
            _ => None,
        }
    }

    #[inline]
    fn begin(&mut self, mut pending: Pending, ctx: &mut Context) {
        const TEXT: &str = "text/plain; charset=utf-8";
        const JSON: &str = "application/json";
        let route = match pending.what {
            What::Route(route) => route,
            What::Continue => return encode::interim(&mut self.out, 100),
            What::Refusal(refusal) => return self.begin_refusal(refusal, &pending, ctx),
        };
        match route {
            Route::Plaintext => self.whole(&pending, 200, TEXT, b"Hello, World!", ctx),
            Route::Delay { .. } => self.whole(&pending, 200, TEXT, b"Hello, World!", ctx),
            Route::Json => self.whole(&pending, 200, JSON, br#"{"message":"Hello, World!"}"#, ctx),
            Route::Index => self.whole(&pending, 200, TEXT, INDEX.as_bytes(), ctx),
            Route::Echo => {
                let body = std::mem::take(&mut pending.body);
                self.held_bytes -= body.len();
                self.whole(&pending, 200, "application/octet-stream", &body, ctx);
            }
            Route::Status(status) => self.begin_status(status, &pending, ctx),
            Route::Bytes { count, chunked } => {
                // HTTP/1.0 knows no chunks.
                let chunked = chunked && !pending.http10;
                let framing = if chunked { Framing::Chunked } else { Framing::Length(count) };
                let stream = Stream::Bytes { next: 0, count, chunked };
                self.begin_stream(&pending, framing, stream, ctx);
            }
            Route::Drip(drip) => {
                let stream = Stream::Drip { drip, begin: pending.due, next: 0 };
                self.begin_stream(&pending, Framing::Length(drip.count), stream, ctx);
            }
            Route::Fault(plan) => self.begin_fault(plan.fault, ctx),
            Route::Truth { .. } => {
                let text = self.truth.take().unwrap_or_default();
                self.whole(&pending, 200, JSON, text.as_bytes(), ctx);
            }
            Route::NotFound => self.whole(&pending, 404, TEXT, b"no such route; / lists them\n", ctx),
            Route::MethodNotAllowed => self.whole(&pending, 405, TEXT, b"not with this method\n", ctx),
            Route::BadValue(why) => self.whole(&pending, 400, TEXT, why.as_bytes(), ctx),
        }
    }

    /// An answer that is encoded at once.
    #[inline]
    fn whole(&mut self, to: &Pending, status: u16, content_type: &'static str, body: &[u8], ctx: &Context) {
        let before = self.out.len();
        self.head(to, status, content_type, Framing::Length(body.len() as u64), ctx);
        if !to.head_only {
            self.out.extend_from_slice(body);
        }
        self.finish(to, status, before);
    }

    fn begin_status(&mut self, status: u16, to: &Pending, ctx: &Context) {
        match status {
            // An interim status is not an answer: 200 follows it.
            100..=199 => {
                if !to.http10 {
                    encode::interim(&mut self.out, status);
                }
                self.whole(to, 200, "text/plain; charset=utf-8", b"Hello, World!", ctx);
            }
            204 | 304 => {
                let before = self.out.len();
                self.head(to, status, "", Framing::Nothing, ctx);
                self.finish(to, status, before);
            }
            // Reset Content carries no content, and says so with a length (RFC 9110, 15.3.6).
            205 => self.whole(to, status, "text/plain; charset=utf-8", b"", ctx),
            _ => {
                let body = format!("{status}\n");
                self.whole(to, status, "text/plain; charset=utf-8", body.as_bytes(), ctx);
            }
        }
    }

    fn begin_stream(&mut self, to: &Pending, framing: Framing, stream: Stream, ctx: &Context) {
        let before = self.out.len();
        self.head(to, 200, "text/plain; charset=utf-8", framing, ctx);
        if to.head_only {
            return self.finish(to, 200, before);
        }
        self.stream = Some(stream);
        self.streamed =
            Some(Mark { end: 0, arrival: to.arrival, intended: to.intended, status: Some(200), bytes: 0 });
        self.end_after(to);
    }

    fn begin_refusal(&mut self, refusal: Refusal, to: &Pending, ctx: &mut Context) {
        let status = refusal.status();
        *ctx.tally.refusals.entry(status).or_default() += 1;
        self.head(to, status, "text/plain; charset=utf-8", Framing::Length(0), ctx);
        self.ending = Some(Ending::Linger);
    }

    fn begin_fault(&mut self, fault: Fault, ctx: &mut Context) {
        ctx.tally.faults[fault.index()] += 1;
        ctx.tally.ended_by_fault += 1;
        ctx.tally.in_flight -= 1;
        self.open -= 1;
        self.sealed |= fault != Fault::Never;
        let out = &mut self.out;
        self.ending = Some(Ending::Close);
        match fault {
            Fault::Close => {}
            Fault::Reset => self.ending = Some(Ending::Reset),
            Fault::ShortBody => {
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
                encode::pattern(out, 0, 500);
            }
            Fault::ResetBody => {
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
                encode::pattern(out, 0, 1_000);
                self.ending = Some(Ending::Reset);
            }
            Fault::Garbage => out.extend_from_slice(b"\x00\xff\xfe this is not HTTP \x01\x02\r\n\r\n"),
            Fault::HalfHead => out.extend_from_slice(b"HTTP/1.1 20"),
            Fault::ChunkGarbage => out.extend_from_slice(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\nthis is no chunk size\r\n",
            ),
            Fault::HeaderFlood => {
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
                self.stream = Some(Stream::Flood { next: 0 });
            }
            Fault::Never => self.stream = Some(Stream::Never),
            Fault::Freeze => unreachable!("a freeze becomes a plain answer when it is over"),
        }
    }

    #[inline]
    fn head(
        &mut self,
        to: &Pending,
        status: u16,
        content_type: &'static str,
        framing: Framing,
        ctx: &Context,
    ) {
        let close = !to.keep_alive;
        let tell_keep_alive = to.http10 && to.keep_alive;
        let head = Head { status, content_type, framing, close, tell_keep_alive, date: &ctx.date };
        encode::head(&mut self.out, head);
    }

    #[inline]
    fn finish(&mut self, to: &Pending, status: u16, before: usize) {
        let counts = !matches!(to.what, What::Route(Route::Truth { .. }));
        let status = counts.then_some(status);
        let bytes = (self.out.len() - before) as u64;
        self.mark(Mark { end: 0, arrival: to.arrival, intended: to.intended, status, bytes });
        self.end_after(to);
    }

    /// The answer ends with what is encoded now.
    #[inline]
    fn mark(&mut self, mark: Mark) {
        let end = self.taken + (self.out.len() - self.sent) as u64;
        self.marks.push_back(Mark { end, ..mark });
    }

    fn end_after(&mut self, to: &Pending) {
        if !to.keep_alive {
            self.ending = Some(Ending::Close);
        }
    }
}

impl Pending {
    fn plain(what: What) -> Pending {
        Pending {
            keep_alive: matches!(what, What::Continue),
            what,
            arrival: Nanos::ZERO,
            due: Nanos::ZERO,
            intended: None,
            head_only: false,
            http10: false,
            body: Vec::new(),
        }
    }
}

/// Scales a draw to `0..=up_to`, without the bias of a remainder (Lemire's multiplication, unrejected: off by
/// less than one part in 2^22 for an hour of nanoseconds).
fn uniform(draw: u64, up_to: u64) -> u64 {
    let scaled = (u128::from(draw) * (u128::from(up_to) + 1)) >> 64;
    u64::try_from(scaled).unwrap_or(up_to)
}

/// Encoded and not yet sent, at most: enough to keep a socket busy, little enough for 10 000 connections.
const FULL_BYTES: usize = 64 << 10;
const MOST_QUEUED: usize = 1_024;
const MOST_HELD_BYTES: usize = 4 << 20;

const INDEX: &str = "\
/plaintext                              Hello, World!
/json                                   the same as JSON
/echo                                   the request's body, at most 1 MiB
/delay/SECONDS                          answers that long after the request arrived
/delay?us=N  /delay?ms=N                the same; jitter_us=M&seed=S adds a uniform 0 to M
/status/CODE                            100, 102 to 599; after an interim status comes 200
/bytes/N                                N bytes, at most 1 GiB; ?chunked=1 in chunks
/drip?bytes=N&over_ms=M&delay_ms=D      N bytes spread evenly; numbytes, duration, delay in seconds also
/fault/NAME                             close short-body reset reset-body never garbage header-flood
                                        half-head chunk-garbage freeze?ms=N
                                        ?p=0.1&seed=7 on that share of requests, else Hello, World!
/truth                                  what this server did, as JSON
/truth/reset                            the same, and counting begins anew
";
