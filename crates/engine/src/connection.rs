//! One connection of a worker: its state, what is outstanding on it, and what is still to be written.

use std::collections::VecDeque;

use codec::Session;
use record::{Phase, Timeline};
use units::Nanos;

/// A connection of the pool. Closed until the first request on it opens it.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    pub state: State,
    pub session: S,
    /// Requests assigned and not ended, in order. The first `sent` of them are wholly with the kernel.
    pub exchanges: VecDeque<Exchange>,
    pub sent: usize,
    /// Bytes encoded; the first `written` of them are with the kernel.
    pub out: Vec<u8>,
    pub written: usize,
    /// On the pool's list of connections with room.
    pub listed: bool,
    /// On the worker's list of connections with something to write.
    pub dirty: bool,
    /// On the worker's list of connections with more to read.
    pub unread: bool,
}

/// Moving what is left to the front is worth it from here on.
const RECLAIM_BYTES: usize = 256 * 1024;

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Closed,
    /// Waits for the name lookup.
    Resolving,
    Connecting {
        since: Nanos,
        attempt: Attempt,
    },
    Open,
}

/// Which of the peer's addresses is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Its index.
    pub address: usize,
    /// How many were tried before it.
    pub before: usize,
}

/// One request on a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    /// Its number in the run.
    pub n: u64,
    pub timeline: Timeline,
    /// Where in `out` it begins and ends.
    pub out_begin: usize,
    pub out_end: usize,
    /// The connection was opened for it.
    pub opens: bool,
    /// It had a connection at once: it is taken up when its first byte is handed to the kernel.
    pub immediate: bool,
    /// When it was first handed to the kernel, which may have taken nothing of it then.
    pub offered: Option<Nanos>,
    /// The kernel has taken its first byte.
    pub begun: bool,
    /// Its answer has begun.
    pub began: bool,
}

impl<S: Session> Connection<S> {
    pub(crate) fn new(session: S) -> Connection<S> {
        Connection {
            state: State::Closed,
            session,
            exchanges: VecDeque::new(),
            sent: 0,
            out: Vec::new(),
            written: 0,
            listed: true,
            dirty: false,
            unread: false,
        }
    }

    /// Whether another request may be assigned.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.exchanges.len() < self.session.capacity()
    }

    /// Whether bytes wait to be handed to the kernel.
    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        self.written < self.out.len()
    }

    /// Forgets the connection; `session` is the next one's. What was outstanding is the caller's to book.
    pub(crate) fn reset(&mut self, session: S) {
        self.state = State::Closed;
        self.session = session;
        self.exchanges.clear();
        self.sent = 0;
        self.out.clear();
        self.written = 0;
    }

    /// Books what one write did: handed over from `before`, accepted `count` bytes by `after`. Returns how many
    /// requests had their first byte among them.
    #[inline]
    pub(crate) fn wrote(&mut self, count: usize, before: Nanos, after: Nanos) -> u64 {
        self.written += count;
        let mut begun = 0;
        for exchange in self.exchanges.iter_mut().skip(self.sent) {
            // A write is given all there is, so each of them was offered.
            if exchange.offered.is_none() {
                exchange.hand_over(before);
            }
            if exchange.out_begin >= self.written {
                continue;
            }
            if !exchange.begun {
                exchange.begun = true;
                begun += 1;
            }
            if exchange.out_end <= self.written {
                // An answer that has begun before has ended the phase already.
                if !exchange.began {
                    exchange.timeline.end(Phase::Send, after);
                }
                self.sent += 1;
            }
        }
        self.reclaim();
        begun
    }

    /// Drops what the kernel has taken from `out`: when it is all, and when it is much. A peer that reads slowly
    /// while requests keep coming would otherwise make it grow for ever.
    #[inline]
    fn reclaim(&mut self) {
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        } else if self.written >= RECLAIM_BYTES {
            self.out.drain(..self.written);
            for exchange in &mut self.exchanges {
                exchange.out_begin = exchange.out_begin.saturating_sub(self.written);
                exchange.out_end = exchange.out_end.saturating_sub(self.written);
            }
            self.written = 0;
        }
    }

    /// The phase that the outstanding request number `index` is in.
    pub(crate) fn phase(&self, index: usize) -> Phase {
        match self.state {
            State::Closed => Phase::PoolWait,
            State::Resolving => Phase::Resolve,
            State::Connecting { .. } => Phase::Connect,
            State::Open if index >= self.sent => Phase::Send,
            State::Open if self.exchanges[index].began => Phase::Receive,
            State::Open => Phase::Wait,
        }
    }
}

impl Exchange {
    /// Its first byte goes to the kernel at `at`.
    #[inline]
    fn hand_over(&mut self, at: Nanos) {
        self.offered = Some(at);
        if self.opens {
            self.timeline.end(Phase::Connect, at);
        } else {
            if self.immediate {
                self.timeline.end(Phase::ScheduleLag, at);
            }
            self.timeline.end(Phase::PoolWait, at);
        }
    }

    /// The first byte of its answer arrived at `at`.
    #[inline]
    pub(crate) fn first_arrived(&mut self, at: Nanos) {
        if self.began {
            return;
        }
        self.began = true;
        if self.timeline.current() == Some(Phase::Wait) {
            // On loopback the answer can be here before the write that sent the request has returned.
            self.timeline.pull_back(Phase::Send, at);
        } else {
            // Answered before it was wholly sent: a refusal of a large body, say.
            self.timeline.end(Phase::Send, at);
        }
        self.timeline.end(Phase::Wait, at);
    }
}
