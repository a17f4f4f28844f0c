//! Carries out a plan: hooks, warm-up runs, then block after block, with one line per run in `trials.ndjson`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail, ensure};
use comparison::{Arm, ComparedRun, compared_run};
use record::document::{State, VerdictWord};
use rustix::process::{getpid, set_child_subreaper};
use serde::Serialize;
use units::Nanos;

use crate::command::{Kind, TrialCommand, filled};
use crate::guard::Guard;
use crate::plan::{Plan, PlanArm, Variant};
use crate::supervise::{Ended, Limits, Trial, run};

/// Where and with what an experiment runs.
#[derive(Debug, Clone, Copy)]
pub struct Lab<'a> {
    /// A new directory for the records and `trials.ndjson`.
    pub folder: &'a Path,
    /// The program that runs for a line that begins with `parallax`.
    pub program: &'a Path,
    /// The longest that one run, or one hook, may take.
    pub longest: Nanos,
    /// Ends the experiment when it becomes true.
    pub stop: &'a AtomicBool,
}

/// What is reported while an experiment runs.
pub trait Progress {
    /// A run of `arm` has ended; `runs` have been measured so far. `block` is 0 for a warm-up run.
    fn ran(&mut self, block: usize, arm: &str, trial: &Trial, runs: usize);
}

/// The runs of an experiment.
#[derive(Debug)]
pub struct Conducted {
    /// One arm per variant, the base first; then the twin, if the plan has one.
    pub arms: Vec<Arm>,
    /// Whether the user ended it before its last run; blocks that were not completed are not in the arms.
    pub was_interrupted: bool,
    /// Blocks of which each run is valid, after those that replaced others.
    pub complete_blocks: usize,
    /// What ended it early: a hook that failed, for example. The blocks before it are in the arms.
    pub failure: Option<anyhow::Error>,
}

/// Carries out `plan`.
///
/// # Errors
///
/// When a hook or a run fails before the first block is complete, and when the directory cannot be written. The cleanup
/// has run then, and no process is left.
pub fn conduct(plan: &Plan, lab: Lab<'_>, progress: &mut dyn Progress) -> anyhow::Result<Conducted> {
    let kinds: Vec<Kind> = plan.variants.iter().map(|one| one.command.kind()).collect();
    ensure!(
        kinds.iter().all(|kind| *kind == kinds[0]),
        "a line of `parallax drive` and another program have no figures in common: compare two of one kind"
    );
    ensure!(
        Path::new("/proc/thread-self/children").exists(),
        "this kernel does not list children (CONFIG_PROC_CHILDREN): processes would be left behind"
    );
    make_folder(lab.folder)?;
    let path = lab.folder.join(TRIALS);
    let journal = File::create_new(&path).with_context(|| format!("cannot create `{}`", path.display()))?;
    let _reaper = Subreaper::become_one()?;
    let guard = Guard::start()?;
    let mut conduct = Conduct { plan, lab, kind: kinds[0], guard, journal, runs: 0, progress };
    let mut conducted = conduct.nothing_yet();
    let ran = conduct.run(&mut conducted);
    let cleaned = conduct.each_variant(plan.hooks.cleanup.as_deref(), "--cleanup", true);
    // Results that took an hour are not thrown away because of what came after them.
    conducted.failure = ran.and(cleaned).err();
    match conducted.failure.take_if(|_| conducted.arms[0].runs.is_empty()) {
        Some(error) => Err(error),
        None => Ok(conducted),
    }
}

/// The journal: one line per run, in the order in which they ran.
const TRIALS: &str = "trials.ndjson";

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let shown = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("cannot create `{shown}`"))?;
    let is_empty = fs::read_dir(folder).with_context(|| format!("cannot read `{shown}`"))?.next().is_none();
    ensure!(is_empty, "`{shown}` is not empty; name a new directory");
    Ok(())
}

/// This process adopts orphans below it, until dropped.
#[derive(Debug)]
pub(crate) struct Subreaper;

impl Subreaper {
    pub(crate) fn become_one() -> anyhow::Result<Subreaper> {
        set_child_subreaper(Some(getpid())).context("this kernel has no subreapers")?;
        Ok(Subreaper)
    }
}

impl Drop for Subreaper {
    fn drop(&mut self) {
        let _ = set_child_subreaper(None);
    }
}

struct Conduct<'a> {
    plan: &'a Plan,
    lab: Lab<'a>,
    kind: Kind,
    guard: Guard,
    journal: File,
    runs: usize,
    progress: &'a mut dyn Progress,
}

/// A run that is about to be made.
struct PlannedRun<'a> {
    /// From 1; 0 for a warm-up run.
    block: usize,
    arm: String,
    variant: &'a Variant,
    /// The directory of its record, for a line of `drive`.
    record: Option<PathBuf>,
}

/// One line of the journal.
#[derive(Serialize)]
struct TrialLine<'a> {
    /// From 1; 0 for a warm-up run.
    block: usize,
    arm: &'a str,
    command: &'a str,
    wall_ns: u64,
    cpu_ns: Option<u64>,
    peak_memory_bytes: Option<u64>,
    /// Absent if it was ended by a signal or by the experiment.
    exit_code: Option<i32>,
    ended: String,
    left_behind: usize,
    record: Option<&'a Path>,
}

