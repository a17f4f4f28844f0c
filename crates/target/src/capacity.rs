//! A planted capacity: a token bucket in front of a route, one for the whole server. Touches no socket and reads no
//! clock; `responses.rs` consults it for each request to `/capacity`.
//!
//! Slots are given out on an absolute schedule from the instant at which the bucket was last full: however late a
//! thread of this server wakes, no capacity is lost or gained, so the planted value is the truth.

use std::sync::{Mutex, PoisonError};

use units::{Nanos, Rate};

/// At most `rate` requests are served, in addition to `burst` that find the bucket full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub rate: Rate,
    /// Requests served at once after an idle period; at least 1.
    pub burst: u64,
    pub over: Over,
}

/// What happens to a request that finds the bucket empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// It is held until its slot comes, after all that came before it.
    Queue,
    /// It gets a 503 at once, and uses no slot.
    Refuse,
    /// It gets its response this long after its arrival, and uses no slot.
    Slow(Nanos),
}

/// What was decided about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    AtOnce,
    /// It is queued until then.
    Held(Nanos),
    Refused,
    /// It is slowed down until then.
    Slowed(Nanos),
}

/// How often each decision was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Admissions {
    /// Served at once.
    pub at_once: u64,
    /// Queued for a later slot.
    pub held: u64,
    /// Refused with 503.
    pub refused: u64,
    /// Served later on purpose, without a slot.
    pub slowed: u64,
}

impl Admissions {
    pub(crate) fn count(&mut self, admission: Admission) {
        *match admission {
            Admission::AtOnce => &mut self.at_once,
            Admission::Held(_) => &mut self.held,
            Admission::Refused => &mut self.refused,
            Admission::Slowed(_) => &mut self.slowed,
        } += 1;
    }

    pub(crate) fn merge(&mut self, other: &Admissions) {
        self.at_once += other.at_once;
        self.held += other.held;
        self.refused += other.refused;
        self.slowed += other.slowed;
    }
}

/// The buckets of a server, one per requested capacity. The only data that threads share while they serve, and used
/// only by requests to `/capacity`: one bucket per thread would be another capacity.
#[derive(Debug, Default)]
pub(crate) struct Buckets(Mutex<Vec<Bucket>>);

#[derive(Debug)]
struct Bucket {
    capacity: Capacity,
    /// When it was last full.
    full_at: Nanos,
    /// Slots given out since then.
    given: u64,
}

impl Buckets {
    /// Decides about a request that arrived at `arrival`.
    pub(crate) fn admit(&self, capacity: Capacity, arrival: Nanos) -> Admission {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.iter_mut().find(|bucket| bucket.capacity == capacity) {
            return bucket.admit(arrival);
        }
        if buckets.len() >= MOST_BUCKETS {
            // A full bucket is equal to a new one, so nothing is lost by dropping it.
            buckets.retain(|bucket| !bucket.is_full(arrival));
        }
        if buckets.len() >= MOST_BUCKETS {
            return Admission::Refused;
        }
        let mut bucket = Bucket { capacity, full_at: arrival, given: 0 };
        let admission = bucket.admit(arrival);
        buckets.push(bucket);
        admission
    }
}

impl Bucket {
    fn is_full(&self, now: Nanos) -> bool {
        now >= self.full_at.saturating_add(self.capacity.rate.due(self.given))
    }

    fn admit(&mut self, arrival: Nanos) -> Admission {
        if self.is_full(arrival) {
            (self.full_at, self.given) = (arrival, 0);
        }
        let Capacity { rate, burst, over } = self.capacity;
        // Slot n comes when the token has been added that the burst did not already have.
        let waiting = self.given.saturating_sub(burst - 1);
        let place = self.full_at.saturating_add(rate.due(waiting));
        if place <= arrival {
            self.given += 1;
            return Admission::AtOnce;
        }
        match over {
            Over::Queue => {
                self.given += 1;
                Admission::Held(place)
            }
            Over::Refuse => Admission::Refused,
            Over::Slow(by) => Admission::Slowed(arrival.saturating_add(by)),
        }
    }
}

