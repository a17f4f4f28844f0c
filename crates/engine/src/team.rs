//! The worker threads of a run: each works on one stage after another with the connections it has.

use std::io;
use std::iter;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use codec::Protocol;
use reactor::SystemReactor;
use record::Interval;
use units::Nanos;

use crate::collector::collect;
use crate::controls::{Controls, Order};
use crate::cpu_pinning::CpuPinning;
use crate::keeping::{Keeper, Keeping};
use crate::plan::{RunPlan, Share};
use crate::recorder::{Boundaries, Part, Recorder};
use crate::run::{Listener, Prepared, RunError, WarmUp};
use crate::worker::{Ended, Job, Stage, Worker};

/// How far in the future the zero of a stage is set, so that all workers have begun with it by then.
pub(crate) const START_DELAY: Nanos = Nanos::from_millis(5);

/// A stage to work on.
struct Assignment<'a, P> {
    job: Job<'a, P>,
    recorder: Recorder,
    /// The protocol's number of the first request.
    first: u64,
    parts: SyncSender<Part>,
    ended: SyncSender<io::Result<Ended>>,
}

/// The workers of a run.
pub(crate) struct Team<'scope, 'a, P> {
    assignments: Vec<SyncSender<Assignment<'a, P>>>,
    handles: Vec<ScopedJoinHandle<'scope, ()>>,
}

impl<'scope, 'a: 'scope, P: Protocol> Team<'scope, 'a, P> {
    /// Starts one thread per reactor. They wait for their first stage.
    pub(crate) fn assemble(
        scope: &'scope Scope<'scope, '_>,
        plan: &RunPlan,
        reactors: &'a mut [SystemReactor],
        controls: &'a Controls,
    ) -> Result<Team<'scope, 'a, P>, RunError> {
        let pinning = CpuPinning::pin(plan.pace, plan.workers).map(Arc::new);
        let mut team = Team { assignments: Vec::new(), handles: Vec::new() };
        for (index, reactor) in reactors.iter_mut().enumerate() {
            let (assignments_in, assignments) = sync_channel(1);
            let (share, pinning) = (plan.share(index as u64), pinning.clone());
            let member = Member { index, share, controls };
            let spawned = Builder::new().name(format!("worker-{index}")).spawn_scoped(scope, move || {
                if let Some(pinning) = &pinning {
                    pinning.pin_worker(index);
                }
                // The kernel may fire a timer late by the thread's slack, 50 us by default.
                let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
                member.work(reactor, &assignments);
            });
            team.handles.push(spawned.map_err(RunError::Thread)?);
            team.assignments.push(assignments_in);
        }
        Ok(team)
    }

    /// Warms the server up and opens the idle connections. Returns the protocol's number of the first request of the
    /// run.
    pub(crate) fn prepare(
        &self,
        plan: &'a RunPlan,
        protocol: &'a P,
        controls: &'a Controls,
        listener: &mut dyn Listener,
    ) -> Result<u64, RunError> {
        let intervals = self.intervals();
        let start = clock::now() + START_DELAY;
        controls.begin(start);
        let mut total = Interval::default();
        let job = Job { plan, protocol, controls, start, stage: Stage::Preparation };
        let ended = self.work(job, 0, (None, intervals), &mut |interval| {
            total.merge(interval);
            if !listener.warming(interval) {
                controls.order(Order::End);
            }
        })?;
        let elapsed = ended.at.saturating_sub(start);
        let planned = controls.window(plan).unwrap_or(elapsed);
        let window = if controls.is_stopped() { planned.min(elapsed) } else { planned };
        let warmup = (plan.window != Some(Nanos::ZERO)).then_some(WarmUp { window, elapsed, total });
        listener.prepared(Prepared { warmup, idle: ended.idle });
        // Each worker continues with numbers of its own residue.
        Ok(ended.taken.saturating_mul(plan.workers))
    }

    /// What [`Team::work`] needs to measure a stage. Reserving it takes milliseconds: call it before the stage's zero
    /// is set.
    pub(crate) fn intervals(&self) -> Vec<Interval> {
        // Each worker has one interval to fill and one to begin in the meantime; one more is for their sum.
        iter::repeat_with(Interval::reserved).take(2 * self.assignments.len() + 1).collect()
    }

    /// Carries out one stage. `first` is the protocol's number of its first request; `intervals` are those of
    /// [`Team::intervals`].
    pub(crate) fn work(
        &self,
        job: Job<'a, P>,
        first: u64,
        (keeping, mut intervals): (Option<Keeping>, Vec<Interval>),
        emit: &mut dyn FnMut(&mut Interval),
    ) -> Result<Ended, RunError> {
        let workers = self.assignments.len();
        let (parts_in, parts) = sync_channel(workers * 4);
        let (ended_in, ended) = sync_channel(workers);
        let boundaries = Boundaries::new(job.plan.interval, job.plan.window());
        let mut emptied = Vec::new();
        for (index, assignments) in self.assignments.iter().enumerate() {
            let (emptied_in, emptied_out) = sync_channel(4);
            for interval in intervals.split_off(intervals.len().saturating_sub(2)) {
                // The channel has room for four.
                let _ = emptied_in.try_send(Box::new(interval));
            }
            emptied.push(emptied_in);
            let keeper = keeping.as_ref().map(|keeping| Keeper::new(keeping.keep, keeping.to.clone()));
            let recorder = Recorder::new(index, boundaries, keeper, parts_in.clone(), emptied_out);
            let (parts, ended) = (parts_in.clone(), ended_in.clone());
            // A worker that is gone has panicked, and its result is missing below.
            let _ = assignments.send(Assignment { job, recorder, first, parts, ended });
        }
        // The receivers of what is kept and collected wait for the end of all senders.
        drop((parts_in, ended_in, keeping));
        collect(&parts, &emptied, intervals, emit);
        let mut whole = Ended::default();
        for _ in 0..workers {
            let ended = ended.recv().map_err(|_| RunError::Worker("no message".to_owned()))?;
            whole.merge(ended.map_err(RunError::Wait)?);
        }
        Ok(whole)
    }

    /// Ends the threads. If one of them panicked, that is the result.
    pub(crate) fn disband(self, result: Result<Ended, RunError>) -> Result<Ended, RunError> {
        drop(self.assignments);
        let panics = self.handles.into_iter().filter_map(|handle| handle.join().err());
        match panics.last() {
            Some(panic) => Err(RunError::Worker(panic_text(panic.as_ref()))),
            None => result,
        }
    }
}

