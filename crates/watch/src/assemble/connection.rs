//! One connection of the server: from reads and writes to requests with their timestamps and their time by part.

use std::collections::VecDeque;
use std::net::SocketAddr;

use dissect::{Direction, RequestComplete, ResponseComplete, SessionId};
use record::{Part, Protocol, Rows, Served, Sleep, Waits};
use units::Nanos;

use crate::kernel::{self, Class, Edge, Event, SoFar};

use super::account::{self, WORKED, Worked};
use super::classified::Classified;
use super::missed::{Missed, Progress};
use super::thread::{Step, Threads};

/// Reads and writes whose timestamps may still be needed. A request that needs more of them, such as one with a body in
/// a thousand pieces, gets the timestamps of the earliest and the latest.
const MARKS: usize = 64;

/// Requests on one connection without a response. Beyond this, the oldest are given up, and counted.
const PENDING: usize = 65_536;

/// A read of the server.
#[derive(Debug, Clone, Copy)]
struct Read {
    /// How many bytes of the client had been read up to here.
    end: u64,
    at: Nanos,
    tid: u32,
    /// Total polling time of that thread up to here.
    polled: u64,
    /// Total work for this connection up to here.
    worked: Worked,
    /// Run-queue latency between the thread's last wake-up and this read.
    run_queue: Nanos,
    throttled: Nanos,
    /// How long other processes ran while it waited for a CPU.
    contended: Nanos,
}

/// A group of bytes that arrived together.
#[derive(Debug, Clone, Copy)]
struct Lot {
    end: u64,
    at: Nanos,
}

/// A write of the server.
#[derive(Debug, Clone)]
struct Write {
    /// How many bytes of the server had been written up to here.
    end: u64,
    at: Nanos,
    pid: u32,
    tid: u32,
    polled: u64,
    worked: Worked,
    held_back: bool,
    /// Set where one thread read and another one writes.
    hand_offs: Option<Box<HandOffs>>,
}

/// A thread wrote a response to a request that another thread had read.
#[derive(Debug, Clone, Copy)]
struct HandOff {
    /// The earliest instant at which the writer can have begun to work on it.
    from: Nanos,
    /// Its account since then.
    worked: Worked,
    /// Its polling since then.
    polled: u64,
}

/// Those that are known, in order; at least one.
#[derive(Debug, Clone, Copy, Default)]
struct HandOffs {
    known: [Option<HandOff>; 5],
}

impl HandOffs {
    fn add(&mut self, hand_off: HandOff) {
        if let Some(free) = self.known.iter_mut().find(|known| known.is_none()) {
            *free = Some(hand_off);
        }
    }

    /// The first one not before the request was read; otherwise the last one, of which a part belongs to the request.
    fn of(&self, read: Nanos) -> HandOff {
        let known = || self.known.iter().flatten();
        let found = known().find(|known| known.from >= read).or(known().last());
        *found.expect("the previous event of a thread is always known")
    }
}

/// A request that was read and has no response yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    request: RequestComplete,
    read: Read,
    arrived: Option<Nanos>,
    begun: u64,
    class: Option<i64>,
    /// Who sent it.
    session: SessionId,
    /// What had been read of the connection.
    so_far: SoFar,
}

/// How to divide the time that the responses of one write have in common: this is the `n`th of that many equal
/// shares. During the shares of the others, a request counts as waiting for the loop.
#[derive(Debug, Clone, Copy)]
struct Share {
    n: u64,
    among: u64,
}

/// The socket of a connection whose plain text may be seen: text comes from the TLS library, timestamps from here.
#[derive(Debug, Default)]
struct Wire {
    /// Plain text has been seen: all positions count its bytes.
    is_plain: bool,
    /// The latest read, when its last bytes had arrived, and the latest write.
    read: Option<Read>,
    arrived: Option<Nanos>,
    write: Option<Write>,
    /// Plain text of the client so far, by the kernel's count.
    plain_bytes: u64,
    /// Events of the socket were lost.
    is_lossy: bool,
}

