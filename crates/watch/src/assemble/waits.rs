//! How a thread's long sleeps ended, and so what a request waited for.
//!
//! Goes back from the response through what led to it. An event loop that was woken by its timer and then responds has
//! waited for that timer; if it has just read the answer of another server, it has waited for that since it had asked.
//! What woke the loop for others leads to no response of this request, and does not count.

use std::collections::VecDeque;
use std::net::SocketAddr;

use record::{Owner, Stop, Waits};
use units::Nanos;

use crate::kernel::{Answered, Sleeps, Waited, Waker, Woken};

use super::account::comm;

/// Ends of sleeps that are remembered of a thread. There are at most 1000 per second, because shorter sleeps are not
/// reported: what a request waited for longer than a quarter of a second ago may be forgotten on a busy thread.
const REMEMBERED: usize = 256;

/// The words of a condition variable, which its waiters use in turn, are within so many bytes.
const ONE_OBJECT: u64 = 64;

/// Threads that are distinguished as those that one request waited for.
const OWNERS: usize = 8;

/// A waiter for a lock that looks up in between sleeps again within this time.
const AT_ONCE: Nanos = Nanos::from_millis(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Stopped(Stop),
    /// Its timer: one of its event loop, or of its sleep.
    Timer,
    /// The answer of another server.
    Answer(Option<SocketAddr>),
    /// Another thread, and what that served.
    Fellow(Waker, Option<u32>),
    /// Something else, or too short a sleep to be reported.
    Other,
}

/// A wait of a thread that has ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    from: Nanos,
    to: Nanos,
    cause: Cause,
    sleeps: Sleeps,
}

/// The waits of one thread, in the order of their ends.
#[derive(Debug, Clone, Default)]
pub struct EndedWaits {
    ended: VecDeque<Ended>,
}

impl EndedWaits {
    /// A long sleep ended at `to`; `digest` is what the thread that ended it served.
    pub fn add_sleep(&mut self, waited: &Waited, to: Nanos, digest: Option<u32>) {
        let cause = match (waited.stop, waited.woken) {
            (Some(stop), _) => Cause::Stopped(stop),
            (None, Woken::ByTimer) => Cause::Timer,
            (None, Woken::ByFellow(waker)) => Cause::Fellow(waker, digest),
            (None, Woken::FromOutside | Woken::Unknown) => Cause::Other,
        };
        let ended = Ended { from: waited.from, to, cause, sleeps: waited.sleeps };
        if matches!(cause, Cause::Fellow(..)) {
            self.name_owner(&ended);
        }
        self.push(ended);
    }

    /// A waiter that looks up in between, as Python does for its interpreter's lock, waits for the same owner.
    fn name_owner(&mut self, last: &Ended) {
        let Sleeps::Futex(object) = last.sleeps else { return };
        let mut from = last.from;
        for before in self.ended.iter_mut().rev() {
            let Sleeps::Futex(other) = before.sleeps else { return };
            let is_same = other.abs_diff(object) < ONE_OBJECT && before.to + AT_ONCE >= from;
            if before.cause != Cause::Timer || !is_same {
                return;
            }
            before.cause = last.cause;
            from = before.from;
        }
    }

    /// Another server answered at `to`.
    pub fn add_answer(&mut self, answered: &Answered, to: Nanos) {
        let cause = Cause::Answer(answered.peer);
        self.push(Ended { from: answered.from, to, cause, sleeps: Sleeps::Otherwise });
    }

    /// It began to poll: unless a long sleep follows, it is not known what ended that.
    pub fn add_poll(&mut self, at: Nanos) {
        let poll = Ended { from: at, to: at, cause: Cause::Other, sleeps: Sleeps::Poll };
        match self.ended.back_mut() {
            Some(last) if last.from == last.to => *last = poll,
            // Without an end of a wait before it there is nothing to tell it from.
            Some(_) => self.push(poll),
            None => {}
        }
    }

    fn push(&mut self, ended: Ended) {
        if self.ended.len() >= REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back(ended);
    }

    /// What a request waited for that this thread had read at `read` and responded to at `done`.
    pub fn of(&self, read: Nanos, done: Nanos) -> Waits {
        let mut waits = Waits::default();
        (waits.stopped, waits.stop) = self.stopped(read, done);
        let mut owners: Vec<Owner> = Vec::new();
        let mut longest = Nanos::ZERO;
        let mut until = done;
        for ended in self.ended.iter().rev() {
            let from = ended.from.max(read);
            if ended.to <= read {
                break;
            }
            if ended.to > until || matches!(ended.cause, Cause::Stopped(_)) {
                continue;
            }
            let time = (ended.to - from).saturating_sub(self.stopped(from, ended.to).0);
            match ended.cause {
                // Asked for another request.
                Cause::Answer(_) if ended.from < read => continue,
                Cause::Answer(peer) => {
                    waits.upstream += time;
                    if time > longest {
                        (longest, waits.upstream_at) = (time, peer);
                    }
                }
                Cause::Timer if ended.sleeps == Sleeps::Poll => {
                    // The loop may have been woken for others since it set the timer.
                    let all = (ended.to - read).saturating_sub(self.stopped(read, ended.to).0);
                    waits.timer += all;
                    break;
                }
                Cause::Timer => waits.timer += time,
                Cause::Fellow(waker, digest) => add_owner(&mut owners, waker, digest, time),
                Cause::Other if ended.sleeps == Sleeps::Poll => break,
                Cause::Other | Cause::Stopped(_) => {}
            }
            until = from;
        }
        waits.owner = owners.into_iter().max_by_key(|owner| owner.time);
        waits
    }

