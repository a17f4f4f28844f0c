//! Assembles requests from the events of the kernel's programs: events in, [`Served`] out.
//!
//! Pure: no kernel, no clock. An event's account covers its thread's time since the thread's previous event; here it
//! is added to the connection that the thread worked for. A request is what the dissector finds in the bytes of a
//! connection. Its timestamps are those of the read that brought its last byte and of the write that sent the last
//! byte of its response, its parts are what was added to its connection between the two, and the rest is `loop_wait`.
//! So the parts sum to the response time whatever happens.

mod account;
mod classified;
mod connection;
mod missed;
mod thread;
mod waits;

use std::collections::{HashMap, VecDeque};

use dissect::{Digests, Direction, Dissector, Event as Found, Piece, SessionId, Start};
use record::observation::watch::MissedRequests;
use record::{Protocol, Served};
use rustc_hash::FxBuildHasher;
use units::Nanos;

use crate::kernel::{Edge, Event, SoFar, Unseen, Woken};

pub use account::comm;
use connection::Connection;
use missed::Missed;
use thread::{Step, Threads};

/// Maximum number of connections kept at once. Beyond this, those that were idle for longest are forgotten.
const CONNECTIONS: usize = 262_144;

/// Unix sockets kept at once before those that are silent are forgotten: the kernel does not say when one ends.
const UNIX_SOCKETS: usize = 4_096;

/// From this many on, connections are forgotten between windows: the kernel does not say which of them have ended. What
/// was prepared on them has no text from then on.
const REMEMBERED: usize = 16_384;

/// How long a write can take to return after its client has read the response and closed the connection.
const LATE_WRITE: Nanos = Nanos::from_secs(1);

/// A connection with an event within this time before the end of the watch may have requests in progress.
const RECENTLY: Nanos = Nanos::from_secs(1);

/// Assembles the requests of one server.
pub struct Assembler {
    threads: Threads,
    connections: HashMap<u64, (Dissector, Connection), FxBuildHasher>,
    /// Closed, but the write of a response may not have returned yet.
    closed: VecDeque<Closed>,
    opened: u64,
    digests: Digests,
    found: Vec<Found>,
    responses: Vec<dissect::ResponseComplete>,
    /// Sums of the connections that have ended.
    counts: dissect::Counts,
    given_up: u64,
    missed: Missed,
    hint: Option<dissect::Protocol>,
    classifies: bool,
    decrypts: bool,
    /// The server was not watched all the time.
    was_paused: bool,
}

/// What the user has specified about the server's requests.
#[derive(Debug, Clone, Default)]
pub struct KnownRequests {
    /// The server's protocol, where its bytes leave that open.
    pub protocol: Option<dissect::Protocol>,
    /// Routes of HTTP by their templates.
    pub routes: Vec<dissect::RouteTemplate>,
}

impl Assembler {
    /// An assembler that has seen nothing. `classifies`: whether a function of the server classifies its requests;
    /// `decrypts`: whether the plain text of TLS connections is seen.
    pub fn new(known: KnownRequests, classifies: bool, decrypts: bool) -> Assembler {
        Assembler {
            threads: Threads::default(),
            connections: HashMap::default(),
            closed: VecDeque::new(),
            opened: 0,
            digests: Digests::default().with_routes(known.routes),
            found: Vec::new(),
            responses: Vec::new(),
            counts: dissect::Counts::default(),
            given_up: 0,
            missed: Missed::default(),
            hint: known.protocol,
            classifies,
            decrypts,
            was_paused: false,
        }
    }

    /// Takes one event; calls `give` with each request that it completes.
    ///
    /// # Cost
    ///
    /// One or two lookups in a table, and the dissector's time for the bytes.
    pub fn take(&mut self, event: &Event<'_>, give: &mut dyn FnMut(Served)) {
        match event.edge {
            Edge::Closed => return self.close(event, give),
            Edge::Classified => return self.classify(event, give),
            Edge::Waited | Edge::Answered => return self.wait_ended(event),
            Edge::PlainRead => return self.decrypted(event, Direction::FromClient, give),
            Edge::PlainWrite => return self.decrypted(event, Direction::FromServer, give),
            Edge::Read | Edge::Write | Edge::Idle => {}
        }
        let own = event.asynchronous && self.async_thread_of(event.socket) == Some(event.tid);
        let step = self.threads.step(event, own);
        if let Some((_, owner)) = step.owner.and_then(|owner| self.connections.get_mut(&owner)) {
            owner.add_work(&step.worked, event);
            if event.edge == Edge::Idle {
                owner.classified.release(give);
            }
        }
        match event.edge {
            Edge::Read => self.moved(event, &step, Direction::FromClient, give),
            Edge::Write => self.moved(event, &step, Direction::FromServer, give),
            _ => {}
        }
    }