#[derive(Debug)]
pub struct Connection {
    number: u64,
    pub local: Option<SocketAddr>,
    pub peer: Option<SocketAddr>,
    pub protocol: Protocol,
    /// Bytes read and written so far.
    received: u64,
    sent: u64,
    reads: VecDeque<Read>,
    lots: VecDeque<Lot>,
    writes: VecDeque<Write>,
    pending: VecDeque<Pending>,
    /// Time that threads worked for this connection.
    worked: Worked,
    /// The same up to the last response: earlier work was for earlier requests.
    worked_before: Worked,
    culprit: Option<kernel::Culprit>,
    /// The longest sleep since the last response.
    sleep: Option<kernel::Slept>,
    pub classified: Classified,
    wire: Option<Box<Wire>>,
    pub progress: Progress,
    pub last_seen: Nanos,
    /// Whose bytes moved last; `None` before any.
    pub last_moved: Option<Direction>,
    /// The thread that io_uring has read for since this was last written to.
    pub async_thread: Option<u32>,
    /// Requests that were given up because too many were waiting.
    pub given_up: u64,
}

impl Connection {
    /// Connection `number` of the watch, opened by its first event. `classifies`: a function classifies requests;
    /// `decrypts`: plain text may be seen.
    pub fn new(number: u64, event: &Event<'_>, classifies: bool, decrypts: bool) -> Connection {
        Connection {
            number,
            local: event.opened.and_then(|opened| opened.local),
            peer: event.opened.and_then(|opened| opened.peer),
            protocol: Protocol::Turns,
            received: 0,
            sent: 0,
            reads: VecDeque::new(),
            lots: VecDeque::new(),
            writes: VecDeque::new(),
            pending: VecDeque::new(),
            worked: Worked::default(),
            worked_before: Worked::default(),
            culprit: None,
            sleep: None,
            classified: Classified::new(classifies),
            wire: decrypts.then(Box::default),
            progress: Progress::default(),
            last_seen: event.at,
            last_moved: None,
            async_thread: None,
            given_up: 0,
        }
    }

    /// A thread worked for this connection.
    pub fn add_work(&mut self, worked: &Worked, event: &Event<'_>) {
        self.worked.add(worked);
        self.culprit = account::worse(self.culprit, event.culprit);
        self.sleep = self.sleep.into_iter().chain(event.sleep).max_by_key(|slept| slept.time);
    }

    /// Bytes of the client were lost.
    pub fn add_lost(&mut self, bytes: u64) {
        match &mut self.wire {
            Some(wire) if wire.is_plain => wire.is_lossy = true,
            _ => self.received += bytes,
        }
    }

    /// Whether its plain text is seen.
    pub fn is_plain(&self) -> bool {
        self.wire.as_ref().is_some_and(|wire| wire.is_plain)
    }

    /// Plain text is seen from here on: what was found in encrypted bytes is forgotten.
    pub fn begin_plain(&mut self) {
        if let Some(wire) = &mut self.wire {
            wire.is_plain = true;
            (self.received, self.sent) = (0, 0);
            self.reads.clear();
            self.lots.clear();
            self.writes.clear();
            self.pending.clear();
        }
    }

    /// Adds plain text, which has the timestamps of the socket's latest read or write. Returns how many bytes of the
    /// client were lost before it, if any may have been.
    pub fn add_plain(&mut self, event: &Event<'_>) -> Option<u64> {
        let wire = self.wire.as_mut()?;
        let is_read = event.edge == Edge::PlainRead;
        let length = u64::from(event.length);
        let expected = wire.plain_bytes + if is_read { length } else { 0 };
        wire.plain_bytes = event.so_far.map_or(expected, |so_far| so_far.bytes);
        let is_lossy = std::mem::take(&mut wire.is_lossy) || event.missed;
        let lost = is_lossy.then(|| wire.plain_bytes.saturating_sub(expected));
        self.received += lost.unwrap_or(0);
        if length == 0 {
            return lost;
        }
        if is_read {
            self.received += length;
            let end = self.received;
            wire.arrived.into_iter().for_each(|at| push(&mut self.lots, Lot { end, at }));
            wire.read.into_iter().for_each(|read| push(&mut self.reads, Read { end, ..read }));
        } else {
            self.sent += length;
            let end = self.sent;
            wire.write.clone().into_iter().for_each(|write| push(&mut self.writes, Write { end, ..write }));
        }
        lost
    }