    /// How long it was stopped in this period, and by what.
    pub fn stopped(&self, from: Nanos, to: Nanos) -> (Nanos, Option<Stop>) {
        let mut all = (Nanos::ZERO, None);
        for ended in self.ended.iter().rev().take_while(|ended| ended.to > from) {
            let overlap = ended.to.min(to).saturating_sub(ended.from.max(from));
            if let Cause::Stopped(stop) = ended.cause
                && overlap > Nanos::ZERO
            {
                all = (all.0 + overlap, Some(stop));
            }
        }
        all
    }
}

fn add_owner(owners: &mut Vec<Owner>, waker: Waker, digest: Option<u32>, time: Nanos) {
    if let Some(owner) = owners.iter_mut().find(|owner| owner.tid == waker.tid) {
        owner.time += time;
        owner.digest = owner.digest.or(digest);
    } else if owners.len() < OWNERS {
        owners.push(Owner { tid: waker.tid, comm: comm(&waker.comm), digest, time });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "10.0.0.9:80";

    fn ms(at: u64) -> Nanos {
        Nanos::from_millis(at)
    }

    fn sleep(waits: &mut EndedWaits, span: (u64, u64), woken: Woken, sleeps: Sleeps) {
        let waited = Waited { from: ms(span.0), woken, stop: None, sleeps };
        waits.add_sleep(&waited, ms(span.1), Some(4));
    }

    fn fellow(tid: u32) -> Woken {
        Woken::ByFellow(Waker { pid: 1, tid, comm: *b"owner\0\0\0\0\0\0\0\0\0\0\0" })
    }

    /// If this fails, a timer of an event loop is reported as another server.
    #[test]
    fn a_loop_that_its_timer_has_woken_has_waited_for_it() {
        let mut waits = EndedWaits::default();
        // Read at 10; a request of another connection wakes the loop at 30.
        sleep(&mut waits, (10, 30), Woken::FromOutside, Sleeps::Poll);
        sleep(&mut waits, (30, 80), Woken::ByTimer, Sleeps::Poll);
        let of = waits.of(ms(10), ms(81));
        assert_eq!((of.timer, of.upstream, of.owner), (ms(70), Nanos::ZERO, None));
        // The one that woke it at 30 did not wait for a timer if it was answered before that.
        assert_eq!(waits.of(ms(30), ms(31)), Waits::default());
        // After a short sleep nobody knows.
        waits.add_poll(ms(82));
        assert_eq!(waits.of(ms(10), ms(83)), Waits::default());
    }

    #[test]
    fn what_was_asked_for_a_request_is_the_other_server_s() {
        let mut waits = EndedWaits::default();
        let answered = Answered { from: ms(12), peer: Some(PEER.parse().unwrap()) };
        sleep(&mut waits, (12, 52), Woken::FromOutside, Sleeps::Poll);
        waits.add_answer(&answered, ms(52));
        let of = waits.of(ms(10), ms(53));
        assert_eq!((of.upstream, of.timer), (ms(40), Nanos::ZERO));
        assert_eq!(of.upstream_at, Some(PEER.parse().unwrap()));
        // A request that was read later had not asked.
        assert_eq!(waits.of(ms(20), ms(53)), Waits::default());
        // A subscription whose message woke the loop for something else before its timer did.
        sleep(&mut waits, (53, 90), Woken::ByTimer, Sleeps::Poll);
        let of = waits.of(ms(60), ms(91));
        assert_eq!((of.upstream, of.timer), (Nanos::ZERO, ms(30)));
    }

    #[test]
    fn sleeps_of_a_thread_with_one_request_follow_each_other() {
        let mut waits = EndedWaits::default();
        sleep(&mut waits, (10, 30), Woken::ByTimer, Sleeps::Timer);
        sleep(&mut waits, (31, 36), Woken::ByTimer, Sleeps::Futex(4_096));
        sleep(&mut waits, (36, 51), fellow(7), Sleeps::Futex(4_100));
        let of = waits.of(ms(9), ms(52));
        let owner = of.owner.clone().unwrap();
        assert_eq!((owner.tid, owner.comm.as_str(), owner.digest), (7, "owner", Some(4)));
        // The futex that timed out is of the same object: its owner is known by the second sleep.
        assert_eq!((owner.time, of.timer), (ms(20), ms(20)));
    }

    #[test]
    fn a_stop_is_no_wait_for_anything_else() {
        let mut waits = EndedWaits::default();
        let stop = Some(Stop::Signal(19));
        let stopped = Waited { from: ms(20), woken: Woken::Unknown, stop, sleeps: Sleeps::Poll };
        waits.add_sleep(&stopped, ms(60), None);
        sleep(&mut waits, (60, 80), Woken::ByTimer, Sleeps::Poll);
        let of = waits.of(ms(10), ms(81));
        assert_eq!((of.stopped, of.stop, of.timer), (ms(40), stop, ms(30)));
        assert_eq!(waits.stopped(ms(50), ms(70)), (ms(10), stop));
    }
}
