//! What can be done to a run in progress: pause it, change its tempo, end it in order, or stop it at once.
//!
//! A change takes effect slightly in the future, at the same instant for all workers, so their shares remain parts of
//! one schedule. Workers check one number per turn of their loop, and take the lock only if it has changed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use units::Nanos;

use crate::plan::{Load, RunPlan};
use crate::tempo::{ScheduleClock, Tempo};

/// How far ahead a change takes effect. A worker that runs checks again within a few microseconds of the lock becoming
/// free. One that learns of a change late has taken requests by the old schedule; they are not taken again, since
/// requests are counted.
const AHEAD: Nanos = Nanos::from_millis(50);

/// A change that can be ordered in a run in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Stops the schedule; what is in progress continues.
    Pause,
    /// Continues the schedule at the tempo it had.
    Resume,
    /// Multiplies the planned rate by this factor. Has no meaning in a closed loop.
    Tempo(Tempo),
    /// Nothing more becomes due; what is in progress is drained as at the planned end of a run.
    End,
}

/// An order that took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Offset from the run's zero.
    pub at: Nanos,
    pub order: Order,
}

/// The handle on a run in progress, shared with its workers.
#[derive(Debug, Default)]
pub struct Controls {
    stop: Arc<AtomicBool>,
    generation: AtomicU64,
    steering: Mutex<Steering>,
}

/// The result of all orders so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steering {
    /// The run's zero; `None` before the run has begun.
    start: Option<Nanos>,
    pub(crate) clock: ScheduleClock,
    /// Nothing at or after this offset becomes due.
    pub(crate) end: Option<Nanos>,
    tempo: Option<Tempo>,
    paused: bool,
    changes: Vec<Change>,
}

impl Controls {
    /// Setting `stop`, for example from a signal handler, ends the run at once.
    pub fn new(stop: Arc<AtomicBool>) -> Controls {
        Controls { stop, generation: AtomicU64::new(0), steering: Mutex::default() }
    }

