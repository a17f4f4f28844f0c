//! A clock that moves only when told.

use std::cell::Cell;
use std::rc::Rc;

use units::Nanos;

use crate::Clock;

/// Simulated time. Clones share one hand: moving one moves all.
#[derive(Debug, Clone, Default)]
pub struct SimClock(Rc<Cell<Nanos>>);

impl SimClock {
    pub fn starting_at(now: Nanos) -> SimClock {
        SimClock(Rc::new(Cell::new(now)))
    }

    /// Moves to `to`; never backwards.
    pub fn advance_to(&self, to: Nanos) {
        assert!(to >= self.0.get(), "simulated time may not run backwards: {:?} to {to:?}", self.0.get());
        self.0.set(to);
    }

    pub fn advance_by(&self, by: Nanos) {
        self.advance_to(self.0.get() + by);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Nanos {
        self.0.get()
    }
}
