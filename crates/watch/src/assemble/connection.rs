//! One connection of the server: from reads and writes to requests with their stamps and their time.

use std::collections::VecDeque;
use std::net::SocketAddr;

use dissect::{Answered, Asked};
use record::{Part, Protocol, Served};
use units::Nanos;

use crate::kernel::{self, Event};

use super::account::{self, WORKED, Worked};
use super::thread::Step;

/// Reads and writes of which the stamps may still be asked for. A request that needs more of them, a body in a
/// thousand pieces, has the stamps of the earliest and the latest.
const MARKS: usize = 64;

/// Requests on one connection without an answer. Beyond, the oldest are given up, and counted.
const PENDING: usize = 65_536;

/// A read of the server.
#[derive(Debug, Clone, Copy)]
struct Read {
    /// How many bytes of the client had been read then.
    end: u64,
    at: Nanos,
    tid: u32,
    /// Of that thread.
    polled: u64,
    /// Of this connection.
    worked: Worked,
    /// Between the thread's last waking and this read: it waited for a CPU.
    run_queue: Nanos,
    throttled: Nanos,
}

/// A lot of bytes that arrived.
#[derive(Debug, Clone, Copy)]
struct Lot {
    end: u64,
    at: Nanos,
}

/// A write of the server.
#[derive(Debug, Clone)]
struct Write {
    /// How many bytes of the server had been written then.
    end: u64,
    at: Nanos,
    pid: u32,
    tid: u32,
    polled: u64,
    worked: Worked,
    /// Where another thread has read than writes.
    hand_offs: Option<Box<HandOffs>>,
}

/// A thread wrote that had not read the request.
#[derive(Debug, Clone, Copy)]
struct HandOff {
    /// The earliest that it can have begun on it.
    from: Nanos,
    /// Its account since then.
    worked: Worked,
    /// Its polls since then.
    polled: u64,
}

/// The few that are known, in order; there is one at least.
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

    /// The first that is not before the request was read; or else the last, of which a part is for it.
    fn of(&self, read: Nanos) -> HandOff {
        let known = || self.known.iter().flatten();
        let found = known().find(|known| known.from >= read).or(known().last());
        *found.expect("the previous event of a thread is always known")
    }
}

/// A request that was read and not answered.
#[derive(Debug, Clone, Copy)]
struct Pending {
    asked: Asked,
    read: Read,
    arrived: Option<Nanos>,
    begun: u64,
}

/// Of the time that answers of one write have in common: the `n`th of so many equal shares. While its neighbours had
/// theirs, a request waited for the loop.
#[derive(Debug, Clone, Copy)]
struct Share {
    n: u64,
    among: u64,
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
    /// Time that threads worked for it.
    worked: Worked,
    /// The same at the last answer: what came before it was for the requests before.
    answered: Worked,
    culprit: Option<kernel::Culprit>,
    class: Option<i64>,
    pub last_seen: Nanos,
    /// The thread that io_uring has read for since this was last written to.
    pub asked: Option<u32>,
    /// Requests that were given up because too many waited.
    pub given_up: u64,
}

