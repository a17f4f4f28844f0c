//! The options of `parallax profile`.

use std::path::PathBuf;

use super::frames::FrameArgs;
use crate::record_mode::RecordModeArg;
use clap::ValueHint;
use run::values::Pid;
use units::Nanos;

/// Samples per second on each CPU unless set otherwise: a default run of 10 s knows a share of one busy CPU to 3 points.
const RATE: u32 = 99;

/// The highest rate: more would cost over 1 % of every CPU.
const RATE_MOST: i64 = 9_973;

/// See where a server's threads are: on a CPU, asleep, or waiting for a CPU.
///
/// The kernel collects and counts the stacks of the process and of its children; the process is neither changed nor
/// restarted. The record contains on-CPU, off-CPU and run-queue profiles, each as collapsed stacks and as an
/// interactive flame graph (SVG). Needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.
///
/// Stacks are walked by frame pointers: compile with -fno-omit-frame-pointer, and start a JVM with
/// -XX:+PreserveFramePointer. The method names of a JVM (JDK 17 or later) are read when the profile ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax profile -p $(pgrep -o mariadbd) -d 30s -o before
  parallax profile -p $(pgrep -o mariadbd) -d 30s -o after
  parallax profile --diff before after
  parallax profile --from after --focus buf_page_get_gen --highlight ut_delay")]
pub struct Args {
    /// Processes to profile, with their children.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', required_unless_present_any = ["diff", "from"])]
    pub pid: Vec<Pid>,

    /// How long to profile; Ctrl-C ends it early and keeps what was sampled.
    #[arg(short, long, value_name = "TIME", default_value = "10s")]
    pub duration: Nanos,

    /// Samples per second on each busy CPU, on average: at random times, which never keep step with periodic work.
    #[arg(long, value_name = "N", default_value_t = RATE, value_parser = clap::value_parser!(u32).range(1..=RATE_MOST))]
    pub rate: u32,

    /// Show what changed between two profiles: records of `profile`, or collapsed stacks of any tool.
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["pid", "duration", "rate"], value_hint = ValueHint::AnyPath)]
    pub diff: Vec<PathBuf>,

    #[command(flatten)]
    pub frames: FrameArgs,

    /// Results directory; with --diff or --from, the directory for the flame graphs [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub record_mode: RecordModeArg,

    /// Print the record as JSON (formats/observation.schema.json); with --from, the answers (formats/view.schema.json).
    #[arg(long, conflicts_with = "diff")]
    pub json: bool,

    /// Another parallax controls this observer, and ends it: see `crate::controlled`.
    #[arg(long, alias = "led", hide = true, conflicts_with_all = ["json", "diff", "duration"])]
    pub controlled: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    pub no_color: bool,
}
