//! The server's threads: whose work each of them does.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use units::Nanos;

use crate::kernel::{Edge, Event};

use super::account::{Worked, polled};

/// A thread, by its events so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Thread {
    /// Its time in polls, summed since it was first seen.
    pub polled: u64,
    /// The connection of its last read or write; none since it began to poll.
    owner: Option<u64>,
    last: Option<Edge>,
    at: Nanos,
    /// What it did before io_uring read something for it while it worked: that read is no edge of its own work.
    carried: Worked,
    /// Connections that io_uring has read from for it and that were not written to since: their requests are its work.
    asked: usize,
}

/// What an event means for the time before it.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The connection that the time since the thread's previous event was for.
    pub owner: Option<u64>,
    pub worked: Worked,
    /// The thread's previous event.
    pub since: Nanos,
    /// All its polls so far.
    pub polled: u64,
}

#[derive(Debug, Default)]
pub struct Threads {
    known: HashMap<u32, Thread, FxBuildHasher>,
}

impl Threads {
    /// Takes an event of a thread in.
    ///
    /// The time before a read was for whom the thread had read from or written to last: it ends what was done for
    /// it. The time before a write was for the connection that was written to, unless the thread had just read
    /// from another: an event loop that reads from many before it answers the first works after each read for
    /// whom it read from.
    ///
    /// What io_uring reads for a thread says nothing of when the thread takes it up: while it has requests of others
    /// (not of `own`, the one that this is of), what it did goes on to its next event.
    pub fn step(&mut self, event: &Event<'_>, own: bool) -> Step {
        let thread = self.known.entry(event.tid).or_default();
        thread.polled += polled(event).0;
        thread.carried.add(&Worked::of(event));
        let is_given = event.asynchronous && event.edge == Edge::Read;
        if is_given && thread.asked > usize::from(own) {
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

    /// io_uring has read for a thread, from a connection that it had not read from since that was written to.
    pub fn asked(&mut self, tid: u32) {
        self.known.entry(tid).or_default().asked += 1;
    }

    /// A connection that io_uring had read from for a thread was written to, or is gone.
    pub fn answered(&mut self, tid: u32) {
        if let Some(thread) = self.known.get_mut(&tid) {
            thread.asked = thread.asked.saturating_sub(1);
        }
    }

    /// Forgets threads without an event since `before`: ended ones do not say so.
    pub fn forget(&mut self, before: Nanos) {
        self.known.retain(|_, thread| thread.at >= before);
    }
}
