//! The arrival process of a run: one schedule, of one constant rate or of several stages.

use std::sync::Arc;

use units::{Nanos, Rate};

use crate::stages::Stages;

/// An arrival process: when each request of a run is due, as an offset from the run's start.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Evenly spaced without end, the first at zero: exact, and the cheapest.
    Constant(Rate),
    /// Several stages, or one with randomness or an end.
    Staged(Arc<Stages>),
}

impl Arrivals {
    /// When request `n` is due; [`Nanos::MAX`] if there is no such request. Never decreases with `n`.
    ///
    /// Stateless; for a random process the cost grows with `n`. To walk along the schedule, use
    /// [`Cursor`](crate::Cursor).
    #[inline]
    pub fn due(&self, n: u64) -> Nanos {
        match self {
            Arrivals::Constant(rate) => rate.due(n),
            Arrivals::Staged(stages) => stages.due(n),
        }
    }

    /// How many requests are due strictly before `end`.
    pub fn count_before(&self, end: Nanos) -> u64 {
        match self {
            Arrivals::Constant(rate) => rate.count_before(end),
            Arrivals::Staged(stages) => stages.count_before(end),
        }
    }

    /// The total number of requests; `None` if the schedule has no end.
    pub fn total(&self) -> Option<u64> {
        match self {
            Arrivals::Constant(_) => None,
            Arrivals::Staged(stages) => Some(stages.total()).filter(|&total| total < u64::MAX),
        }
    }

    /// When the schedule ends; `None` if it has no end.
    pub fn end(&self) -> Option<Nanos> {
        match self {
            Arrivals::Constant(_) => None,
            Arrivals::Staged(stages) => stages.end(),
        }
    }

    /// The seed, if the schedule depends on one.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Arrivals::Constant(_) => None,
            Arrivals::Staged(stages) => {
                stages.iter().any(|(stage, ..)| stage.is_random()).then(|| stages.seed())
            }
        }
    }
}
