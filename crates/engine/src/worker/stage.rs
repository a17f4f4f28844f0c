//! The stages of a worker: what precedes the run's zero, and the run; and what its controls change within one.

use codec::Protocol;
use reactor::Reactor;
use units::Nanos;

use super::{Job, Stage, Worker};
use crate::controls::Steering;
use crate::demand::Demand;
use crate::journeys::Journeys;
use crate::leases::Leases;
use crate::pacer::Pacer;
use crate::recorder::Recorder;

impl<'a, R: Reactor, P: Protocol> Worker<'a, R, P> {
    /// Begins the next stage, with the connections that the last one left open. `first` is the number of the first
    /// request for the protocol: it has been asked for those before.
    pub(crate) fn begin_stage(&mut self, job: Job<'a, P>, recorder: Recorder, first: u64) {
        debug_assert_eq!(self.outstanding(), 0, "a stage ends when all its requests have ended");
        self.demand = Demand::new(job.plan, self.share, job.start);
        self.pacer = Pacer::new(job.plan.pace);
        self.journeys = Journeys::default();
        self.leases = Leases::default();
        self.recorder = recorder;
        self.first = first;
        self.give_up_at = give_up_at(&job, self.idle.opening_takes());
        self.woke_by = Nanos::MAX;
        self.stalled_from = None;
        self.stopping = false;
        self.steered = 0;
        for peer in &mut self.peers {
            // Each stage finds out by itself whether the servers can be reached.
            (peer.tried, peer.failing_since) = (false, None);
        }
        self.job = job;
    }

    /// With a limit on requests and no window, the drain begins when the last request has been picked up.
    pub(super) fn note_last_taken(&mut self, now: Nanos) {
        if self.give_up_at == Nanos::MAX && self.demand.is_exhausted() {
            self.give_up_at = self.job.plan.drain.map_or(Nanos::MAX, |drain| now.saturating_add(drain));
        }
    }

    pub(super) fn look_at_controls(&mut self, now: Nanos) {
        if let Some(steering) = self.job.controls.news(&mut self.steered) {
            self.steer(&steering);
        }
        if !self.stopping && self.job.controls.is_stopped() {
            self.stopping = true;
            // What was due by now stays due; nothing later does. The exception is the request that it has just woken
            // for, which could not be sent yet: otherwise every signal would leave a request that was not sent.
            let end = if self.stalled_from.is_some() { now } else { self.woke_by.min(now) };
            self.demand.end_at(end);
            self.end_journeys_at(end);
            self.give_up_at = now;
        }
    }

    /// Applies orders to the schedule. The end of a run moves only if it depends on a number of requests.
    #[cold]
    fn steer(&mut self, steering: &Steering) {
        self.demand.bend(steering.clock.clone());
        if let Some(end) = steering.end {
            let end = self.job.start.saturating_add(end);
            self.demand.end_at(end);
            self.end_journeys_at(end);
        }
        if !self.stopping {
            let window = steering.window(self.job.plan);
            let ends = window.zip(self.job.plan.drain).map(|(window, drain)| window.saturating_add(drain));
            self.give_up_at = ends.map_or(Nanos::MAX, |ends| self.job.start.saturating_add(ends));
        }
    }
}

/// When a stage ends regardless of what is outstanding. Opening idle connections may take `opening` more.
pub(super) fn give_up_at<P>(job: &Job<'_, P>, opening: Nanos) -> Nanos {
    let opening = if job.stage == Stage::Preparation { opening } else { Nanos::ZERO };
    match (job.plan.window(), job.plan.drain) {
        (Some(window), Some(drain)) => {
            job.start.saturating_add(window).saturating_add(drain).saturating_add(opening)
        }
        _ => Nanos::MAX,
    }
}
