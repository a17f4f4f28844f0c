//! The state of the run that sinks read: its totals and its stage.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use export::{Facts, Snapshot};
use record::{Interval, Second};
use units::Nanos;

/// Shared by the sinks' threads and the collector's.
#[derive(Default)]
pub(super) struct State {
    pub(super) run: Mutex<Run>,
    stage: Mutex<RunStage>,
    moved_on: Condvar,
}

/// The stage of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunStage {
    #[default]
    Running,
    /// The run has ended; all figures are final.
    Ended,
    /// Sinks must end now.
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
    /// Calls `make` with the current state of the run; `None` before the run has begun.
    pub(super) fn snapshot<T>(&self, make: impl FnOnce(&Snapshot<'_>) -> T) -> Option<T> {
        // Copied under the lock and rendered outside of it.
        let (facts, total, last, at) = {
            let run = self.lock();
            (run.facts.clone()?, run.total.clone(), run.last.clone(), run.at)
        };
        Some(make(&Snapshot { facts: &facts, total: &total, last: last.as_ref(), at }))
    }

    /// Waits for at most `time`; returns whether the run has ended.
    pub(super) fn ends_within(&self, time: Duration) -> bool {
        self.reaches_within(RunStage::Ended, time)
    }

    /// Waits for at most `time`; returns whether sinks must end.
    pub(super) fn is_over_within(&self, time: Duration) -> bool {
        self.reaches_within(RunStage::Over, time)
    }

    fn reaches_within(&self, wanted: RunStage, time: Duration) -> bool {
        let stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.moved_on.wait_timeout_while(stage, time, |stage| *stage < wanted);
        *waited.unwrap_or_else(PoisonError::into_inner).0 >= wanted
    }

    /// Ends the wait for a last scrape: it happened, or will not happen.
    pub(super) fn close(&self) {
        self.reach(RunStage::Over);
    }

    pub(super) fn reach(&self, stage: RunStage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        self.moved_on.notify_all();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Run> {
        // Ignores poisoning: a sink that panicked has changed nothing.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
