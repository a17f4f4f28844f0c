//! Carries out a prepared run: drives, keeps the record as it goes, and closes it with results and verdict.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, ensure};
use engine::{Finished, Listener, Load, RunError, Started};
use record::document::{
    ArrivalStamps, Document, EffectiveOption, Host, Kind, Load as LoadFacts, Model, SCHEMA_VERSION, Stamps,
    State, Subject, Time,
};
use record::{Evidence, FolderWriter, Interval, RecordError, Second, audit};
use report::RunFacts;
use units::Nanos;

use super::plan::Prepared;

/// A run that has ended, with all that a report needs.
pub struct Conducted {
    pub document: Document,
    pub seconds: Vec<Second>,
    pub folder: PathBuf,
    /// The first thing that could not be written to the record. The results are whole all the same.
    pub damage: Option<RecordError>,
    /// Why the run broke off, where it did.
    pub broken: Option<RunError>,
}

/// What is told while the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Quiet,
    /// One plain line a second on standard error.
    Lines,
}

/// Drives. Returns when the run has ended, or soon after `stop` is set.
///
/// # Errors
///
/// When the record's folder cannot be made: nothing has been sent then.
pub fn conduct(
    prepared: &Prepared,
    options: BTreeMap<String, EffectiveOption>,
    folder: Option<&Path>,
    progress: Progress,
    stop: &AtomicBool,
) -> anyhow::Result<Conducted> {
    let folder = folder.map_or_else(new_folder, Path::to_owned);
    claim(&folder)?;
    let mut keeper = Keeper {
        document: opening_document(prepared, options),
        folder,
        writer: None,
        damage: None,
        seconds: Vec::new(),
        total: Interval::default(),
        process_cpu: host::process_cpu(),
        progress,
        stop,
    };
    let ended = engine::run(&prepared.plan, &prepared.protocol, stop, &mut keeper);
    match keeper.damage.take_if(|_| keeper.writer.is_none()) {
        Some(error) => Err(error.into()),
        None => Ok(keeper.close(ended)),
    }
}

/// A folder of its own under `parallax-runs/`, named by when it was made.
fn new_folder() -> PathBuf {
    let stamp = timestamp(clock::wall()).strftime("%Y%m%d-%H%M%S").to_string();
    Path::new("parallax-runs").join(format!("{stamp}-{}", std::process::id()))
}

/// Makes sure, before anything is sent, that the record can be kept there.
fn claim(folder: &Path) -> anyhow::Result<()> {
    let shown = folder.display();
    let make = || format!("cannot make the record's folder `{shown}`; choose another with -o");
    fs::create_dir_all(folder).with_context(make)?;
    let occupied = folder.join("run.json").try_exists().with_context(make)?;
    ensure!(!occupied, "`{shown}` already holds a run; choose another folder with -o, or remove it");
    Ok(())
}

fn timestamp(wall: Nanos) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(i128::from(wall.0)).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

fn opening_document(prepared: &Prepared, options: BTreeMap<String, EffectiveOption>) -> Document {
    let plan = &prepared.plan;
    let (model, rate) = match plan.load {
        Load::Open(schedule::Arrivals::Constant(rate)) => (Model::Open, Some(rate.as_per_second_f64())),
        Load::Closed => (Model::Closed, None),
    };
    Document {
        schema_version: SCHEMA_VERSION,
        kind: Kind::Drive,
        state: State::Running,
        verdict: None,
        parallax_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect(),
        options,
        subject: Subject {
            url: prepared.url.clone(),
            protocol: "http/1.1".to_owned(),
            request_kinds: prepared.request_kinds,
            address: None,
        },
        load: LoadFacts {
            model,
            rate_per_s: rate,
            callers: plan.pool.callers,
            connections: plan.pool.connections,
            pipeline: codec::Session::capacity(&codec::Protocol::session(&prepared.protocol)) as u64,
            workers: plan.workers,
            duration_ns: plan.window.map(|window| window.0),
            request_limit: plan.request_limit,
        },
        time: Time { started: String::new(), started_monotonic_ns: 0, elapsed_ns: None, window_ns: None },
        stamps: Stamps {
            arrival: ArrivalStamps::Kernel,
            reason: None,
            pairing_error_ns: None,
            wall_clock_steps: 0,
        },
        host: host_facts(),
        results: None,
    }
}

