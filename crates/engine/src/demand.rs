//! Which request is due next. The open and the closed load model are values of one type.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use schedule::{Cursor, Residue, Think, ThinkTimes};
use units::Nanos;

use crate::plan::{Load, RunPlan, Share};
use crate::tempo::ScheduleClock;

/// A request that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// Its number in the run.
    pub n: u64,
    /// When it should start: computed by the schedule, never the moment at which a timer fired.
    pub intended: Nanos,
}

/// One worker's share of the requests of a run, in order.
#[derive(Debug)]
pub(crate) struct Demand {
    model: Model,
    residue: Residue,
    /// How many requests this worker has taken.
    taken: u64,
    /// How many requests this worker may take in total.
    limit: u64,
    start: Nanos,
    /// Nothing is due that is intended at this instant or later.
    end: Nanos,
    clock: ScheduleClock,
    is_steered: bool,
}

#[derive(Debug)]
enum Model {
    Open(Box<Cursor>),
    /// When each waiting virtual user is ready. All have the same think time, so the order in which they became free is
    /// the order in which they are ready.
    Closed {
        ready: VecDeque<Nanos>,
        think: Nanos,
    },
    /// The same for varying think times, with which virtual users can overtake each other.
    Thinking {
        ready: BinaryHeap<Reverse<Nanos>>,
        times: ThinkTimes,
    },
}

impl Demand {
    pub(crate) fn new(plan: &RunPlan, share: Share, start: Nanos) -> Demand {
        let end = plan.window.map_or(Nanos::MAX, |window| start.saturating_add(window));
        let total = plan.request_limit.unwrap_or(u64::MAX);
        let (model, total) = match &plan.load {
            Load::Open(arrivals) => {
                let cursor = Cursor::new(arrivals.clone(), share.residue);
                (Model::Open(Box::new(cursor)), total.min(arrivals.total().unwrap_or(u64::MAX)))
            }
            Load::Closed => (Model::in_turn(share, start, Nanos::ZERO), total),
            Load::Thinking { think: Think::Constant(think), .. } => {
                (Model::in_turn(share, start, *think), total)
            }
            Load::Thinking { think, seed } => {
                let ready = (0..share.users).map(|_| Reverse(start)).collect();
                // The residue's first number differs between workers, so each draws its own think times.
                (Model::Thinking { ready, times: think.times(*seed, share.residue.nth(0)) }, total)
            }
        };
        // A share of an unlimited number is unlimited.
        let limit = if total == u64::MAX { total } else { share.residue.share_of(total) };
        Demand {
            model,
            residue: share.residue,
            taken: 0,
            limit,
            start,
            end,
            clock: ScheduleClock::default(),
            is_steered: false,
        }
    }

    /// When the next request is due; `None` if that depends on a virtual user becoming free, or if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        if self.taken >= self.limit {
            return None;
        }
        let intended = match &self.model {
            Model::Open(cursor) => self.start.saturating_add(self.clock.run_at(cursor.due())?),
            Model::Closed { ready, .. } => self.released(*ready.front()?)?,
            Model::Thinking { ready, .. } => self.released(ready.peek()?.0)?,
        };
        (intended < self.end).then_some(intended)
    }

    /// When a virtual user that is ready at `ready` can send, given pauses.
    #[inline]
    fn released(&self, ready: Nanos) -> Option<Nanos> {
        Some(self.start.saturating_add(self.clock.released_at(ready.saturating_sub(self.start))?))
    }

    /// Takes the next request, if it is due by `now`.
    #[inline]
    pub(crate) fn take(&mut self, now: Nanos) -> Option<Due> {
        let intended = self.next_at().filter(|&intended| intended <= now)?;
        let n = self.residue.nth(self.taken);
        self.taken += 1;
        match &mut self.model {
            Model::Open(cursor) => cursor.advance(),
            Model::Closed { ready, .. } => {
                ready.pop_front();
            }
            Model::Thinking { ready, .. } => {
                ready.pop();
            }
        }
        Some(Due { n, intended })
    }

    /// A request ended at `at`. In a closed loop its virtual user is free, and sends its next request after its think
    /// time.
    #[inline]
    pub(crate) fn user_free(&mut self, at: Nanos) {
        // Once all requests are taken or the window is over, virtual users stop.
        let (taken, limit, end) = (self.taken, self.limit, self.end);
        let stays = |waiting: usize, ready: Nanos| taken + (waiting as u64) < limit && ready < end;
        match &mut self.model {
            Model::Open(_) => {}
            Model::Closed { ready, think } => {
                let at = at.saturating_add(*think);
                if stays(ready.len(), at) {
                    ready.push_back(at);
                }
            }
            Model::Thinking { ready, times } => {
                let at = at.saturating_add(times.draw());
                if stays(ready.len(), at) {
                    ready.push(Reverse(at));
                }
            }
        }
    }

    /// Whether a request may be intended at `at`, that is, before the end.
    #[inline]
    pub(crate) fn is_open_at(&self, at: Nanos) -> bool {
        at < self.end
    }

    /// Ends the run early: nothing intended at `at` or later will be due.
    pub(crate) fn end_at(&mut self, at: Nanos) {
        self.end = self.end.min(at);
    }

    /// From here on, `clock` maps the schedule's time to the run's. Requests already taken are not affected.
    pub(crate) fn bend(&mut self, clock: ScheduleClock) {
        self.clock = clock;
        self.is_steered = true;
    }

    /// How many requests of this worker's share have been taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether every request of this worker's share has been taken.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.taken >= self.limit
    }

    /// Whether nothing can become due any more.
    #[inline]
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        let nothing_left = self.taken >= self.limit || now >= self.end;
        match &self.model {
            // A schedule that was steered can be steered again, which can move requests from after the end to before
            // it.
            Model::Open(_) if !self.is_steered => self.next_at().is_none(),
            _ => self.next_at().is_none() && nothing_left,
        }
    }
}

