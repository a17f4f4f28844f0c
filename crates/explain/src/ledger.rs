//! One request's time by segment; the segments sum to its response time to the nanosecond, whatever the records
//! contain.

use export::requests::Row;
use record::{Part, Phase, Served};
use units::Nanos;

use crate::place::Segment;
use crate::queued_behind::{Behind, Others};

/// Nanoseconds for each [`Segment`], in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ledger(pub(crate) [u64; Segment::COUNT]);

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger([0; Segment::COUNT])
    }
}

/// What the server's observer knows about a request of the client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtServer<'a> {
    pub(crate) served: &'a Served,
    pub(crate) behind: Behind,
    /// `None` if the offset between the two hosts' clocks is unknown.
    pub(crate) clock: Option<OneClock>,
    /// Client and server are connected by loopback: what is not the server's time is its socket queue.
    pub(crate) loopback: bool,
}

/// The mapping of the client's row to the clock of the server's timestamps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneClock {
    /// Added to an instant of the row, it gives the clock of the timestamps.
    pub(crate) zero: u64,
    /// Maximum error of that.
    pub(crate) error: u64,
}

/// The two network directions are reported separately only if together they are at least this many times the error of
/// the clock: each is then accurate to a tenth of both.
pub(crate) const TOLD_APART: u64 = 10;

/// The segments that time outside the client's window is taken from, in this order. A response reaches the client
/// before the server's write returns, and what a server does then is on the CPU.
const OUTSIDE: [Part; Part::COUNT] = [
    Part::OnCpu,
    Part::Stolen,
    Part::RunQueue,
    Part::LoopWait,
    Part::Other,
    Part::Lock,
    Part::Network,
    Part::Disk,
    Part::Yielded,
    Part::Throttled,
];

/// The parts that a wait whose end is known is taken from, in this order.
const ASLEEP: [Part; 4] = [Part::Network, Part::Other, Part::LoopWait, Part::Lock];

impl Ledger {
    pub(crate) fn get(&self, segment: Segment) -> u64 {
        self.0[segment as usize]
    }

    pub(crate) fn put(&mut self, segment: Segment, ns: u64) {
        self.0[segment as usize] = self.0[segment as usize].saturating_add(ns);
    }