    fn wait_ended(&mut self, event: &Event<'_>) {
        let waker = match event.waited.map(|waited| waited.woken) {
            Some(Woken::ByFellow(waker)) => self.threads.owner(waker.tid),
            _ => None,
        };
        let serves = waker.and_then(|owner| self.connections.get(&owner));
        let digest = serves.and_then(|(_, connection)| connection.in_progress());
        self.threads.wait_ended(event, digest);
    }

    fn classify(&mut self, event: &Event<'_>, give: &mut dyn FnMut(Served)) {
        if let Some(((_, connection), class)) = self.connections.get_mut(&event.socket).zip(event.class) {
            connection.classify(event.at, class, give);
        }
    }

    fn async_thread_of(&self, socket: u64) -> Option<u32> {
        self.connections.get(&socket).and_then(|(_, connection)| connection.async_thread)
    }

    fn moved(&mut self, event: &Event<'_>, step: &Step, direction: Direction, give: &mut dyn FnMut(Served)) {
        if !self.connections.contains_key(&event.socket) {
            self.open(event, give);
        }
        let (dissector, connection) =
            self.connections.get_mut(&event.socket).expect("a connection is opened with its first event");
        connection.last_seen = event.at;
        connection.last_moved = Some(direction);
        if connection.peer.is_none() {
            connection.peer = event.opened.and_then(|opened| opened.peer);
            connection.local = event.opened.and_then(|opened| opened.local);
        }
        let length = u64::from(event.length);
        let read = if direction == Direction::FromClient { length } else { 0 };
        let lost = connection.progress.moved(event.begins_turn, read, event.so_far, &mut self.missed);
        lost.into_iter().for_each(|bytes| connection.add_lost(bytes));
        let piece = Piece { direction, length, captured: event.bytes, missed: lost };
        // The dissector's results for earlier bytes depend on earlier marks, so the mark of this piece comes first.
        match direction {
            Direction::FromClient => {
                connection.classified.release(give);
                connection.add_read(event, step);
                if event.asynchronous && connection.async_thread.is_none() {
                    connection.async_thread = Some(event.tid);
                    self.threads.begin_async(event.tid);
                }
            }
            Direction::FromServer => {
                connection.add_write(event, step);
                if let Some(tid) = connection.async_thread.take() {
                    self.threads.end_async(tid);
                }
            }
        }
        if connection.is_plain() {
            return;
        }
        dissector.handle_piece(&piece, &mut self.digests, &mut self.found);
        let session = dissector.session();
        let settling = Settling { found: &mut self.found, responses: &mut self.responses, session };
        settling.settle(connection, (&self.threads, &mut self.missed), give);
        connection.forget(dissector.named_from());
    }

    /// Plain text of a connection, whose socket was read before, or written to.
    fn decrypted(&mut self, event: &Event<'_>, direction: Direction, give: &mut dyn FnMut(Served)) {
        let Some((dissector, connection)) = self.connections.get_mut(&event.socket) else { return };
        if !connection.is_plain() {
            dissector.decrypt(&mut self.found);
            connection.begin_plain();
        }
        let missed = connection.add_plain(event);
        let piece = Piece { direction, length: u64::from(event.length), captured: event.bytes, missed };
        dissector.handle_piece(&piece, &mut self.digests, &mut self.found);
        let session = dissector.session();
        let settling = Settling { found: &mut self.found, responses: &mut self.responses, session };
        settling.settle(connection, (&self.threads, &mut self.missed), give);
        connection.forget(dissector.named_from());
    }

    fn open(&mut self, event: &Event<'_>, give: &mut dyn FnMut(Served)) {
        if self.connections.len() >= CONNECTIONS {
            self.forget_idle(give);
        }
        let connection = Connection::new(self.opened, event, self.classifies, self.decrypts);
        self.opened += 1;
        let start = match event.opened {
            Some(opened) if opened.fresh => Start::Fresh,
            _ if self.was_paused => Start::Resumed,
            _ => Start::Joined,
        };
        let dissector = Dissector::new(dissect::DissectorSettings { start, hint: self.hint });
        self.connections.insert(event.socket, (dissector, connection));
    }

