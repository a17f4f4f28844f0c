//! `parallax disturb`: makes a spec from the options, and reports what actually happened.

mod args;
mod plan;

use std::io::{self, Write};
use std::path::Path;

use host::disturb::{EpisodeReport, Fact, Over, Program, guard, work};
use record::observation::disturb::{DisturbResults, Over as WireOver};
use run::observe::disturb::{DisturbEvent, DisturbSpec, length, length_text, observe};
use schedule::{Episode, Episodes};
use units::{Bytes, Nanos};

pub use self::args::Args;
use self::args::Means;
use crate::command_line::CommandLine;
use crate::environment::Process;
use crate::exit::Exit;
use crate::output::printed;
use crate::signals;

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
    let spec = plan::plan(means)?;
    let timing = means.timing().expect("what makes a spec has a schedule");
    timing.record_mode.apply();
    if timing.dry_run {
        printed(show_whole(&spec, &mut io::stdout()))?;
        return Ok(Exit::Done);
    }
    let (episodes, seed) = (spec.episodes, spec.seed);
    let folder = timing.output.clone().unwrap_or_else(run::folder::new_folder);
    let stop = signals::stop_flag()?;
    let process = Process::new();
    let setting =
        process.setting(line.verb().map(|own| own.effective()).unwrap_or_default(), Some(&folder), &stop);
    let program = Program {
        // Also works if the file has been replaced since: this is the running executable.
        path: "/proc/self/exe".into(),
        guard: ["disturb", "guard"].map(Into::into).into(),
        worker: ["disturb", "worker", "--"].map(Into::into).into(),
    };
    let mut out: Box<dyn Write> = if timing.json { Box::new(io::sink()) } else { Box::new(io::stdout()) };
    let mut live = |event: DisturbEvent<'_>| {
        printed(match event {
            DisturbEvent::Prepared { what, guard } => {
                announce(&format!("{what}; seed {seed}; guard pid {guard}"), &episodes, &folder, &mut out)
            }
            DisturbEvent::Episode { report, zero } => show(report, zero, &mut out),
        })
    };
    let done = observe(spec, &program, setting, &mut live)?;
    if timing.json {
        printed(report::json(&done.observed.document, &mut io::stdout()))?;
    } else {
        printed(conclude(&done.results, done.is_undone, &mut out))?;
    }
    done.observed.check_record()?;
    Ok(match done.over {
        // The error has been printed already.
        _ if done.is_broken => Exit::Refused,
        Over::Stopped if !episodes.is_endless() => Exit::Interrupted,
        _ => Exit::Done,
    })
}

/// How many episodes are printed at the start.
const SHOWN: usize = 5;

/// How many episodes of an endless schedule `--dry-run` prints.
const SHOWN_DRY: usize = 20;

fn announce(what: &str, episodes: &Episodes, folder: &Path, out: &mut dyn Write) -> io::Result<()> {
    let mut all = (0..).map_while(|n| episodes.nth(n));
    let first: Vec<String> = all.by_ref().take(SHOWN).map(|episode| planned(&episode)).collect();
    let more = if all.next().is_some() { ", …" } else { "" };
    let end = if episodes.is_endless() { "; Ctrl-C ends it" } else { "" };
    writeln!(out, "{what}")?;
    writeln!(out, "due {}{more}{end}", first.join(", "))?;
    writeln!(out, "record {}", record::escape_text(&folder.display().to_string()))?;
    out.flush()
}

fn planned(episode: &Episode) -> String {
    match episode.end {
        Some(end) => format!("at {} for {}", Seconds(episode.begin), end - episode.begin),
        None => format!("from {} on", Seconds(episode.begin)),
    }
}

fn show_whole(plan: &DisturbSpec, out: &mut dyn Write) -> io::Result<()> {
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

/// Seconds with microseconds: values to compare with a record are not rounded to three digits.
struct Seconds(Nanos);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06} s", self.0.0 / 1_000_000_000, self.0.0 % 1_000_000_000 / 1_000)
    }
}

fn show(report: &EpisodeReport, zero: Nanos, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{:>4}  ", report.episode.n + 1)?;
    match &report.done {
        Some(done) => {
            let real = Seconds(done.begin.saturating_sub(zero));
            write!(out, "at {real} for {}", length_text(length(done)))?;
            for fact in done.facts.iter().filter(|fact| fact.value > 0) {
                write!(out, "  {}", fact_text(fact))?;
            }
        }
        None => write!(out, "not done; due {}", planned(&report.episode))?,
    }
    match &report.note {
        Some(note) => writeln!(out, "  ({note})")?,
        None => writeln!(out)?,
    }
    out.flush()
}

/// A figure for people: its name without the unit, and its value with one.
pub fn fact_text(fact: &Fact) -> String {
    if let Some(name) = fact.name.strip_suffix("_ns") {
        return format!("{name} {}", Nanos(fact.value));
    }
    if let Some(name) = fact.name.strip_suffix("_bytes") {
        return format!("{name} {}", Bytes(fact.value));
    }
    format!("{} {}", fact.name, fact.value)
}

fn conclude(results: &DisturbResults, all_undone: bool, out: &mut dyn Write) -> io::Result<()> {
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