impl Connection {
    pub fn new(number: u64, event: &Event<'_>) -> Connection {
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
            answered: Worked::default(),
            culprit: None,
            class: None,
            last_seen: event.at,
            asked: None,
            given_up: 0,
        }
    }

    /// A thread worked for this connection.
    pub fn add_work(&mut self, worked: &Worked, culprit: Option<kernel::Culprit>) {
        self.worked.add(worked);
        self.culprit = account::worse(self.culprit, culprit);
    }

    pub fn add_read(&mut self, event: &Event<'_>, step: &Step) {
        let began = self.received;
        self.received += u64::from(event.length);
        for arrival in event.arrived.as_slice() {
            push(&mut self.lots, Lot { end: began + u64::from(arrival.end), at: Nanos(arrival.at) });
        }
        if self.pending.is_empty() {
            // Who was in the way before the requests so far says nothing of this one.
            self.culprit = event.culprit;
        }
        let since_woken = event.woken.map_or(Worked::of(event), |(_, until_then)| after(event, until_then));
        let read = Read {
            end: self.received,
            at: event.at,
            tid: event.tid,
            polled: step.polled,
            worked: self.worked,
            run_queue: Nanos(since_woken.parts[Part::RunQueue as usize]),
            throttled: Nanos(since_woken.parts[Part::Throttled as usize]),
        };
        push(&mut self.reads, read);
    }

    pub fn add_write(&mut self, event: &Event<'_>, step: &Step) {
        self.sent += u64::from(event.length);
        if event.class.is_some() {
            self.class = event.class;
        }
        let write = Write {
            end: self.sent,
            at: event.at,
            pid: event.pid,
            tid: event.tid,
            polled: step.polled,
            worked: self.worked,
            hand_offs: self.is_handed_to(event.tid).then(|| Box::new(hand_offs(event, step))),
        };
        push(&mut self.writes, write);
    }

    /// Whether what this thread writes may answer what another has read.
    fn is_handed_to(&self, tid: u32) -> bool {
        let readers = self.pending.front().map(|pending| pending.read.tid).into_iter();
        readers.chain(self.reads.iter().map(|read| read.tid)).any(|reader| reader != tid)
    }

    /// A request is complete, as the dissector says.
    pub fn ask(&mut self, asked: Asked) {
        if asked.unanswered {
            return;
        }
        let Some(read) = covering(&self.reads, asked.complete, |read| read.end) else { return };
        let arrived = covering(&self.lots, asked.complete, |lot| lot.end).map(|lot| lot.at.min(read.at));
        if self.pending.len() >= PENDING {
            self.pending.pop_front();
            self.given_up += 1;
        }
        self.pending.push_back(Pending { asked, read, arrived, begun: asked.began });
    }

    /// Requests that were read and not answered.
    pub fn waiting(&self) -> u64 {
        self.pending.len() as u64
    }

    /// No answer to request `n` will be known.
    pub fn drop_request(&mut self, n: u64) {
        self.pending.retain(|pending| pending.asked.n != n);
    }

    /// Requests that have their answers: those of one write, in order.
    pub fn answer(&mut self, answers: &[Answered], mut give: impl FnMut(Served)) {
        let mut first = 0;
        while first < answers.len() {
            let Some(write) = covering(&self.writes, answers[first].end, |write| write.end) else {
                first += 1;
                continue;
            };
            let together =
                answers[first..].iter().take_while(|answer| answer.end <= write.end).count().max(1);
            let culprit = self.culprit.take();
            for (n, answer) in answers[first..first + together].iter().enumerate() {
                let share = Share { n: n as u64, among: together as u64 };
                if let Some(served) = self.serve(answer, &write, share, culprit) {
                    give(served);
                }
            }
            self.answered = write.worked;
            first += together;
        }
        self.class = None;
    }

    fn serve(
        &mut self,
        answer: &Answered,
        write: &Write,
        share: Share,
        culprit: Option<kernel::Culprit>,
    ) -> Option<Served> {
        let place = self.pending.iter().position(|pending| pending.asked.n == answer.n)?;
        let pending = self.pending.remove(place)?;
        let read = pending.read;
        // An answer that was sent before the request was read to its end: an early refusal. It took no time then.
        let done = write.at.max(read.at);
        let response = done - read.at;
        let first =
            covering(&self.writes, answer.began + 1, |write| write.end).map_or(done, |first| first.at);
        let (worked, polled) = self.time_of(&read, write, response, share);
        let mut parts = [Nanos::ZERO; Part::COUNT];
        for (part, worked) in parts.iter_mut().zip(worked.parts) {
            *part = Nanos(worked);
        }
        parts[Part::Network as usize] += Nanos(polled);
        // By subtraction: so the parts are the response, whatever was lost.
        parts[Part::LoopWait as usize] = Nanos(response.0 - worked.total() - polled);
        let queued = pending.arrived.map_or(Nanos::ZERO, |arrived| read.at - arrived);
        let socket_run_queue = read.run_queue.min(queued);
        let waited = parts[Part::RunQueue as usize] + socket_run_queue > Nanos::ZERO;
        Some(Served {
            connection: self.number,
            peer: self.peer,
            local: self.local,
            n: answer.n,
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
            pid: write.pid,
            tid: write.tid,
            hand_offs: u16::from(write.tid != read.tid),
            protocol: self.protocol,
            digest: pending.asked.digest.0,
            status: answer.status.number(),
            class: self.class,
            request_bytes: pending.asked.complete - pending.begun,
            response_bytes: answer.end - answer.began,
        })
    }

    /// The time that threads worked for a request, and that they polled for more to come for it.
    fn time_of(&self, read: &Read, write: &Write, response: Nanos, share: Share) -> (Worked, u64) {
        // What was worked before the request was read, or for those answered before it, is not its own.
        let before = if read.worked.total() > self.answered.total() { read.worked } else { self.answered };
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
        // The reader's own work for it, where that was over when the writer began.
        let all = write.worked.since(&before);
        let readers = all.since(&theirs);
        let left = response.0 - theirs.total() - polled;
        let mut worked = if readers.total() <= left { readers } else { Worked::default() };
        worked.add(&theirs);
        (worked.share(share.n, share.among), polled / share.among)
    }

    /// Forgets the marks of bytes before these: nothing will name them.
    pub fn forget(&mut self, (client, server): (u64, u64)) {
        forget(&mut self.reads, client, |read| read.end);
        forget(&mut self.lots, client, |lot| lot.end);
        forget(&mut self.writes, server, |write| write.end);
    }
}

fn forget<T>(marks: &mut VecDeque<T>, before: u64, reach: impl Fn(&T) -> u64) {
    while marks.front().is_some_and(|mark| reach(mark) <= before) {
        marks.pop_front();
    }
}

/// When the writer can have begun on a request of another thread, latest last: since its previous event, and since
/// each time that a fellow woke it.
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

/// Of too many, one in the middle goes: the first and the last bytes are those that are asked for.
fn push<T>(marks: &mut VecDeque<T>, mark: T) {
    if marks.len() >= MARKS {
        marks.remove(MARKS / 2);
    }
    marks.push_back(mark);
}
