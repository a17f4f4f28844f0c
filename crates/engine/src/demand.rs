//! Which request is due next. The two load models, open and closed, are values of one type.

use std::collections::VecDeque;

use schedule::{Arrivals, Residue};
use units::Nanos;

use crate::plan::{Load, Plan, Share};

/// A request that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// Its number in the run.
    pub n: u64,
    /// When it should start: the schedule's own value, never the moment somebody noticed.
    pub intended: Nanos,
}

/// One worker's share of the requests of a run, in order.
#[derive(Debug)]
pub(crate) struct Demand {
    model: Model,
    residue: Residue,
    /// How many this worker has taken.
    taken: u64,
    /// How many this worker may take at all.
    limit: u64,
    start: Nanos,
    /// Nothing intended at or after this is due.
    end: Nanos,
}

#[derive(Debug)]
enum Model {
    Open(Arrivals),
    /// When each waiting caller became free, the earliest first.
    Closed {
        free: VecDeque<Nanos>,
    },
}

impl Demand {
    pub(crate) fn new(plan: &Plan, share: Share, start: Nanos) -> Demand {
        let end = plan.window.map_or(Nanos::MAX, |window| start.saturating_add(window));
        let total = plan.request_limit.unwrap_or(u64::MAX);
        let (model, total) = match plan.load {
            Load::Open(arrivals) => {
                let in_window = plan.window.map_or(u64::MAX, |window| arrivals.count_before(window));
                (Model::Open(arrivals), total.min(in_window))
            }
            Load::Closed => (Model::Closed { free: (0..share.callers).map(|_| start).collect() }, total),
        };
        // A share of "without end" is without end.
        let limit = if total == u64::MAX { total } else { share.residue.share_of(total) };
        Demand { model, residue: share.residue, taken: 0, limit, start, end }
    }

    /// When the next request is due; `None` while that depends on a caller, or when there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        if self.taken >= self.limit {
            return None;
        }
        let intended = match &self.model {
            Model::Open(arrivals) => self.start.saturating_add(arrivals.due(self.residue.nth(self.taken))),
            Model::Closed { free } => *free.front()?,
        };
        (intended < self.end).then_some(intended)
    }

    /// The next request, if it is due by `now`.
    #[inline]
    pub(crate) fn take(&mut self, now: Nanos) -> Option<Due> {
        let intended = self.next_at().filter(|&intended| intended <= now)?;
        let n = self.residue.nth(self.taken);
        self.taken += 1;
        if let Model::Closed { free } = &mut self.model {
            free.pop_front();
        }
        Some(Due { n, intended })
    }

    /// A request has ended, so in a closed loop its caller is free.
    #[inline]
    pub(crate) fn caller_free(&mut self, at: Nanos) {
        if let Model::Closed { free } = &mut self.model {
            // Once all requests are taken or the window is over, callers go home.
            if self.taken + (free.len() as u64) < self.limit && at < self.end {
                free.push_back(at);
            }
        }
    }

    /// Nothing will be intended at or after `at`: the run is to end early.
    pub(crate) fn end_at(&mut self, at: Nanos) {
        self.end = self.end.min(at);
    }

    /// Whether every request of this worker's share has been taken.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.taken >= self.limit
    }

    /// Whether anything may still become due.
    #[inline]
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        match &self.model {
            Model::Open(_) => self.next_at().is_none(),
            Model::Closed { .. } => self.next_at().is_none() && (self.taken >= self.limit || now >= self.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    const START: Nanos = Nanos::from_secs(100);

    fn open(rate: &str, window: Nanos) -> Demand {
        let mut plan = plan();
        plan.load = Load::Open(Arrivals::Constant(rate.parse().unwrap()));
        plan.window = Some(window);
        Demand::new(&plan, plan.share(0), START)
    }

    /// If this fails, a client that overslept reports the time it woke as the time it should have sent.
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

    #[test]
    fn a_caller_asks_again_only_when_its_request_has_ended() {
        let mut plan = plan();
        plan.pool.callers = 2;
        plan.request_limit = Some(3);
        plan.window = None;
        let mut demand = Demand::new(&plan, plan.share(0), START);
        let now = START + Nanos(5);
        assert_eq!(demand.take(now), Some(Due { n: 0, intended: START }));
        assert_eq!(demand.take(now), Some(Due { n: 1, intended: START }));
        assert_eq!(demand.take(now), None);
        assert!(!demand.is_over(now));
        demand.caller_free(START + Nanos(4));
        assert_eq!(demand.take(now), Some(Due { n: 2, intended: START + Nanos(4) }));
        demand.caller_free(now);
        assert_eq!(demand.take(now), None);
        assert!(demand.is_over(now));
    }
}
