//! Carries out a prepared run: generates the load, writes the record as it goes, and closes it with results and
//! verdict.

mod before;
mod opening;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use audit::{Evidence, audit};
use dataset::Sampling;
use dataset::account::{Accountant, Snapshot};
use engine::{
    Controls, Finished, Keeping, Listener, Order, Place, Prepared, RunError, RunPlan, Started, WarmUp,
};
use findings::{Condition, Figures, RunFacts};
use metering::HostMonitor;
use record::document::{
    ArrivalStamps, Document, EffectiveOption, LoadChange, LoadOrder, OptionSource, State,
};
use record::{Event, FolderWriter, Interval, Reach, RecordError, Second};
use units::Nanos;

use crate::companion::Companions;
use crate::date::timestamp;
use crate::effective::{EffectiveOptions, effective};
use crate::environment::Environment;
use crate::folder::ClaimedFolder;
use crate::prepare::PreparedRun;
use crate::record_lock::RecordLock;
use crate::requests_file::RequestsFile;
use crate::sinks::Sinks;
use crate::{ceiling, unreachable};

pub use self::opening::{host_facts, opening_document};

/// Receives the progress of a run.
pub trait Progress {
    /// The run begins at `at` on the monotonic clock.
    fn started(&mut self, document: &Document, plan: &RunPlan, at: Nanos);

    /// An interval has ended.
    fn interval(&mut self, interval: &Interval, second: &Second, document: &Document);

    /// The run has ended; a live view restores the terminal.
    fn end(&mut self);
}

/// Shows nothing.
pub struct Quiet;

impl Progress for Quiet {
    fn started(&mut self, _: &Document, _: &RunPlan, _: Nanos) {}

    fn interval(&mut self, _: &Interval, _: &Second, _: &Document) {}

    fn end(&mut self) {}
}

/// A run that has ended, with all that a report needs.
pub struct CompletedRun {
    pub document: Document,
    pub seconds: Vec<Second>,
    pub folder: PathBuf,
    /// The first error when writing the record. The results are complete nevertheless.
    pub write_error: Option<RecordError>,
    /// Why the run broke off, if it did.
    pub aborted: Option<RunError>,
    /// Why the run was given up, if no server could be reached. One line.
    pub unreachable: Option<String>,
    /// What else failed, one line each.
    pub warnings: Vec<String>,
    /// The record of the server's observer, or why there is none; `None` if none was requested.
    pub server: Option<anyhow::Result<PathBuf>>,
    /// The record of the server's profile, or why there is none; `None` if none was requested.
    pub profile: Option<anyhow::Result<PathBuf>>,
}

/// Where and with what a run is conducted.
pub struct Conduct<'a> {
    /// The results directory.
    pub folder: &'a Path,
    /// Options that are not the run's own but its caller's. They override those of the run.
    pub options: EffectiveOptions,
    pub environment: &'a Environment<'a>,
    pub progress: &'a mut dyn Progress,
    pub controls: &'a Controls,
}

/// Attaches the observers, generates the load, and writes the record. Returns when the run has ended, or soon after its
/// controls stop it.
///
/// # Errors
///
/// When an observer cannot be attached, the results directory cannot be created, or the engine cannot be started;
/// nothing has been sent then.
pub fn conduct(prepared: &PreparedRun, with: Conduct<'_>) -> anyhow::Result<CompletedRun> {
    // The folder first: observers write into it, and opening a sink truncates its file, which may be in it.
    let claim = ClaimedFolder::make(with.folder)?;
    let (observers, stop) = (&prepared.spec.observers, with.controls.stop_flag());
    let companions = match Companions::start(observers, with.folder, with.environment.program, stop) {
        Ok(companions) => companions,
        Err(error) => {
            claim.release();
            return Err(error);
        }
    };
    match drive(prepared, with) {
        Ok(mut completed) => {
            (completed.server, completed.profile) = companions.finish();
            Ok(completed)
        }
        Err(error) => {
            companions.abandon();
            claim.release();
            Err(error)
        }
    }
}