    /// A client that has its response can close the connection before the write that sent it returns: a connection that
    /// was read last is kept for that write.
    fn close(&mut self, event: &Event<'_>, give: &mut dyn FnMut(Served)) {
        self.end_closed(Nanos(event.at.0.saturating_sub(LATE_WRITE.0)), give);
        let closed = Closed { socket: event.socket, at: event.at, so_far: event.so_far };
        match self.connections.get(&event.socket) {
            Some((_, connection)) if connection.last_moved == Some(Direction::FromClient) => {
                self.closed.push_back(closed);
            }
            _ => self.end(&closed, give),
        }
    }

    /// Ends the connections that were closed before this instant.
    fn end_closed(&mut self, before: Nanos, give: &mut dyn FnMut(Served)) {
        let n = self.closed.partition_point(|closed| closed.at <= before);
        for closed in self.closed.drain(..n).collect::<Vec<_>>() {
            self.end(&closed, give);
        }
    }

    /// Whether a request has no response yet that was read before this instant.
    pub fn awaits_response(&self, before: Nanos) -> bool {
        self.connections.values().any(|(dissector, connection)| {
            connection.awaits_response(dissector.proof_awaits_response(), before)
        })
    }

    /// The server is not watched until the next event. Returns how many of the requests read since `since` and before
    /// `before` have no response.
    pub fn pause(&mut self, (since, before): (Nanos, Nanos), give: &mut dyn FnMut(Served)) -> u64 {
        self.end_closed(Nanos(u64::MAX), give);
        self.was_paused = true;
        let mut unanswered = 0;
        for (dissector, connection) in self.connections.values_mut() {
            unanswered += connection.unanswered(dissector.proof_awaits_response(), since, before);
            dissector.pause(&mut self.found);
            // Those in flight were dropped: they are counted here.
            self.found.retain(|found| !matches!(found, Found::Dropped { .. }));
            let session = dissector.session();
            let settling = Settling { found: &mut self.found, responses: &mut self.responses, session };
            settling.settle(connection, (&self.threads, &mut self.missed), give);
            connection.pause(give);
        }
        self.threads.pause();
        if self.connections.len() >= REMEMBERED {
            let (mut connections, counts) = (std::mem::take(&mut self.connections), &mut self.counts);
            for (dissector, connection) in connections.values() {
                counts.add(dissector.counts());
                self.given_up += connection.given_up;
            }
            connections.clear();
            self.connections = connections;
        }
        unanswered
    }

    /// Ends every connection: whatever was written last counts as the response.
    pub fn finish(&mut self, give: &mut dyn FnMut(Served)) {
        self.end_closed(Nanos(u64::MAX), give);
        let connections = std::mem::take(&mut self.connections);
        let latest = connections.values().map(|(_, connection)| connection.last_seen).max();
        for mut one in connections.into_values() {
            let (waiting, had_hole) = (one.1.waiting(), one.1.progress.has_hole());
            self.settle_end(&mut one, give);
            if latest.is_some_and(|latest| one.1.last_seen + RECENTLY >= latest) {
                one.1.progress.finish(had_hole, waiting, &mut self.missed);
            }
            self.forget(&mut one, None);
        }
    }

    fn end(&mut self, closed: &Closed, give: &mut dyn FnMut(Served)) {
        if let Some(mut gone) = self.connections.remove(&closed.socket) {
            self.settle_end(&mut gone, give);
            self.forget(&mut gone, closed.so_far);
        }
    }

    fn settle_end(
        &mut self,
        (dissector, connection): &mut (Dissector, Connection),
        give: &mut dyn FnMut(Served),
    ) {
        dissector.handle_close(&mut self.found);
        let session = dissector.session();
        let settling = Settling { found: &mut self.found, responses: &mut self.responses, session };
        settling.settle(connection, (&self.threads, &mut self.missed), give);
        connection.classified.release(give);
    }

    /// Adds what was counted of a connection that has ended.
    fn forget(&mut self, (dissector, connection): &mut (Dissector, Connection), so_far: Option<SoFar>) {
        connection.progress.end(so_far, &mut self.missed);
        self.counts.add(dissector.counts());
        self.given_up += connection.given_up;
        if let Some(tid) = connection.async_thread.take() {
            self.threads.end_async(tid);
        }
    }