/// One thread of a team.
struct Member<'a> {
    index: usize,
    share: Share,
    /// Those of the run, which also end what precedes it.
    controls: &'a Controls,
}

impl Member<'_> {
    fn work<'a, P: Protocol>(self, reactor: &mut SystemReactor, assignments: &Receiver<Assignment<'a, P>>) {
        let Ok(Assignment { job, recorder, first, parts, mut ended }) = assignments.recv() else { return };
        debug_assert_eq!(first, 0, "a worker begins with its first request");
        let leave = |parts| Leave { controls: self.controls, parts, index: self.index, well: false };
        let mut leaving = leave(parts);
        let mut worker = Worker::new(reactor, job, self.share, recorder);
        loop {
            let result = worker.run_stage();
            leaving.well = result.is_ok();
            drop(leaving);
            // The channel has room for one result of each worker.
            let _ = ended.try_send(result);
            // The receiver of the results waits for the end of all senders if one is missing.
            drop(ended);
            let Ok(next) = assignments.recv() else { return };
            leaving = leave(next.parts);
            ended = next.ended;
            worker.begin_stage(next.job, next.recorder, next.first);
        }
    }
}

/// Runs when a worker ends a stage, in whatever way. If a worker failed silently, the run would continue without its
/// share of the load, and the collector would wait for it and hold back what the others measured.
struct Leave<'a> {
    controls: &'a Controls,
    parts: SyncSender<Part>,
    index: usize,
    well: bool,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if !self.well {
            self.controls.stop();
            // A collector that is gone is not waiting.
            let _ = self.parts.send(Part { worker: self.index, interval: None, through: u64::MAX });
        }
    }
}

impl Ended {
    fn merge(&mut self, other: Ended) {
        self.at = self.at.max(other.at);
        self.address = self.address.take().or(other.address);
        self.unkept += other.unkept;
        self.taken = self.taken.max(other.taken);
        self.idle.merge(other.idle);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
