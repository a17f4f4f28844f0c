//! `parallax disturb`: makes a plan from the options, carries it out under a guard, and reports what really happened.

mod args;
mod keep;
mod plan;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use host::disturb::{Disturbance, EpisodeReport, Guard, Over, Program, conduct, guard, work};
use record::document::EffectiveOption;
use record::observation::disturb::Over as WireOver;
use schedule::{Episode, Episodes};
use units::Nanos;

pub use self::args::Args;
use self::args::Means;
use self::keep::Keeper;
use self::plan::{DisturbPlan, Prepared};
use crate::command_line::CommandLine;
use crate::exit::Exit;
use crate::output::{printed, report_line};
use crate::{observing, signals};

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing was disturbed then, or it was undone.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    match &args.means {
        Means::Guard => {
            guard()?;
            Ok(Exit::Done)
        }
        Means::Worker { work: arguments } => {
            work(arguments)?;
            Ok(Exit::Done)
        }
        means => disturb(means, line),
    }
}

fn disturb(means: &Means, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    let plan = plan::plan(means)?;
    let timing = means.timing().expect("what makes a plan has a schedule");
    timing.record_mode.apply();
    if timing.dry_run {
        printed(show_whole(&plan, &mut io::stdout()))?;
        return Ok(Exit::Done);
    }
    let endless = plan.episodes.is_endless();
    let folder = timing.output.clone().unwrap_or_else(run::folder::new_folder);
    let claim = run::folder::ClaimedFolder::make(&folder)?;
    let asked = Asked { line, folder: &folder, json: timing.json };
    let done = under_guard(&asked, plan);
    match done {
        Ok((Over::Stopped, false)) if !endless => Ok(Exit::Interrupted),
        Ok((_, false)) => Ok(Exit::Done),
        // The error has been printed already.
        Ok((_, true)) => Ok(Exit::Refused),
        Err(error) => {
            claim.release();
            Err(error)
        }
    }
}

/// The options that are not part of the plan.
struct Asked<'a> {
    line: &'a CommandLine<'a>,
    folder: &'a Path,
    json: bool,
}

/// Why it ended, and whether an error occurred.
fn under_guard(asked: &Asked<'_>, plan: DisturbPlan) -> anyhow::Result<(Over, bool)> {
    let stop = signals::stop_flag()?;
    let program = Program {
        // Also where the file has been replaced since: the one that runs.
        path: "/proc/self/exe".into(),
        guard: ["disturb", "guard"].map(Into::into).into(),
        worker: ["disturb", "worker", "--"].map(Into::into).into(),
    };
    let mut guard = Guard::start(&program)?;
    let episodes = plan.episodes;
    let Opened { mut disturbance, zero, mut keeper, mut out } = match open(asked, plan, &program, &mut guard)
    {
        Ok(opened) => opened,
        Err(error) => {
            if let Err(left) = guard.finish() {
                report_line(&left);
            }
            return Err(error);
        }
    };
    let over = conduct(&episodes, zero, (&mut *disturbance, &mut guard), &stop, &mut |report| {
        // Who listens no longer does not end the disturbance of others.
        let _ = line(&report, zero, &mut out).and_then(|()| out.flush());
        keeper.keep(&report, zero);
    });
    // All is undone before anything else is done.
    drop(disturbance);
    let undone = guard.finish();
    let all_undone = undone.is_ok();
    let (over, broken) = match over {
        Ok(over) => (over, None),
        Err(error) => (Over::Stopped, Some(error)),
    };
    let wrong: Vec<String> = broken.iter().chain(&undone.err()).map(ToString::to_string).collect();
    wrong.iter().for_each(report_line);
    let is_wrong = !wrong.is_empty();
    let document = keeper.finish(over, wrong)?;
    if asked.json {
        printed(serde_json::to_writer_pretty(io::stdout(), &document).map_err(io::Error::from))?;
        printed(writeln!(io::stdout()))?;
    } else {
        printed(conclude(&document.body, all_undone, &mut out))?;
    }
    Ok((over, is_wrong))
}

/// All that is there before the first episode.
struct Opened {
    disturbance: Box<dyn Disturbance>,
    zero: Nanos,
    keeper: Keeper,
    /// For people: nowhere with `--json`.
    out: Box<dyn Write>,
}