impl Conduct<'_> {
    fn nothing_yet(&self) -> Conducted {
        let arms = self.plan.arms().iter().map(|arm| self.empty(*arm)).collect();
        Conducted { arms, was_interrupted: false, complete_blocks: 0, failure: None }
    }

    /// Adds block after block to `conducted`.
    fn run(&mut self, conducted: &mut Conducted) -> anyhow::Result<()> {
        let (arms, plan) = (self.plan.arms(), self.plan);
        self.each_variant(plan.hooks.setup.as_deref(), "--setup", false)?;
        for variant in (0..plan.warmup).flat_map(|_| 0..plan.variants.len()) {
            if self.trial(0, PlanArm::Variant(variant))?.is_none() {
                conducted.was_interrupted = true;
                return Ok(());
            }
        }
        for (block, order) in plan.order().into_iter().enumerate() {
            // A block with an invalid run is replaced by a whole one, and stays in the arms: it is counted there.
            if conducted.complete_blocks == plan.blocks {
                break;
            }
            let mut of_block: BTreeMap<usize, ComparedRun> = BTreeMap::new();
            for arm in order {
                let Some(run) = self.trial(block + 1, arm)? else {
                    conducted.was_interrupted = true;
                    return Ok(());
                };
                let place = arms.iter().position(|one| *one == arm);
                of_block.insert(place.context("an arm of the order is one of the plan")?, run);
            }
            conducted.complete_blocks += usize::from(of_block.values().all(ComparedRun::is_valid));
            for (place, run) in of_block {
                conducted.arms[place].runs.push(run);
            }
        }
        Ok(())
    }

    fn empty(&self, arm: PlanArm) -> Arm {
        let command = self.plan.variant(arm).command.text();
        Arm { name: self.name(arm), command: Some(command), runs: Vec::new() }
    }

    fn name(&self, arm: PlanArm) -> String {
        let name = &self.plan.variant(arm).name;
        if arm == PlanArm::Twin { format!("{name} (twin)") } else { name.clone() }
    }

    /// Runs a hook for each variant; one whose text is the same for several runs once.
    fn each_variant(&mut self, hook: Option<&str>, option: &str, whatever: bool) -> anyhow::Result<()> {
        let Some(hook) = hook else { return Ok(()) };
        let mut texts: Vec<String> = Vec::new();
        for variant in &self.plan.variants {
            let text = filled(hook, &variant.values);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let texts = texts.into_iter().map(|text| self.hook(&text, option, whatever));
        // All of them, also if one fails: what is not cleaned up is left behind.
        let results: Vec<anyhow::Result<()>> = texts.collect();
        results.into_iter().collect()
    }

    /// Runs a hook; `whatever` even if the experiment was ended.
    fn hook(&mut self, text: &str, option: &str, whatever: bool) -> anyhow::Result<()> {
        let command = TrialCommand::new(text).map_err(anyhow::Error::msg).context(option.to_owned())?;
        let never = AtomicBool::new(false);
        let stop = if whatever { &never } else { self.lab.stop };
        let limits = Limits { longest: self.lab.longest, stop };
        let trial = run(command.by_shell(self.lab.program, &[]), &mut self.guard, limits)?;
        match trial.ended {
            Ended::Exited(0) | Ended::Interrupted => Ok(()),
            _ => bail!("{option} `{}` {}", command.text(), failure(&trial)),
        }
    }

    /// One run; `None` if the user ended the experiment.
    fn trial(&mut self, block: usize, arm: PlanArm) -> anyhow::Result<Option<ComparedRun>> {
        let plan = self.plan;
        let variant = plan.variant(arm);
        if let Some(prepare) = &plan.hooks.prepare {
            self.hook(&filled(prepare, &variant.values), "--prepare", false)?;
        }
        if self.lab.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let name = self.name(arm);
        let record = (self.kind == Kind::Drive).then(|| self.record(block, &name));
        let mut planned = PlannedRun { block, arm: name, variant, record };
        let command = self.command(&planned)?;
        let limits = Limits { longest: self.lab.longest, stop: self.lab.stop };
        let trial = run(command, &mut self.guard, limits)?;
        planned.record = planned.record.map(last_attempt);
        self.note(&planned, &trial)?;
        if trial.ended == Ended::Interrupted {
            return Ok(None);
        }
        self.runs += usize::from(block > 0);
        self.progress.ran(block, &planned.arm, &trial, self.runs);
        let compared = match &planned.record {
            Some(folder) => of_record(folder, &trial),
            None => Ok(of_program(&trial)),
        };
        let is_first = block <= 1;
        let run = match compared {
            Ok(run) if run.is_valid() || !is_first => run,
            // A host that stalled spoils one run; a server that cannot be reached, all of them.
            Ok(run) if self.kind == Kind::Drive && trial.ended != UNREACHABLE => run,
            // A run that fails at once fails each time: nobody wants to wait for the other blocks.
            Ok(_) => bail!("`{}` {}", variant.command.text(), failure(&trial)),
            Err(_) if is_first => bail!("`{}` {}", variant.command.text(), failure(&trial)),
            Err(_) => of_program(&trial),
        };
        Ok(Some(ComparedRun { block: Some(block.to_string()), ..run }))
    }

    fn command(&self, planned: &PlannedRun<'_>) -> anyhow::Result<std::process::Command> {
        let (command, program) = (&planned.variant.command, self.lab.program);
        let Some(record) = &planned.record else { return Ok(command.command(program, &[])) };
        let record = record.to_str().context("the directory of the records is not UTF-8")?;
        Ok(command.command(program, &["--block", &planned.block.to_string(), "-o", record]))
    }

    /// The directory of a run's record: `threads_4-001`.
    fn record(&self, block: usize, name: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' };
        let name: String = name.chars().map(plain).collect();
        let place =
            if block == 0 { format!("warmup-{}", self.runs_in_folder()) } else { format!("{block:03}") };
        self.lab.folder.join(format!("{}-{place}", name.trim_end_matches('_')))
    }

    /// Numbers warm-up records, which belong to no block.
    fn runs_in_folder(&self) -> usize {
        fs::read_dir(self.lab.folder).map_or(0, Iterator::count)
    }

    fn note(&mut self, planned: &PlannedRun<'_>, trial: &Trial) -> anyhow::Result<()> {
        let exit_code = if let Ended::Exited(code) = trial.ended { Some(code) } else { None };
        let line = TrialLine {
            block: planned.block,
            arm: &planned.arm,
            command: &planned.variant.command.text(),
            wall_ns: trial.usage.wall.0,
            cpu_ns: trial.usage.cpu.map(|cpu| cpu.0),
            peak_memory_bytes: trial.usage.peak_memory,
            exit_code,
            ended: failure(trial),
            left_behind: trial.left_behind,
            record: planned.record.as_deref(),
        };
        let mut text = serde_json::to_string(&line).context("a line of the journal is JSON")?;
        text.push('\n');
        // One write per line: a crash loses no part of one.
        self.journal.write_all(text.as_bytes()).with_context(|| format!("cannot write `{TRIALS}`"))
    }
}

