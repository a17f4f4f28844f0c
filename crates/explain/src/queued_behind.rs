//! What a thread of the server did for other requests while a request waited for it.
//!
//! A request that is unread in the socket, or that an event loop has read and not worked on, waits either for no reason
//! or behind others. The others are known: those that the same thread served in the meantime, and where their time
//! went.

use std::collections::HashMap;

use record::{Part, Served};

use crate::place::Segment;

/// What others may have used the thread's time for.
const KINDS: [Segment; 5] = [
    Segment::BehindCpu,
    Segment::BehindBlocked,
    Segment::BehindRunQueue,
    Segment::BehindThrottled,
    Segment::BehindStolen,
];

/// Time of others within a wait, in the order of [`KINDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Others([u64; KINDS.len()]);

impl Others {
    /// Fitted into `length`: scaled down if others overlapped each other.
    pub(crate) fn within(self, length: u64) -> [(Segment, u64); KINDS.len()] {
        let sum: u128 = self.0.iter().map(|&ns| u128::from(ns)).sum();
        // Rounded down, so that the sum never exceeds the length: the remainder stays a plain wait.
        let fitting = |ns: u64| {
            if sum <= u128::from(length) { ns } else { (u128::from(ns) * u128::from(length) / sum) as u64 }
        };
        std::array::from_fn(|kind| (KINDS[kind], fitting(self.0[kind])))
    }

    fn add(&mut self, served: &Served, overlap: u64) {
        let length = served.response().0;
        if length == 0 {
            return;
        }
        let share = |ns: u64| (u128::from(ns) * u128::from(overlap) / u128::from(length)) as u64;
        for part in Part::ALL {
            let kind = match part {
                Part::OnCpu | Part::Yielded => Segment::BehindCpu,
                Part::Disk | Part::Lock | Part::Network | Part::Other => Segment::BehindBlocked,
                Part::RunQueue => Segment::BehindRunQueue,
                Part::Throttled => Segment::BehindThrottled,
                Part::Stolen => Segment::BehindStolen,
                // The thread was busy with another request at that time, or idle.
                Part::LoopWait => continue,
            };
            let ns = served.part(part);
            if part == Part::RunQueue {
                self.put(Segment::BehindCpu, share((ns - served.contended).0));
                self.put(kind, share(served.contended.0));
            } else {
                self.put(kind, share(ns.0));
            }
        }
    }

    fn put(&mut self, kind: Segment, ns: u64) {
        let at = KINDS.iter().position(|&one| one == kind).expect("every kind that is put is in the list");
        self.0[at] = self.0[at].saturating_add(ns);
    }
}

/// Time that one request waited for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Behind {
    /// While it was unread.
    pub(crate) queue: Others,
    /// After it had been read.
    pub(crate) waits: Others,
}

/// The requests of each thread, ordered by their reads.
pub(crate) struct Threads<'a> {
    served: &'a [Served],
    by_thread: HashMap<(u32, u32), Thread>,
}

struct Thread {
    /// Indices into `served`, ordered by their reads.
    places: Vec<usize>,
    /// For each position, when it and all before it were done.
    until: Vec<u64>,
}

/// Maximum number of a thread's other requests that are examined for one request, the latest first: an event loop may
/// have thousands in progress, and with so many, earlier ones add nothing.
const MOST_OTHERS: usize = 2_048;

