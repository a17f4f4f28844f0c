//! The hot path: bytes to the kernel, bytes from it, and the stamps around both.

use codec::{CloseEvent, Event, Judgement, Protocol, Reply, Session};
use reactor::{Reactor, Received, Slot};
use record::{Blame, Failure, Outcome, Phase};
use rustix::io::Errno;
use units::Nanos;

use super::Worker;
use crate::connection::{Exchange, State};

/// How many full buffers one turn reads from one connection before the others have theirs.
const READS_PER_TURN: usize = 8;

/// Stamps from two clocks may disagree by this much without meaning anything.
const STAMP_SLACK: Nanos = Nanos::from_micros(1);

/// When something happened, as far as it is known.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    /// In this host's kernel, where it was stamped.
    kernel: Option<Nanos>,
    /// The read that took it has returned.
    read: Nanos,
    /// The answer ended with its connection: no stamp tells when that arrived, so none is missing.
    by_close: bool,
}

impl<R: Reactor, P: Protocol> Worker<'_, R, P> {
    #[inline]
    pub(super) fn flush_dirty(&mut self) {
        // By index: a write that fails may free callers, whose requests come behind.
        let mut next = 0;
        while let Some(&slot) = self.dirty.get(next) {
            self.connections[slot.0 as usize].dirty = false;
            self.flush(slot);
            next += 1;
        }
        self.dirty.clear();
    }

    /// Hands what is encoded to the kernel.
    pub(super) fn flush(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        if connection.state != State::Open || !connection.has_output() {
            return;
        }
        let before = self.reactor.now();
        match self.reactor.send(slot, &connection.out[connection.written..]) {
            Ok(count) => {
                let after = self.reactor.now();
                let counts = &mut self.recorder.current.counts;
                counts.bytes_sent += count as u64;
                counts.sent += connection.wrote(count, before, after);
                if let Some(limit) = self.job.plan.pool.request_timeout {
                    self.timers.arm(slot, before.saturating_add(limit));
                }
            }
            Err(error) => {
                connection.wrote(0, before, before);
                // The answer, or the reason, may already be here.
                if !self.read_what_is_left(slot) {
                    self.connection_broke(slot, error.raw_os_error());
                }
            }
        }
    }

    /// After a failed write: reads what the peer had sent before. Whether that ended the connection.
    fn read_what_is_left(&mut self, slot: Slot) -> bool {
        self.read(slot);
        self.connections[slot.0 as usize].state != State::Open
    }

    /// Reads what has arrived on `slot` and books what it completes.
    pub(super) fn read(&mut self, slot: Slot) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut more = true;
        for _ in 0..READS_PER_TURN {
            more = self.read_once(slot, &mut buffer);
            if !more {
                break;
            }
        }
        self.buffer = buffer;
        let connection = &mut self.connections[slot.0 as usize];
        if more && !connection.unread {
            connection.unread = true;
            self.unread.push_back(slot);
        }
    }

    /// One read. Whether there may be more to read.
    #[inline]
    fn read_once(&mut self, slot: Slot, buffer: &mut [u8]) -> bool {
        if self.connections[slot.0 as usize].state != State::Open {
            return false;
        }
        match self.reactor.receive(slot, buffer) {
            Ok(Received::Bytes { count, arrived, drained }) => {
                let arrival = Arrival { kernel: arrived, read: self.reactor.now(), by_close: false };
                self.recorder.current.counts.bytes_received += count as u64;
                self.take_input(slot, &buffer[..count], arrival);
                !drained
            }
            Ok(Received::Nothing) => false,
            Ok(Received::Closed) => {
                let read = self.reactor.now();
                self.peer_closed(slot, read);
                false
            }
            Err(error) => {
                self.connection_broke(slot, error.raw_os_error());
                false
            }
        }
    }

    #[inline]
    fn take_input(&mut self, slot: Slot, mut input: &[u8], arrival: Arrival) {
        while !input.is_empty() {
            let connection = &mut self.connections[slot.0 as usize];
            if connection.exchanges.front().is_some_and(|exchange| !exchange.begun) {
                // Nothing of the request has been sent: whatever this answers, it is not that.
                let phase = connection.phase(0);
                return self.fail_connection(slot, Failure::new(Outcome::ProtocolError, phase));
            }
            match connection.session.handle_input(input) {
                Ok(step) => {
                    input = &input[step.consumed..];
                    match step.event {
                        Some(Event::Finished(reply)) => self.finish_front(slot, reply, arrival),
                        Some(Event::Began) => {
                            let at = arrival.kernel.unwrap_or(arrival.read);
                            if let Some(exchange) = connection.exchanges.front_mut() {
                                exchange.first_arrived(at);
                            }
                        }
                        None => {}
                    }
                }
                Err(_) => {
                    let phase = if connection.exchanges.is_empty() { Phase::Wait } else { Phase::Receive };
                    return self.fail_connection(slot, Failure::new(Outcome::ProtocolError, phase));
                }
            }
            if self.connections[slot.0 as usize].state != State::Open {
                return;
            }
        }
    }

    /// The oldest outstanding request of `slot` is answered.
    #[inline]
    fn finish_front(&mut self, slot: Slot, reply: Reply, arrival: Arrival) {
        let connection = &mut self.connections[slot.0 as usize];
        let Some(mut exchange) = connection.exchanges.pop_front() else {
            // The session books only what it was told to expect, one for each exchange.
            unreachable!("an answer without a request");
        };
        // An answer that came before its request was wholly sent ends the request, and the connection: what
        // the rest of the bytes would mean to the peer is not known.
        let unsent = connection.sent == 0;
        connection.sent = connection.sent.saturating_sub(1);
        self.under_way -= 1;
        let moved = stamp_answer(&mut exchange, arrival);
        let counts = &mut self.recorder.current.counts;
        counts.body_bytes += reply.body_bytes;
        counts.stamps_moved += u64::from(moved > STAMP_SLACK);
        self.book_answer(&exchange, reply, arrival);
        self.demand.caller_free(arrival.read);
        if unsent || !reply.keep {
            self.close_after_answer(slot);
        } else {
            self.list_if_room(slot);
        }
        self.refill(arrival.read);
    }

    #[inline]
    fn book_answer(&mut self, exchange: &Exchange, reply: Reply, arrival: Arrival) {
        let interval = &mut self.recorder.current;
        interval.record_code(reply.code);
        let (outcome, blame) = match reply.judgement {
            Judgement::Good => {
                interval.counts.unstamped += u64::from(arrival.kernel.is_none() && !arrival.by_close);
                return interval.record_ok(&exchange.timeline);
            }
            Judgement::ServerError => (Outcome::AppError, Blame::Server),
            // RFC 9110, 15.5: the request is at fault, in the server's judgement.
            Judgement::RequestError => (Outcome::AppError, Blame::Client),
            Judgement::CheckFailed => (Outcome::CheckFailed, Blame::Server),
        };
        let failure = Failure::blamed(outcome, Phase::Receive, blame);
        interval.record_failure(failure, exchange.timeline.response());
    }

    /// Puts waiting requests and free callers on the connection that has just become free, so that a closed loop
    /// needs no turn of the event loop between an answer and the next request.
    #[inline]
    fn refill(&mut self, now: Nanos) {
        if now >= self.give_up_at {
            return;
        }
        self.serve_queue();
        while self.pool.has_room() && self.outstanding() < self.callers {
            let Some(due) = self.demand.take(now) else { return };
            self.recorder.current.counts.scheduled += 1;
            let Some(slot) = self.pool.check_out() else { return };
            self.assign(slot, due.n, record::Timeline::due(due.intended), true);
        }
    }

    fn peer_closed(&mut self, slot: Slot, read: Nanos) {
        let connection = &mut self.connections[slot.0 as usize];
        match connection.session.handle_close() {
            CloseEvent::Idle => {
                self.recorder.current.counts.idle_closes += 1;
                self.close_idle(slot);
            }
            CloseEvent::Finished(reply) => {
                // The close itself carries no stamp; the body's last bytes came with an earlier read.
                let reply = Reply { keep: false, ..reply };
                self.finish_front(slot, reply, Arrival { kernel: None, read, by_close: true });
            }
            CloseEvent::BeforeResponse => {
                let phase = connection.phase(0);
                self.fail_connection(slot, Failure::new(Outcome::ClosedBeforeResponse, phase));
            }
            CloseEvent::Incomplete => {
                self.fail_connection(slot, Failure::new(Outcome::IncompleteResponse, Phase::Receive));
            }
        }
    }

    /// The kernel reports the connection broken.
    fn connection_broke(&mut self, slot: Slot, errno: Option<i32>) {
        let connection = &self.connections[slot.0 as usize];
        if connection.exchanges.is_empty() {
            self.recorder.current.counts.idle_closes += 1;
            return self.close_idle(slot);
        }
        let phase = connection.phase(0);
        let failure = match errno.map(Errno::from_raw_os_error) {
            Some(Errno::CONNRESET) => Failure::new(Outcome::Reset, phase),
            // The write side is gone: the peer had closed, and its reset has been reported already.
            Some(Errno::PIPE) if connection.exchanges[0].began => {
                Failure::new(Outcome::IncompleteResponse, phase)
            }
            Some(Errno::PIPE) => Failure::new(Outcome::ClosedBeforeResponse, phase),
            // The kernel gave up retransmitting, or learnt that there is no way any more.
            Some(Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH) => {
                Failure::blamed(Outcome::Reset, phase, Blame::Network)
            }
            _ => Failure::new(Outcome::Unknown, phase),
        };
        self.fail_connection(slot, failure);
    }
}

/// Stamps the end of an answer. Returns by how much a kernel stamp had to be moved to keep the order.
#[inline]
fn stamp_answer(exchange: &mut Exchange, arrival: Arrival) -> Nanos {
    let Some(kernel) = arrival.kernel else {
        exchange.first_arrived(arrival.read);
        exchange.timeline.end(Phase::Receive, arrival.read);
        exchange.timeline.skip(Phase::ClientLag);
        return Nanos::ZERO;
    };
    // What has been read has arrived.
    let early = kernel.saturating_sub(arrival.read);
    let kernel = kernel.min(arrival.read);
    exchange.first_arrived(kernel);
    let moved = exchange.timeline.end(Phase::Receive, kernel);
    exchange.timeline.end(Phase::ClientLag, arrival.read);
    early.max(moved)
}
