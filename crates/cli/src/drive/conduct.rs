//! Carries out a prepared run: drives, keeps the record as it goes, and closes it with results and verdict.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Finished, Listener, Load, Plan, RunError, Started};
use record::document::{
    ArrivalStamps, Document, EffectiveOption, Host, Kind, Load as LoadFacts, Model, OptionSource,
    SCHEMA_VERSION, Stamps, State, Subject, Time,
};
use record::{Event, Evidence, FolderWriter, Interval, RecordError, Second, audit};
use report::RunFacts;
use units::Nanos;

use super::folder::Claim;
use super::plan::Prepared;
use super::secrets;

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

/// Drives, and keeps the record in `folder`. Returns when the run has ended, or soon after `stop` is set.
///
/// # Errors
///
/// When the record's folder cannot be made or the engine not be started: nothing has been sent then.
pub fn conduct(
    prepared: &Prepared,
    options: BTreeMap<String, EffectiveOption>,
    folder: &Path,
    progress: Progress,
    stop: &AtomicBool,
) -> anyhow::Result<Conducted> {
    let claim = Claim::make(folder)?;
    let mut keeper = Keeper {
        document: opening_document(prepared, options),
        plan: &prepared.plan,
        folder,
        writer: None,
        damage: None,
        damaged_at: Nanos::ZERO,
        measured: Nanos::ZERO,
        total: Interval::default(),
        process_cpu: host::process_cpu(),
        progress,
        stop,
    };
    let ended = engine::run(&prepared.plan, &prepared.protocol, stop, &mut keeper);
    if keeper.writer.is_some() {
        return Ok(keeper.close(ended));
    }
    claim.release();
    match (keeper.damage, ended) {
        (Some(error), _) => Err(error.into()),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(_)) => unreachable!("a run that began has a record, or could not make one"),
    }
}

pub(super) fn timestamp(wall: Nanos) -> jiff::Timestamp {
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
        command: secrets::without(std::env::args_os().map(|text| text.to_string_lossy().into_owned())),
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
    plan: &'a Plan,
    folder: &'a Path,
    /// From the run's zero on.
    writer: Option<FolderWriter>,
    /// The first, and the offset of what is missing for it.
    damage: Option<RecordError>,
    damaged_at: Nanos,
    /// Where the last interval ended. The intervals themselves are in the folder: a run may be long.
    measured: Nanos,
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
            note_read_stamps(&mut self.document.options);
        }
        match FolderWriter::create(self.folder, &self.document) {
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
        self.measured = interval.start + interval.length;
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.append(interval, used)) {
            // The run goes on: what is measured is worth more than the folder. Told at the end.
            self.note_damage(error, interval.start);
        }
    }
}

/// The kernel was to stamp arrivals, and does not.
fn note_read_stamps(options: &mut BTreeMap<String, EffectiveOption>) {
    if let Some(option) = options.get_mut("stamps").filter(|option| option.value != "read") {
        *option = EffectiveOption { value: "read".to_owned(), source: OptionSource::Derived };
    }
}

impl Keeper<'_> {
    fn close(mut self, ended: Result<Finished, RunError>) -> Conducted {
        let interrupted = self.stop.load(Ordering::Relaxed);
        let (finished, broken) = match ended {
            Ok(finished) => (Some(finished), None),
            Err(error) => (None, Some(error)),
        };
        self.document.state = match (&broken, interrupted) {
            // The engine sets the flag itself where a part of it broke.
            (Some(_), _) => State::Broken,
            (None, true) => State::Interrupted,
            (None, false) => State::Finished,
        };
        self.note_end(finished.as_ref());
        let seconds = self.read_back();
        self.judge(&seconds);
        // The document first: on a full disk it is worth more than what is noted beside it.
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.finish(&self.document)) {
            self.note_damage(error, Nanos(self.document.time.elapsed_ns.unwrap_or(0)));
        }
        for event in self.events(broken.as_ref()) {
            if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.event(&event)) {
                self.damage.get_or_insert(error);
            }
        }
        Conducted {
            document: self.document,
            seconds,
            folder: self.folder.to_owned(),
            damage: self.damage,
            broken,
        }
    }

    fn note_damage(&mut self, error: RecordError, at: Nanos) {
        if self.damage.is_none() {
            (self.damage, self.damaged_at) = (Some(error), at);
        }
    }

    fn note_end(&mut self, finished: Option<&Finished>) {
        let elapsed = finished.map_or(self.measured, |finished| finished.elapsed);
        let time = &mut self.document.time;
        time.elapsed_ns = Some(elapsed.0);
        time.window_ns = Some(window(self.plan, self.document.state, elapsed).0);
        if let Some(finished) = finished {
            self.document.subject.address = finished.address.map(|address| address.to_string());
            if self.document.stamps.arrival == ArrivalStamps::Kernel {
                self.document.stamps.pairing_error_ns = Some(finished.stamps.pairing_error.0);
            }
            self.document.stamps.wall_clock_steps = finished.stamps.wall_clock_steps;
        }
    }

    /// What to draw beside the curves, in the order of time.
    fn events(&self, broken: Option<&RunError>) -> Vec<Event> {
        let end = self.document.time.elapsed_ns.unwrap_or(0);
        let event = |at_ns, kind: &str, text| Event { at_ns, kind: kind.to_owned(), text };
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
        if let Some(error) = broken {
            events.push(event(end, "broken", error.to_string()));
        } else if self.document.state == State::Interrupted {
            events.push(event(end, "interrupted", "ended by a signal".to_owned()));
        }
        events
    }

    /// The intervals, from the folder that they were written to; as many as it took.
    fn read_back(&mut self) -> Vec<Second> {
        record::read_seconds(self.folder).unwrap_or_else(|error| {
            self.damage.get_or_insert(error);
            Vec::new()
        })
    }

    fn judge(&mut self, seconds: &[Second]) {
        let document = &mut self.document;
        document.results = Some(report::summarize(
            &self.total,
            &RunFacts {
                subject: &document.subject,
                stamps: &document.stamps,
                window: Nanos(document.time.window_ns.unwrap_or(0)),
                seconds,
            },
        ));
        document.verdict = Some(audit(&Evidence {
            total: &self.total,
            seconds,
            model: document.load.model,
            slots: document.load.slots(),
            window: Nanos(document.time.window_ns.unwrap_or(0)),
            stamps: &document.stamps,
            state: document.state,
        }));
    }
}

