//! A clock that moves only when a test moves it.

use std::cell::Cell;
use std::rc::Rc;

use units::Nanos;

use crate::Clock;

/// Simulated time. Clones share the time: moving one moves all.
#[derive(Debug, Clone, Default)]
pub struct SimClock(Rc<Cell<Nanos>>);

impl SimClock {
    /// A clock that reads `now`.
    pub fn starting_at(now: Nanos) -> SimClock {
        SimClock(Rc::new(Cell::new(now)))
    }

    /// Moves to `to`.
    ///
    /// # Panics
    ///
    /// When `to` is in the past.
    pub fn advance_to(&self, to: Nanos) {
        assert!(to >= self.0.get(), "simulated time may not run backwards: {:?} to {to:?}", self.0.get());
        self.0.set(to);
    }

    /// Moves forward by `by`.
    pub fn advance_by(&self, by: Nanos) {
        self.advance_to(self.0.get() + by);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Nanos {
        self.0.get()
    }
}