    /// Adds a read, with the arrivals of its bytes. `step` is the meaning of the event for its thread.
    pub fn add_read(&mut self, event: &Event<'_>, step: &Step) {
        if self.pending.is_empty() {
            // Who was in the way of earlier requests is irrelevant for the next one.
            self.culprit = event.culprit;
            self.sleep = None;
        }
        let since_woken = event.woken.map_or(Worked::of(event), |(_, until_then)| after(event, until_then));
        let mut read = Read {
            end: 0,
            at: event.at,
            tid: event.tid,
            polled: step.polled,
            worked: self.worked,
            run_queue: Nanos(since_woken.parts[Part::RunQueue as usize]),
            throttled: Nanos(since_woken.parts[Part::Throttled as usize]),
            contended: event.contended,
        };
        let arrivals = event.arrived.as_slice();
        if let Some(wire) = &mut self.wire {
            wire.read = Some(read);
            wire.arrived = arrivals.last().map_or(wire.arrived, |last| Some(Nanos(last.at)));
            if wire.is_plain {
                return;
            }
        }
        let began = self.received;
        self.received += u64::from(event.length);
        read.end = self.received;
        for arrival in arrivals {
            push(&mut self.lots, Lot { end: began + u64::from(arrival.end), at: Nanos(arrival.at) });
        }
        push(&mut self.reads, read);
    }

    /// Adds a write. `step` is the meaning of the event for its thread.
    pub fn add_write(&mut self, event: &Event<'_>, step: &Step) {
        let mut write = Write {
            end: 0,
            at: event.at,
            pid: event.pid,
            tid: event.tid,
            polled: step.polled,
            worked: self.worked,
            held_back: event.held_back,
            hand_offs: self.is_handed_to(event.tid).then(|| Box::new(hand_offs(event, step))),
        };
        if let Some(wire) = &mut self.wire {
            wire.write = Some(write.clone());
            if wire.is_plain {
                return;
            }
        }
        self.sent += u64::from(event.length);
        write.end = self.sent;
        push(&mut self.writes, write);
    }

    /// Whether a write of this thread may respond to what another thread has read.
    fn is_handed_to(&self, tid: u32) -> bool {
        let readers = self.pending.front().map(|pending| pending.read.tid).into_iter();
        readers.chain(self.reads.iter().map(|read| read.tid)).any(|reader| reader != tid)
    }

    /// Adds a request that the dissector has found complete.
    pub fn add_request(&mut self, request: RequestComplete, session: SessionId) {
        if request.no_response {
            return;
        }
        let Some(read) = covering(&self.reads, request.complete, |read| read.end) else { return };
        let arrived = covering(&self.lots, request.complete, |lot| lot.end).map(|lot| lot.at.min(read.at));
        if self.pending.len() >= PENDING {
            self.pending.pop_front();
            self.given_up += 1;
        }
        let class = self.classified.of_next(read.at);
        let mut so_far = self.progress.read();
        if !self.is_plain() {
            so_far.bytes = request.complete;
        }
        let begun = request.began;
        self.pending.push_back(Pending { request, read, arrived, begun, class, session, so_far });
    }

    /// Classifies the request that was being served when the function was called: the first one that had not been
    /// answered then. `returned` is when it returned.
    pub fn classify(&mut self, returned: Nanos, class: Class, give: &mut dyn FnMut(Served)) {
        let pending = self.pending.front_mut().map(|pending| &mut pending.class);
        self.classified.classify(returned, class, pending, give);
    }

    /// Whether a request that was read before this instant has no response yet. `in_proof`: one of the first turn has
    /// none.
    pub fn awaits_response(&self, in_proof: bool, before: Nanos) -> bool {
        if in_proof {
            return self.reads.front().is_some_and(|read| read.at < before);
        }
        let is_pending = self.pending.front().is_some_and(|pending| pending.read.at < before);
        // A turn is over with the last write before the next read: that it was written to is enough here.
        let is_turn = matches!(self.protocol, Protocol::Turns | Protocol::Tls);
        is_pending && !(is_turn && self.last_moved == Some(Direction::FromServer))
    }

    /// How many of the requests read since `since` and before `before` have no response. `in_proof`: as above; of a turn
    /// that is not reported yet, its reads are counted.
    pub fn unanswered(&self, in_proof: bool, since: Nanos, before: Nanos) -> u64 {
        let is_counted = |at: Nanos| (since..before).contains(&at);
        if in_proof {
            return self.reads.iter().filter(|read| is_counted(read.at)).count() as u64;
        }
        let is_turn = matches!(self.protocol, Protocol::Turns | Protocol::Tls);
        if is_turn && self.last_moved == Some(Direction::FromServer) {
            return 0;
        }
        self.pending.iter().filter(|pending| is_counted(pending.read.at)).count() as u64
    }

    /// The connection is not followed until its next event.
    pub fn pause(&mut self, give: &mut dyn FnMut(Served)) {
        self.classified.release(give);
        self.pending.clear();
        self.reads.clear();
        self.lots.clear();
        self.writes.clear();
        (self.worked, self.worked_before) = (Worked::default(), Worked::default());
        (self.culprit, self.sleep, self.last_moved, self.async_thread) = (None, None, None, None);
        self.progress.pause();
    }