impl Model {
    fn in_turn(share: Share, start: Nanos, think: Nanos) -> Model {
        Model::Closed { ready: (0..share.users).map(|_| start).collect(), think }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schedule::{Arrivals, Process, Shape, Stage, Stages};

    use super::*;
    use crate::plan::tests::plan;
    use crate::tempo::Tempo;

    const START: Nanos = Nanos::from_secs(100);

    fn open(rate: &str, window: Nanos) -> Demand {
        let mut plan = plan();
        plan.load = Load::Open(Arrivals::Constant(rate.parse().unwrap()));
        plan.window = Some(window);
        Demand::new(&plan, plan.share(0), START)
    }

    /// If this fails, a client that overslept reports its wake-up time as the intended start.
    #[test]
    fn requests_due_while_the_client_slept_keep_their_intended_time() {
        let mut demand = open("100/s", Nanos::from_secs(1));
        let now = START + Nanos::from_millis(25);
        let taken: Vec<_> = std::iter::from_fn(|| demand.take(now)).map(|due| due.intended - START).collect();
        assert_eq!(taken, [Nanos(0), Nanos::from_millis(10), Nanos::from_millis(20)]);
        assert_eq!(demand.next_at(), Some(START + Nanos::from_millis(30)));
    }

    #[test]
    fn a_window_holds_exactly_its_requests() {
        let mut demand = open("1000/s", Nanos::from_secs(10));
        let late = START + Nanos::from_secs(60);
        assert_eq!(std::iter::from_fn(|| demand.take(late)).count(), 10_000);
        assert!(demand.is_over(late));
    }

    #[test]
    fn an_early_end_forgets_nothing_that_was_due() {
        let mut demand = open("1000/s", Nanos::from_secs(10));
        demand.end_at(START + Nanos::from_secs(3));
        let late = START + Nanos::from_secs(60);
        assert_eq!(std::iter::from_fn(|| demand.take(late)).count(), 3_000);
    }

    /// If this fails, a pause drops requests of the schedule, or sends them all at once when it ends.
    #[test]
    fn a_pause_holds_the_schedule_back_and_skips_nothing() {
        let mut demand = open("100/s", Nanos::from_secs(1));
        let mut clock = ScheduleClock::default();
        clock.change(Nanos::from_millis(300), Tempo::STILL);
        demand.bend(clock.clone());
        let at = |ms| START + Nanos::from_millis(ms);
        assert_eq!(std::iter::from_fn(|| demand.take(at(600))).count(), 30);
        assert_eq!(demand.next_at(), None);
        assert!(!demand.is_over(at(600)), "it may go on");
        assert!(demand.is_over(at(1_000)), "the window's end stays where it was");
        clock.change(at(650) - START, Tempo::AS_PLANNED);
        demand.bend(clock);
        assert_eq!(demand.take(at(660)), Some(Due { n: 30, intended: at(650) }));
        assert_eq!(std::iter::from_fn(|| demand.take(at(2_000))).count(), 34);
        assert!(demand.is_over(at(2_000)));
    }

    #[test]
    fn callers_stand_still_in_a_pause() {
        let mut demand = Demand::new(&plan(), plan().share(0), START);
        let mut clock = ScheduleClock::default();
        clock.change(Nanos::ZERO, Tempo::STILL);
        demand.bend(clock.clone());
        let at = |ms| START + Nanos::from_millis(ms);
        assert_eq!(demand.take(at(400)), None);
        assert!(!demand.is_over(at(400)));
        clock.change(Nanos::from_millis(500), Tempo::AS_PLANNED);
        demand.bend(clock);
        assert_eq!(demand.take(at(600)), Some(Due { n: 0, intended: at(500) }));
    }

    /// If this fails, the load depends on the number of workers, or a request is sent twice or never.
    #[test]
    fn two_workers_take_one_poisson_schedule_between_them() {
        let stage = Stage::Shaped {
            shape: Shape::Constant(Some("1k/s".parse().unwrap())),
            process: Process::Poisson,
            length: Some(Nanos::from_secs(4)),
        };
        let arrivals = Arrivals::Staged(Arc::new(Stages::new(vec![stage], 7).unwrap()));
        let mut plan = plan();
        (plan.workers, plan.pool.connections, plan.pool.users) = (2, 2, 2);
        // The window excludes what is due in the last second.
        plan.window = Some(Nanos::from_secs(3));
        plan.load = Load::Open(arrivals.clone());
        let mut taken: Vec<Due> = Vec::new();
        for worker in 0..2 {
            let mut demand = Demand::new(&plan, plan.share(worker), START);
            taken.extend(std::iter::from_fn(|| demand.take(START + Nanos::from_secs(60))));
            assert!(demand.is_over(START));
        }
        taken.sort_unstable_by_key(|due| due.n);
        assert_eq!(taken.len() as u64, arrivals.count_before(Nanos::from_secs(3)));
        for (n, due) in (0..).zip(&taken) {
            assert_eq!(*due, Due { n, intended: START + arrivals.due(n) });
        }
    }

    #[test]
    fn a_caller_that_thinks_is_ready_that_much_later() {
        let mut plan = plan();
        plan.load = Load::Thinking { think: Think::Constant(Nanos(10)), seed: 0 };
        let mut demand = Demand::new(&plan, plan.share(0), START);
        assert_eq!(demand.take(START), Some(Due { n: 0, intended: START }));
        demand.user_free(START + Nanos(3));
        assert_eq!(demand.next_at(), Some(START + Nanos(13)));
        assert_eq!(demand.take(START + Nanos(12)), None);
        assert_eq!(demand.take(START + Nanos(40)), Some(Due { n: 1, intended: START + Nanos(13) }));
        // It would be ready after the window, so it stops.
        demand.user_free(START + Nanos::from_secs(10) - Nanos(10));
        assert_eq!(demand.next_at(), None);
        assert!(demand.is_over(START + Nanos::from_secs(10)));
    }

    #[test]
    fn callers_that_think_at_random_may_overtake_each_other() {
        let mut plan = plan();
        plan.pool.users = 50;
        let (from, to) = (Nanos::from_millis(50), Nanos::from_millis(150));
        plan.load = Load::Thinking { think: Think::Uniform(from, to), seed: 3 };
        let mut demand = Demand::new(&plan, plan.share(0), START);
        assert_eq!(std::iter::from_fn(|| demand.take(START)).count(), 50);
        for _ in 0..50 {
            demand.user_free(START);
        }
        let late = START + Nanos::from_secs(1);
        let ready: Vec<Nanos> =
            std::iter::from_fn(|| demand.take(late)).map(|due| due.intended - START).collect();
        assert_eq!(ready.len(), 50);
        assert!(ready.is_sorted());
        assert!(ready.iter().all(|ready| (from..=to).contains(ready)));
        // Fifty draws that span less than half the range have a chance below 50 * 0.5^49.
        assert!(ready[49] - ready[0] > Nanos::from_millis(50));
    }

    #[test]
    fn a_caller_asks_again_only_when_its_request_has_ended() {
        let mut plan = plan();
        plan.pool.users = 2;
        plan.request_limit = Some(3);
        plan.window = None;
        let mut demand = Demand::new(&plan, plan.share(0), START);
        let now = START + Nanos(5);
        assert_eq!(demand.take(now), Some(Due { n: 0, intended: START }));
        assert_eq!(demand.take(now), Some(Due { n: 1, intended: START }));
        assert_eq!(demand.take(now), None);
        assert!(!demand.is_over(now));
        demand.user_free(START + Nanos(4));
        assert_eq!(demand.take(now), Some(Due { n: 2, intended: START + Nanos(4) }));
        demand.user_free(now);
        assert_eq!(demand.take(now), None);
        assert!(demand.is_over(now));
    }
}
