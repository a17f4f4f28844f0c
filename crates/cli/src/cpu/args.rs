//! The options of `parallax cpu`.

use std::path::PathBuf;

use clap::{ValueEnum, ValueHint};

use run::observe::cpu::SplitBy;

use crate::record_mode::RecordModeArg;

/// Measure the CPU time of processes between two exact instants.
///
/// The total comes from the scheduler, in nanoseconds, and covers all threads, including those that start or end during
/// the interval. A process means its tree: all descendants are included, also those that start and end in between. No
/// privileges are needed. `parallax cpu 10 PID` measures one server for 10 s; `cpu -n 2 5 PID` measures two intervals
/// of 5 s; `cpu 5 $(pgrep NAME)` measures all running processes with that name.
#[derive(Debug, clap::Args)]
#[command(override_usage = "parallax cpu [OPTIONS] [SECONDS] [--] PID…\n       \
                            parallax cpu [OPTIONS] [SECONDS] -p PID,… | --cgroup PATH | --unit NAME | --comm NAME | --all")]
pub struct Args {
    /// Length of an interval [default: 5], and process IDs.
    #[arg(value_name = "[SECONDS] PID", allow_hyphen_values = false)]
    pub numbers: Vec<String>,

    /// Process IDs; a number before `--` is then SECONDS.
    #[arg(last = true, value_name = "PID", value_parser = pid)]
    pub pids: Vec<u32>,

    /// Number of intervals; 0: until Ctrl-C.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub count: u64,

    /// Processes to measure.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = pid)]
    pub pid: Vec<u32>,

    /// All visible processes, including those that start during the measurement.
    #[arg(short, long)]
    pub all: bool,

    /// All processes with this name, including those that start during the measurement.
    #[arg(short = 'C', long, value_name = "NAME")]
    pub comm: Option<String>,

    /// Leave out the descendants of the processes.
    #[arg(long, conflicts_with_all = ["all", "comm", "cgroup", "unit"])]
    pub only: bool,

    /// All processes of a control group (a path as in /proc/PID/cgroup), by the group's own CPU accounting.
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,

    /// All processes of a systemd unit, by its control group; a name without a type is a service.
    #[arg(long, value_name = "NAME")]
    pub unit: Option<String>,

    /// Also list each thread.
    #[arg(short, long)]
    pub threads: bool,

    /// Unit of the figures; core as in top: 200 is two busy CPUs.
    #[arg(short = 'u', long = "in", value_name = "UNIT", default_value = "core")]
    pub figures: Unit,

    /// Figures in percent of all CPUs of this host.
    #[arg(long, conflicts_with = "figures")]
    pub of_machine: bool,

    /// How to divide CPU time into user and system time.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub split: SplitArg,

    /// Write a record to this directory, with one line per interval.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub record_mode: RecordModeArg,

    /// At the end, print the result as JSON (formats/observation.schema.json) instead of tables.
    #[arg(long)]
    pub json: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    pub no_color: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Percent of all CPUs of this host together.
    Machine,
    /// Percent of one CPU.
    Core,
    /// CPU seconds.
    Seconds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitArg {
    /// `ebpf` for processes given by ID, if eBPF programs can be loaded; otherwise `ticks`.
    Auto,
    /// By the mode that the kernel finds at its timer ticks. Needs no privileges; can be completely wrong.
    Ticks,
    /// By eBPF programs at the boundaries of system calls and interrupts. While it runs, every system call on this host
    /// takes slightly longer. Needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.
    Ebpf,
}

impl From<SplitArg> for SplitBy {
    fn from(split: SplitArg) -> SplitBy {
        match split {
            SplitArg::Auto => SplitBy::Auto,
            SplitArg::Ticks => SplitBy::Ticks,
            SplitArg::Ebpf => SplitBy::Ebpf,
        }
    }
}

/// Parses a process ID: a whole number from 1.
pub fn pid(text: &str) -> Result<u32, String> {
    // The kernel's own ids are below 2^22.
    match text.parse() {
        Ok(pid @ 1..=0x7fff_ffff) => Ok(pid),
        _ => Err(format!(
            "`{text}` is not a process ID; `pgrep NAME` finds the IDs of a name, --all takes all"
        )),
    }
}