    /// Forgets the half of the connections that was idle for longest.
    fn forget_idle(&mut self, give: &mut dyn FnMut(Served)) {
        let mut seen: Vec<Nanos> =
            self.connections.values().map(|(_, connection)| connection.last_seen).collect();
        let middle = seen.len() / 2;
        let (_, &mut median, _) = seen.select_nth_unstable(middle);
        let counts = &mut self.counts;
        let given_up = &mut self.given_up;
        let threads = &mut self.threads;
        let missed = &mut self.missed;
        self.connections.retain(|_, (dissector, connection)| {
            let stays = connection.last_seen >= median;
            if !stays {
                counts.add(dissector.counts());
                connection.classified.release(give);
                connection.progress.end(None, missed);
                *given_up += connection.given_up + connection.waiting();
                if let Some(tid) = connection.async_thread {
                    threads.end_async(tid);
                }
            }
            stays
        });
    }

    /// Forgets threads without an event since `before`.
    pub fn forget_threads(&mut self, before: Nanos) {
        self.threads.forget(before);
    }

    /// Forgets Unix sockets without an event since `before`, if there are many.
    pub fn forget_unix_sockets(&mut self, before: Nanos) {
        if self.connections.len() < UNIX_SOCKETS {
            return;
        }
        let is_silent = |one: &Connection| {
            one.peer.is_none() && one.last_seen < before && one.waiting() == 0 && one.classified.is_empty()
        };
        let silent: Vec<u64> =
            self.connections.iter().filter(|(_, (_, one))| is_silent(one)).map(|(id, _)| *id).collect();
        for id in silent {
            if let Some(mut gone) = self.connections.remove(&id) {
                self.forget(&mut gone, None);
            }
        }
    }

    /// What the dissector could not report so far, by cause.
    pub fn counts(&self) -> dissect::Counts {
        let mut counts = self.counts;
        for (dissector, _) in self.connections.values() {
            counts.add(dissector.counts());
        }
        counts
    }

    /// Requests given up so far: too many waited on their connection, or it was forgotten.
    pub fn given_up(&self) -> u64 {
        let open = self.connections.values().map(|(_, connection)| connection.given_up);
        self.given_up + open.sum::<u64>()
    }

    /// Requests that were missed so far; `unseen` is what all lost events would have added. Complete after
    /// [`Assembler::finish`].
    pub fn missed(&self, unseen: Unseen) -> Option<MissedRequests> {
        self.missed.estimate(unseen)
    }

    /// Connections seen so far.
    pub fn connections(&self) -> u64 {
        self.opened
    }

    /// The table of digests.
    pub fn digests(&self) -> &Digests {
        &self.digests
    }
}

/// A connection that was closed, in the order of time.
#[derive(Debug)]
struct Closed {
    socket: u64,
    at: Nanos,
    so_far: Option<SoFar>,
}

/// What the dissector found in one piece.
struct Settling<'a> {
    found: &'a mut Vec<Found>,
    /// Scratch memory.
    responses: &'a mut Vec<dissect::ResponseComplete>,
    session: SessionId,
}

impl Settling<'_> {
    /// Passes it to its connection.
    fn settle(
        self,
        connection: &mut Connection,
        (threads, missed): (&Threads, &mut Missed),
        give: &mut dyn FnMut(Served),
    ) {
        for found in self.found.drain(..) {
            match found {
                Found::ProtocolKnown(protocol) => connection.protocol = protocol_of(protocol),
                Found::RequestComplete(request) => connection.add_request(request, self.session),
                Found::ResponseComplete(response) => self.responses.push(response),
                Found::Dropped { n } => {
                    connection.drop_request(n);
                    connection.progress.dropped();
                }
            }
        }
        if !self.responses.is_empty() {
            connection.complete_responses(self.responses, threads, missed, give);
            self.responses.clear();
        }
    }
}

fn protocol_of(protocol: dissect::Protocol) -> Protocol {
    match protocol {
        dissect::Protocol::Http1 => Protocol::Http1,
        dissect::Protocol::Postgres => Protocol::Postgres,
        dissect::Protocol::MySql => Protocol::Mysql,
        dissect::Protocol::Redis => Protocol::Redis,
        dissect::Protocol::Tls => Protocol::Tls,
        dissect::Protocol::Http2 => Protocol::Http2,
        dissect::Protocol::Upgraded | dissect::Protocol::Compressed | dissect::Protocol::Unknown => {
            Protocol::Turns
        }
    }
}

#[cfg(test)]
mod tests;
