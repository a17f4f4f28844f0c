//! One connection: a socket, the parser that reads from it and the responses that are written to it. Never blocks;
//! the loop calls [`turn`](Connection::turn) when something is ready or due.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown, sockopt};
use units::Nanos;

use crate::context::Context;
use crate::request::{Parser, Refusal, Step};
use crate::responses::{Call, Ending, Next, Responses};

pub(crate) struct Connection {
    socket: OwnedFd,
    parser: Parser,
    responses: Responses,
    /// Read and not yet parsed: part of a head, or requests for which there was no room.
    kept: Vec<u8>,
    /// When the last byte of `kept` arrived.
    arrival: Nanos,
    /// Whether the kernel timestamped it.
    stamped: bool,
    /// There was no room for everything in `kept`.
    paused: bool,
    /// The peer has closed its side.
    eof: bool,
    waits_for_truth: bool,
    /// The kernel had no room for more.
    blocked: bool,
    /// Not everything that could be sent was tried: other connections get their turn first.
    yielded: bool,
    /// A request that has begun must be complete by then.
    request_due: Option<Nanos>,
    ending: Option<(Ending, Nanos)>,
    wake: Option<Nanos>,
}

/// The readiness that epoll reported.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ready {
    pub readable: bool,
    /// The peer has closed its side. Reported only if [`Connection::interest`] includes it.
    pub hung_up: bool,
    /// Failed, or closed on both sides.
    pub broken: bool,
}

