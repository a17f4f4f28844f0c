//! Carries out a plan, from its beginning or from where an earlier session was cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use super::documents::{
    Failure, JournalEvent, PlanDocument, PlannedRunDocument, RunDocument, RunState, SCHEMA_VERSION,
};
use super::life::{Bench, Broken, Life, LiveRun};
use super::order::PlannedRun;
use super::pending::{Pending, pending};
use super::progress::{Lines, RunReport};
use super::spec::Experiment;
use super::store::{Journal, Store};
use crate::command::TrialCommand;
use crate::keep::{Keeper, Role, Wait, end_remains, split};
use crate::supervise::Ended;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    Complete,
    /// The user ended it.
    Interrupted,
}

/// Makes the directory of an experiment in `folder`, with its whole plan. `file` is the experiment file.
///
/// # Errors
///
/// When the experiment has no runs, or the directory cannot be made.
pub fn create(experiment: &Experiment, file: &Path, text: &str, folder: &Path) -> anyhow::Result<()> {
    let runs = experiment.runs().map_err(anyhow::Error::msg)?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory =
        fs::canonicalize(directory).context("cannot find the directory of the experiment file")?;
    let plan = PlanDocument {
        schema_version: SCHEMA_VERSION.to_owned(),
        name: experiment.name.clone(),
        file: file.to_owned(),
        directory,
        seed: experiment.seed,
        blocks: experiment.blocks,
        runs: runs.iter().map(|run| experiment.document(run)).collect(),
    };
    Store::create(folder, plan, text).map(drop)
}

/// Carries out what is left of the plan in `folder`; `say` gets a line for each thing that happens.
///
/// # Errors
///
/// When another process does so, and when this host does not let it: failures of servers and loads are part of the
/// experiment. No process is left.
pub fn carry_on(
    folder: &Path,
    program: &Path,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<SessionEnd> {
    let mut lines = Lines::new(say);
    let progress = &mut lines;
    let store = Store::open(folder)?;
    let _lock = store.lock()?;
    let (experiment, plan) = opened(&store)?;
    let cpus =
        (experiment.cpus == super::format::Cpus::Split && experiment.server.is_some()).then(split).flatten();
    let mut journal = store.journal()?;
    let boot_id = boot_id()?;
    let begun = clear(&store, &mut journal, progress)?;
    let keeper = Keeper::start()?;
    journal.note(JournalEvent::Session {
        pid: std::process::id(),
        boot_id: boot_id.clone(),
        token: keeper.token().to_owned(),
        group: keeper.group(),
    })?;
    let bench = Bench {
        experiment: &experiment,
        directory: &store.plan.directory,
        results: store.folder().to_str().context("the directory of the experiment is not UTF-8")?,
        program,
        stop,
        cpus: cpus.as_ref(),
    };
    let mut session =
        Session { store: &store, bench: &bench, plan: &plan, keeper, journal, boot_id, progress };
    let ended = session.run(&begun);
    let is_complete = matches!(ended, Ok(SessionEnd::Complete));
    session.journal.note(JournalEvent::Ended { is_complete })?;
    ended
}

/// The experiment and the plan of a directory. The plan is the one that was written, whatever this program would make.
pub(super) fn opened(store: &Store) -> anyhow::Result<(Experiment, Vec<PlannedRun>)> {
    let name = store.plan.file.display().to_string();
    let experiment = Experiment::read(&name, &store.text).map_err(anyhow::Error::msg)?;
    let of_document = |run: &PlannedRunDocument| {
        let level = |factor: &super::spec::ExperimentFactor| {
            let label = run.labels.get(&factor.name)?;
            factor.levels.iter().position(|level| level.label == *label)
        };
        let levels: Option<Vec<usize>> = experiment.factors.iter().map(level).collect();
        let levels = levels.context("the plan does not belong to its experiment")?;
        Ok(PlannedRun { number: run.number, block: run.block, levels, is_twin: run.twin })
    };
    let plan = store.plan.runs.iter().map(of_document).collect::<anyhow::Result<_>>()?;
    Ok((experiment, plan))
}

/// Ends what earlier sessions left, and sets aside the runs that they did not finish: the numbers of those.
fn clear(store: &Store, journal: &mut Journal, progress: &mut Lines<'_>) -> anyhow::Result<BTreeSet<usize>> {
    let mut open = None;
    for line in store.events() {
        match line.event {
            JournalEvent::Session { token, group, boot_id, .. } => open = Some((token, group, boot_id)),
            JournalEvent::Ended { .. } => open = None,
            _ => {}
        }
    }
    if let Some((token, group, boot)) = open
        && boot == boot_id()?
    {
        end_remains(&token, group.as_deref())?;
    }
    for (run, folder) in store.abort()? {
        progress.note(&format!(
            "run {run} did not come to its end; it is made again, and kept in {}",
            folder.display()
        ));
        journal.note(JournalEvent::Aborted { run, folder })?;
    }
    Ok(store.aborted()?.into_iter().collect())
}

fn boot_id() -> anyhow::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").context("cannot read the boot ID")?;
    Ok(text.trim().to_owned())
}