fn drive(prepared: &PreparedRun, with: Conduct<'_>) -> anyhow::Result<CompletedRun> {
    let Conduct { folder, options, environment, progress, controls } = with;
    let accountant = before::accountant(prepared)?;
    let sinks = Sinks::open(&prepared.sinks)?;
    let mut all = effective(prepared, folder);
    all.extend(options);
    let mut keeper = Keeper {
        document: opening_document(prepared, all, environment),
        thresholds: &prepared.thresholds,
        sinks,
        prepared,
        accountant,
        counted: None,
        sampling: None,
        folder,
        environment,
        writer: None,
        lock: None,
        damage: None,
        damaged_at: Nanos::ZERO,
        measured: Nanos::ZERO,
        total: Interval::reserved(),
        process_cpu: host::process_cpu(),
        monitor: HostMonitor::start(port(&prepared.plan), &prepared.watch_cpu),
        progress,
        controls,
        requests: None,
        unreachable: false,
        warnings: Vec::new(),
    };
    if let Some(length) = prepared.plan.warmup.filter(|_| !prepared.spec.output.quiet) {
        (environment.notice)(&format!("warming up for {length}; none of it is in the figures"));
    }
    let ended = prepared.protocol.run(&prepared.plan, controls, &mut keeper);
    keeper.progress.end();
    if keeper.writer.is_some() {
        return Ok(keeper.close(ended));
    }
    match (keeper.damage, ended) {
        (Some(error), _) => Err(error.into()),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(_)) => unreachable!("a run that began has a record, or could not make one"),
    }
}

/// Writes the record while the engine runs.
struct Keeper<'a> {
    document: Document,
    thresholds: &'a [Condition],
    sinks: Sinks,
    prepared: &'a PreparedRun,
    folder: &'a Path,
    /// Reads what the server counted.
    accountant: Option<Accountant>,
    /// What it had counted before the run.
    counted: Option<anyhow::Result<Snapshot>>,
    /// Samples its sessions during the run.
    sampling: Option<Sampling>,
    /// Present from the run's zero on.
    writer: Option<FolderWriter>,
    environment: &'a Environment<'a>,
    /// Tells readers of the folder that the run is in progress.
    lock: Option<RecordLock>,
    /// The first write error; the next field is the offset of the first interval that is missing because of it.
    damage: Option<RecordError>,
    damaged_at: Nanos,
    /// End of the last interval. The intervals themselves are in the folder only, because a run may be long.
    measured: Nanos,
    total: Interval,
    process_cpu: Option<Nanos>,
    monitor: HostMonitor,
    progress: &'a mut dyn Progress,
    controls: &'a Controls,
    /// Present if individual requests are kept.
    requests: Option<RequestsFile>,
    /// The run was given up because no server can be reached.
    unreachable: bool,
    /// What else failed, one line each.
    warnings: Vec<String>,
}

/// The port that connections go to, if it is the same for all.
fn port(plan: &RunPlan) -> Option<u16> {
    let port = |place: &Place| match place {
        Place::Address(address) => Some(address.port()),
        Place::Name { port, .. } => Some(*port),
        Place::Unix(_) => None,
    };
    let [peer] = plan.peers.as_slice() else { return None };
    port(&peer.place)
}

/// Whether the run uses what the ceiling was measured with: HTTP/1.1 without TLS, to one server.
fn speaks_as_calibrated(document: &Document) -> bool {
    let http = document.options.get("http").map_or("auto", |option| option.value.as_str());
    let one_server = document.subject.targets.len() <= 1;
    document.subject.url.starts_with("http://") && matches!(http, "auto" | "1.1") && one_server
}