/// The exit code of `drive` if no server was reached.
const UNREACHABLE: Ended = Ended::Exited(4);

/// With `--on-invalid retry:N`, `drive` writes the record of a repeated run next to the first one: `DIR-2`, `DIR-3`.
pub(crate) fn last_attempt(folder: PathBuf) -> PathBuf {
    let named = |attempt: usize| {
        let mut name = folder.clone().into_os_string();
        name.push(format!("-{attempt}"));
        PathBuf::from(name)
    };
    let repeated = (2..=MOST_ATTEMPTS).map(named).take_while(|folder| folder.is_dir()).last();
    repeated.unwrap_or(folder)
}

/// The most that `drive` makes of one run.
const MOST_ATTEMPTS: usize = 101;

/// How a run ended, as the end of a sentence that begins with its command.
fn failure(trial: &Trial) -> String {
    let ended = match &trial.ended {
        Ended::Exited(code) => format!("exited with status {code}"),
        Ended::Signaled(signal) => format!("was ended by signal {signal}"),
        Ended::TimedOut(longest) => format!("took longer than --time-limit {longest}"),
        Ended::Interrupted => "was interrupted".to_owned(),
    };
    let last = trial.errors.lines().rev().find(|line| !line.trim().is_empty());
    match last {
        Some(line) if trial.ended != Ended::Exited(0) => format!("{ended}: {}", line.trim()),
        _ => ended,
    }
}

/// The run of a line of `drive`: its record.
fn of_record(folder: &Path, trial: &Trial) -> anyhow::Result<ComparedRun> {
    let run = compared_run(folder).with_context(|| failure(trial))?;
    let mut run = run.context("the record is not one of `drive`")?;
    // As `drive` ends when it has made its record: done, missed, invalid, unreachable.
    if !matches!(trial.ended, Ended::Exited(0 | 2 | 3 | 4)) {
        run.verdict = Some(VerdictWord::Invalid);
    }
    Ok(run)
}

/// The run of any other program. One that failed has figures, and is not used.
fn of_program(trial: &Trial) -> ComparedRun {
    let usage = trial.usage;
    let known = |value: Option<u64>, why: &str| value.map(|value| value as f64).ok_or_else(|| why.to_owned());
    let values = BTreeMap::from([
        ("wall_time", Ok(usage.wall.0 as f64)),
        ("cpu_time", known(usage.cpu.map(|cpu| cpu.0).filter(|cpu| *cpu > 0), "too short to be measured")),
        ("peak_memory", known(usage.peak_memory, "ended within 10 ms")),
    ]);
    let verdict = (trial.ended != Ended::Exited(0)).then_some(VerdictWord::Invalid);
    ComparedRun { verdict, state: State::Finished, ..ComparedRun::of_program(values) }
}