/// Makes the deed ready, says what is due, and opens the record. What it leaves when it fails, the guard undoes.
fn open(
    asked: &Asked<'_>,
    plan: DisturbPlan,
    program: &Program,
    guard: &mut Guard,
) -> anyhow::Result<Opened> {
    let (episodes, seed) = (plan.episodes, plan.seed);
    let mut results = keep::opening(&plan);
    let Prepared { disturbance, detail, relay } = plan.ready.prepare(program, guard, seed)?;
    if let Some(detail) = detail {
        results.what = format!("{}, {detail}", results.what);
    }
    results.relay = relay;
    let zero = clock::now() + OPENING;
    let mut out: Box<dyn Write> = if asked.json { Box::new(io::sink()) } else { Box::new(io::stdout()) };
    let announced = writeln!(out, "{}; seed {seed}; guard pid {}", results.what, guard.pid())
        .and_then(|()| announce(&episodes, &mut out))
        .and_then(|()| writeln!(out, "record {}", record::escape_text(&asked.folder.display().to_string())))
        .and_then(|()| out.flush());
    printed(announced)?;
    let keeper = Keeper::open(asked.folder, results, options(asked.line, seed), zero)?;
    Ok(Opened { disturbance, zero, keeper, out })
}

fn options(line: &CommandLine<'_>, seed: u64) -> BTreeMap<String, EffectiveOption> {
    let mut options = line.verb().map(|own| own.effective()).unwrap_or_default();
    observing::derive(&mut options, "seed", seed.to_string());
    options
}

/// The record is opened before its zero: a disturbance at once would begin late for it otherwise.
const OPENING: Nanos = Nanos::from_millis(50);

/// How many episodes are printed at the start.
const SHOWN: usize = 5;

/// How many of an endless schedule `--dry-run` prints.
const SHOWN_DRY: usize = 20;

fn announce(episodes: &Episodes, out: &mut dyn Write) -> io::Result<()> {
    let mut all = (0..).map_while(|n| episodes.nth(n));
    let first: Vec<String> = all.by_ref().take(SHOWN).map(|episode| planned(&episode)).collect();
    let more = if all.next().is_some() { ", …" } else { "" };
    let end = if episodes.is_endless() { "; Ctrl-C ends it" } else { "" };
    writeln!(out, "due {}{more}{end}", first.join(", "))
}

fn planned(episode: &Episode) -> String {
    match episode.end {
        Some(end) => format!("at {} for {}", Seconds(episode.begin), end - episode.begin),
        None => format!("from {} on", Seconds(episode.begin)),
    }
}

fn show_whole(plan: &DisturbPlan, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}; seed {}; dry run, nothing is disturbed", plan.what, plan.seed)?;
    let most = if plan.episodes.is_endless() { SHOWN_DRY } else { usize::MAX };
    for episode in (0..).map_while(|n| plan.episodes.nth(n)).take(most) {
        writeln!(out, "{:>4}  {}", episode.n + 1, planned(&episode))?;
    }
    if plan.episodes.is_endless() && plan.episodes.nth(SHOWN_DRY as u64).is_some() {
        writeln!(out, "   …  and so on, until Ctrl-C")?;
    }
    Ok(())
}

/// Seconds with microseconds: what is compared with a record is not rounded to three digits.
struct Seconds(Nanos);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06} s", self.0.0 / 1_000_000_000, self.0.0 % 1_000_000_000 / 1_000)
    }
}

fn line(report: &EpisodeReport, zero: Nanos, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{:>4}  ", report.episode.n + 1)?;
    match &report.done {
        Some(done) => {
            let real = Seconds(done.begin.saturating_sub(zero));
            write!(out, "at {real} for {}", keep::length_text(keep::length(done)))?;
            for fact in done.facts.iter().filter(|fact| fact.value > 0) {
                write!(out, "  {}", keep::fact_text(fact))?;
            }
        }
        None => write!(out, "not done; due {}", planned(&report.episode))?,
    }
    match &report.note {
        Some(note) => writeln!(out, "  ({note})"),
        None => writeln!(out),
    }
}

fn conclude(
    body: &record::observation::ObservationBody,
    all_undone: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let record::observation::ObservationBody::Disturb(results) = body else { return Ok(()) };
    let why = match results.over {
        Some(WireOver::Schedule) => "done",
        Some(WireOver::Stopped) => "stopped with Ctrl-C",
        Some(WireOver::VictimGone) => "the process has ended",
        Some(WireOver::Broken) | None => "ended by an error",
    };
    let skipped = match results.skipped {
        0 => String::new(),
        skipped => format!(", {skipped} of them not done"),
    };
    let total = Nanos(results.disturbed_ns);
    let plural = if results.episodes == 1 { "disturbance" } else { "disturbances" };
    let undone = if all_undone { "; everything is undone" } else { "" };
    writeln!(out, "{why}: {} {plural}{skipped}, {total} in total{undone}", results.episodes)
}
