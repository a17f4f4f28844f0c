//! Whole runs of the engine in simulated time, compared with a planted truth.

mod allocation;
mod collecting;
mod conservation;
mod ends;
mod outcomes;
mod pacing;
mod pipelining;
mod preparation;
mod reach;
mod sockets;
mod streams;
mod transactions;
mod truth;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use codec::{CloseEvent, DecodeError, Encoded, Key, Origin, Protocol, Route, Session, Step};
use record::{Durations, Interval, KeptRequest, Phase};
use schedule::Arrivals;
use testkit::{LineProtocol, LineSession, Script, SimReactor};
use units::Nanos;

use crate::collector::collect;
use crate::controls::Controls;
use crate::keeping::{Batch, Keep, Keeper};
use crate::plan::tests::plan;
use crate::plan::{Load, Peer, Place, RunPlan};
use crate::recorder::{Boundaries, Part, Recorder};
use crate::worker::{IdleConnections, Job, Stage, Worker};

/// Far from zero, so that a test notices an offset used as an instant.
const START: Nanos = Nanos::from_secs(1_000);

/// More intervals than any test makes: workers run one after the other, and their parts are collected at the end.
const MANY: usize = 4_096;

/// The result of a simulated run.
struct Simulated {
    total: Interval,
    intervals: Vec<Interval>,
    /// When its last worker ended, as an offset from its start.
    elapsed: Nanos,
    /// The numbers of the encoded requests, worker by worker.
    encoded: Vec<u64>,
    dials: usize,
    /// What preceded the run's zero, if anything did.
    warmup: Option<Interval>,
    idle: IdleConnections,
}

/// Runs `plan` with the line protocol, one request at a time per connection.
fn simulate(plan: &RunPlan, script: &Script) -> Simulated {
    simulate_lines(plan, script, LineProtocol::new(1))
}

fn simulate_lines(plan: &RunPlan, script: &Script, lines: LineProtocol) -> Simulated {
    simulate_watched(plan, script, &Watched::new(lines))
}

/// The line protocol, with a log of the requests encoded; it can also stop the run.
struct Watched {
    lines: LineProtocol,
    log: Arc<Log>,
}

/// Which requests were encoded, and when the run is to stop.
#[derive(Default)]
struct Log {
    encoded: Mutex<Vec<u64>>,
    controls: Controls,
    /// The run is stopped while this request is encoded.
    stop_at: Option<u64>,
}

impl Watched {
    fn new(lines: LineProtocol) -> Watched {
        Watched { lines, log: Arc::default() }
    }

    fn stopping_at(lines: LineProtocol, stop_at: Option<u64>) -> Watched {
        Watched { lines, log: Arc::new(Log { stop_at, ..Log::default() }) }
    }
}

impl Protocol for Watched {
    type Journey = u64;
    type Session = WatchedSession;

    fn session(&self, origin: Origin) -> WatchedSession {
        WatchedSession { lines: self.lines.session(origin), log: Arc::clone(&self.log) }
    }

    fn begin(&self, n: u64) -> u64 {
        n
    }

    fn route(&self, _: &u64) -> Route {
        Route::default()
    }

    fn kinds(&self) -> usize {
        1
    }
}

struct WatchedSession {
    lines: LineSession,
    log: Arc<Log>,
}

impl Session for WatchedSession {
    type Journey = u64;

    fn capacity(&self) -> usize {
        self.lines.capacity()
    }

    fn request(&mut self, n: &u64, key: Key, out: &mut Vec<u8>) -> Encoded {
        self.log.encoded.lock().unwrap().push(*n);
        if self.log.stop_at == Some(*n) {
            self.log.controls.stop();
        }
        self.lines.request(n, key, out)
    }

    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        self.lines.handle_input(input, out)
    }

    fn handle_close(&mut self) -> CloseEvent {
        self.lines.handle_close()
    }
}

fn simulate_watched(plan: &RunPlan, script: &Script, watched: &Watched) -> Simulated {
    let run = simulate_protocol(plan, script, watched, &watched.log.controls);
    Simulated { encoded: std::mem::take(&mut *watched.log.encoded.lock().unwrap()), ..run }
}

