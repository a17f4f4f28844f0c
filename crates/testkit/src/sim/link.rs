//! One simulated connection: its state in the client's kernel, and the server at the other end.
//!
//! The script is data, so everything that the server will do with a request is known, and scheduled, as soon as the
//! request is sent. Nothing here advances time.

use std::collections::VecDeque;
use std::io;

use reactor::Received;
use rustix::io::Errno;
use units::Nanos;

use crate::script::{Acks, Script, Service, Span, Text, Then, Way};

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    pub dialed: Dialed,
    way: Way,
    /// The bytes sent of requests that are not complete yet.
    request: Vec<u8>,
    /// The turn of the request that `request` begins with, and whether its response is in progress.
    serving: Option<(usize, bool)>,
    accepted: u64,
    unacknowledged: u64,
    acknowledged_at: Nanos,
    choke: usize,
    choked_until: Option<Nanos>,
    /// When the server will have finished the earlier requests.
    server_free: Nanos,
    /// From then on, the connection does not exist at the server.
    server_gone: Option<Nanos>,
    /// Bytes written by the server and not read by the client; `segments` has their arrival times.
    pipe: VecDeque<u8>,
    segments: VecDeque<Segment>,
    ending: Option<(Nanos, Ending)>,
    /// When a reset arrives because bytes were sent to a closed connection.
    refused_at: Option<Nanos>,
    error_taken: bool,
    idle_at: Option<Nanos>,
}

/// The state of the connection attempt.
#[derive(Debug, Clone, Copy)]
pub(super) enum Dialed {
    Silent,
    Until { at: Nanos, errno: Option<i32> },
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    count: usize,
    at: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Closed,
    Reset,
}

/// Something that the client's kernel will report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Edge {
    Lookup,
    Dialed,
    Readable,
    Writable,
    Closed,
    Broken,
    /// Only if no request comes before.
    IdleClose,
}

/// What the server needs in addition to the connection.
pub(super) struct Surroundings<'a> {
    pub now: Nanos,
    pub script: &'a Script,
    /// The freezes, on the clock.
    pub freezes: &'a [Span],
    /// How many requests have begun to be sent, over all connections.
    pub requests: &'a mut usize,
    /// Schedules an edge.
    pub report: &'a mut dyn FnMut(Nanos, Edge),
}

impl Link {
    pub(super) fn new(dialed: Dialed, way: Way) -> Link {
        Link {
            dialed,
            way,
            request: Vec::new(),
            serving: None,
            accepted: 0,
            unacknowledged: 0,
            acknowledged_at: Nanos::ZERO,
            choke: 0,
            choked_until: None,
            server_free: Nanos::ZERO,
            server_gone: None,
            pipe: VecDeque::new(),
            segments: VecDeque::new(),
            ending: None,
            refused_at: None,
            error_taken: false,
            idle_at: None,
        }
    }

    /// The connection is established at `at`, and the server waits for a request.
    pub(super) fn stands_from(&mut self, at: Nanos, report: &mut dyn FnMut(Nanos, Edge)) {
        self.server_free = at;
        match self.way.greeting.take() {
            Some(greeting) => self.perform(&greeting, at, &[], report),
            None => self.arm_idle_close(at, report),
        }
    }

    pub(super) fn connected(&self, now: Nanos) -> io::Result<bool> {
        match self.dialed {
            Dialed::Until { at, errno } if at <= now => errno.map_or(Ok(true), |errno| Err(error(errno))),
            _ => Ok(false),
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8], around: &mut Surroundings<'_>) -> io::Result<usize> {
        let now = around.now;
        assert!(self.connected(now)?, "bytes are sent on a connection that does not stand");
        self.refuse_write(now)?;
        let count = self.room(now).min(bytes.len() as u64) as usize;
        if count < bytes.len() && self.choked_until.is_none() {
            let until = now.saturating_add(self.way.chokes[self.choke].lasts);
            self.choke += 1;
            self.choked_until = Some(until);
            (around.report)(until, Edge::Writable);
        }
        if count > 0 {
            self.accepted += count as u64;
            self.unacknowledged = if self.acknowledged_at <= now { 0 } else { self.unacknowledged };
            self.unacknowledged += count as u64;
            self.acknowledged_at = now + self.way.there + self.way.back;
            self.request.extend_from_slice(&bytes[..count]);
            self.serve(around);
        }
        Ok(count)
    }