struct Session<'a> {
    store: &'a Store,
    bench: &'a Bench<'a>,
    plan: &'a [PlannedRun],
    keeper: Keeper,
    journal: Journal,
    boot_id: String,
    progress: &'a mut Lines<'a>,
}

impl Session<'_> {
    fn run(&mut self, begun: &BTreeSet<usize>) -> anyhow::Result<SessionEnd> {
        let committed = self.store.committed()?;
        let now = (clock::wall().0, self.boot_id.as_str());
        let Pending { runs, stale } = pending(self.bench.experiment, self.plan, &committed, begun, now);
        for run in stale {
            let folder = self.store.supersede(run)?;
            self.progress.note(&format!(
                "run {run} is made again: its neighbours are missing, and it was made more than an hour ago or before \
                 the last boot; kept in {}",
                folder.display()
            ));
            self.journal.note(JournalEvent::Superseded { run, folder })?;
        }
        self.progress.begins(self.plan.len(), runs.len(), self.store.folder());
        if self.bench.cpus.is_none() && self.bench.experiment.server.is_some() {
            self.progress.note("server and load share all CPUs, and take time from each other");
        }
        let Some(broken) = self.build(&runs)? else { return Ok(SessionEnd::Interrupted) };
        let left = runs.len();
        for (place, run) in runs.iter().enumerate() {
            if self.bench.stop.load(Ordering::Relaxed) || !self.one(run, &broken, left - place - 1)? {
                return Ok(SessionEnd::Interrupted);
            }
        }
        Ok(SessionEnd::Complete)
    }

    /// Builds what the runs need, each text once: the texts that failed, with the cause. `None` if the user ended it.
    fn build(&mut self, runs: &[PlannedRun]) -> anyhow::Result<Option<BTreeMap<String, String>>> {
        let mut failed = BTreeMap::new();
        let mut done: BTreeSet<String> = BTreeSet::new();
        for line in self.store.events() {
            if let JournalEvent::Built { command, cause: None, .. } = line.event {
                done.insert(command);
            }
        }
        for run in runs {
            let Some(text) = self.build_text(run) else { continue };
            // A password in it is hidden in the journal; such a build is repeated.
            if !done.insert(text.clone()) {
                continue;
            }
            let began = clock::now();
            let Some(cause) = self.built(&text)? else { return Ok(None) };
            let took = clock::now().saturating_sub(began);
            let command = TrialCommand::new(&text).map_err(anyhow::Error::msg)?.text();
            self.progress.built(&command, took, cause.as_deref());
            self.journal.note(JournalEvent::Built { command, ns: took.0, cause: cause.clone() })?;
            failed.extend(cause.map(|cause| (text, cause)));
        }
        Ok(Some(failed))
    }

    fn build_text(&self, run: &PlannedRun) -> Option<String> {
        let build = self.bench.experiment.server.as_ref()?.build.as_ref()?;
        let mut values = self.bench.experiment.values(&run.levels);
        values.push(("results".to_owned(), self.bench.results.to_owned()));
        Some(build.filled(&values))
    }

    /// Why a build failed; `None` within if it did not, and `None` if the user ended it.
    fn built(&mut self, text: &str) -> anyhow::Result<Option<Option<String>>> {
        let spec = self.bench.experiment.server.as_ref().context("a build belongs to a server")?;
        let command = TrialCommand::new(text).map_err(anyhow::Error::msg)?;
        let path = self.store.folder().join("build.log");
        let log = File::options().create(true).append(true).open(&path).context("cannot write build.log")?;
        let mut started = command.by_shell(self.bench.program, &[]);
        started.current_dir(self.bench.directory);
        self.keeper.begin_run()?;
        let mut running = self.keeper.spawn(Role::Load, started, None, &log)?;
        let waited = running.wait(spec.build_within, self.bench.stop, None, |_| {});
        self.keeper.end_run()?;
        Ok(match waited.context("cannot wait for a build")? {
            Wait::Ended(Ended::Exited(0)) => Some(None),
            Wait::Ended(Ended::Interrupted) => None,
            Wait::Ended(ended) | Wait::OtherEnded(ended) => Some(Some(super::life::with_log(&ended, &path))),
        })
    }

    /// Makes one run; `false` if the user ended it, which is no run.
    fn one(
        &mut self,
        run: &PlannedRun,
        broken: &BTreeMap<String, String>,
        left: usize,
    ) -> anyhow::Result<bool> {
        let folder = self.store.begin(run.number)?;
        self.journal.note(JournalEvent::Begun { run: run.number })?;
        let (started, began) = (clock::wall(), clock::now());
        self.keeper.begin_run()?;
        let (life, ended) = self.lived(run, &folder, broken)?;
        let left_behind = self.keeper.end_run()?;
        let failure = match ended {
            Ok(()) => None,
            Err(Broken::Failed(failure)) => Some(failure),
            Err(Broken::Interrupted) => {
                for (run, folder) in self.store.abort()? {
                    self.journal.note(JournalEvent::Aborted { run, folder })?;
                }
                return Ok(false);
            }
            Err(Broken::Lab(error)) => return Err(error),
        };
        let took = clock::now().saturating_sub(began);
        let state = if failure.is_none() { RunState::Done } else { RunState::Failed };
        let document = RunDocument {
            schema_version: SCHEMA_VERSION.to_owned(),
            planned: self.bench.experiment.document(run),
            state,
            failure: failure.clone(),
            started_ns: started.0,
            wall_ns: took.0,
            boot_id: self.boot_id.clone(),
            version: life.version,
            commands: life.commands,
            cpus: self.bench.cpus.map(Into::into),
            supervision: self.keeper.method().to_owned(),
            steps: life.steps,
            load: life.load,
            server_cpu_ns: life.server_cpu.map(|cpu| cpu.0),
            server_memory_bytes: life.server_memory,
            left_behind,
        };
        self.store.commit(&document)?;
        self.journal.note(JournalEvent::Committed { run: run.number, state })?;
        let name = self.bench.experiment.run_name(run);
        let failure = failure.map(|failure| format!("{}: {}", failure.step, failure.cause));
        self.progress.ran(&RunReport {
            number: run.number,
            block: run.block,
            name: &name,
            took,
            failure,
            left,
        });
        Ok(true)
    }

    fn lived(
        &self,
        run: &PlannedRun,
        folder: &Path,
        broken: &BTreeMap<String, String>,
    ) -> anyhow::Result<(Life, Result<(), Broken>)> {
        if let Some(cause) = self.build_text(run).and_then(|text| broken.get(&text)) {
            let failure = Failure { step: "build".to_owned(), cause: format!("the build {cause}") };
            return Ok((Life::default(), Err(Broken::Failed(failure))));
        }
        let mut live = LiveRun::new(self.bench, &self.keeper, run, folder)?;
        let ended = live.carry_out();
        Ok((live.life, ended))
    }
}

impl Experiment {
    pub(super) fn document(&self, run: &PlannedRun) -> PlannedRunDocument {
        let labels = self.factors.iter().zip(&run.levels);
        let labels = labels.map(|(factor, level)| (factor.name.clone(), factor.levels[*level].label.clone()));
        PlannedRunDocument {
            number: run.number,
            block: run.block,
            labels: labels.collect(),
            twin: run.is_twin,
        }
    }

    /// `server=a threads=4`, with `(twin)` behind a second base.
    pub fn run_name(&self, run: &PlannedRun) -> String {
        let named = self.factors.iter().zip(&run.levels);
        let texts: Vec<String> =
            named.map(|(factor, level)| format!("{}={}", factor.name, factor.levels[*level].label)).collect();
        let twin = if run.is_twin { " (twin)" } else { "" };
        format!("{}{twin}", texts.join(" "))
    }
}