/// Far more than any test plants; a peer that requests new ones for ever uses no more memory than this.
const MOST_BUCKETS: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capacity(rate: &str, burst: u64, over: Over) -> Capacity {
        Capacity { rate: rate.parse().unwrap(), burst, over }
    }

    /// When each request that arrives at these microseconds is released; `None`: refused.
    fn leaves(capacity: Capacity, arrivals_us: &[u64]) -> Vec<Option<u64>> {
        let buckets = Buckets::default();
        let leave = |&us: &u64| match buckets.admit(capacity, Nanos::from_micros(us)) {
            Admission::AtOnce => Some(us),
            Admission::Held(at) | Admission::Slowed(at) => Some(at.0 / 1_000),
            Admission::Refused => None,
        };
        arrivals_us.iter().map(leave).collect()
    }

    /// If this fails, the planted capacity differs from the requested one, and every search is judged by a wrong value.
    #[test]
    fn a_queue_is_paced_by_its_own_schedule() {
        let queue = capacity("1000/s", 1, Over::Queue);
        // Four at once are released a millisecond apart; one that comes at 3.5 ms waits for the slot at 4 ms; one
        // that comes to an idle server is released at once.
        assert_eq!(
            leaves(queue, &[0, 0, 0, 0, 3_500, 9_000]),
            [0, 1_000, 2_000, 3_000, 4_000, 9_000].map(Some)
        );
    }

    #[test]
    fn a_burst_is_served_from_store() {
        let queue = capacity("1000/s", 3, Over::Queue);
        assert_eq!(leaves(queue, &[0, 0, 0, 0, 0]), [0, 0, 0, 1_000, 2_000].map(Some));
        // By 3.5 ms, three of five tokens are back and two of them are taken: one is in store.
        assert_eq!(
            leaves(queue, &[0, 0, 0, 0, 0, 3_500, 3_500]),
            [0, 0, 0, 1_000, 2_000, 3_500, 4_000].map(Some)
        );
    }

    #[test]
    fn a_refused_or_slowed_request_takes_no_slot() {
        let refuse = capacity("1000/s", 1, Over::Refuse);
        assert_eq!(leaves(refuse, &[0, 0, 999, 1_000, 1_500]), [Some(0), None, None, Some(1_000), None]);
        let slow = capacity("1000/s", 1, Over::Slow(Nanos::from_millis(50)));
        assert_eq!(leaves(slow, &[0, 0, 1_000]), [0, 50_000, 1_000].map(Some));
    }

    #[test]
    fn capacities_are_independent_and_their_number_is_bounded() {
        let buckets = Buckets::default();
        let nth = |n: u64| Capacity { rate: Rate::per_second(n + 1).unwrap(), burst: 1, over: Over::Queue };
        for n in 0..MOST_BUCKETS as u64 {
            assert_eq!(buckets.admit(nth(n), Nanos::ZERO), Admission::AtOnce);
        }
        assert_eq!(buckets.admit(nth(1_000), Nanos::ZERO), Admission::Refused);
        // After half a second, all but the slowest two are full again.
        let later = Nanos::from_millis(500);
        assert_eq!(buckets.admit(nth(1_000), later), Admission::AtOnce);
        assert_eq!(buckets.admit(nth(0), later), Admission::Held(Nanos::from_secs(1)));
    }

    proptest! {
        /// However requests arrive, fewer than `burst + rate · T + 1` of them are released within any time T, they stay
        /// in order, and none waits while a slot is free: 1000/s is busy for exactly a millisecond per request.
        #[test]
        fn a_queue_never_exceeds_its_rate_and_never_idles(
            gaps in prop::collection::vec(0u64..3_000, 1..200), burst in 1u64..5
        ) {
            let mut at = 0;
            let arrivals: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
            let queue = capacity("1000/s", burst, Over::Queue);
            let left: Vec<u64> = leaves(queue, &arrivals).into_iter().map(Option::unwrap).collect();
            prop_assert!(left.windows(2).all(|pair| pair[0] <= pair[1]));
            let burst = burst as usize;
            for n in burst..left.len() {
                prop_assert!(left[n] - left[n - burst] >= 1_000);
            }
            for (n, (&arrival, &leave)) in arrivals.iter().zip(&left).enumerate() {
                prop_assert!(leave >= arrival);
                if leave > arrival {
                    // Every held request is released as soon as the schedule allows, to the nanosecond.
                    prop_assert_eq!(leave - left[n - 1].max(left[n.saturating_sub(burst)]) <= 1_000, true);
                }
            }
        }
    }
}
