//! The responses of one connection: in the order of the requests, each when it is due. Touches no socket and reads no
//! clock; `connection.rs` drives it: [`accept`](Responses::accept) requests, [`fill`](Responses::fill) the buffer,
//! hand [`unsent`](Responses::unsent) bytes to the kernel, and report how many were sent with
//! [`note_sent`](Responses::note_sent).

mod compose;

use std::collections::VecDeque;

use units::Nanos;

use crate::capacity::Admission;
use crate::context::Context;
use crate::fault::{Fault, FaultPlan, draw};
use crate::request::{Refusal, Request};
use crate::route::{Drip, Route};
use crate::stream::{Flow, Stream};

#[derive(Default)]
pub(crate) struct Responses {
    queue: VecDeque<Pending>,
    /// The rest of the response that is being sent.
    stream: Option<Stream>,
    /// The mark to set when the stream is done.
    streamed: Option<Mark>,
    out: Vec<u8>,
    /// How much of `out` the kernel has accepted.
    sent: usize,
    /// Total bytes of this connection that the kernel has accepted.
    taken: u64,
    marks: VecDeque<Mark>,
    ending: Option<Ending>,
    /// No request after the last accepted one will get a response.
    sealed: bool,
    /// The text for the next `/truth`.
    truth: Option<String>,
    /// Requests without a response that no fault has ended.
    open: u64,
    /// Bytes of bodies waiting to be echoed.
    held_bytes: usize,
    last_intended: Nanos,
}

/// A request that waits for its response.
struct Pending {
    what: What,
    arrival: Nanos,
    /// Not sent before this; zero unless it is delayed on purpose.
    due: Nanos,
    /// For responses delayed on purpose: when the last byte is meant to leave.
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

/// Where in the sent bytes a response ends, and what is then known.
#[derive(Debug, Clone, Copy)]
struct Mark {
    end: u64,
    arrival: Nanos,
    intended: Option<Nanos>,
    /// `None`: a response to `/truth`, which is not counted. `bytes` is its length.
    status: Option<u16>,
    bytes: u64,
}

/// One system call that handed bytes to the kernel: it accepted them at some instant in between.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub began: Nanos,
    pub returned: Nanos,
}

/// How the connection ends after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Close,
    /// Close, but not before the peer had time to read: it may still be sending.
    Linger,
    /// Reset, once everything sent is acknowledged.
    Reset,
}

/// What [`Responses::fill`] needs before it can continue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: every request has its response.
    Idle,
    /// Space in the buffer.
    Full,
    Until(Nanos),
    Truth {
        reset: bool,
    },
    /// Everything before this sent, and then a pause of the whole thread.
    Freeze(Nanos),
    End(Ending),
    /// Nothing more will be sent; the peer must give up.
    Never,
}

impl Responses {
    /// Accepts a request; decides now whether a fault drawn by chance occurs, and how long a delay is.
    #[inline]
    pub(crate) fn accept(&mut self, request: Request, arrival: Nanos, ctx: &mut Context) {
        let mut route = request.route;
        if let Some(kind) = route.kind() {
            ctx.tally.requests[kind.index()] += 1;
            ctx.tally.bytes_read += request.wire_bytes;
            ctx.tally.in_flight += 1;
            ctx.tally.arrivals.add(arrival);
            self.open += 1;
        }
        // A request without a delay is due at once, not at its arrival: that may be later than the loop's last
        // reading of the clock, and would then wait for the next one.
        let (mut due, mut intended) = (Nanos::ZERO, None);
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
            Route::Capacity(capacity) => {
                let admission = ctx.shared.buckets.admit(capacity, arrival);
                ctx.tally.capacity.count(admission);
                match admission {
                    Admission::AtOnce => {}
                    Admission::Held(at) | Admission::Slowed(at) => (due, intended) = (at, Some(at)),
                    Admission::Refused => route = Route::OverCapacity,
                }
            }
            Route::Fault(FaultPlan { fault, share: Some(share), .. })
                if !share.holds(ctx.shared.next_draw(Some(fault))) =>
            {
                route = Route::Plaintext;
            }
            _ => {}
        }
        // A response cannot be intended to leave before the one ahead of it.
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

    /// Sends `100 Continue`, in its turn, so that the peer sends the body.
    pub(crate) fn request_body(&mut self) {
        self.queue.push_back(Pending::plain(What::Continue));
    }