    fn refuse_write(&mut self, now: Nanos) -> io::Result<()> {
        match self.ending {
            Some((at, Ending::Reset)) if at <= now => {
                let first = !std::mem::replace(&mut self.error_taken, true);
                Err(if first { Errno::CONNRESET } else { Errno::PIPE }.into())
            }
            // Linux, tcp_reset(): a connection whose peer had closed before fails with EPIPE.
            _ if self.refused_at.is_some_and(|at| at <= now) => Err(Errno::PIPE.into()),
            _ => Ok(()),
        }
    }

    /// How many bytes the kernel accepts now.
    fn room(&mut self, now: Nanos) -> u64 {
        if self.choked_until.is_some_and(|until| until > now) {
            return 0;
        }
        self.choked_until = None;
        let limit = self.way.chokes.get(self.choke).map_or(u64::MAX, |choke| choke.after_bytes);
        limit.saturating_sub(self.accepted)
    }

    /// Schedules what the server will do with the requests that have been sent by now.
    fn serve(&mut self, around: &mut Surroundings<'_>) {
        while !self.request.is_empty() {
            let (turn, answered) = *self.serving.get_or_insert_with(|| {
                *around.requests += 1;
                (*around.requests - 1, false)
            });
            let whole = request_length(&self.request);
            let by_text = around.script.by_text.zip(whole).map(|(by_text, length)| {
                let text = std::str::from_utf8(&self.request[..length]).expect("requests of tests are text");
                by_text(text.trim_end())
            });
            if around.script.by_text.is_some() && by_text.is_none() {
                return;
            }
            let service = by_text.as_ref().unwrap_or_else(|| around.script.services.nth(turn));
            let early = service.early_bytes.is_some_and(|bytes| self.request.len() >= bytes);
            if !answered && (whole.is_some() || early) {
                self.serving = Some((turn, true));
                self.put_down(service, around);
            }
            let Some(length) = whole else { return };
            self.request.drain(..length);
            self.serving = None;
        }
    }

    fn put_down(&mut self, service: &Service, around: &mut Surroundings<'_>) {
        let arrival = around.now + self.way.there;
        match self.idle_at.take() {
            Some(at) if arrival >= at - self.way.back => {
                // It crosses the server's close in the network; that edge has been scheduled already.
                self.idle_at = Some(at);
                self.server_gone = Some(at - self.way.back);
            }
            _ => {}
        }
        if let Some(gone) = self.server_gone {
            let refused = arrival.max(gone) + self.way.back;
            self.refused_at = self.refused_at.or(Some(refused));
            return (around.report)(refused, Edge::Broken);
        }
        if self.server_free == Nanos::MAX {
            return;
        }
        self.perform(service, arrival.max(self.server_free), around.freezes, around.report);
    }

    /// The server begins `service` at `from`.
    fn perform(
        &mut self,
        service: &Service,
        from: Nanos,
        freezes: &[Span],
        report: &mut dyn FnMut(Nanos, Edge),
    ) {
        let mut at = work(freezes, from, service.after);
        for piece in &service.pieces {
            at = work(freezes, at, piece.after);
            let count = self.write(&piece.text);
            self.segments.push_back(Segment { count, at: at + self.way.back });
            report(at + self.way.back, Edge::Readable);
        }
        self.end_service(service.then, at, report);
    }

    fn end_service(&mut self, then: Then, at: Nanos, report: &mut dyn FnMut(Nanos, Edge)) {
        let arrives = at + self.way.back;
        match then {
            Then::Keep => {
                self.server_free = at;
                self.arm_idle_close(at, report);
            }
            Then::Hang => self.server_free = Nanos::MAX,
            Then::Close => {
                self.server_gone = Some(at);
                self.ending = Some((arrives, Ending::Closed));
                report(arrives, Edge::Closed);
            }
            Then::Reset => {
                self.server_gone = Some(at);
                self.ending = Some((arrives, Ending::Reset));
                report(arrives, Edge::Broken);
            }
        }
    }