    /// Ends the run at once: requests in progress are counted as `in_flight`.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The flag that orders the run to end at once.
    pub fn stop_flag(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Whether the run was ordered to end at once.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Places an order and returns when it takes effect. Does nothing and returns `None` if the run has not begun or
    /// was already ended, or if the order changes nothing.
    pub fn order(&self, order: Order) -> Option<Change> {
        let start = self.steering().start?;
        self.order_at(order, clock::now().saturating_sub(start) + AHEAD)
    }

    /// Like [`Controls::order`], but at an instant chosen by the caller.
    pub(crate) fn order_at(&self, order: Order, at: Nanos) -> Option<Change> {
        let change = self.steering().apply(order, at)?;
        // The lock was released before this, so a worker that sees the new number finds the change.
        self.generation.fetch_add(1, Ordering::Relaxed);
        Some(change)
    }

    /// The orders that took effect, except for the first `known`.
    pub fn changes(&self, known: usize) -> Vec<Change> {
        self.steering().changes.get(known..).unwrap_or_default().to_vec()
    }

    /// How long requests are scheduled for, like [`RunPlan::window`], with all orders so far taken into account.
    pub fn window(&self, plan: &RunPlan) -> Option<Nanos> {
        self.steering().window(plan)
    }

    pub(crate) fn begin(&self, start: Nanos) {
        self.steering().start = Some(start);
    }

    /// The steering, if it has changed since `seen`.
    #[inline]
    pub(crate) fn news(&self, seen: &mut u64) -> Option<Steering> {
        let generation = self.generation.load(Ordering::Relaxed);
        if generation == *seen {
            return None;
        }
        *seen = generation;
        Some(self.steering().clone())
    }

    fn steering(&self) -> MutexGuard<'_, Steering> {
        // Every change is made in one step that cannot panic half-way, so a poisoned lock is consistent.
        self.steering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steering {
    fn apply(&mut self, order: Order, at: Nanos) -> Option<Change> {
        if self.end.is_some() {
            return None;
        }
        let at = self.changes.last().map_or(at, |last| at.max(last.at));
        let tempo = self.tempo.unwrap_or(Tempo::AS_PLANNED);
        match order {
            Order::Pause if !self.paused => {
                self.paused = true;
                self.clock.change(at, Tempo::STILL);
            }
            Order::Resume if self.paused => {
                self.paused = false;
                self.clock.change(at, tempo);
            }
            Order::Tempo(wanted) if wanted != tempo && wanted != Tempo::STILL => {
                self.tempo = Some(wanted);
                if !self.paused {
                    self.clock.change(at, wanted);
                }
            }
            Order::End => self.end = Some(at),
            Order::Pause | Order::Resume | Order::Tempo(_) => return None,
        }
        let change = Change { at, order };
        self.changes.push(change);
        Some(change)
    }

    /// See [`Controls::window`].
    pub(crate) fn window(&self, plan: &RunPlan) -> Option<Nanos> {
        let Load::Open(arrivals) = &plan.load else {
            return plan.window.into_iter().chain(self.end).min();
        };
        // The end is when the request after the last one would be due, or the schedule's own end. If the schedule is
        // paused before that, it has no time in the run yet.
        let limited = plan.request_limit.map(|limit| arrivals.due(limit)).filter(|&due| due < Nanos::MAX);
        let scheduled =
            limited.into_iter().chain(arrivals.end()).min().and_then(|last| self.clock.run_at(last));
        plan.window.into_iter().chain(scheduled).chain(self.end).min()
    }
}

#[cfg(test)]
mod tests {
    use schedule::Arrivals;

    use super::*;
    use crate::plan::tests::plan;

    const fn s(s: u64) -> Nanos {
        Nanos::from_secs(s)
    }

    #[test]
    fn an_order_that_changes_nothing_is_none() {
        let mut steering = Steering::default();
        assert_eq!(steering.apply(Order::Resume, s(1)), None);
        assert_eq!(steering.apply(Order::Tempo(Tempo::AS_PLANNED), s(1)), None);
        assert!(steering.apply(Order::Pause, s(1)).is_some());
        assert_eq!(steering.apply(Order::Pause, s(2)), None);
        assert!(steering.apply(Order::End, s(3)).is_some());
        assert_eq!(steering.apply(Order::Resume, s(4)), None);
        assert_eq!(steering.changes.len(), 2);
    }

    #[test]
    fn a_pace_chosen_in_a_pause_holds_from_its_end() {
        let mut steering = Steering::default();
        steering.apply(Order::Pause, s(1)).unwrap();
        steering.apply(Order::Tempo(Tempo::of_steps(1)), s(2)).unwrap();
        assert_eq!(steering.clock.run_at(s(1)), None);
        steering.apply(Order::Resume, s(3)).unwrap();
        assert_eq!(steering.clock.run_at(Nanos::from_millis(2_100)), Some(s(4)));
    }

    #[test]
    fn nothing_can_be_ordered_before_the_run_begins() {
        let controls = Controls::new(Arc::default());
        assert_eq!(controls.order(Order::Pause), None);
        controls.begin(clock::now());
        let mut seen = 0;
        assert!(controls.news(&mut seen).is_none());
        assert!(controls.order(Order::Pause).is_some());
        assert!(controls.news(&mut seen).is_some());
        assert!(controls.news(&mut seen).is_none());
        assert_eq!(controls.changes(0).len(), 1);
        assert_eq!(controls.changes(1).len(), 0);
    }

    /// If this fails, the throughput of a paused run is divided by a time other than the one it was scheduled for.
    #[test]
    fn the_window_of_a_number_of_requests_moves_with_the_schedule() {
        let mut plan = plan();
        plan.load = Load::Open(Arrivals::Constant("1/s".parse().unwrap()));
        (plan.window, plan.request_limit) = (None, Some(10));
        let mut steering = Steering::default();
        assert_eq!(steering.window(&plan), Some(s(10)));
        steering.apply(Order::Pause, s(4)).unwrap();
        assert_eq!(steering.window(&plan), None);
        steering.apply(Order::Resume, s(7)).unwrap();
        assert_eq!(steering.window(&plan), Some(s(13)));
        plan.window = Some(s(12));
        assert_eq!(steering.window(&plan), Some(s(12)));
        steering.apply(Order::End, s(8)).unwrap();
        assert_eq!(steering.window(&plan), Some(s(8)));
    }
}