/// How long requests were scheduled for: what throughput is divided by.
fn window(plan: &Plan, state: State, elapsed: Nanos) -> Nanos {
    let Some(window) = plan.window() else { return elapsed };
    // Callers may have used up their number of requests before the time.
    let may_end_early = plan.load == Load::Closed && plan.request_limit.is_some();
    if state == State::Finished && !may_end_early { window } else { window.min(elapsed) }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use engine::{Peer, PoolPlan};
    use schedule::Arrivals;

    use super::*;

    fn plan(load: Load, seconds: Option<u64>, request_limit: Option<u64>) -> Plan {
        let pool = PoolPlan {
            connections: 1,
            callers: 1,
            checkout_timeout: None,
            connect_timeout: None,
            request_timeout: None,
        };
        Plan {
            load,
            window: seconds.map(Nanos::from_secs),
            request_limit,
            pool,
            peer: Peer::Address(SocketAddr::from(([127, 0, 0, 1], 1))),
            workers: 1,
            kernel_stamps: true,
            drain: Some(Nanos::from_secs(5)),
            interval: Nanos::from_secs(1),
        }
    }

    #[track_caller]
    fn check(plan: &Plan, state: State, elapsed_s: u64, window_s: u64) {
        assert_eq!(window(plan, state, Nanos::from_secs(elapsed_s)), Nanos::from_secs(window_s));
    }

    /// If this fails, 4 requests at 1/s are said to be 1.33/s: the last one is due after 3 s, and its second counts.
    #[test]
    fn an_open_loop_is_divided_by_the_time_it_was_scheduled_for() {
        let open = Load::Open(Arrivals::Constant("1/s".parse().unwrap()));
        check(&plan(open, Some(4), None), State::Finished, 3, 4);
        check(&plan(open, None, Some(4)), State::Finished, 3, 4);
        check(&plan(open, Some(10), Some(4)), State::Finished, 3, 4);
        check(&plan(open, Some(4), Some(100)), State::Finished, 9, 4);
        check(&plan(open, Some(4), None), State::Interrupted, 2, 2);
        check(&plan(open, Some(4), None), State::Broken, 2, 2);
    }

    #[test]
    fn a_closed_loop_is_divided_by_the_time_that_it_ran_for() {
        check(&plan(Load::Closed, Some(4), None), State::Finished, 5, 4);
        check(&plan(Load::Closed, None, Some(100)), State::Finished, 7, 7);
        check(&plan(Load::Closed, Some(10), Some(100)), State::Finished, 7, 7);
    }

    /// If this fails, a run that a bug cut short looks like one that its user ended, or leaves no reason behind.
    #[test]
    fn a_run_that_broke_says_so_in_its_record() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run");
        let stop = AtomicBool::new(false);
        let prepared = Prepared {
            plan: plan(Load::Closed, Some(10), None),
            protocol: crate::drive::plan::tests::protocol(),
            url: "http://127.0.0.1:1/".to_owned(),
            request_kinds: 1,
            method: "GET".to_owned(),
        };
        let mut keeper = Keeper {
            document: opening_document(&prepared, BTreeMap::new()),
            plan: &prepared.plan,
            folder: &folder,
            writer: None,
            damage: None,
            damaged_at: Nanos::ZERO,
            measured: Nanos::ZERO,
            total: Interval::default(),
            process_cpu: None,
            progress: Progress::Quiet,
            stop: &stop,
        };
        keeper.started(&Started { at: Nanos::from_secs(1), no_kernel_stamps: None });
        let mut interval = Interval::default();
        interval.length = Nanos::from_secs(1);
        keeper.interval(&interval);
        // As the engine does where it cannot start a worker.
        stop.store(true, Ordering::Relaxed);
        let conducted = keeper.close(Err(RunError::Worker("an invariant".to_owned())));
        assert!(conducted.damage.is_none(), "{:?}", conducted.damage);
        let kept = record::read(&folder).unwrap();
        assert_eq!(kept.document.state, State::Broken);
        assert_eq!(kept.document.time.window_ns, Some(1_000_000_000));
        let events: Vec<_> = kept.events.iter().map(|event| (event.at_ns, event.kind.as_str())).collect();
        assert_eq!(events, [(1_000_000_000, "broken")]);
        assert!(kept.events[0].text.contains("an invariant"));
    }
}