    /// How many requests were read and have no response yet.
    pub fn waiting(&self) -> u64 {
        self.pending.len() as u64
    }

    /// The digest of the request that is worked on.
    pub fn in_progress(&self) -> Option<u32> {
        self.pending.front().map(|pending| pending.request.digest.0)
    }

    /// Gives up on request `n`, whose response will never be known.
    pub fn drop_request(&mut self, n: u64) {
        self.pending.retain(|pending| pending.request.n != n);
    }

    /// Completes requests with the responses of one write, in order.
    pub fn complete_responses(
        &mut self,
        responses: &[ResponseComplete],
        threads: &Threads,
        missed: &mut Missed,
        give: &mut dyn FnMut(Served),
    ) {
        let mut first = 0;
        while first < responses.len() {
            let Some(write) = covering(&self.writes, responses[first].end, |write| write.end) else {
                first += 1;
                continue;
            };
            let together =
                responses[first..].iter().take_while(|response| response.end <= write.end).count().max(1);
            let culprit = self.culprit.take();
            let sleep = self.sleep.take();
            for (n, response) in responses[first..first + together].iter().enumerate() {
                let share = Share { n: n as u64, among: together as u64 };
                if let Some((mut served, began, so_far)) =
                    self.serve(response, &write, share, (culprit, threads))
                {
                    served.sleep = sleep.and_then(|slept| sleep_of(&slept, &served));
                    self.progress.served(began, so_far, missed);
                    self.classified.give(served, give);
                }
            }
            self.worked_before = write.worked;
            first += together;
        }
    }

    fn serve(
        &mut self,
        response: &ResponseComplete,
        write: &Write,
        share: Share,
        (culprit, threads): (Option<kernel::Culprit>, &Threads),
    ) -> Option<(Served, u64, SoFar)> {
        let place = self.pending.iter().position(|pending| pending.request.n == response.n)?;
        let pending = self.pending.remove(place)?;
        let read = pending.read;
        // A response sent before the request was read to its end: an early refusal, which took no time.
        let done = write.at.max(read.at);
        let took = done - read.at;
        let first =
            covering(&self.writes, response.began + 1, |write| write.end).map_or(done, |first| first.at);
        let (worked, polled) = self.time_of(&read, write, took, share);
        let mut parts = [Nanos::ZERO; Part::COUNT];
        for (part, worked) in parts.iter_mut().zip(worked.parts) {
            *part = Nanos(worked);
        }
        parts[Part::Network as usize] += Nanos(polled);
        // By subtraction, so that the parts sum to the response time whatever was lost.
        parts[Part::LoopWait as usize] = Nanos(took.0 - worked.total() - polled);
        let queued = pending.arrived.map_or(Nanos::ZERO, |arrived| read.at - arrived);
        let socket_run_queue = read.run_queue.min(queued);
        let waited = parts[Part::RunQueue as usize] + socket_run_queue > Nanos::ZERO;
        let served = Served {
            connection: self.number,
            peer: self.peer,
            local: self.local,
            n: response.n,
            arrived: pending.arrived,
            read: read.at,
            socket_run_queue,
            socket_throttled: read.throttled.min(queued - socket_run_queue),
            first_sent: first.clamp(read.at, done),
            done,
            parts,
            preempted: Nanos(worked.preempted).min(parts[Part::RunQueue as usize]),
            preemptions: worked.preemptions,
            culprit: culprit.filter(|_| waited).map(|culprit| account::culprit(&culprit)),
            contended: Nanos(worked.contended).min(parts[Part::RunQueue as usize]),
            socket_contended: read.contended.min(socket_run_queue),
            waits: waits(&read, pending.arrived, write, threads),
            pid: write.pid,
            tid: write.tid,
            hand_offs: u16::from(write.tid != read.tid),
            protocol: self.protocol,
            digest: pending.request.digest.0,
            session: pending.session.0,
            rows: response.rows.map(|rows| Rows { sent: rows.sent, affected: rows.affected }),
            sleep: None,
            status: response.status.number(),
            class: pending.class,
            statements: response.statements,
            request_bytes: pending.request.complete - pending.begun + response.data_bytes,
            response_bytes: response.end - response.began,
        };
        // Of encrypted bytes, where a request begins is known to some bytes only.
        let length = pending.request.complete - pending.begun;
        let begun = if self.is_plain() { pending.so_far.bytes.saturating_sub(length) } else { pending.begun };
        Some((served, begun, pending.so_far))
    }

