//! What the sinks see of the run: its totals, and how far it is.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use export::{Facts, Snapshot};
use record::{Interval, Second};
use units::Nanos;

/// What the threads of the sinks share with the collector's.
#[derive(Default)]
pub(super) struct State {
    pub(super) run: Mutex<Run>,
    stage: Mutex<RunStage>,
    moved_on: Condvar,
}

/// How far the run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunStage {
    #[default]
    Running,
    /// All figures are known.
    Ended,
    /// Nobody is waited for any more.
    Over,
}

#[derive(Default)]
pub(super) struct Run {
    pub(super) facts: Option<Facts>,
    pub(super) total: Interval,
    pub(super) last: Option<Second>,
    pub(super) at: Nanos,
}

impl State {
    /// Makes something of the run as it stands; `None` before it has begun.
    pub(super) fn snapshot<T>(&self, make: impl FnOnce(&Snapshot<'_>) -> T) -> Option<T> {
        // Copied under the lock and rendered outside of it.
        let (facts, total, last, at) = {
            let run = self.lock();
            (run.facts.clone()?, run.total.clone(), run.last.clone(), run.at)
        };
        Some(make(&Snapshot { facts: &facts, total: &total, last: last.as_ref(), at }))
    }

    /// Whether the run ends within this time.
    pub(super) fn ends_within(&self, time: Duration) -> bool {
        self.reaches_within(RunStage::Ended, time)
    }

    /// Whether nobody is waited for any more within this time.
    pub(super) fn is_over_within(&self, time: Duration) -> bool {
        self.reaches_within(RunStage::Over, time)
    }

    fn reaches_within(&self, wanted: RunStage, time: Duration) -> bool {
        let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.moved_on.wait_timeout_while(stage, time, |stage| *stage < wanted);
        *waited.unwrap_or_else(PoisonError::into_inner).0 >= wanted
    }

    /// A scraper has the last totals, or will not come.
    pub(super) fn close(&self) {
        self.reach(RunStage::Over);
    }

    pub(super) fn reach(&self, stage: RunStage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        self.moved_on.notify_all();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Run> {
        // A sink that panicked changed nothing.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
