//! A single request, as it ended; and the slowest of many.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use intervals::{Failure, Outcome, Phase, Timeline};
use units::{Code, Nanos};

/// A single request, as it ended. Intervals contain only sums of such requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptRequest {
    /// Its number in the run; requests of one journey share theirs.
    pub n: u64,
    /// The kind of request, by the run's numbering.
    pub kind: u16,
    /// Its connection's number in the run; `None` if it never had one.
    pub connection: Option<u32>,
    /// `None` if it was never written, or its connection is not TCP.
    pub carried: Option<Carried>,
    pub timeline: Timeline,
    /// When it ended, on the clock of the timeline: when its complete response was read, or when it failed.
    pub ended: Nanos,
    /// `None` if its response passed every check.
    pub failure: Option<Failure>,
    /// The server's own code in its response: an HTTP status, an SQLSTATE with its number.
    pub code: Option<Code>,
}

/// Which TCP connection carried a request, and its position on it: an observer at the server sees both too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// The client's end.
    pub local: SocketAddr,
    /// The server's end, as the client knows it.
    pub server: SocketAddr,
    /// How many requests were written to this connection before it, since it was opened.
    pub nth: u64,
}

impl KeptRequest {
    /// From its intended start to its end; for a request with a response this is the response time.
    #[inline]
    pub fn age(&self) -> Nanos {
        self.ended.saturating_sub(self.timeline.due_at())
    }

    /// How the request ended.
    pub fn outcome(&self) -> Outcome {
        self.failure.map_or(Outcome::Ok, |failure| failure.outcome)
    }

    /// The length of `phase`, or `None` if it did not take place.
    ///
    /// The phase in which a request failed lasted until its end, so that here too the phases add up to the age, to the
    /// nanosecond.
    pub fn phase(&self, phase: Phase) -> Option<Nanos> {
        if self.unfinished() != Some(phase) {
            return self.timeline.phase(phase);
        }
        Some(self.ended.saturating_sub(self.timeline.last()))
    }

    /// The phase in which it failed.
    fn unfinished(&self) -> Option<Phase> {
        let reached = self.timeline.current()?;
        // Phases of a connection that is being opened are timestamped when it is established; before that, only the
        // failure tells in which phase the request was.
        let failed = self.failure.map(|failure| failure.phase);
        Some(failed.filter(|&failed| failed > reached).unwrap_or(reached))
    }
}

/// The slowest of many requests, by age; of equally slow ones, those that came first.
#[derive(Debug, Clone)]
pub struct Slowest {
    most: usize,
    /// With the fastest of them on top.
    kept: BinaryHeap<Reverse<ByAge>>,
}

#[derive(Debug, Clone, Copy)]
struct ByAge(KeptRequest);

impl Slowest {
    /// Keeps the slowest `most`. Allocates all its memory at once, about 210 bytes per request.
    pub fn new(most: usize) -> Slowest {
        Slowest { most, kept: BinaryHeap::with_capacity(most) }
    }

    /// Whether a request of this age would be kept. To be called before a request is put together.
    #[inline]
    pub fn wants(&self, age: Nanos) -> bool {
        self.kept.len() < self.most || self.kept.peek().is_some_and(|Reverse(least)| least.0.age() < age)
    }

    /// Adds a request, if it is among the slowest so far.
    ///
    /// # Cost
    ///
    /// O(log n) for one that is kept, a comparison for any other.
    #[inline]
    pub fn offer(&mut self, request: &KeptRequest) {
        if !self.wants(request.age()) {
            return;
        }
        if self.kept.len() == self.most {
            self.kept.pop();
        }
        self.kept.push(Reverse(ByAge(*request)));
    }

    /// The kept requests, the slowest first.
    pub fn into_sorted(self) -> Vec<KeptRequest> {
        self.kept.into_sorted_vec().into_iter().map(|Reverse(ByAge(request))| request).collect()
    }
}

impl ByAge {
    fn key(&self) -> (Nanos, Reverse<(Nanos, u64)>) {
        (self.0.age(), Reverse((self.0.ended, self.0.n)))
    }
}

impl Ord for ByAge {
    fn cmp(&self, other: &ByAge) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for ByAge {
    fn partial_cmp(&self, other: &ByAge) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByAge {
    fn eq(&self, other: &ByAge) -> bool {
        self.key() == other.key()
    }
}

impl Eq for ByAge {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(n: u64, timeline: Timeline, ended: u64, failure: Option<Failure>) -> KeptRequest {
        KeptRequest {
            n,
            kind: 0,
            connection: None,
            carried: None,
            timeline,
            ended: Nanos(ended),
            failure,
            code: None,
        }
    }

    proptest! {
        /// Promise 1 for a request that failed: if this fails, the time of its last phase is not attributed.
        #[test]
        fn phases_sum_to_the_age_wherever_it_ended(
            steps in proptest::collection::vec((any::<bool>(), 0u64..1 << 40), 0..=Phase::COUNT),
            later in 0u64..1 << 40,
            failed in 0..Phase::COUNT
        ) {
            let mut timeline = Timeline::due(Nanos(7));
            for (phase, (present, at)) in Phase::ALL.into_iter().zip(&steps) {
                if *present { timeline.end(phase, Nanos(*at)); } else { timeline.skip(phase); }
            }
            let complete = timeline.is_complete();
            let failure = (!complete).then(|| Failure::new(Outcome::RequestTimeout, Phase::ALL[failed]));
            let ended = timeline.last().0 + if complete { 0 } else { later };
            let request = request(1, timeline, ended, failure);
            let sum: u64 = Phase::ALL.into_iter().filter_map(|phase| request.phase(phase)).map(|n| n.0).sum();
            prop_assert_eq!(Nanos(sum), request.age());
        }

        #[test]
        fn the_slowest_are_those_at_the_end_of_a_sorted_list(
            ages in proptest::collection::vec(0u64..50, 0..200),
            most in 1usize..40
        ) {
            let mut slowest = Slowest::new(most);
            for (n, &age) in ages.iter().enumerate() {
                slowest.offer(&request(n as u64, Timeline::due(Nanos(1_000)), 1_000 + age, None));
            }
            let mut sorted = ages;
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            sorted.truncate(most);
            let kept: Vec<u64> = slowest.into_sorted().iter().map(|request| request.age().0).collect();
            prop_assert_eq!(kept, sorted);
        }
    }
}