/// What the loop must do after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Keep,
    Gone(Cause),
    /// Collect the truth, pass it in with `give_truth`, and call again.
    Truth {
        reset: bool,
    },
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    ClosedByPeer,
    ClosedByServer,
    ResetByPeer,
    ResetByServer,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, ctx: &Context) -> Connection {
        Connection {
            socket,
            parser: Parser::new(ctx.shared.options.limits),
            responses: Responses::default(),
            kept: Vec::new(),
            arrival: Nanos::ZERO,
            stamped: false,
            paused: false,
            eof: false,
            waits_for_truth: false,
            blocked: false,
            yielded: false,
            request_due: None,
            ending: None,
            wake: None,
        }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// When it needs a turn even if nothing is ready.
    pub(crate) fn wake(&self) -> Option<Nanos> {
        [self.wake, self.request_due, self.ending.map(|(_, due)| due)].into_iter().flatten().min()
    }

    pub(crate) fn interest(&self) -> EventFlags {
        let mut flags = EventFlags::empty();
        let lingers = self.ending.is_some_and(|(ending, _)| ending == Ending::Linger);
        let reads =
            self.ending.is_none() && !self.responses.is_sealed() && !self.paused && !self.waits_for_truth;
        if !self.eof && (reads || lingers) {
            flags |= EventFlags::IN;
        }
        if self.responses.is_silent() {
            // Such a connection ends when its peer gives up, whether or not it is still read.
            flags |= EventFlags::RDHUP;
        }
        if self.blocked || self.yielded {
            flags |= EventFlags::OUT;
        }
        flags
    }

    /// Requests without a response.
    pub(crate) fn open_requests(&self) -> u64 {
        self.responses.open()
    }

    pub(crate) fn give_truth(&mut self, text: String) {
        self.waits_for_truth = false;
        self.responses.give_truth(text);
    }

    /// Reads what has arrived, sends what is due.
    #[inline]
    pub(crate) fn turn(&mut self, ready: Ready, ctx: &mut Context) -> After {
        match self.try_turn(ready, ctx) {
            Ok(after) => after,
            Err(cause) => After::Gone(cause),
        }
    }

    #[inline]
    fn try_turn(&mut self, ready: Ready, ctx: &mut Context) -> Result<After, Cause> {
        if ready.broken {
            let failed = sockopt::socket_error(&self.socket).is_ok_and(|error| error.is_err());
            return Err(if failed { Cause::ResetByPeer } else { self.closed() });
        }
        if ready.hung_up && self.responses.is_silent() {
            return Err(Cause::ClosedByPeer);
        }
        if ready.readable && !self.eof {
            self.read(ctx)?;
        }
        if self.request_due.is_some_and(|due| ctx.now >= due) {
            self.request_due = None;
            self.responses.refuse(Refusal::Timeout);
        }
        if let Some((ending, due)) = self.ending {
            return self.end(ending, due, ctx);
        }
        self.advance(ctx)
    }

    fn read(&mut self, ctx: &mut Context) -> Result<(), Cause> {
        let read = match reactor::stamp::receive(self.socket.as_fd(), &mut ctx.scratch) {
            Ok(read) => read,
            Err(error) if is_transient(&error) => return Ok(()),
            Err(_) => return Err(Cause::ResetByPeer),
        };
        if read.count == 0 {
            self.eof = true;
            self.request_due = None;
            return Ok(());
        }
        if self.ending.is_some() {
            // Lingering: what still arrives is discarded.
            return Ok(());
        }
        let stamped = read.arrived_realtime_ns.map(|stamp| ctx.to_monotonic(stamp));
        self.arrival = stamped.unwrap_or_else(clock::now);
        self.stamped = stamped.is_some();
        if self.kept.is_empty() {
            // The buffer leaves the context while its bytes are parsed, because serving counts in the context.
            let scratch = std::mem::take(&mut ctx.scratch);
            let used = self.parse(&scratch[..read.count], ctx);
            self.kept.extend_from_slice(&scratch[used..read.count]);
            ctx.scratch = scratch;
        } else {
            self.kept.extend_from_slice(&ctx.scratch[..read.count]);
            self.parse_kept(ctx);
        }
        Ok(())
    }

    fn parse_kept(&mut self, ctx: &mut Context) {
        let kept = std::mem::take(&mut self.kept);
        let used = self.parse(&kept, ctx);
        self.kept = kept;
        self.kept.drain(..used);
    }

    /// Parses requests from the front of `input`; returns how many bytes are consumed.
    #[inline]
    fn parse(&mut self, input: &[u8], ctx: &mut Context) -> usize {
        let mut at = 0;
        let mut any_whole = false;
        self.paused = false;
        while !self.responses.is_sealed() {
            if self.responses.is_crowded() {
                self.paused = true;
                break;
            }
            match self.parser.step(&input[at..]) {
                Ok((count, Step::NeedMore)) => {
                    at += count;
                    break;
                }
                Ok((count, Step::Continue)) => {
                    at += count;
                    self.responses.request_body();
                }
                Ok((count, Step::Request(request))) => {
                    at += count;
                    any_whole = true;
                    if request.route.kind().is_some() {
                        ctx.tally.pipelined += u64::from(at < input.len());
                        ctx.tally.unstamped += u64::from(!self.stamped);
                    }
                    self.responses.accept(request, self.arrival, ctx);
                }
                Err(refusal) => self.responses.refuse(refusal),
            }
        }
        let partial = at < input.len() || self.parser.in_body();
        if !partial || self.paused || self.responses.is_sealed() {
            self.request_due = None;
        } else if any_whole || self.request_due.is_none() {
            self.request_due = Some(ctx.now + ctx.shared.options.limits.request_time);
        }
        at
    }

    /// Sends what is due, in rounds of one full buffer.
    fn advance(&mut self, ctx: &mut Context) -> Result<After, Cause> {
        self.wake = None;
        self.yielded = false;
        for _ in 0..ROUNDS {
            if self.paused && !self.responses.is_crowded() {
                self.parse_kept(ctx);
            }
            let next = self.responses.fill(ctx);
            self.flush(ctx)?;
            if self.blocked {
                return Ok(After::Keep);
            }
            match next {
                Next::Full => {}
                Next::Idle if self.paused => {}
                Next::Idle if self.eof => return Err(self.closed()),
                Next::Idle => return Ok(After::Keep),
                Next::Until(due) => {
                    self.wake = Some(due);
                    return Ok(After::Keep);
                }
                Next::Truth { .. } if self.waits_for_truth => return Ok(After::Keep),
                Next::Truth { reset } => {
                    self.waits_for_truth = true;
                    return Ok(After::Truth { reset });
                }
                Next::Freeze(length) => {
                    ctx.tick();
                    ctx.freeze(None, ctx.now, ctx.now + length);
                    self.responses.resume_after_freeze();
                }
                Next::Never if self.eof => return Err(Cause::ClosedByPeer),
                Next::Never => return Ok(After::Keep),
                Next::End(ending) => return self.begin_end(ending, ctx),
            }
        }
        self.yielded = true;
        Ok(After::Keep)
    }

    #[inline]
    fn flush(&mut self, ctx: &mut Context) -> Result<(), Cause> {
        self.blocked = false;
        while !self.responses.unsent().is_empty() {
            let began = clock::now();
            match send(&self.socket, self.responses.unsent(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => {
                    // The stamp `written`: right after the kernel has accepted the bytes.
                    ctx.now = clock::now();
                    self.responses.note_sent(count, Call { began, returned: ctx.now }, ctx);
                }
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(_) => return Err(Cause::ResetByPeer),
            }
        }
        Ok(())
    }

    fn begin_end(&mut self, ending: Ending, ctx: &mut Context) -> Result<After, Cause> {
        // A close with bytes unread would send a reset, and the reset may overtake the response.
        let ending = if ending == Ending::Close && !self.kept.is_empty() && !self.eof {
            Ending::Linger
        } else {
            ending
        };
        let due = ctx.now + PATIENCE;
        if ending == Ending::Linger {
            // It fails when the peer is already gone; the next turn will notice that.
            let _ = shutdown(&self.socket, Shutdown::Write);
        }
        self.ending = Some((ending, due));
        self.end(ending, due, ctx)
    }

    fn end(&mut self, ending: Ending, due: Nanos, ctx: &Context) -> Result<After, Cause> {
        match ending {
            Ending::Close => Err(Cause::ClosedByServer),
            Ending::Linger if self.eof || ctx.now >= due => Err(Cause::ClosedByServer),
            Ending::Linger => Ok(After::Keep),
            Ending::Reset => {
                let acknowledged = reactor::stamp::unacknowledged(self.socket.as_fd()) == Some(0);
                if acknowledged || ctx.now >= due {
                    return Err(Cause::ResetByServer);
                }
                self.wake = Some(ctx.now + ACKNOWLEDGED_POLL);
                Ok(After::Keep)
            }
        }
    }

    fn closed(&self) -> Cause {
        if self.ending.is_some() { Cause::ClosedByServer } else { Cause::ClosedByPeer }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Full buffers (64 KiB) that one connection may send before the others get their turn.
const ROUNDS: usize = 16;
/// How long a finished connection is kept for its peer: to read a response, or to acknowledge one.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Acknowledgements cause no event. On loopback they arrive at once; elsewhere within a round trip.
const ACKNOWLEDGED_POLL: Nanos = Nanos::from_micros(200);
