//! A clock that advances only when a test advances it.

use std::cell::Cell;
use std::rc::Rc;

use units::Nanos;

use crate::Clock;

/// Simulated time. Clones share the time: advancing one advances all.
#[derive(Debug, Clone, Default)]
pub struct SimClock(Rc<Cell<Nanos>>);

impl SimClock {
    /// A clock that reads `now`.
    pub fn starting_at(now: Nanos) -> SimClock {
        SimClock(Rc::new(Cell::new(now)))
    }

    /// Advances to `to`.
    ///
    /// # Panics
    ///
    /// If `to` is in the past.
    pub fn advance_to(&self, to: Nanos) {
        assert!(to >= self.0.get(), "simulated time may not run backwards: {:?} to {to:?}", self.0.get());
        self.0.set(to);
    }

    /// Advances by `by`.
    pub fn advance_by(&self, by: Nanos) {
        self.advance_to(self.0.get() + by);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Nanos {
        self.0.get()
    }
}
