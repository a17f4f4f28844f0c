//! The timestamps of one request. Phases are the gaps between neighbors, so they add up to the response time by
//! construction.

use units::Nanos;

use crate::phase::{Edge, Phase};

/// The timestamps of one request, all on the monotonic clock.
///
/// Edges are timestamped in order. An edge that a request never passes (no TLS, an open connection, no kernel
/// timestamp) gets the time of the edge before it, and its phase is marked absent: it has no length, which is not the
/// same as a length of zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    at: [Nanos; Edge::COUNT],
    /// One bit per phase, set if it took place.
    present: u16,
    /// How many edges have been timestamped or skipped.
    len: u8,
}

impl Timeline {
    /// A request that was due at `intended`.
    #[inline]
    pub fn due(intended: Nanos) -> Timeline {
        let mut at = [Nanos::ZERO; Edge::COUNT];
        at[0] = intended;
        Timeline { at, present: 0, len: 1 }
    }

    /// Timestamps the end of `phase`. Phases between the last timestamp and this one are marked absent.
    ///
    /// A timestamp before its predecessor is moved to it: the kernel's timestamps come from another clock, paired to
    /// within nanoseconds, and a response can arrive before the call that sent the last byte of the request has
    /// returned. Returns by how much it was moved.
    ///
    /// # Panics
    ///
    /// In debug builds, if `phase` has already ended.
    #[inline]
    pub fn end(&mut self, phase: Phase, at: Nanos) -> Nanos {
        let edge = phase.end() as usize;
        debug_assert!(edge >= self.len as usize, "{phase:?} has already ended");
        let last = self.last();
        for skipped in self.len as usize..edge {
            self.at[skipped] = last;
        }
        let held = at.max(last);
        self.at[edge] = held;
        self.present |= 1 << phase as u16;
        self.len = edge as u8 + 1;
        held - at
    }

    /// Marks `phase` absent: it ends where it began.
    #[inline]
    pub fn skip(&mut self, phase: Phase) {
        let edge = phase.end() as usize;
        debug_assert!(edge >= self.len as usize, "{phase:?} has already ended");
        let last = self.last();
        for skipped in self.len as usize..=edge {
            self.at[skipped] = last;
        }
        self.len = edge as u8 + 1;
    }

    /// Moves the end of `phase` back to `at` if it is later, but not before the previous edge.
    ///
    /// For the one case in which a later fact corrects an earlier timestamp: when the first byte of the response has
    /// arrived, the last byte of the request cannot have been accepted after that.
    ///
    /// # Panics
    ///
    /// In debug builds, if `phase` is not the last one that ended.
    #[inline]
    pub fn pull_back(&mut self, phase: Phase, at: Nanos) {
        let edge = phase.end() as usize;
        debug_assert_eq!(edge + 1, self.len as usize, "{phase:?} is not the last phase ended");
        self.at[edge] = self.at[edge].min(at).max(self.at[edge - 1]);
    }

    /// The time of an edge that has been passed or skipped.
    #[inline]
    pub fn at(&self, edge: Edge) -> Option<Nanos> {
        ((edge as u8) < self.len).then(|| self.at[edge as usize])
    }

    /// The intended start.
    #[inline]
    pub fn due_at(&self) -> Nanos {
        self.at[0]
    }

    /// The last timestamp.
    #[inline]
    pub fn last(&self) -> Nanos {
        self.at[self.len as usize - 1]
    }

    /// The phase that the request is in: the first that has not ended, or `None` if it is complete.
    pub fn current(&self) -> Option<Phase> {
        Phase::ALL.get(self.len as usize - 1).copied()
    }

    /// The length of a phase, or `None` if it is absent or has not ended.
    #[inline]
    pub fn phase(&self, phase: Phase) -> Option<Nanos> {
        let end = phase.end() as usize;
        (self.present & (1 << phase as u16) != 0).then(|| self.at[end] - self.at[end - 1])
    }

    /// Whether all ten phases have ended or were skipped.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.len as usize == Edge::COUNT
    }

    /// From the intended start to the last timestamp; for a complete request, its response time.
    #[inline]
    pub fn response(&self) -> Nanos {
        self.last() - self.at[0]
    }

    /// The service time of a complete request: first byte sent → last byte arrived.
    #[inline]
    pub fn service(&self) -> Nanos {
        debug_assert!(self.is_complete());
        self.at[Edge::LastArrived as usize] - self.at[Edge::Ready as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Promise 1: if this fails, time is lost or counted twice between the phases.
        #[test]
        fn phases_sum_to_the_response(
            intended in 0u64..1 << 40,
            steps in proptest::collection::vec((any::<bool>(), 0u64..1 << 40), Phase::COUNT)
        ) {
            let mut timeline = Timeline::due(Nanos(intended));
            for (phase, (present, at)) in Phase::ALL.into_iter().zip(steps) {
                if present {
                    timeline.end(phase, Nanos(at));
                } else {
                    timeline.skip(phase);
                }
            }
            prop_assert!(timeline.is_complete());
            let sum: u64 = Phase::ALL.into_iter().filter_map(|p| timeline.phase(p)).map(|n| n.0).sum();
            prop_assert_eq!(Nanos(sum), timeline.response());
        }
    }

    #[test]
    fn an_absent_phase_is_not_a_phase_of_zero() {
        let mut timeline = Timeline::due(Nanos(100));
        timeline.end(Phase::ScheduleLag, Nanos(100));
        timeline.end(Phase::PoolWait, Nanos(105));
        timeline.end(Phase::Send, Nanos(120));
        assert_eq!(timeline.phase(Phase::ScheduleLag), Some(Nanos(0)));
        assert_eq!(timeline.phase(Phase::Connect), None);
        assert_eq!(timeline.phase(Phase::Send), Some(Nanos(15)));
        assert_eq!(timeline.current(), Some(Phase::Wait));
    }

    /// On loopback the response can arrive before the write that sent the request returns.
    #[test]
    fn an_answer_that_overtakes_the_send_ends_it() {
        let mut timeline = Timeline::due(Nanos(0));
        timeline.end(Phase::PoolWait, Nanos(10));
        timeline.end(Phase::Send, Nanos(30));
        timeline.pull_back(Phase::Send, Nanos(25));
        timeline.end(Phase::Wait, Nanos(25));
        assert_eq!(timeline.phase(Phase::Send), Some(Nanos(15)));
        assert_eq!(timeline.phase(Phase::Wait), Some(Nanos(0)));
    }
}