/// Every simulated run keeps the promises, whatever else it tests.
fn simulate_protocol<P: Protocol>(
    plan: &RunPlan,
    script: &Script,
    protocol: &P,
    controls: &Controls,
) -> Simulated {
    assert_eq!(plan.refusal(), None);
    let preparation = plan.preparation();
    let mut before = preparation.as_ref().map(|plan| Collected::new(plan.workers));
    let mut collected = Collected::new(plan.workers);
    // More than any run here fills: handing over at a worker's end would otherwise wait for a reader.
    let (kept_in, kept) = sync_channel(MANY);
    let (mut elapsed, mut dials, mut idle) = (Nanos::ZERO, 0, IdleConnections::default());
    for index in 0..plan.workers {
        let mut reactor = SimReactor::new(script.clone(), START);
        let job = Job { plan, protocol, controls, start: START, stage: Stage::Run };
        let share = plan.share(index);
        let mut start = START;
        let keeper = || Some(Keeper::new(Keep::All, kept_in.clone()));
        let ended = if let Some((before, preparation)) = before.as_mut().zip(preparation.as_ref()) {
            let first = Job { plan: preparation, stage: Stage::Preparation, ..job };
            let recorder = before.recorder(index, preparation, None);
            let mut worker = Worker::new(&mut reactor, first, share, recorder);
            let ended = worker.run_stage().unwrap();
            start = ended.at + ms(5);
            let taken = ended.taken * plan.workers;
            worker.begin_stage(Job { start, ..job }, collected.recorder(index, plan, keeper()), taken);
            worker.run_stage().unwrap()
        } else {
            Worker::new(&mut reactor, job, share, collected.recorder(index, plan, keeper()))
                .run_stage()
                .unwrap()
        };
        elapsed = elapsed.max(ended.at.saturating_sub(start));
        dials += reactor.dial_count();
        assert_eq!(ended.unkept, 0);
        idle.merge(ended.idle);
    }
    drop(kept_in);
    let warmup = before.map(|before| before.finish().0);
    let (total, intervals) = collected.finish();
    warmup.iter().for_each(check_promises);
    check_promises(&total);
    check_kept(&total, &kept);
    Simulated { total, intervals, elapsed, encoded: Vec::new(), dials, warmup, idle }
}

/// The channels between the workers of a stage and its collector.
struct Collected {
    parts_in: SyncSender<Part>,
    parts: Receiver<Part>,
    emptied: Vec<SyncSender<Box<Interval>>>,
}

impl Collected {
    fn new(workers: u64) -> Collected {
        let (parts_in, parts) = sync_channel(MANY);
        Collected { parts_in, parts, emptied: Vec::with_capacity(workers as usize) }
    }

    fn recorder(&mut self, index: u64, plan: &RunPlan, keeper: Option<Keeper>) -> Recorder {
        let (emptied_in, emptied_out) = sync_channel(1);
        self.emptied.push(emptied_in);
        let boundaries = Boundaries::new(plan.interval, plan.window);
        Recorder::new(index as usize, boundaries, keeper, self.parts_in.clone(), emptied_out)
    }

    fn finish(self) -> (Interval, Vec<Interval>) {
        drop(self.parts_in);
        let (mut total, mut intervals) = (Interval::default(), Vec::new());
        collect(&self.parts, &self.emptied, Vec::new(), &mut |interval| {
            total.merge(interval);
            intervals.push(interval.clone());
        });
        (total, intervals)
    }
}

#[track_caller]
fn check_promises(total: &Interval) {
    let (scheduled, ended) = (total.counts.scheduled, total.ended());
    assert_eq!(scheduled, ended, "scheduled is not the sum of the outcomes: {}", endings(total));
    let phases: u128 = Phase::ALL.into_iter().filter_map(|phase| total.phase(phase)).map(sum).sum();
    let response = total.response().map_or(0, sum);
    assert_eq!(phases, response, "the phases do not sum to the response");
    for always in [Phase::Send, Phase::Wait, Phase::Receive] {
        assert_eq!(total.phase(always).map_or(0, Durations::count), total.counts.ok, "{always:?}");
    }
    for &(failure, count) in total.failures() {
        let ages = total.failed(failure.outcome).map_or(0, Durations::count);
        assert!(ages >= count, "{failure:?}: {count} failures with {ages} ages");
    }
}