    /// Sends the refusal, in its turn, and then ends the connection. Nothing is accepted after it.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.sealed = true;
        self.queue.push_back(Pending::plain(What::Refusal(refusal)));
    }

    /// Whether the peer must give up, because it will never get a response.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.stream, Some(Stream::Never))
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Whether so much is queued here that no more should be read.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.queue.len() >= MOST_QUEUED || self.held_bytes >= MOST_HELD_BYTES
    }

    pub(crate) fn give_truth(&mut self, text: String) {
        self.truth = Some(text);
    }

    /// Continues after the pause requested by [`Next::Freeze`].
    pub(crate) fn resume_after_freeze(&mut self) {
        if let Some(front) = self.queue.front_mut() {
            front.what = What::Route(Route::Plaintext);
        }
    }

    /// How many requests are left without a response, now that the connection is gone.
    pub(crate) fn open(&self) -> u64 {
        self.open
    }

    #[inline]
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Notes that the kernel has accepted `count` more bytes, in one call.
    #[inline]
    pub(crate) fn note_sent(&mut self, count: usize, call: Call, ctx: &mut Context) {
        self.sent += count;
        self.taken += count as u64;
        ctx.tally.bytes_written += count as u64;
        while let Some(mark) = self.marks.front()
            && mark.end <= self.taken
        {
            match mark.status {
                Some(status) => {
                    ctx.tally.responses[usize::from(status)] += 1;
                    ctx.tally.in_flight -= 1;
                    self.open -= 1;
                    ctx.tally.handed.record(call.began.saturating_sub(mark.arrival));
                    ctx.tally.response.record(call.returned.saturating_sub(mark.arrival));
                    if let Some(intended) = mark.intended {
                        ctx.tally.lateness.record(call.returned.saturating_sub(intended));
                    }
                }
                None => ctx.tally.bytes_written = ctx.tally.bytes_written.saturating_sub(mark.bytes),
            }
            self.marks.pop_front();
        }
        if self.sent == self.out.len() {
            self.sent = 0;
            self.out.clear();
            // The buffer of a long response is not kept for the short ones after it.
            self.out.shrink_to(FULL_BYTES);
        }
    }

    /// Encodes what is due, up to a full buffer.
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

    /// What must happen outside before the first queued response can begin.
    fn precondition(&self) -> Option<Next> {
        match self.queue.front()?.what {
            What::Route(Route::Truth { reset }) if self.truth.is_none() => Some(Next::Truth { reset }),
            What::Route(Route::Fault(FaultPlan { fault: Fault::Freeze, length, .. })) => {
                // Encoded bytes are sent first: a frozen thread sends nothing.
                Some(if self.unsent().is_empty() { Next::Freeze(length) } else { Next::Full })
            }
            _ => None,
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

/// Scales a draw to `0..=up_to`, without the bias of a remainder (Lemire's multiplication without rejection: off by
/// less than one part in 2^22 for an hour of nanoseconds).
fn uniform(draw: u64, up_to: u64) -> u64 {
    let scaled = (u128::from(draw) * (u128::from(up_to) + 1)) >> 64;
    u64::try_from(scaled).unwrap_or(up_to)
}

/// Maximum bytes encoded and not yet sent: enough to keep a socket busy, little enough for 10 000 connections.
const FULL_BYTES: usize = 64 << 10;
const MOST_QUEUED: usize = 1_024;
const MOST_HELD_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::freeze::Schedule;
    use crate::mailbox::Shared;
    use crate::options::Options;

    fn context() -> Context {
        let schedule = Schedule { start: Nanos::ZERO, freeze: None };
        let mut ctx = Context::new(0, Arc::new(Shared::new(Options::default(), schedule).unwrap()));
        ctx.now = Nanos(1_000_000);
        ctx
    }

    fn request(target: &str) -> Request {
        Request {
            route: Route::parse("GET", target),
            head_only: false,
            http10: false,
            keep_alive: true,
            wire_bytes: 10,
            body: Vec::new(),
        }
    }

    /// If this fails, a busy server responds one round of its loop too late.
    #[test]
    fn an_undelayed_response_does_not_wait_for_the_next_reading_of_the_clock() {
        let (mut responses, mut ctx) = (Responses::default(), context());
        responses.accept(request("/plaintext"), ctx.now + Nanos(500), &mut ctx);
        assert_eq!(responses.fill(&mut ctx), Next::Idle);
        assert!(responses.unsent().ends_with(b"Hello, World!"));
    }

    /// Checks the definition of the truth's distributions on numbers chosen beforehand.
    #[test]
    fn times_run_from_arrival_and_from_the_intended_instant_to_the_last_byte() {
        let (mut responses, mut ctx) = (Responses::default(), context());
        let arrival = ctx.now;
        responses.accept(request("/delay?us=30"), arrival, &mut ctx);
        responses.accept(request("/delay?us=10"), arrival, &mut ctx);
        responses.accept(request("/json"), arrival, &mut ctx);
        assert_eq!(responses.fill(&mut ctx), Next::Until(arrival + Nanos(30_000)));
        ctx.now = arrival + Nanos(30_500);
        assert_eq!(responses.fill(&mut ctx), Next::Idle);
        let all = responses.unsent().len();
        let call =
            |began, returned| Call { began: arrival + Nanos(began), returned: arrival + Nanos(returned) };
        responses.note_sent(1, call(30_600, 31_000), &mut ctx);
        assert_eq!((ctx.tally.responses[200], responses.open()), (0, 3));
        responses.note_sent(all - 1, call(31_200, 32_000), &mut ctx);
        assert_eq!((ctx.tally.responses[200], responses.open()), (3, 0));
        let (response, lateness) = (&ctx.tally.response, &ctx.tally.lateness);
        assert_eq!((response.min(), response.max()), (Some(Nanos(32_000)), Some(Nanos(32_000))));
        assert_eq!(ctx.tally.handed.min(), Some(Nanos(31_200)));
        // The second was intended to leave no earlier than the first, which is ahead of it.
        assert_eq!(
            (lateness.count(), lateness.min(), lateness.max()),
            (2, Some(Nanos(2_000)), Some(Nanos(2_000)))
        );
    }

    #[test]
    fn jitter_covers_its_range_to_both_ends() {
        assert_eq!((uniform(0, 10), uniform(u64::MAX, 10), uniform(u64::MAX, 0)), (0, 10, 0));
        assert_eq!(uniform(u64::MAX / 2, 1_000), 500);
    }
}