    /// Moves up to `most` from one segment to another. Returns how much was moved.
    pub(crate) fn shift(&mut self, from: Segment, to: Segment, most: u64) -> u64 {
        let moved = self.get(from).min(most);
        self.0[from as usize] -= moved;
        self.put(to, moved);
        moved
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// From a row alone: `wait` and `receive` are undivided.
    pub(crate) fn of(row: &Row) -> Ledger {
        let mut ledger = Ledger::default();
        for phase in Phase::ALL {
            ledger.put(Segment::of_phase(phase), row.phase(phase).map_or(0, |length| length.0));
        }
        ledger
    }

    /// As if nothing were known about the server's side.
    pub(crate) fn undivided(&self) -> Ledger {
        let mut ledger = *self;
        let window = Segment::ToServer as usize..=Segment::ServerAndNetwork as usize;
        let sum = ledger.0[window.clone()].iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        ledger.0[window].fill(0);
        ledger.put(Segment::ServerAndNetwork, sum);
        ledger
    }

    /// From a row whose server side is known.
    pub(crate) fn divided(row: &Row, at: &AtServer<'_>) -> Ledger {
        let mut ledger = Ledger::of(row);
        let window = std::mem::take(&mut ledger.0[Segment::ServerAndNetwork as usize]);
        match at.clock {
            Some(clock) => {
                let begin = clock.zero.saturating_add(row.end_of(Phase::Send).0);
                if clock.error == 0 {
                    ledger.divide(begin, begin.saturating_add(window), at);
                } else {
                    ledger.divide_about(begin, window, clock.error, at);
                }
            }
            None => ledger.divide_by_length(window, at),
        }
        ledger
    }

    /// On one clock that is known within `error`: lengths are exact, and the server's time is somewhere within the
    /// window, near its timestamps.
    fn divide_about(&mut self, begin: u64, window: u64, error: u64, at: &AtServer<'_>) {
        let first = at.served.arrived.unwrap_or(at.served.read);
        let ways = window.saturating_sub(at.served.done.0.saturating_sub(first.0));
        if ways < error.saturating_mul(TOLD_APART) {
            return self.divide_by_length(window, at);
        }
        let there = first.0.saturating_sub(begin).min(ways);
        // Both move by the same amount, so that the rest is the same as on an exact clock.
        let begin = first.0.saturating_sub(there);
        self.divide(begin, begin.saturating_add(window), at);
    }

    /// On one clock: the server's instants, clamped to the window, divide it into the way there, the queue, the
    /// server's time and the way back.
    fn divide(&mut self, begin: u64, end: u64, at: &AtServer<'_>) {
        let within = |instant: u64| instant.clamp(begin, end);
        let read = within(at.served.read.0);
        let done = within(at.served.done.0).max(read);
        match at.served.arrived {
            Some(arrived) => {
                let arrived = within(arrived.0).min(read);
                self.put(Segment::ToServer, arrived - begin);
                self.put_queue(read - arrived, at);
            }
            None if at.loopback => self.put_queue(read - begin, at),
            None => self.put(Segment::ToServerAndQueue, read - begin),
        }
        self.put_parts(done - read, at);
        let is_held_back = at.served.waits.as_ref().is_some_and(|waits| waits.held_back);
        self.put(if is_held_back { Segment::HeldBack } else { Segment::ToClient }, end - done);
    }

    /// On two clocks only lengths can be compared: what is not the server's time is the network's.
    fn divide_by_length(&mut self, window: u64, at: &AtServer<'_>) {
        let served = at.served.response().0.min(window);
        let queue = at.served.socket_queue().map_or(0, |queue| queue.0).min(window - served);
        self.put_queue(queue, at);
        self.put_parts(served, at);
        let rest = if at.served.arrived.is_some() { Segment::Network } else { Segment::ToServerAndQueue };
        self.put(rest, window - served - queue);
    }

    /// Divides `length` of the socket queue by what occupied the thread that read it.
    fn put_queue(&mut self, length: u64, at: &AtServer<'_>) {
        let mut left = length;
        let stopped = at.served.waits.as_ref().map_or(Nanos::ZERO, |waits| waits.stopped_unread);
        let contended = at.served.socket_contended;
        let waits = [
            (Segment::QueueStopped, stopped),
            (Segment::QueueRunQueue, contended),
            (Segment::OwnRunQueue, at.served.socket_run_queue - contended),
            (Segment::QueueThrottled, at.served.socket_throttled),
        ];
        for (segment, waited) in waits {
            let waited = waited.0.min(left);
            self.put(segment, waited);
            left -= waited;
        }
        self.put_behind(left, at.behind.queue, Segment::SocketQueue);
    }

    /// Adds the server's parts, cut to `length`.
    fn put_parts(&mut self, length: u64, at: &AtServer<'_>) {
        let mut parts = at.served.parts.map(|part| part.0);
        let mut outside = parts.iter().sum::<u64>().saturating_sub(length);
        for part in OUTSIDE {
            let cut = parts[part as usize].min(outside);
            parts[part as usize] -= cut;
            outside -= cut;
        }
        self.put_waits(&mut parts, at.served);
        let waits = std::mem::take(&mut parts[Part::LoopWait as usize]);
        for part in Part::ALL {
            self.put(Segment::of_part(part), parts[part as usize]);
        }
        self.put_behind(waits, at.behind.waits, Segment::LoopWait);
    }

    /// Takes from `parts` what is known of the waits in them.
    fn put_waits(&mut self, parts: &mut [u64; Part::COUNT], served: &Served) {
        let own = served.part(Part::RunQueue) - served.contended;
        let own = own.0.min(parts[Part::RunQueue as usize]);
        parts[Part::RunQueue as usize] -= own;
        self.put(Segment::OwnRunQueue, own);
        let Some(waits) = &served.waits else { return };
        let owner = waits.owner.as_ref().map_or(Nanos::ZERO, |owner| owner.time);
        // A lock whose owner is known stays a lock.
        let of_lock = owner.0.min(parts[Part::Lock as usize]);
        parts[Part::Lock as usize] -= of_lock;
        self.put(Segment::Lock, of_lock);
        let known = [
            (Segment::Stopped, waits.stopped.0),
            (Segment::Timer, waits.timer.0),
            (Segment::Upstream, waits.upstream.0),
            (Segment::OtherThread, owner.0 - of_lock),
        ];
        for (segment, mut left) in known {
            for part in ASLEEP {
                let taken = parts[part as usize].min(left);
                parts[part as usize] -= taken;
                left -= taken;
                self.put(segment, taken);
            }
        }
    }

    /// Divides `length` of a wait by what the thread did for others; the rest is `plain`.
    fn put_behind(&mut self, length: u64, others: Others, plain: Segment) {
        let mut left = length;
        for (segment, ns) in others.within(length) {
            self.put(segment, ns);
            left -= ns;
        }
        self.put(plain, left);
    }
}

#[cfg(test)]
mod tests;