    fn write(&mut self, text: &[Text]) -> usize {
        let before = self.pipe.len();
        for part in text {
            match part {
                Text::Bytes(bytes) => self.pipe.extend(bytes.iter()),
                Text::Number => {
                    self.pipe.extend(self.request.iter().take_while(|byte| byte.is_ascii_digit()));
                }
            }
        }
        self.pipe.len() - before
    }

    fn arm_idle_close(&mut self, from: Nanos, report: &mut dyn FnMut(Nanos, Edge)) {
        if let Some(idle) = self.way.idle_close {
            let at = from + idle + self.way.back;
            self.idle_at = Some(at);
            report(at, Edge::IdleClose);
        }
    }

    /// Called at the time of an idle close. Returns whether it happens.
    pub(super) fn closes_idle(&mut self, at: Nanos) -> bool {
        let closes = self.idle_at == Some(at);
        if closes {
            self.idle_at = None;
            self.server_gone = Some(at - self.way.back);
            self.ending = Some((at, Ending::Closed));
        }
        closes
    }

    pub(super) fn receive(&mut self, buffer: &mut [u8], now: Nanos, stamps: bool) -> io::Result<Received> {
        assert!(self.connected(now)?, "bytes are read from a connection that does not stand");
        let mut count = 0;
        let mut arrived = None;
        // Linux reports the timestamp of the last segment that a read took bytes from.
        while let Some(segment) = self.segments.front_mut().filter(|segment| segment.at <= now) {
            let taken = segment.count.min(buffer.len() - count);
            for (place, byte) in buffer[count..].iter_mut().zip(self.pipe.drain(..taken)) {
                *place = byte;
            }
            count += taken;
            arrived = if taken > 0 { Some(segment.at) } else { arrived };
            segment.count -= taken;
            if segment.count > 0 {
                break;
            }
            self.segments.pop_front();
        }
        if count > 0 {
            let arrived = arrived.filter(|_| stamps);
            // The event that reported these bytes may have reported the end too.
            let ended = self.ending.is_some_and(|(at, _)| at <= now);
            return Ok(Received::Bytes { count, arrived, drained: count < buffer.len() && !ended });
        }
        match self.ending {
            Some((at, Ending::Closed)) if at <= now => Ok(Received::Closed),
            Some((at, Ending::Reset)) if at <= now => {
                let first = !std::mem::replace(&mut self.error_taken, true);
                if first { Err(Errno::CONNRESET.into()) } else { Ok(Received::Closed) }
            }
            _ => Ok(Received::Nothing),
        }
    }

    pub(super) fn unacknowledged(&self, now: Nanos) -> Option<u64> {
        match self.way.acks {
            Acks::Prompt if self.acknowledged_at <= now => Some(0),
            Acks::Prompt => Some(self.unacknowledged),
            Acks::Never => Some(self.accepted),
            Acks::Unknown => None,
        }
    }
}

/// When `length` of the server's own time is over, if it begins at `from` and does not run while frozen.
fn work(freezes: &[Span], from: Nanos, length: Nanos) -> Nanos {
    let (mut at, mut left) = (from, length);
    for freeze in freezes.iter().filter(|freeze| freeze.until > from) {
        if at < freeze.from {
            let runs = freeze.from - at;
            if left < runs {
                break;
            }
            left = left - runs;
        }
        at = freeze.until;
    }
    at + left
}

/// The length of the first complete request: a line, or an HTTP head without a body.
fn request_length(bytes: &[u8]) -> Option<usize> {
    if bytes[0].is_ascii_digit() {
        return bytes.iter().position(|&byte| byte == b'\n').map(|end| end + 1);
    }
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|end| end + 4)
}

fn error(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_server_does_no_work() {
        let freezes = [Span { from: Nanos(100), until: Nanos(200) }];
        for (from, length, done) in
            [(0, 99, 99), (0, 100, 200), (0, 150, 250), (100, 0, 200), (150, 7, 207), (200, 7, 207)]
        {
            assert_eq!(work(&freezes, Nanos(from), Nanos(length)), Nanos(done), "{length} from {from}");
        }
    }
}