    /// The time that threads worked for a request, and the time that they polled while it waited.
    fn time_of(&self, read: &Read, write: &Write, response: Nanos, share: Share) -> (Worked, u64) {
        // Work before the request was read, or for requests with earlier responses, is not included.
        let before =
            if read.worked.total() > self.worked_before.total() { read.worked } else { self.worked_before };
        if write.tid == read.tid {
            let worked = write.worked.since(&before).share(share.n, share.among);
            let polled = (write.polled - read.polled.min(write.polled)).min(response.0);
            return (worked.at_most(response.0 - polled), polled);
        }
        let Some(hand_off) = write.hand_offs.as_ref().map(|starts| starts.of(read.at)) else {
            return (Worked::default(), 0);
        };
        let own = (write.at.saturating_sub(hand_off.from.max(read.at))).0.min(response.0);
        let polled = hand_off.polled.min(own);
        let theirs = hand_off.worked.at_most(own - polled);
        // The reader's own work for it, if that had ended when the writer began.
        let all = write.worked.since(&before);
        let readers = all.since(&theirs);
        let left = response.0 - theirs.total() - polled;
        let mut worked = if readers.total() <= left { readers } else { Worked::default() };
        worked.add(&theirs);
        (worked.share(share.n, share.among), polled / share.among)
    }

    /// Drops the marks of bytes before these positions, which will not be needed again.
    pub fn forget(&mut self, (client, server): (u64, u64)) {
        forget(&mut self.reads, client, |read| read.end);
        forget(&mut self.lots, client, |lot| lot.end);
        forget(&mut self.writes, server, |write| write.end);
    }
}

/// The sleep in the record's type; `None` if the request did not last as long: it was for another one.
fn sleep_of(slept: &kernel::Slept, served: &Served) -> Option<Sleep> {
    let call = u16::try_from(slept.call).ok()?;
    let fd = kernel::takes_descriptor(slept.call).then_some(slept.argument);
    (slept.time <= served.response()).then_some(Sleep { call, fd, time: slept.time })
}

fn forget<T>(marks: &mut VecDeque<T>, before: u64, reach: impl Fn(&T) -> u64) {
    while marks.front().is_some_and(|mark| reach(mark) <= before) {
        marks.pop_front();
    }
}

/// What a request waited for; `None` if nothing is known.
fn waits(read: &Read, arrived: Option<Nanos>, write: &Write, threads: &Threads) -> Option<Box<Waits>> {
    let of_writer = threads.waits(write.tid).map(|waits| waits.of(read.at, write.at.max(read.at)));
    let mut waits = of_writer.unwrap_or_default();
    waits.held_back = write.held_back;
    let reader = threads.waits(read.tid).zip(arrived);
    if let Some((unread, stop)) = reader.map(|(waits, arrived)| waits.stopped(arrived, read.at)) {
        waits.stopped_unread = unread;
        waits.stop = waits.stop.or(stop);
    }
    (waits != Waits::default()).then(|| Box::new(waits))
}

/// The instants at which the writer can have begun on a request of another thread, latest last: after its previous
/// event, and after each time that a fellow thread woke it.
fn hand_offs(event: &Event<'_>, step: &Step) -> HandOffs {
    let mut starts = HandOffs::default();
    let begin = |from, worked: Worked, polled| HandOff { from, worked, polled };
    starts.add(begin(step.since, Worked::of(event), event.parts[kernel::IDLE]));
    for wake in event.wakes {
        let polled = event.parts[kernel::IDLE].saturating_sub(wake.parts[kernel::IDLE]);
        starts.add(begin(Nanos(wake.at), after(event, &wake.parts), polled));
    }
    starts
}

/// An event's account without its beginning.
fn after(event: &Event<'_>, until_then: &kernel::Account) -> Worked {
    let mut before = Worked::default();
    before.parts.copy_from_slice(&until_then[..WORKED]);
    Worked::of(event).since(&before)
}

/// The first mark that reaches `end`.
fn covering<T: Clone>(marks: &VecDeque<T>, end: u64, reach: impl Fn(&T) -> u64) -> Option<T> {
    marks.iter().find(|mark| reach(mark) >= end).or(marks.back()).cloned()
}

/// If there are too many, drops one in the middle: the first and the last bytes are the ones that are needed.
fn push<T>(marks: &mut VecDeque<T>, mark: T) {
    if marks.len() >= MARKS {
        marks.remove(MARKS / 2);
    }
    marks.push_back(mark);
}
