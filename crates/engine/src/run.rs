//! Starts the workers, collects what they measure, and reports how the run ended.

use std::io;
use std::iter;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use codec::Protocol;
use reactor::{Address, StampProbe, SystemReactor};
use record::Interval;
use record::document::Stamps;
use thiserror::Error;
use units::Nanos;

use crate::collector::collect;
use crate::controls::Controls;
use crate::cpu_pinning::CpuPinning;
use crate::keeping::{Keeper, Keeping};
use crate::plan::RunPlan;
use crate::recorder::{Boundaries, Part, Recorder};
use crate::worker::{Ended, Job, Worker};

/// How far in the future the run's zero is set, so that all workers have started by then.
const START_DELAY: Nanos = Nanos::from_millis(5);

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
}

/// How accurately the kernel's timestamps were converted to the monotonic clock; the worst of all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StampFacts {
    pub pairing_error: Nanos,
    pub wall_clock_steps: u64,
}

/// Receives the events of a run.
pub trait Listener {
    /// The run begins. Called before the workers start.
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
    // Each worker has one interval to fill and one to begin in the meantime; one more is for their sum.
    let intervals = iter::repeat_with(Interval::reserved).take(2 * reactors.len() + 1).collect();
    let start = clock::now() + START_DELAY;
    listener.started(&Started { at: start, no_kernel_stamps });
    controls.begin(start);
    let crew = Crew {
        plan,
        protocol,
        controls,
        start,
        keeping: listener.keeping(),
        cpu_pinning: CpuPinning::pin(plan.pace, plan.workers),
    };
    let result = thread::scope(|scope| crew.work(scope, &mut reactors, intervals, listener));
    let stamps = reactors.iter().fold(StampFacts::default(), |facts, reactor| StampFacts {
        pairing_error: facts.pairing_error.max(reactor.pairing().error_bound()),
        wall_clock_steps: facts.wall_clock_steps.max(reactor.pairing().shift_count()),
    });
    let ended = result?;
    Ok(Finished {
        elapsed: ended.at.saturating_sub(start),
        address: ended.address,
        stamps,
        unkept: ended.unkept,
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

/// What all workers of a run share.
struct Crew<'a, P> {
    plan: &'a RunPlan,
    protocol: &'a P,
    controls: &'a Controls,
    start: Nanos,
    keeping: Option<Keeping>,
    cpu_pinning: Option<CpuPinning>,
}

type Handle<'scope> = ScopedJoinHandle<'scope, io::Result<Ended>>;

impl<'a, P: Protocol> Crew<'a, P> {
    fn work<'scope>(
        &'a self,
        scope: &'scope thread::Scope<'scope, '_>,
        reactors: &'scope mut [SystemReactor],
        mut intervals: Vec<Interval>,
        listener: &mut dyn Listener,
    ) -> Result<Ended, RunError>
    where
        'a: 'scope,
    {
        let (parts_in, parts) = sync_channel(reactors.len() * 4);
        let mut emptied = Vec::new();
        let mut handles: Vec<Handle<'scope>> = Vec::new();
        let mut failed = None;
        for (index, reactor) in reactors.iter_mut().enumerate() {
            let (emptied_in, emptied_out) = sync_channel(4);
            for interval in intervals.split_off(intervals.len().saturating_sub(2)) {
                // The channel has room for four.
                let _ = emptied_in.try_send(Box::new(interval));
            }
            emptied.push(emptied_in);
            match self.start_worker(scope, index, reactor, (parts_in.clone(), emptied_out)) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    self.controls.stop();
                    failed = Some(RunError::Thread(error));
                    break;
                }
            }
        }
        drop(parts_in);
        collect(&parts, &emptied, intervals, &mut |interval| listener.interval(interval));
        let ended = join(handles);
        failed.map_or(ended, Err)
    }

    fn start_worker<'scope>(
        &'a self,
        scope: &'scope thread::Scope<'scope, '_>,
        index: usize,
        reactor: &'scope mut SystemReactor,
        channels: (SyncSender<Part>, Receiver<Box<Interval>>),
    ) -> io::Result<Handle<'scope>>
    where
        'a: 'scope,
    {
        thread::Builder::new().name(format!("worker-{index}")).spawn_scoped(scope, move || {
            if let Some(pinning) = &self.cpu_pinning {
                pinning.pin_worker(index);
            }
            // The kernel may fire a timer late by the thread's slack, 50 us by default.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            let mut leave = Leave { controls: self.controls, parts: channels.0.clone(), index, well: false };
            let boundaries = Boundaries::new(self.plan.interval, self.plan.window());
            let keeper = self.keeping.as_ref().map(|keeping| Keeper::new(keeping.keep, keeping.to.clone()));
            let recorder = Recorder::new(index, boundaries, keeper, channels.0, channels.1);
            let job =
                Job { plan: self.plan, protocol: self.protocol, controls: self.controls, start: self.start };
            let ended = Worker::new(reactor, job, self.plan.share(index as u64), recorder).run();
            leave.well = ended.is_ok();
            ended
        })
    }
}

/// Runs when a worker leaves, in whatever way. If a worker failed silently, the run would continue without its share
/// of the load, and the collector would wait for it and hold back what the others measured.
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

fn join(handles: Vec<Handle<'_>>) -> Result<Ended, RunError> {
    let mut whole = Ended { at: Nanos::ZERO, address: None, unkept: 0 };
    let mut failed = None;
    for handle in handles {
        match handle.join() {
            Ok(Ok(ended)) => {
                whole.at = whole.at.max(ended.at);
                whole.address = whole.address.or(ended.address);
                whole.unkept += ended.unkept;
            }
            Ok(Err(error)) => failed = Some(RunError::Wait(error)),
            Err(panic) => failed = Some(RunError::Worker(panic_text(panic.as_ref()))),
        }
    }
    failed.map_or(Ok(whole), Err)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