impl<'a> Threads<'a> {
    pub(crate) fn new(served: &'a [Served]) -> Threads<'a> {
        let mut by_thread: HashMap<(u32, u32), Thread> = HashMap::new();
        for (place, request) in served.iter().enumerate() {
            let thread = by_thread
                .entry((request.pid, request.tid))
                .or_insert_with(|| Thread { places: Vec::new(), until: Vec::new() });
            thread.places.push(place);
        }
        for thread in by_thread.values_mut() {
            thread.places.sort_by_key(|&place| served[place].read);
            let mut last = 0;
            thread.until.extend(thread.places.iter().map(|&place| {
                last = served[place].done.0.max(last);
                last
            }));
        }
        Threads { served, by_thread }
    }

    /// What its thread did for others while the request at `place` waited.
    ///
    /// # Cost
    ///
    /// As many steps as its thread had requests in progress, at most [`MOST_OTHERS`].
    pub(crate) fn behind(&self, place: usize) -> Behind {
        let request = &self.served[place];
        let mut behind = Behind::default();
        let Some(thread) = self.by_thread.get(&(request.pid, request.tid)) else { return behind };
        let arrived = request.arrived.unwrap_or(request.read);
        let end = thread.places.partition_point(|&other| self.served[other].read < request.done);
        for at in (0..end).rev().take(MOST_OTHERS) {
            if thread.until[at] < arrived.0 {
                break;
            }
            let other = &self.served[thread.places[at]];
            if thread.places[at] == place {
                continue;
            }
            let overlap = |from: u64, to: u64| other.done.0.min(to).saturating_sub(other.read.0.max(from));
            behind.queue.add(other, overlap(arrived.0, request.read.0));
            behind.waits.add(other, overlap(request.read.0, request.done.0));
            if (arrived..=request.read).contains(&other.read) {
                behind.wait_with(other, arrived.0);
            }
        }
        behind
    }
}

impl Behind {
    /// A thread that wakes up late reads everything that has arrived in the meantime, one request after the other: the
    /// time that it waited for a CPU or quota before the first one was waiting time of the others, too.
    fn wait_with(&mut self, first: &Served, arrived: u64) {
        let queued = first.read.0.saturating_sub(arrived);
        let run_queue = first.socket_run_queue.0.min(queued);
        let contended = first.socket_contended.0.min(run_queue);
        self.queue.put(Segment::BehindRunQueue, contended);
        self.queue.put(Segment::BehindCpu, run_queue - contended);
        self.queue.put(Segment::BehindThrottled, first.socket_throttled.0.min(queued - run_queue));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Nanos;

    use super::*;
    use crate::fixture::served;

    #[test]
    fn a_request_that_lies_unread_behind_a_handler_s_work_is_known() {
        // The thread works on the first from 0 to 50 ms; the second arrived at 10 ms and is read at 50 ms.
        let mut requests = [served(0, 0, 50), served(10, 50, 51)];
        let behind = Threads::new(&requests).behind(1);
        assert_eq!(behind.queue.within(40_000_000)[0], (Segment::BehindCpu, 40_000_000));
        assert_eq!(behind.waits, Others::default());
        requests[0].tid += 1;
        assert_eq!(Threads::new(&requests).behind(1), Behind::default());
    }

    /// If this fails, a server that waits for a CPU or its quota is reported as one that does not read.
    #[test]
    fn those_that_are_read_after_a_late_wake_waited_for_the_cpu_too() {
        // The thread wakes up at 10 ms and reads three requests that arrived at 2, 3 and 4 ms.
        let mut requests = [served(2, 10, 11), served(3, 11, 12), served(4, 12, 13)];
        requests[0].socket_run_queue = Nanos::from_millis(5);
        requests[0].socket_contended = Nanos::from_millis(5);
        requests[0].socket_throttled = Nanos::from_millis(3);
        let threads = Threads::new(&requests);
        for (place, throttled, worked) in [(1, 2_000_000, 1_000_000), (2, 1_000_000, 2_000_000)] {
            let queue = threads.behind(place).queue.within(u64::MAX);
            let expected = [worked, 0, 5_000_000, throttled, 0];
            assert_eq!(queue.map(|(_, ns)| ns), expected, "request {place}");
        }
        assert_eq!(threads.behind(0).queue, Others::default());
    }

    #[test]
    fn what_throttled_or_stole_from_others_is_no_work_of_theirs() {
        let mut requests = [served(0, 0, 50), served(10, 50, 51)];
        requests[0].parts = [Nanos::ZERO; Part::COUNT];
        requests[0].parts[Part::Throttled as usize] = Nanos::from_millis(30);
        requests[0].parts[Part::Stolen as usize] = Nanos::from_millis(20);
        let queue = Threads::new(&requests).behind(1).queue.within(40_000_000);
        assert_eq!(queue.map(|(_, ns)| ns), [0, 0, 0, 24_000_000, 16_000_000]);
    }

    /// A request that was in progress for long must not lead to examining everything served in the meantime, and
    /// missing the one that was in the way.
    #[test]
    fn one_long_request_does_not_hide_the_others() {
        let mut requests = vec![served(0, 0, 100_000)];
        requests[0].parts = [Nanos::ZERO; Part::COUNT];
        requests[0].parts[Part::LoopWait as usize] = requests[0].response();
        requests.extend((1..5_000).map(|at| served(at, at, at)));
        requests.extend([served(5_000, 5_000, 5_050), served(5_010, 5_050, 5_051)]);
        let behind = Threads::new(&requests).behind(requests.len() - 1);
        assert_eq!(behind.queue.within(u64::MAX)[0], (Segment::BehindCpu, 40_000_000));
    }

    proptest! {
        #[test]
        fn others_never_take_more_than_the_wait(parts in any::<[u64; 5]>(), length in any::<u64>()) {
            let taken: u128 = Others(parts).within(length).iter().map(|(_, ns)| u128::from(*ns)).sum();
            prop_assert!(taken <= u128::from(length));
        }
    }
}