impl Listener for Keeper<'_> {
    fn started(&mut self, started: &Started) {
        let offset = started.at.saturating_sub(clock::now());
        self.document.time.started = timestamp(clock::wall() + offset).to_string();
        self.document.time.started_monotonic_ns = started.at.0;
        self.monitor.begin(started.at);
        self.document.host.limits = self.monitor.limits();
        self.document.host.missing = self.monitor.missing();
        if speaks_as_calibrated(&self.document) {
            let shape = ceiling::shape(&self.prepared.plan, self.document.load.pipeline, &self.document.host);
            let (ceiling, unusable) = ceiling::known(self.environment.cache.as_deref(), &shape);
            self.document.host.limits.ceiling = ceiling;
            self.document.host.missing.extend(unusable);
        }
        if let Some(reason) = &started.no_kernel_stamps {
            self.document.stamps.arrival = ArrivalStamps::Read;
            self.document.stamps.reason = Some(reason.clone());
            note_read_stamps(&mut self.document.options);
        }
        match FolderWriter::create(self.folder, &self.document) {
            Ok(writer) => {
                self.writer = Some(writer);
                self.sample_sessions(started.at);
                self.lock = RecordLock::acquire(self.folder);
                self.progress.started(&self.document, &self.prepared.plan, started.at);
                self.sinks.started(&self.document);
            }
            Err(error) => {
                // Nothing has been sent yet, and a run without its record would be useless.
                self.damage = Some(error);
                self.controls.stop();
            }
        }
    }

    fn warming(&mut self, interval: &Interval) -> bool {
        interval.reach != Reach::Failing || self.prepared.spec.limits.keep_trying
    }

    fn prepared(&mut self, prepared: Prepared) {
        if let Some(WarmUp { window, elapsed, total }) = prepared.warmup {
            self.document.load.warmup = Some(findings::warm_up(&total, window, elapsed));
        }
        self.document.load.idle_connections = before::idle_facts(prepared.idle);
        // What it cost is not part of the run.
        self.process_cpu = host::process_cpu();
    }

    fn starting(&mut self) {
        self.counted = self.accountant.as_ref().map(|accountant| accountant.read(None));
    }

    fn keeping(&mut self) -> Option<Keeping> {
        let (keep, seed) = self.prepared.keep.filter(|_| self.writer.is_some())?;
        match RequestsFile::begin(keep, seed, self.folder, &self.document, &self.prepared.names) {
            Ok((file, keeping)) => {
                self.requests = Some(file);
                Some(keeping)
            }
            Err(error) => {
                self.warnings.push(format!("--requests: {error:#}"));
                None
            }
        }
    }

    fn interval(&mut self, interval: &mut Interval) {
        if self.writer.is_none() {
            // There is no run without its record: nothing was sent, and there is nothing to report.
            return;
        }
        let now = host::process_cpu();
        let used = now.zip(self.process_cpu).map(|(now, before)| now.saturating_sub(before));
        self.process_cpu = now;
        self.monitor.note(interval);
        interval.keep_first_samples(&self.total);
        self.total.merge(interval);
        let second = Second::of(interval, used);
        self.sinks.interval(interval, &second);
        self.progress.interval(interval, &second, &self.document);
        self.note_changes();
        self.measured = interval.start + interval.length;
        if interval.reach == Reach::Failing && !self.prepared.spec.limits.keep_trying {
            self.unreachable = true;
            self.controls.stop();
        }
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.append(interval, used)) {
            // The run goes on: the measurement is worth more than the folder. The error is reported at the end.
            self.note_damage(error, interval.start);
        }
    }
}

/// Records that the kernel did not timestamp arrivals although it was configured to.
fn note_read_stamps(options: &mut BTreeMap<String, EffectiveOption>) {
    if let Some(option) = options.get_mut("stamps").filter(|option| option.value != "read") {
        *option = EffectiveOption { value: "read".to_owned(), source: OptionSource::Derived };
    }
}