fn host_facts() -> Host {
    let facts = host::Facts::read();
    Host {
        name: facts.name,
        kernel: facts.kernel,
        cpu_model: facts.cpu_model,
        cpus: facts.cpus,
        memory_bytes: facts.memory_bytes,
        clock_source: facts.clock_source,
        hypervisor: facts.hypervisor,
    }
}

/// Keeps the record while the engine runs.
struct Keeper<'a> {
    document: Document,
    folder: PathBuf,
    writer: Option<FolderWriter>,
    damage: Option<RecordError>,
    seconds: Vec<Second>,
    total: Interval,
    process_cpu: Option<Nanos>,
    progress: Progress,
    stop: &'a AtomicBool,
}

impl Listener for Keeper<'_> {
    fn started(&mut self, started: &Started) {
        let offset = started.at.saturating_sub(clock::now());
        self.document.time.started = timestamp(clock::wall() + offset).to_string();
        self.document.time.started_monotonic_ns = started.at.0;
        if let Some(reason) = &started.no_kernel_stamps {
            self.document.stamps.arrival = ArrivalStamps::Read;
            self.document.stamps.reason = Some(reason.clone());
        }
        match FolderWriter::create(&self.folder, &self.document) {
            Ok(writer) => self.writer = Some(writer),
            Err(error) => {
                // Nothing has been sent yet, and without its record the run would be for nothing.
                self.damage = Some(error);
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    fn interval(&mut self, interval: &Interval) {
        if self.writer.is_none() {
            // There is no run without its record: nothing was sent, and nothing is to be told of it.
            return;
        }
        let now = host::process_cpu();
        let used = now.zip(self.process_cpu).map(|(now, before)| now.saturating_sub(before));
        self.process_cpu = now;
        self.total.merge(interval);
        let second = Second::of(interval, used);
        if self.progress == Progress::Lines {
            let _ = writeln!(io::stderr(), "{}", report::second_line(&second, &self.document.load));
        }
        self.seconds.push(second);
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.append(interval, used)) {
            // The run goes on: what is measured is worth more than the folder. Told at the end.
            self.damage.get_or_insert(error);
        }
    }
}

impl Keeper<'_> {
    fn close(mut self, ended: Result<Finished, RunError>) -> Conducted {
        let interrupted = self.stop.load(Ordering::Relaxed);
        self.document.state = if interrupted { State::Interrupted } else { State::Finished };
        let (finished, broken) = match ended {
            Ok(finished) => (Some(finished), None),
            Err(error) => (None, Some(error)),
        };
        self.note_end(finished.as_ref());
        self.judge();
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.finish(&self.document)) {
            self.damage.get_or_insert(error);
        }
        Conducted {
            document: self.document,
            seconds: self.seconds,
            folder: self.folder,
            damage: self.damage,
            broken,
        }
    }

    fn note_end(&mut self, finished: Option<&Finished>) {
        let measured = self.seconds.last().map_or(0, |second| second.start_ns + second.length_ns);
        let elapsed = finished.map_or(measured, |finished| finished.elapsed.0);
        let time = &mut self.document.time;
        time.elapsed_ns = Some(elapsed);
        time.window_ns = Some(self.document.load.duration_ns.map_or(elapsed, |window| window.min(elapsed)));
        if let Some(finished) = finished {
            self.document.subject.address = finished.address.map(|address| address.to_string());
            if self.document.stamps.arrival == ArrivalStamps::Kernel {
                self.document.stamps.pairing_error_ns = Some(finished.stamps.pairing_error.0);
            }
            self.document.stamps.wall_clock_steps = finished.stamps.wall_clock_steps;
        }
    }

    fn judge(&mut self) {
        let document = &mut self.document;
        document.results = Some(report::summarize(
            &self.total,
            &RunFacts {
                subject: &document.subject,
                stamps: &document.stamps,
                window: Nanos(document.time.window_ns.unwrap_or(0)),
                seconds: &self.seconds,
            },
        ));
        document.verdict = Some(audit(&Evidence {
            total: &self.total,
            seconds: &self.seconds,
            model: document.load.model,
            slots: document.load.slots(),
            window: Nanos(document.time.window_ns.unwrap_or(0)),
            stamps: &document.stamps,
            state: document.state,
        }));
    }
}
