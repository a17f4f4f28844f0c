//! The response of each route. `responses.rs` decides when it is sent.

use std::mem;

use super::{Ending, Mark, Pending, Responses, What};
use crate::context::Context;
use crate::encode::{self, Framing, Head};
use crate::fault::Fault;
use crate::request::Refusal;
use crate::route::Route;
use crate::stream::Stream;

impl Responses {
    #[inline]
    pub(super) fn begin(&mut self, mut pending: Pending, ctx: &mut Context) {
        let route = match pending.what {
            What::Route(route) => route,
            What::Continue => return encode::interim(&mut self.out, 100),
            What::Refusal(refusal) => return self.begin_refusal(refusal, &pending, ctx),
        };
        let ok = head(&pending, ctx);
        match route {
            Route::Plaintext => self.whole(&pending, ok, HELLO),
            Route::Delay { .. } | Route::Capacity(_) => self.whole(&pending, ok, HELLO),
            Route::OverCapacity => self.whole(&pending, Head { status: 503, ..ok }, b"over capacity\n"),
            Route::Json => {
                self.whole(&pending, Head { content_type: JSON, ..ok }, br#"{"message":"Hello, World!"}"#)
            }
            Route::Index => self.whole(&pending, ok, INDEX.as_bytes()),
            Route::Echo => {
                let body = mem::take(&mut pending.body);
                self.held_bytes -= body.len();
                self.whole(&pending, Head { content_type: BINARY, ..ok }, &body);
            }
            Route::Status(status) => self.begin_status(status, &pending, ctx),
            Route::Bytes { count, chunked } => {
                // HTTP/1.0 has no chunks.
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
                self.whole(&pending, Head { content_type: JSON, ..ok }, text.as_bytes());
            }
            Route::NotFound => {
                self.whole(&pending, Head { status: 404, ..ok }, b"no such route; / lists them\n")
            }
            Route::MethodNotAllowed => {
                self.whole(&pending, Head { status: 405, ..ok }, b"not with this method\n")
            }
            Route::BadValue(why) => self.whole(&pending, Head { status: 400, ..ok }, why.as_bytes()),
        }
    }

    /// A response that is encoded at once, with the length of its body.
    #[inline]
    fn whole(&mut self, to: &Pending, head: Head<'_>, body: &[u8]) {
        let before = self.out.len();
        encode::head(&mut self.out, Head { framing: Framing::Length(body.len() as u64), ..head });
        if !to.head_only {
            self.out.extend_from_slice(body);
        }
        self.finish(to, head.status, before);
    }

    fn begin_status(&mut self, status: u16, to: &Pending, ctx: &Context) {
        let head = Head { status, ..head(to, ctx) };
        match status {
            // An interim status is not a response: 200 follows it.
            100..=199 => {
                if !to.http10 {
                    encode::interim(&mut self.out, status);
                }
                self.whole(to, Head { status: 200, ..head }, HELLO);
            }
            204 | 304 => {
                let before = self.out.len();
                encode::head(&mut self.out, Head { framing: Framing::Nothing, ..head });
                self.finish(to, status, before);
            }
            // Reset Content carries no content, and needs a length of zero (RFC 9110, 15.3.6).
            205 => self.whole(to, head, b""),
            _ => self.whole(to, head, format!("{status}\n").as_bytes()),
        }
    }

    fn begin_stream(&mut self, to: &Pending, framing: Framing, stream: Stream, ctx: &Context) {
        let before = self.out.len();
        encode::head(&mut self.out, Head { framing, ..head(to, ctx) });
        if to.head_only {
            return self.finish(to, 200, before);
        }
        self.stream = Some(stream);
        self.streamed = Some(Mark { status: Some(200), ..Mark::of(to) });
        self.end_after(to);
    }

    fn begin_refusal(&mut self, refusal: Refusal, to: &Pending, ctx: &mut Context) {
        let status = refusal.status();
        *ctx.tally.refusals.entry(status).or_default() += 1;
        encode::head(&mut self.out, Head { status, ..head(to, ctx) });
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
            Fault::Freeze => unreachable!("a freeze becomes a plain response when it is over"),
        }
    }

    #[inline]
    fn finish(&mut self, to: &Pending, status: u16, before: usize) {
        let counts = !matches!(to.what, What::Route(Route::Truth { .. }));
        let status = counts.then_some(status);
        let bytes = (self.out.len() - before) as u64;
        self.mark(Mark { status, bytes, ..Mark::of(to) });
        self.end_after(to);
    }

    /// Marks the end of a response at the end of what is encoded now.
    #[inline]
    pub(super) fn mark(&mut self, mark: Mark) {
        let end = self.taken + (self.out.len() - self.sent) as u64;
        self.marks.push_back(Mark { end, ..mark });
    }

    fn end_after(&mut self, to: &Pending) {
        if !to.keep_alive {
            self.ending = Some(Ending::Close);
        }
    }
}

impl Mark {
    fn of(to: &Pending) -> Mark {
        Mark { end: 0, arrival: to.arrival, intended: to.intended, status: None, bytes: 0 }
    }
}

/// The head of a plain 200 to this request.
#[inline]
fn head<'a>(to: &Pending, ctx: &'a Context) -> Head<'a> {
    Head {
        status: 200,
        content_type: "text/plain; charset=utf-8",
        framing: Framing::Length(0),
        close: !to.keep_alive,
        write_keep_alive: to.http10 && to.keep_alive,
        date: &ctx.date,
    }
}

const HELLO: &[u8] = b"Hello, World!";
const JSON: &str = "application/json";
const BINARY: &str = "application/octet-stream";

const INDEX: &str = "\
/plaintext                              Hello, World!
/json                                   the same as JSON
/echo                                   the request's body, at most 1 MiB
/delay/SECONDS                          responds that long after the request arrived
/delay?us=N  /delay?ms=N                the same; jitter_us=M&seed=S adds a uniform 0 to M
/status/CODE                            100, 102 to 599; after an interim status comes 200
/bytes/N                                N bytes, at most 1 GiB; ?chunked=1 in chunks
/drip?bytes=N&over_ms=M&delay_ms=D      N bytes spread evenly; numbytes, duration, delay in seconds also
/capacity?rate=2000/s&burst=N            serves that many at most; the others queue, or with over=refuse
                                        get 503, or with over=slow&ms=N a response that much later
/fault/NAME                             close short-body reset reset-body never garbage header-flood
                                        half-head chunk-garbage freeze?ms=N
                                        ?p=0.1&seed=7 on that share of requests, else Hello, World!
/truth                                  what this server did, as JSON
/truth/reset                            the same, then starts counting from zero
";
