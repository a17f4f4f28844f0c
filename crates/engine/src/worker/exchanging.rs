//! The hot path: bytes to the kernel, bytes from it, and the timestamps around both.

use codec::{
    CloseEvent, ConnectionUse, DecodeError, Ended, Event, Judgement, Protocol, Reply, Session, StreamEnd,
};
use reactor::{Reactor, Received, Slot};
use record::{Blame, Failure, KeptRequest, Outcome, Phase, Reason};
use rustix::io::Errno;
use units::Nanos;

use super::journey::StepEnd;
use super::opening::opening_failure;
use super::{Worker, mark_dirty};
use crate::connection::{Exchange, State};

/// How many full buffers are read from one connection per turn, before other connections are read.
const READS_PER_TURN: usize = 8;

/// The kernel copies this many bytes within a few microseconds, before the first of them leaves. So they count as
/// accepted when the call begins; the rest of the call counts as the way to the server. On loopback the call includes
/// delivery and the server's wake-up, and a timestamp taken after it comes when the server is already working.
const COPIED_AT_ONCE: usize = 16 * 1024;

/// Timestamps from two clocks may disagree by this much without meaning anything.
const STAMP_SLACK: Nanos = Nanos::from_micros(1);

/// When bytes arrived, as far as it is known.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    /// In this host's kernel; `None` if the kernel did not timestamp them.
    kernel: Option<Nanos>,
    /// When the read that took them returned.
    read: Nanos,
    /// The response ended with its connection: a close has no kernel timestamp, so none is missing.
    by_close: bool,
}