/// The single requests kept are the ones that the intervals counted, to the nanosecond.
#[track_caller]
fn check_kept(total: &Interval, kept: &Receiver<Batch>) {
    let requests: Vec<KeptRequest> = kept.iter().flat_map(|batch| batch.to_vec()).collect();
    let of = |failure| requests.iter().filter(move |request| request.failure == failure);
    for (failure, count) in total.failures().iter().map(|&(failure, count)| (Some(failure), count)) {
        assert_eq!(of(failure).count() as u64, count, "{failure:?}");
    }
    assert_eq!(of(None).count() as u64, total.counts.ok);
    for phase in Phase::ALL {
        let lengths: Vec<u64> = of(None).filter_map(|request| request.phase(phase)).map(|n| n.0).collect();
        let all: u128 = lengths.iter().map(|&ns| u128::from(ns)).sum();
        let (count, ns) = total.phase(phase).map_or((0, 0), |phase| (phase.count(), phase.sum_ns()));
        assert_eq!((lengths.len() as u64, all), (count, ns), "{phase:?}");
    }
    for request in &requests {
        let phases: u64 = Phase::ALL.into_iter().filter_map(|phase| request.phase(phase)).map(|n| n.0).sum();
        assert_eq!(Nanos(phases), request.age(), "{request:?}");
    }
}

/// For example `3 ok; 2 reset/wait/server`, sorted.
fn endings(total: &Interval) -> String {
    let mut parts: Vec<String> = total
        .failures()
        .iter()
        .map(|(failure, count)| {
            let (outcome, phase, blame) =
                (failure.outcome.name(), failure.phase.name(), failure.blame.name());
            format!("{count} {outcome}/{phase}/{blame}")
        })
        .collect();
    parts.sort();
    if total.counts.ok > 0 {
        parts.insert(0, format!("{} ok", total.counts.ok));
    }
    parts.join("; ")
}

/// The total time of all `ok` requests in each phase that took place, in microseconds; exact.
fn phase_sums_us(total: &Interval) -> Vec<(Phase, f64)> {
    let present = Phase::ALL.into_iter().filter_map(|phase| Some((phase, total.phase(phase)?)));
    present.map(|(phase, durations)| (phase, sum(durations) as f64 / 1e3)).collect()
}

fn sum(durations: &Durations) -> u128 {
    assert_eq!(durations.out_of_range(), 0);
    durations.sum_ns()
}

/// Checks that the quantile `rank / count` is `expected`, to the three digits that histograms keep.
#[track_caller]
fn check_rank(durations: &Durations, rank: u64, expected: Nanos) {
    let found = durations.at_rank(rank).unwrap();
    let same = durations.histogram().equivalent(found.0, expected.0);
    assert!(same, "rank {rank} of {}: {found}, not {expected}", durations.count());
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

/// `count` requests of an open loop, evenly spaced at `rate`.
fn open(rate: &str, count: u64) -> RunPlan {
    let load = Load::Open(Arrivals::Constant(rate.parse().unwrap()));
    RunPlan { load, request_limit: Some(count), ..plan() }
}

/// `count` requests of a closed loop.
fn closed(connections: u64, users: u64, count: u64) -> RunPlan {
    let mut plan = RunPlan { request_limit: Some(count), window: None, ..plan() };
    (plan.pool.connections, plan.pool.users) = (connections, users);
    plan
}

/// The same plan, with a peer whose name must be looked up.
fn named(plan: &RunPlan) -> RunPlan {
    let name = Place::Name { host: "server".to_owned(), port: 80 };
    RunPlan { peers: vec![Peer::at(name)], ..plan.clone() }
}
