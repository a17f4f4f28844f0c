//! What a thread of the server did for other requests while one of them waited for it.
//!
//! A request that lies unread, or that an event loop has read and left, waits either for nothing or behind others.
//! The others are known: those that the same thread served meanwhile, and where their time went.

use std::collections::HashMap;

use record::{Part, Served};

/// Time of others within a wait, by what they did: on a CPU, blocked, without a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Others([u64; 3]);

impl Others {
    /// As it fits into `length`: scaled down where others overlapped each other.
    pub(crate) fn within(self, length: u64) -> [u64; 3] {
        let sum: u128 = self.0.iter().map(|&ns| u128::from(ns)).sum();
        if sum <= u128::from(length) {
            return self.0;
        }
        // Rounded down, so that they never pass the length: what is left over stays a plain wait.
        self.0.map(|ns| (u128::from(ns) * u128::from(length) / sum) as u64)
    }

    fn add(&mut self, served: &Served, overlap: u64) {
        let length = served.response().0;
        if length == 0 {
            return;
        }
        let share = |ns: u64| (u128::from(ns) * u128::from(overlap) / u128::from(length)) as u64;
        for part in Part::ALL {
            let kind = match part {
                Part::OnCpu | Part::Stolen | Part::Yielded => 0,
                Part::Disk | Part::Lock | Part::Network | Part::Other => 1,
                Part::RunQueue | Part::Throttled => 2,
                // Then the thread was with somebody else again, or with nobody.
                Part::LoopWait => continue,
            };
            self.0[kind] = self.0[kind].saturating_add(share(served.part(part).0));
        }
    }
}

/// Of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Behind {
    /// While it lay unread.
    pub(crate) queue: Others,
    /// While it had been read.
    pub(crate) waits: Others,
}

/// The requests of each thread, by their reads.
pub(crate) struct Threads<'a> {
    served: &'a [Served],
    by_thread: HashMap<(u32, u32), Thread>,
}

struct Thread {
    /// Places in `served`, in the order of their reads.
    places: Vec<usize>,
    longest: u64,
}

/// How many others of a thread are looked at for one request: an event loop may have thousands under way, and of
/// so many the next ones tell nothing new.
const MOST_OTHERS: usize = 512;

impl<'a> Threads<'a> {
    pub(crate) fn new(served: &'a [Served]) -> Threads<'a> {
        let mut by_thread: HashMap<(u32, u32), Thread> = HashMap::new();
        for (place, request) in served.iter().enumerate() {
            let thread = by_thread
                .entry((request.pid, request.tid))
                .or_insert_with(|| Thread { places: Vec::new(), longest: 0 });
            thread.places.push(place);
            thread.longest = thread.longest.max(request.response().0);
        }
        for thread in by_thread.values_mut() {
            thread.places.sort_by_key(|&place| served[place].read);
        }
        Threads { served, by_thread }
    }

    /// What its thread did for others while the request at `place` waited.
    ///
    /// # Cost
    ///
    /// As many steps as its thread had requests under way, [`MOST_OTHERS`] at most.
    pub(crate) fn behind(&self, place: usize) -> Behind {
        let request = &self.served[place];
        let mut behind = Behind::default();
        let Some(thread) = self.by_thread.get(&(request.pid, request.tid)) else { return behind };
        let arrived = request.arrived.unwrap_or(request.read);
        let earliest = arrived.0.saturating_sub(thread.longest);
        let first = thread.places.partition_point(|&other| self.served[other].read.0 < earliest);
        let others = thread.places[first..].iter().filter(|&&other| other != place);
        for other in others.map(|&other| &self.served[other]).take(MOST_OTHERS) {
            if other.read >= request.done {
                break;
            }
            let overlap = |from: u64, to: u64| other.done.0.min(to).saturating_sub(other.read.0.max(from));
            behind.queue.add(other, overlap(arrived.0, request.read.0));
            behind.waits.add(other, overlap(request.read.0, request.done.0));
        }
        behind
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ledger::tests::served;

    #[test]
    fn a_request_that_lies_unread_behind_a_handler_s_work_is_known() {
        // The thread works from 0 to 50 ms for the first; the second came at 10 ms and is read at 50 ms.
        let mut requests = [served(0, 0, 50), served(10, 50, 51)];
        let behind = Threads::new(&requests).behind(1);
        assert_eq!(behind.queue.within(40_000_000), [40_000_000, 0, 0]);
        assert_eq!(behind.waits, Others::default());
        requests[0].tid += 1;
        assert_eq!(Threads::new(&requests).behind(1), Behind::default());
    }

    proptest! {
        #[test]
        fn others_never_take_more_than_the_wait(parts in any::<[u64; 3]>(), length in any::<u64>()) {
            let parts = Others(parts.map(|ns| ns >> 2));
            prop_assert!(parts.within(length).iter().sum::<u64>() <= length);
        }
    }
}