impl Keeper<'_> {
    fn sample_sessions(&mut self, zero: Nanos) {
        let begin = |accountant: &Accountant| accountant.sample(zero);
        match self.accountant.as_ref().map(begin).transpose() {
            Ok(sampling) => self.sampling = sampling.flatten(),
            Err(error) => self.warnings.push(format!("--server-account: sessions are not sampled: {error}")),
        }
    }

    fn close(mut self, ended: Result<Finished, RunError>) -> CompletedRun {
        let interrupted = self.controls.is_stopped() && !self.unreachable;
        self.note_changes();
        let (finished, broken) = match ended {
            Ok(finished) => (Some(finished), None),
            Err(error) => (None, Some(error)),
        };
        self.document.state = match (&broken, interrupted) {
            // The engine itself sets the stop flag when a part of it broke.
            (Some(_), _) => State::Broken,
            (None, true) => State::Interrupted,
            (None, false) => State::Finished,
        };
        self.note_end(finished.as_ref());
        if let Some((accountant, before)) = self.accountant.take().zip(self.counted.take()) {
            let (account, warning) = before::counted(&accountant, before, self.sampling.take());
            self.document.server_account = Some(account);
            self.warnings.extend(warning);
        }
        let seconds = self.read_back();
        self.judge(&seconds);
        self.note_server_memory();
        self.finish_requests(finished.as_ref());
        // The document first: on a full disk it is worth more than the events.
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.finish(&self.document)) {
            self.note_damage(error, Nanos(self.document.time.elapsed_ns.unwrap_or(0)));
        }
        for event in self.events(broken.as_ref()) {
            if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.event(&event)) {
                self.damage.get_or_insert(error);
            }
        }
        // Last: a sink may wait for its reader, and the record must not wait for that.
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(self.document.load.idle_connections.as_ref().and_then(before::idle_warning));
        warnings.extend(self.sinks.finish(&|| self.controls.is_stopped(), self.environment.notice));
        let unreachable = self.unreachable.then(|| unreachable::explain(&self.document, &self.prepared.plan));
        CompletedRun {
            document: self.document,
            seconds,
            folder: self.folder.to_owned(),
            write_error: self.damage,
            aborted: broken,
            unreachable,
            warnings,
            server: None,
            profile: None,
        }
    }

    fn note_server_memory(&mut self) {
        let Some(cpu) = self.document.results.as_mut().map(|results| &mut results.cpu) else { return };
        cpu.server_memory = cpu.server.as_ref().and_then(|resources| self.monitor.memory(resources));
    }

    fn finish_requests(&mut self, finished: Option<&Finished>) {
        let Some(file) = self.requests.take() else { return };
        let kept = file.finish(finished.map_or(0, |finished| finished.unkept));
        match (kept, &mut self.document.results) {
            (Ok(kept), Some(results)) => {
                if kept.lost > 0 {
                    self.warnings.push(format!(
                        "--requests: {} requests arrived faster than they could be written; keep a sample",
                        kept.lost
                    ));
                }
                results.kept = Some(kept);
            }
            (Ok(_), None) => {}
            (Err(error), _) => self.warnings.push(format!("--requests: {error:#}")),
        }
    }

    /// Records at once what the user has changed in the load since the last call, so that a run that is cut off has it
    /// too.
    fn note_changes(&mut self) {
        let known = self.document.load.changes.len();
        let changes = self.controls.changes(known);
        if changes.is_empty() {
            return;
        }
        let planned = self.document.load.rate_per_s;
        for change in changes {
            let (order, rate_per_s) = match change.order {
                Order::Pause => (LoadOrder::Paused, None),
                Order::Resume => (LoadOrder::Resumed, None),
                Order::Tempo(tempo) => (LoadOrder::Rate, planned.map(|per_s| per_s * tempo.factor())),
                Order::End => (LoadOrder::Ended, None),
            };
            self.document.load.changes.push(LoadChange { at_ns: change.at.0, change: order, rate_per_s });
            let (kind, text) = match (order, rate_per_s) {
                (LoadOrder::Paused, _) => ("paused", "paused with a key".to_owned()),
                (LoadOrder::Resumed, _) => ("resumed", "resumed with a key".to_owned()),
                (LoadOrder::Rate, Some(per_s)) => {
                    ("rate", format!("the rate was changed to {} with a key", units::rate(per_s)))
                }
                (LoadOrder::Rate, None) => ("rate", "the pace was changed with a key".to_owned()),
                (LoadOrder::Ended, _) => {
                    ("ended", "ended with a key; waiting for the last responses".to_owned())
                }
            };
            let event = Event::new(change.at.0, kind, text);
            if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.event(&event)) {
                self.note_damage(error, change.at);
            }
        }
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.finish(&self.document)) {
            self.note_damage(error, self.measured);
        }
    }

    fn note_damage(&mut self, error: RecordError, at: Nanos) {
        if self.damage.is_none() {
            (self.damage, self.damaged_at) = (Some(error), at);
        }
    }

    fn note_end(&mut self, finished: Option<&Finished>) {
        let elapsed = finished.map_or(self.measured, |finished| finished.elapsed);
        let window = match self.unreachable {
            true => elapsed,
            false => window(&self.prepared.plan, self.controls, self.document.state, elapsed),
        };
        let time = &mut self.document.time;
        time.elapsed_ns = Some(elapsed.0);
        time.window_ns = Some(window.0);
        if let Some(used_protocols) = self.prepared.protocol.used_protocols() {
            self.document.subject.protocol = used_protocols;
        }
        if let Some(finished) = finished {
            self.document.load.idle_connections = before::idle_facts(finished.idle.clone());
            self.document.subject.address = finished.address.as_ref().map(ToString::to_string);
            if self.document.stamps.arrival == ArrivalStamps::Kernel {
                self.document.stamps.pairing_error_ns = Some(finished.stamps.pairing_error.0);
            }
            self.document.stamps.wall_clock_steps = finished.stamps.wall_clock_steps;
        }
    }

    /// Events to draw with the curves, ordered by time.
    fn events(&self, broken: Option<&RunError>) -> Vec<Event> {
        let end = self.document.time.elapsed_ns.unwrap_or(0);
        let event = Event::new;
        let damage = self.damage.as_ref();
        let mut events: Vec<Event> = damage
            .map(|error| event(self.damaged_at.0, "record_damage", error.to_string()))
            .into_iter()
            .collect();
        let steps = self.document.stamps.wall_clock_steps;
        if steps > 0 {
            events.push(event(
                end,
                "wall_clock_step",
                format!("the wall clock was set during the run: {steps} times"),
            ));
        }
        events.extend(self.used_up().map(|text| event(end, "data_used_up", text)));
        if let Some(error) = broken {
            events.push(event(end, "broken", error.to_string()));
        } else if self.document.state == State::Interrupted {
            events.push(event(end, "interrupted", "ended by a signal".to_owned()));
        } else if self.unreachable {
            events.push(event(end, "unreachable", unreachable::explain(&self.document, &self.prepared.plan)));
        }
        events
    }

    /// Why the schedule ended early, if data that is used only once ran out.
    fn used_up(&self) -> Option<String> {
        let limit = self.prepared.protocol.scenario()?.limit()?;
        let is_bound = self.prepared.plan.request_limit == Some(limit.arrivals);
        let begun: u64 = match self.document.results.as_ref() {
            Some(results) if is_bound => {
                let kinds = self.prepared.protocol.scenario()?.kinds_named();
                let first = kinds.iter().zip(&results.targets).filter(|(kind, _)| kind.first);
                let apart: u64 = first.map(|(_, target)| target.requests).sum();
                if results.targets.is_empty() { results.totals.scheduled } else { apart }
            }
            _ => return None,
        };
        let rows = limit.rows;
        (begun >= limit.arrivals).then(|| {
            format!("data `{}` was used up after {rows} rows, so the schedule ended there", limit.data)
        })
    }

    /// Reads the intervals back from the folder, as many as were written.
    fn read_back(&mut self) -> Vec<Second> {
        record::read_seconds(self.folder).unwrap_or_else(|error| {
            self.damage.get_or_insert(error);
            Vec::new()
        })
    }

    fn judge(&mut self, seconds: &[Second]) {
        let document = &mut self.document;
        document.results = Some(findings::summarize(
            &self.total,
            &RunFacts {
                subject: &document.subject,
                stamps: &document.stamps,
                window: Nanos(document.time.window_ns.unwrap_or(0)),
                seconds,
            },
        ));
        document.verdict = Some(audit(&Evidence::of(document, &self.total, seconds)));
        let window = Nanos(document.time.window_ns.unwrap_or(0));
        let thresholds = document.results.as_ref().map_or_else(Vec::new, |results| {
            let figures = Figures { total: &self.total, results, subject: &document.subject, window };
            self.thresholds.iter().map(|condition| condition.threshold(&figures)).collect()
        });
        document.thresholds = thresholds;
    }
}

/// How long requests were scheduled for: the divisor of throughput.
fn window(plan: &RunPlan, controls: &Controls, state: State, elapsed: Nanos) -> Nanos {
    let Some(window) = controls.window(plan) else { return elapsed };
    // Virtual users may have sent their number of requests before the time is over.
    let may_end_early = !plan.load.is_open() && plan.request_limit.is_some();
    if state == State::Finished && !may_end_early { window } else { window.min(elapsed) }
}

#[cfg(test)]
mod tests;
