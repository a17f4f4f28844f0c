//! `parallax profile`: where the threads of a server are, as flame graphs and as tables.

#[cfg(feature = "ebpf")]
mod capture;
mod difference;
mod pictures;

use std::io;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::{ArgMatches, ValueHint};
use record::Observation;
use record::document::{EffectiveOption, OptionSource, State};
use record::observation::ObservationBody;
use units::Nanos;

use crate::exit::Exit;
use crate::{observing, printed, report_notes, report_verb, terminal};
use run::folder::{ClaimedFolder, new_folder};

/// Samples per second on each CPU unless set otherwise: a prime, to avoid sampling in lockstep with periodic work.
const RATE: u32 = 99;

/// The highest rate: more would cost a per cent of every CPU.
const RATE_MOST: i64 = 9_973;

/// See where a server's threads are: on a CPU, asleep, or waiting for a CPU.
///
/// The kernel collects and counts the stacks of the process and of its children; the process is neither changed nor
/// restarted. The record contains on-CPU, off-CPU and run-queue profiles, each as collapsed stacks and as an
/// interactive flame graph (SVG). Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE.
///
/// Stacks are walked by frame pointers: compile with -fno-omit-frame-pointer, and start a JVM with
/// -XX:+PreserveFramePointer. The method names of a JVM (JDK 17 or later) are read when the profile ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax profile -p $(pgrep -o mariadbd) -d 30s -o before
  parallax profile -p $(pgrep -o mariadbd) -d 30s -o after
  parallax profile --diff before after")]
pub struct Args {
    /// Processes to profile, with their children.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', required_unless_present = "diff", value_parser = pid)]
    pid: Vec<u32>,

    /// How long to profile; Ctrl-C ends it early and keeps what was sampled.
    #[arg(short, long, value_name = "TIME", default_value = "10s")]
    duration: Nanos,

    /// Samples per second on each busy CPU. A prime rate avoids sampling in lockstep with periodic work.
    #[arg(long, value_name = "N", default_value_t = RATE, value_parser = clap::value_parser!(u32).range(1..=RATE_MOST))]
    rate: u32,

    /// Show what changed between two profiles: records of `profile`, or collapsed stacks of any tool.
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["pid", "duration", "rate"], value_hint = ValueHint::AnyPath)]
    diff: Vec<PathBuf>,

    /// Results directory; with --diff, the directory for its flame graphs [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,

    #[command(flatten)]
    pub record_mode: crate::record_mode::RecordModeArg,

    /// Print the record as JSON (formats/observation.schema.json).
    #[arg(long, conflicts_with = "diff")]
    json: bool,

    /// Another parallax controls this observer, and ends it: see `crate::controlled`.
    #[arg(long, alias = "led", hide = true, conflicts_with_all = ["json", "diff", "duration"])]
    controlled: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,
}

fn pid(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(pid @ 1..=0x7fff_ffff) => Ok(pid),
        _ => Err(format!("`{text}` is not a process ID; `pgrep NAME` finds the IDs of a name")),
    }
}

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing has been profiled then.
pub fn run(args: &Args, matches: &ArgMatches) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let folder = args.output.clone().unwrap_or_else(new_folder);
    if let [before, after] = args.diff.as_slice() {
        return difference::run(before, after, &folder, args.no_color);
    }
    ensure!(args.duration > Nanos::ZERO, "--duration is 0; give a time, such as 10s");
    let claim = ClaimedFolder::make(&folder)?;
    let mut options = observing::effective("profile", matches);
    let shown = folder.display().to_string();
    if args.controlled {
        observing::derive(&mut options, "duration", "until the controlling parallax ends it".to_owned());
    }
    options.insert("output".to_owned(), EffectiveOption { value: shown, source: OptionSource::Derived });
    let made = profile(args, options, &folder);
    if made.is_err() && !folder.join("run.json").exists() {
        claim.release();
    }
    made
}

/// Prints the profile whose record is `folder`.
///
/// # Errors
///
/// When it cannot be read.
pub fn report(folder: &Path, json: bool, no_color: bool) -> anyhow::Result<Exit> {
    let observed = record::read_observation(folder)?;
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    report_verb::print(&findings::observation_view(&observed)?, json, &mut out, style)?;
    report_notes(&observed.document);
    let stopped = observed.document.state == State::Interrupted;
    Ok(if stopped { Exit::Interrupted } else { Exit::Done })
}

fn print(observation: &Observation, json: bool, no_color: bool) -> anyhow::Result<Exit> {
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    printed(if json {
        report::json(observation, &mut out)
    } else {
        let ObservationBody::Profile(results) = &observation.body else {
            panic!("it is the record of a profile")
        };
        report::text(&findings::profile_view(observation, results), &mut out, style)
    })?;
    let stopped = observation.state == State::Interrupted;
    Ok(if stopped { Exit::Interrupted } else { Exit::Done })
}

type Options = std::collections::BTreeMap<String, EffectiveOption>;

#[cfg(feature = "ebpf")]
fn profile(args: &Args, options: Options, folder: &Path) -> anyhow::Result<Exit> {
    capture::run(args, options, folder)
}

#[cfg(not(feature = "ebpf"))]
fn profile(_: &Args, _: Options, _: &Path) -> anyhow::Result<Exit> {
    anyhow::bail!("this parallax was built without eBPF; build it with the feature `ebpf`")
}