impl<R: Reactor, P: Protocol> Worker<'_, R, P> {
    #[inline]
    pub(super) fn flush_dirty(&mut self) {
        // By index: a failed write may free virtual users, whose next requests append to the list.
        let mut next = 0;
        while let Some(&slot) = self.dirty.get(next) {
            self.connections[slot.0 as usize].dirty = false;
            self.flush(slot);
            next += 1;
        }
        self.dirty.clear();
    }

    /// Hands encoded bytes to the kernel.
    pub(super) fn flush(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        let stands = matches!(connection.state, State::Open | State::Opening { .. });
        if !stands || !connection.has_output() {
            return;
        }
        let before = self.reactor.now();
        match self.reactor.send(slot, &connection.out[connection.written..]) {
            Ok(count) => {
                let accepted = if count <= COPIED_AT_ONCE { before } else { self.reactor.now() };
                let counts = &mut self.recorder.current.counts;
                counts.bytes_sent += count as u64;
                counts.sent += connection.wrote(count, before, accepted);
                if let (State::Open, Some(limit)) = (connection.state, self.job.plan.pool.request_timeout) {
                    self.timers.arm(slot, before.saturating_add(limit));
                }
                self.recorder.note_offered(std::mem::take(&mut connection.newly_offered), before);
            }
            Err(error) => {
                connection.wrote(0, before, before);
                self.recorder.note_offered(std::mem::take(&mut connection.newly_offered), before);
                // The response, or the reason for the failure, may have arrived already.
                if !self.read_what_is_left(slot) {
                    self.connection_broke(slot, error.raw_os_error());
                }
            }
        }
        self.note_engaged(slot);
    }

    /// After a failed write: reads what the peer had sent before. Returns whether that ended the connection.
    fn read_what_is_left(&mut self, slot: Slot) -> bool {
        self.read(slot);
        !self.stands(slot)
    }

    /// Reads what has arrived on `slot` and processes what it completes.
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
        self.note_engaged(slot);
    }

    /// Reads once. Returns whether there may be more to read.
    #[inline]
    fn read_once(&mut self, slot: Slot, buffer: &mut [u8]) -> bool {
        if !self.stands(slot) {
            return false;
        }
        match self.reactor.receive(slot, buffer) {
            Ok(Received::Bytes { count, arrived, drained }) => {
                let arrival = Arrival { kernel: arrived, read: self.reactor.now(), by_close: false };
                self.recorder.current.counts.bytes_received += count as u64;
                self.connections[slot.0 as usize].heard = arrival.read;
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
        let mut more = false;
        while more || !input.is_empty() {
            let connection = &mut self.connections[slot.0 as usize];
            match connection.session.handle_input(input, &mut connection.out) {
                Ok(step) => {
                    input = &input[step.consumed..];
                    more = step.more;
                    self.unlist_if_full(slot);
                    match step.event {
                        Some(Event::Finished(key, _)) if step.trailing => self.fail_trailing(slot, key),
                        Some(event) => self.attend_event(slot, event, arrival),
                        None => {}
                    }
                }
                Err(error) => self.decode_failed(slot, error),
            }
            if !self.stands(slot) {
                return;
            }
        }
        self.tidy_up(slot);
    }

    /// Handles what input can change besides requests: bytes to send, and room for more requests or for none.
    #[inline]
    fn tidy_up(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        if connection.exchanges.is_empty() && connection.session.capacity() == 0 {
            return self.close_idle(slot, Outcome::ClosedBeforeResponse);
        }
        if connection.has_output() {
            mark_dirty(&mut self.dirty, slot, connection);
        }
        self.list_if_room(slot);
    }

    fn attend_event(&mut self, slot: Slot, event: Event, arrival: Arrival) {
        let connection = &mut self.connections[slot.0 as usize];
        match event {
            Event::Secured => connection.secured(arrival.read),
            Event::Plaintext => connection.stays_plaintext(),
            Event::Opened => self.begin_requests(slot),
            Event::Encoded(key) => connection.encoded(key),
            Event::Began(key) => {
                let at = arrival.kernel.unwrap_or(arrival.read);
                let Some(exchange) = connection.position(key).map(|index| &mut connection.exchanges[index])
                else {
                    return;
                };
                if !exchange.begun || came_before(exchange, arrival, self.reactor) {
                    return self.close_for_unsolicited(slot);
                }
                exchange.first_arrived(at);
            }
            Event::Finished(key, reply) => {
                let Some(index) = connection.position(key) else {
                    unreachable!("a session answers what it was asked, once")
                };
                let exchange = &connection.exchanges[index];
                if !exchange.begun || came_before(exchange, arrival, self.reactor) {
                    return self.close_for_unsolicited(slot);
                }
                self.finish(slot, index, reply, arrival);
            }
            Event::Failed(key, end) => {
                if let Some(index) = connection.position(key) {
                    self.stream_ended(slot, index, end, arrival.read);
                }
            }
        }
    }

    /// Fails a connection on which a response arrived before its request was sent, so it cannot be the response to it.
    #[cold]
    fn close_for_unsolicited(&mut self, slot: Slot) {
        let connection = &self.connections[slot.0 as usize];
        let is_first = connection.exchanges.front().is_some_and(|exchange| exchange.opens);
        let error = if is_first { DecodeError::Unsolicited } else { DecodeError::AfterResponse };
        let failure = Failure::new(Outcome::ProtocolError, connection.oldest_phase());
        self.fail_connection_by(slot, failure, Some(&error.what().into()));
    }

    /// Fails a response that was followed by more bytes than it announced. Where it ends is then unknown, so it does
    /// not count; and this must not depend on whether the next request is already on the connection.
    #[cold]
    fn fail_trailing(&mut self, slot: Slot, key: codec::Key) {
        debug_assert!(self.connections[slot.0 as usize].position(key) == Some(0), "no other is outstanding");
        let failure = Failure::new(Outcome::ProtocolError, Phase::Receive);
        self.fail_connection_by(slot, failure, Some(&DecodeError::AfterResponse.what().into()));
    }

    fn decode_failed(&mut self, slot: Slot, error: DecodeError) {
        let connection = &self.connections[slot.0 as usize];
        let refuses = matches!(error, DecodeError::Login { .. } | DecodeError::Handshake { .. });
        if connection.exchanges.is_empty() && matches!(connection.state, State::Open) && !refuses {
            // The bytes belong to no request, and the next one gets another connection.
            self.recorder.current.counts.idle_closes += 1;
            return self.close_idle(slot, Outcome::ProtocolError);
        }
        let failure = match (connection.state, error) {
            // Also in the exchange that may lead to TLS: a server with too many connections refuses there.
            (_, DecodeError::Login { .. }) => opening_failure(Phase::Auth),
            (State::Opening { phase, .. }, _) => opening_failure(phase),
            // With TLS 1.3 a server rejects its client only after the handshake has ended.
            (_, DecodeError::Handshake { .. }) => opening_failure(Phase::Tls),
            _ => Failure::new(Outcome::ProtocolError, Phase::Receive),
        };
        let reason = self.reason(slot, error.what());
        self.fail_connection_by(slot, failure, Some(&reason));
    }

    /// Why a connection failed: `what`, with the server's own message if it sent one.
    #[cold]
    fn reason(&self, slot: Slot, what: &'static str) -> Reason {
        match self.connections[slot.0 as usize].session.server_message() {
            Some(words) => record::server_reason(what, words),
            None => what.into(),
        }
    }

    /// One of several requests on a connection will get no response; the others continue.
    fn stream_ended(&mut self, slot: Slot, index: usize, end: StreamEnd, now: Nanos) {
        let connection = &mut self.connections[slot.0 as usize];
        let phase = match end {
            // Part of the response has come, well-formed or not.
            StreamEnd::Incomplete | StreamEnd::Malformed => Phase::Receive,
            StreamEnd::Reset | StreamEnd::Unprocessed => connection.phase(&connection.exchanges[index]),
        };
        let Some(exchange) = connection.take(index) else { return };
        if end == StreamEnd::Unprocessed && exchange.may_move() {
            // It came too late for this connection, and was not sent.
            if connection.lease == Some(exchange.unit.n) {
                connection.lease = None;
            }
            return self.put_back(std::iter::once(exchange), now);
        }
        self.under_way -= 1;
        self.recorder.note_ended(u64::from(exchange.offered.is_some()), now);
        let outcome = match end {
            StreamEnd::Reset => Outcome::Reset,
            StreamEnd::Unprocessed => Outcome::ClosedBeforeResponse,
            StreamEnd::Incomplete => Outcome::IncompleteResponse,
            StreamEnd::Malformed => Outcome::ProtocolError,
        };
        // The peer reported this itself, so the network did not cause it.
        let failure = Failure::blamed(outcome, phase, Blame::Server);
        self.record_failure(failure, exchange.ended(self.number(slot), now));
        let (unit, journey) = (exchange.unit, exchange.route.journey);
        let end = StepEnd { unit, journey, slot: Some(slot), at: now, is_ok: false };
        self.give_up_journey(end, exchange.journey);
        self.list_if_room(slot);
        self.refill(now);
    }

    /// The response to the request at `index` of `slot` is complete.
    #[inline]
    fn finish(&mut self, slot: Slot, index: usize, reply: Reply, arrival: Arrival) {
        let connection = &mut self.connections[slot.0 as usize];
        let Some(mut exchange) = connection.take(index) else {
            unreachable!("the index was found in this list");
        };
        self.under_way -= 1;
        self.recorder.note_ended(u64::from(exchange.offered.is_some()), arrival.read);
        let moved = stamp_response(&mut exchange, arrival);
        let counts = &mut self.recorder.current.counts;
        counts.body_bytes += reply.body_bytes;
        counts.stamps_moved += u64::from(moved > STAMP_SLACK);
        self.record_response(slot, &exchange, reply, arrival);
        let connection = &mut self.connections[slot.0 as usize];
        let cut_short = !exchange.sent && !connection.session.survives_early_response();
        // A refused statement may leave a transaction open, which the next request would be part of.
        let is_stuck = exchange.route.connection == ConnectionUse::Any
            && reply.judgement != Judgement::Good
            && !connection.session.is_reusable();
        let end = Ended::Answered { session: &mut connection.session, judgement: reply.judgement };
        let next = self.job.protocol.advance(exchange.journey, end);
        let end = StepEnd {
            unit: exchange.unit,
            journey: exchange.route.journey,
            slot: Some(slot),
            at: arrival.read,
            is_ok: reply.judgement == Judgement::Good,
        };
        self.follow(end, next);
        if (cut_short || is_stuck || !reply.keep) && self.stands(slot) {
            self.close_after_response(slot);
        } else {
            self.list_if_room(slot);
        }
        self.refill(arrival.read);
    }

    #[inline]
    fn record_response(
        &mut self,
        slot: Slot,
        exchange: &Exchange<P::Journey>,
        reply: Reply,
        arrival: Arrival,
    ) {
        let number = self.number(slot);
        let request = || KeptRequest { code: reply.code, ..exchange.ended(number, exchange.timeline.last()) };
        let interval = &mut self.recorder.current;
        if let Some(code) = reply.code {
            interval.record_code(code);
        }
        let (outcome, blame) = match reply.judgement {
            Judgement::Good => {
                interval.counts.unstamped += u64::from(arrival.kernel.is_none() && !arrival.by_close);
                interval.record_ok(&exchange.timeline);
                if self.several_kinds {
                    interval.kind(exchange.route.kind).record_ok(&exchange.timeline);
                }
                return self.recorder.keep(request);
            }
            Judgement::ServerError | Judgement::Retryable => (Outcome::AppError, Blame::Server),
            // RFC 9110, 15.5: in the server's judgement, the request is at fault.
            Judgement::RequestError => (Outcome::AppError, Blame::Client),
            Judgement::CheckFailed => (Outcome::CheckFailed, Blame::Server),
        };
        let failure = Failure::blamed(outcome, Phase::Receive, blame);
        self.record_failure(failure, request());
        match outcome {
            Outcome::CheckFailed => self.note_failed_check(slot),
            _ => self.note_refusal(slot),
        }
    }

    /// Counts the server's message about why it refused the request, if it sent one.
    #[cold]
    fn note_refusal(&mut self, slot: Slot) {
        let Some(words) = self.connections[slot.0 as usize].session.server_message() else { return };
        let reason = record::server_words(words);
        self.recorder.current.add_reasons(Outcome::AppError, reason, 1);
    }

    /// Counts which check the response failed, and keeps samples of the first ones.
    #[cold]
    fn note_failed_check(&mut self, slot: Slot) {
        let Some(failed) = self.connections[slot.0 as usize].session.failed_check() else { return };
        let (check, got) = record::check_sample(&failed.check, &failed.got);
        self.recorder.current.add_reasons(Outcome::CheckFailed, check.clone(), 1);
        self.recorder.current.add_check_sample(check, got);
    }

    /// Assigns waiting requests and free virtual users to connections that have just become free, so that a closed loop
    /// needs no turn of the event loop between a response and the next request.
    #[inline]
    fn refill(&mut self, now: Nanos) {
        if now >= self.give_up_at {
            return;
        }
        self.serve_queues();
        while (self.pools.any_room() && self.occupied() < self.users) || self.journeys.is_held_due(now) {
            let Some(due) = self.next_due(now) else { return };
            self.take_up(due);
        }
    }

    fn peer_closed(&mut self, slot: Slot, read: Nanos) {
        let connection = &mut self.connections[slot.0 as usize];
        if let State::Opening { phase, .. } = connection.state {
            let reason = self.reason(slot, "the server closed the connection");
            return self.fail_connection_by(slot, opening_failure(phase), Some(&reason));
        }
        match connection.session.handle_close() {
            CloseEvent::Idle if connection.exchanges.is_empty() => {
                self.recorder.current.counts.idle_closes += 1;
                self.close_idle(slot, Outcome::ClosedBeforeResponse);
            }
            CloseEvent::Finished(reply) => {
                // The close itself has no timestamp; the body's last bytes came with an earlier read.
                let reply = Reply { keep: false, ..reply };
                self.finish(slot, 0, reply, Arrival { kernel: None, read, by_close: true });
            }
            // Idle only for the session: it refused what was assigned to it, and could not report that yet.
            CloseEvent::BeforeResponse | CloseEvent::Idle => {
                let phase = connection.oldest_phase();
                let failure = Failure::new(Outcome::ClosedBeforeResponse, phase);
                let words = connection.session.server_message();
                let reason =
                    words.map(|words| record::server_reason("the server ended the connection", words));
                self.fail_connection_by(slot, failure, reason.as_ref());
            }
            CloseEvent::Incomplete => {
                self.fail_connection(slot, Failure::new(Outcome::IncompleteResponse, Phase::Receive));
            }
        }
    }

    /// The kernel reports that the connection is broken.
    fn connection_broke(&mut self, slot: Slot, errno: Option<i32>) {
        let connection = &self.connections[slot.0 as usize];
        if let State::Opening { phase, .. } = connection.state {
            let reset = errno.is_some_and(|errno| Errno::from_raw_os_error(errno) == Errno::CONNRESET);
            let reason = if reset { "the server reset the connection" } else { "the connection broke" };
            let reason = self.reason(slot, reason);
            return self.fail_connection_by(slot, opening_failure(phase), Some(&reason));
        }
        if connection.exchanges.is_empty() {
            self.recorder.current.counts.idle_closes += 1;
            let reset = errno.is_some_and(|errno| Errno::from_raw_os_error(errno) == Errno::CONNRESET);
            let outcome = if reset { Outcome::Reset } else { Outcome::ClosedBeforeResponse };
            return self.close_idle(slot, outcome);
        }
        let phase = connection.oldest_phase();
        let failure = match errno.map(Errno::from_raw_os_error) {
            Some(Errno::CONNRESET) => Failure::new(Outcome::Reset, phase),
            // The write side is gone: the peer had closed, and its reset was reported earlier.
            Some(Errno::PIPE) if connection.exchanges[0].began => {
                Failure::new(Outcome::IncompleteResponse, phase)
            }
            Some(Errno::PIPE) => Failure::new(Outcome::ClosedBeforeResponse, phase),
            // The kernel gave up retransmitting, or learnt that there is no route any more.
            Some(Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH) => {
                Failure::blamed(Outcome::Reset, phase, Blame::Network)
            }
            _ => Failure::new(Outcome::Unknown, phase),
        };
        self.fail_connection(slot, failure);
    }
}

/// Whether the response's last bytes were in the kernel before the request was handed to it. Then they belong to
/// something else, and only look like its response because this client had not read them yet.
#[inline]
fn came_before<J>(exchange: &Exchange<J>, arrival: Arrival, reactor: &mut impl Reactor) -> bool {
    let (Some(arrived), Some(offered)) = (arrival.kernel, exchange.offered) else { return false };
    let arrived = arrived.saturating_add(STAMP_SLACK);
    arrived < offered && reactor.is_surely_before(arrived, offered)
}

/// Timestamps the end of a response. Returns by how much a kernel timestamp had to be moved to keep the edges in order.
#[inline]
fn stamp_response<J>(exchange: &mut Exchange<J>, arrival: Arrival) -> Nanos {
    let Some(kernel) = arrival.kernel else {
        exchange.first_arrived(arrival.read);
        exchange.timeline.end(Phase::Receive, arrival.read);
        exchange.timeline.skip(Phase::ClientLag);
        return Nanos::ZERO;
    };
    // Bytes cannot arrive after they were read.
    let early = kernel.saturating_sub(arrival.read);
    let kernel = kernel.min(arrival.read);
    exchange.first_arrived(kernel);
    let moved = exchange.timeline.end(Phase::Receive, kernel);
    exchange.timeline.end(Phase::ClientLag, arrival.read);
    early.max(moved)
}
