//! Starts the workers, collects what they measure, and reports how the run ended.

use std::io;
use std::sync::Arc;
use std::thread;

use codec::Protocol;
use reactor::{Address, StampProbe, SystemReactor};
use record::Interval;
use record::document::Stamps;
use thiserror::Error;
use units::Nanos;

use crate::controls::Controls;
use crate::keeping::Keeping;
use crate::plan::RunPlan;
use crate::team::{START_DELAY, Team};
use crate::worker::{IdleConnections, Job, Stage};

/// Why a run could not start, or failed.
#[derive(Debug, Error)]
pub enum RunError {
    /// The plan cannot be carried out.
    #[error("{0}")]
    Refused(&'static str),
    /// No reactor could be created: usually out of descriptors.
    #[error("cannot make an event loop: {0}; raise the limit of open files (ulimit -n)")]
    Reactor(#[source] io::Error),
    /// No thread could be started.
    #[error("cannot start a worker thread: {0}")]
    Thread(#[source] io::Error),
    /// The kernel's event facility failed during the run. What was measured has been passed on.
    #[error("the event loop failed: {0}")]
    Wait(#[source] io::Error),
    /// A worker panicked, which is a bug in Parallax. What was measured has been passed on.
    #[error("a worker failed, which is a bug in Parallax: {0}")]
    Worker(String),
}

/// Facts about a run that has begun, for the record.
#[derive(Debug, Clone)]
pub struct Started {
    /// The run's zero on the monotonic clock.
    pub at: Nanos,
    /// Why arrivals are timestamped only when they are read; `None` if the kernel timestamps them.
    pub no_kernel_stamps: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The end of the run, as an offset from its start.
    pub elapsed: Nanos,
    /// The first address connected to, of the first peer that was reached.
    pub address: Option<Address>,
    pub stamps: StampFacts,
    /// Requests that were selected to be kept, but dropped because their reader was too slow.
    pub unkept: u64,
    /// The idle connections at the end of the run.
    pub idle: IdleConnections,
}

/// What happened before the run's zero.
#[derive(Debug)]
pub struct Prepared {
    /// `None` if the run has no warm-up.
    pub warmup: Option<WarmUp>,
    pub idle: IdleConnections,
}

/// The load of a warm-up, which is not part of the run's intervals.
#[derive(Debug)]
pub struct WarmUp {
    /// For how long requests were scheduled.
    pub window: Nanos,
    /// From its beginning until every request had ended, or the drain was over.
    pub elapsed: Nanos,
    /// Everything measured. Requests scheduled = the sum of all outcomes.
    pub total: Interval,
}

/// How accurately the kernel's timestamps were converted to the monotonic clock; the worst of all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StampFacts {
    pub pairing_error: Nanos,
    pub wall_clock_steps: u64,
}

/// Receives the events of a run.
pub trait Listener {
    /// An interval of the warm-up is complete. Returns whether to go on with the warm-up.
    fn warming(&mut self, interval: &Interval) -> bool {
        let _ = interval;
        true
    }

    /// The warm-up has ended and the idle connections are open. Called before [`Listener::started`], in a run that has
    /// either.
    fn prepared(&mut self, prepared: Prepared) {
        let _ = prepared;
    }

    /// The run's zero is about to be set. What takes time is done here: it delays the run, and no request.
    fn starting(&mut self) {}

    /// The run begins. Called before the workers begin to work on it.
    fn started(&mut self, started: &Started);

    /// Which requests to keep, and where to send them. Called once, after [`Listener::started`].
    fn keeping(&mut self) -> Option<Keeping> {
        None
    }

    /// An interval of the run is complete and merged. Called in order, on the thread that called [`run`]. The listener
    /// may add what the engine cannot know.
    fn interval(&mut self, interval: &mut Interval);
}

/// Carries out `plan`. Returns when every request has ended, or shortly after `controls` stop the run.
///
/// # Errors
///
/// [`RunError`]; what was measured until then has been passed to `listener`.
pub fn run<P: Protocol>(
    plan: &RunPlan,
    protocol: &P,
    controls: &Controls,
    listener: &mut dyn Listener,
) -> Result<Finished, RunError> {
    if let Some(refusal) = plan.refusal() {
        return Err(RunError::Refused(refusal));
    }
    let (probe, no_kernel_stamps) = probe(plan.kernel_stamps);
    let mut reactors = Vec::new();
    for _ in 0..plan.workers {
        reactors.push(SystemReactor::new(probe.is_some()).map_err(RunError::Reactor)?);
    }
    let (preparation, warming) = (plan.preparation(), Controls::new(Arc::clone(controls.stop_flag())));
    let mut run_start = Nanos::ZERO;
    let result = thread::scope(|scope| {
        let team = Team::assemble(scope, plan, &mut reactors, controls)?;
        let result = (|| {
            let taken = match &preparation {
                Some(preparation) => team.prepare(preparation, protocol, &warming, listener)?,
                None => 0,
            };
            listener.starting();
            let intervals = team.intervals();
            run_start = clock::now() + START_DELAY;
            listener.started(&Started { at: run_start, no_kernel_stamps });
            controls.begin(run_start);
            let job = Job { plan, protocol, controls, start: run_start, stage: Stage::Run };
            let keeping = listener.keeping();
            team.work(job, taken, (keeping, intervals), &mut |interval| listener.interval(interval))
        })();
        team.disband(result)
    });
    let stamps = reactors.iter().fold(StampFacts::default(), |facts, reactor| StampFacts {
        pairing_error: facts.pairing_error.max(reactor.pairing().error_bound()),
        wall_clock_steps: facts.wall_clock_steps.max(reactor.pairing().shift_count()),
    });
    let ended = result?;
    Ok(Finished {
        elapsed: ended.at.saturating_sub(run_start),
        address: ended.address,
        stamps,
        unkept: ended.unkept,
        idle: ended.idle,
    })
}

fn probe(wanted: bool) -> (Option<StampProbe>, Option<String>) {
    if !wanted {
        return (None, Some(Stamps::SWITCHED_OFF.to_owned()));
    }
    match StampProbe::start() {
        Ok(probe) => (Some(probe), None),
        Err(reason) => (None, Some(reason)),
    }
}
