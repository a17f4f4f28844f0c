//! The server's threads: for which connection each of them works.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use units::Nanos;

use crate::kernel::{Edge, Event};

use super::account::{Worked, polled};
use super::waits::EndedWaits;

/// The state of a thread after its events so far.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    /// Its total time in polls since it was first seen.
    pub polled: u64,
    /// The connection of its last read or write; `None` once it has begun to poll.
    owner: Option<u64>,
    last: Option<Edge>,
    at: Nanos,
    /// Its work before io_uring read something for it while it worked: such a read is not an edge of its own work.
    carried: Worked,
    /// Connections that io_uring has read from for it and that were not written to since: it works on their requests.
    pending_async: usize,
    /// The ends of its long waits.
    waits: EndedWaits,
}

/// The meaning of an event for the time before it.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The connection that the time since the thread's previous event was for.
    pub owner: Option<u64>,
    pub worked: Worked,
    /// The thread's previous event.
    pub since: Nanos,
    /// All its polling so far.
    pub polled: u64,
}

#[derive(Debug, Default)]
pub struct Threads {
    known: HashMap<u32, Thread, FxBuildHasher>,
}

impl Threads {
    /// Takes an event of a thread.
    ///
    /// The time before a read belongs to the connection that the thread had read from or written to last: the read
    /// ends what was done for it. The time before a write belongs to the connection that was written to, unless the
    /// thread had just read from another one: an event loop that reads from many connections before it responds to
    /// the first works after each read for that connection.
    ///
    /// A read by io_uring does not show when the thread starts on the data: while the thread has requests of other
    /// connections (not of `own`, the connection of this event), its work continues to its next event.
    pub fn step(&mut self, event: &Event<'_>, own: bool) -> Step {
        let thread = self.known.entry(event.tid).or_default();
        thread.polled += polled(event).0;
        if event.edge == Edge::Idle {
            thread.waits.add_poll(event.at);
        }
        thread.carried.add(&Worked::of(event));
        let is_given = event.asynchronous && event.edge == Edge::Read;
        if is_given && thread.pending_async > usize::from(own) {
            let worked = Worked::default();
            return Step { owner: None, worked, since: thread.at, polled: thread.polled };
        }
        let owner = match (event.edge, thread.owner, thread.last) {
            (Edge::Write, Some(other), Some(Edge::Read)) if other != event.socket => Some(other),
            (Edge::Write, _, _) => Some(event.socket),
            (_, owner, _) => owner,
        };
        let worked = std::mem::take(&mut thread.carried);
        let step = Step { owner, worked, since: thread.at, polled: thread.polled };
        thread.owner = (event.edge != Edge::Idle && !is_given).then_some(event.socket);
        thread.last = Some(event.edge);
        thread.at = event.at;
        step
    }

    /// Takes the end of a long wait; `digest` is what the thread that ended it served.
    pub fn wait_ended(&mut self, event: &Event<'_>, digest: Option<u32>) {
        let waits = &mut self.known.entry(event.tid).or_default().waits;
        if let Some(waited) = &event.waited {
            waits.add_sleep(waited, event.at, digest);
        }
        if let Some(answered) = &event.answered {
            waits.add_answer(answered, event.at);
        }
    }

    /// The ends of a thread's long waits; `None` of a thread that is not known.
    pub fn waits(&self, tid: u32) -> Option<&EndedWaits> {
        self.known.get(&tid).map(|thread| &thread.waits)
    }

    /// The connection that a thread works for.
    pub fn owner(&self, tid: u32) -> Option<u64> {
        self.known.get(&tid).and_then(|thread| thread.owner)
    }

    /// io_uring has read for a thread, from a connection that it had not read from since the last write.
    pub fn begin_async(&mut self, tid: u32) {
        self.known.entry(tid).or_default().pending_async += 1;
    }

    /// A connection that io_uring had read from for a thread was written to, or has ended.
    pub fn end_async(&mut self, tid: u32) {
        if let Some(thread) = self.known.get_mut(&tid) {
            thread.pending_async = thread.pending_async.saturating_sub(1);
        }
    }

    /// What each thread works for, and has waited for, is not known until its next event.
    pub fn pause(&mut self) {
        self.known.clear();
    }

    /// Forgets threads without an event since `before`: ended threads send no event.
    pub fn forget(&mut self, before: Nanos) {
        self.known.retain(|_, thread| thread.at >= before);
    }
}
