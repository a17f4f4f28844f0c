//! The options of `parallax hiccup`, and the spec they make.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use clap::ValueHint;
use host::Priority;
use metering::MeterPlan;
use run::observe::command::MeasuredCommand;
use run::observe::hiccup::{HiccupLength, HiccupSpec};
use rustix::thread::sched_getaffinity;
use units::Nanos;

use host::{CpuList, cpu_list};

/// Measure scheduling stalls: one thread per CPU sleeps and records how late it wakes up.
///
/// Every tick is recorded with its own lateness, also those that were due during a stall. Stalls of --threshold or
/// longer are listed with their causes, as the kernel reports them: other threads ran (run queue), a CPU quota
/// (throttled), the hypervisor (stolen), a signal (stopped), or a cause that the kernel does not account for (unknown).
///
/// With a command, the host is measured first without the command, then while it runs, and the two are compared. The
/// measuring threads do nothing else, so the difference is what the command does to other processes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax hiccup
      on every CPU, until Ctrl-C
  parallax hiccup --cpus 0-1 --resolution 200us -d 60s -o /tmp/hiccups
  parallax hiccup --priority fifo:50 -d 10s
      above all normal processes: only interrupts, the kernel and a hypervisor are left
  parallax hiccup -- make -j2
      how much a build disturbs other processes on this host

Exit codes: 0 done, or stopped with Ctrl-C if no end was set; 1 wrong usage or a problem of this host; 130 stopped with
Ctrl-C before the end that was set, 143 by SIGTERM. With a command, the exit code is the command's.")]
pub struct Args {
    /// CPUs to measure, such as 0,2-3 [default: all that this process can run on].
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,

    /// Use one thread that the scheduler can move, instead of one thread pinned to each CPU.
    #[arg(long, conflicts_with = "cpus")]
    pub no_pin: bool,

    /// Time between two ticks. A shorter stall can fall between two ticks and be missed.
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub resolution: Nanos,

    /// Priority of the measuring threads: normal, nice:N, or fifo:N (real time). Interference from threads of lower
    /// priority is invisible.
    #[arg(long, value_name = "PRIORITY", default_value = "normal", value_parser = priority)]
    pub priority: Priority,

    /// List stalls of this length or more, with their causes.
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub threshold: Nanos,

    /// Reporting interval.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub interval: Nanos,

    /// How long to measure [default: until Ctrl-C, or as long as the command runs].
    #[arg(short = 'd', long, value_name = "TIME", conflicts_with = "command")]
    pub duration: Option<Nanos>,

    /// How long to measure the idle host before the command starts.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub baseline: Nanos,

    /// Results directory [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub record_mode: crate::record_mode::RecordModeArg,

    /// Print the result as JSON (formats/observation.schema.json), and nothing else.
    #[arg(long)]
    pub json: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    pub no_color: bool,

    /// Command to run while measuring, with its arguments.
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Ctrl-C on a terminal also reaches the command: it has this long to end by itself.
const GRACE: Nanos = Nanos::from_secs(5);

impl Args {
    /// What to measure.
    ///
    /// # Errors
    ///
    /// Options that cannot be used, in one line.
    pub fn spec(&self) -> anyhow::Result<HiccupSpec> {
        let cpus = self.meters()?;
        let length = match (self.command.first(), self.duration) {
            (Some(program), _) => {
                check_program(program)?;
                let grace = if io::stdin().is_terminal() { GRACE } else { Nanos::ZERO };
                let command = MeasuredCommand { line: self.command.clone(), grace };
                HiccupLength::Command { command, baseline: self.baseline }
            }
            (None, Some(duration)) => HiccupLength::For(duration),
            (None, None) => HiccupLength::Endless,
        };
        let meters = MeterPlan {
            resolution: self.resolution,
            priority: self.priority,
            urgency: written(self.priority),
            threshold: self.threshold,
        };
        Ok(HiccupSpec { meters, cpus, interval: self.interval, length })
    }

    /// The CPU of each meter; `None` for a meter that is not pinned.
    fn meters(&self) -> anyhow::Result<Vec<Option<usize>>> {
        let (shortest, longest) = (Nanos::from_micros(50), Nanos::from_secs(1));
        ensure!(
            (shortest..=longest).contains(&self.resolution),
            "--resolution must be from 50us to 1s; with less, the meter would measure itself"
        );
        let least = Nanos::from_millis(100).max(self.resolution);
        ensure!(
            (least..=Nanos::from_secs(3_600)).contains(&self.interval),
            "--interval must be from {} to 1h",
            least.written()
        );
        ensure!(self.threshold > Nanos::ZERO, "--threshold must be more than 0");
        ensure!(
            self.duration.is_none_or(|duration| duration >= self.resolution),
            "-d must be at least {}, the time to the first tick",
            self.resolution.written()
        );
        if self.no_pin {
            return Ok(vec![None]);
        }
        let allowed = sched_getaffinity(None)?;
        let all = || (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let Some(CpuList(wanted)) = &self.cpus else { return Ok(all().map(Some).collect()) };
        if let Some(cpu) = wanted.iter().find(|&&cpu| !allowed.is_set(cpu)) {
            let may: Vec<String> = all().map(|cpu| cpu.to_string()).collect();
            bail!("this process may not run on CPU {cpu}; it may on {}", may.join(","));
        }
        Ok(wanted.iter().map(|&cpu| Some(cpu)).collect())
    }
}

/// Refuses a command that does not exist before anything is measured.
fn check_program(program: &OsStr) -> anyhow::Result<()> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(program);
    let found = if path.components().count() > 1 {
        is_program(path)
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| is_program(&folder.join(path)))
    };
    ensure!(found, "cannot run `{}`: no such program; is it installed and in PATH?", path.display());
    Ok(())
}

fn priority(text: &str) -> Result<Priority, String> {
    let wrong = || "write normal, nice:N with N from -20 to 19, or fifo:N with N from 1 to 99".to_owned();
    if text == "normal" {
        return Ok(Priority::Normal);
    }
    let (kind, number) = text.split_once(':').ok_or_else(wrong)?;
    match (kind, number.parse::<i32>()) {
        ("nice", Ok(nice @ -20..=19)) => Ok(Priority::Nice(nice)),
        ("fifo", Ok(priority @ 1..=99)) => Ok(Priority::Fifo(priority)),
        _ => Err(wrong()),
    }
}

/// The priority in the syntax of `--priority`.
fn written(priority: Priority) -> String {
    match priority {
        Priority::Normal => "normal".to_owned(),
        Priority::Nice(nice) => format!("nice:{nice}"),
        Priority::Fifo(priority) => format!("fifo:{priority}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a run without a single tick ends without an error.
    #[test]
    fn a_run_that_is_over_before_its_first_tick_is_refused() {
        let refused = |line: &[&str]| {
            #[derive(clap::Parser)]
            struct Line {
                #[command(flatten)]
                args: Args,
            }
            let line = std::iter::once(&"hiccup").chain(line);
            <Line as clap::Parser>::parse_from(line).args.meters().err().map(|error| error.to_string())
        };
        let reported = "-d must be at least 1ms, the time to the first tick";
        assert_eq!(refused(&["-d", "1us"]).as_deref(), Some(reported));
        assert_eq!(refused(&["-d", "0s"]).as_deref(), Some(reported));
        assert_eq!(refused(&["-d", "1ms"]), None);
        assert!(refused(&["-d", "1ms", "--resolution", "10ms"]).is_some());
    }

    #[test]
    fn a_priority_is_read_as_it_is_written() {
        for text in ["normal", "nice:-5", "nice:19", "fifo:50"] {
            assert_eq!(written(priority(text).unwrap()), text);
        }
        for wrong in ["", "high", "nice", "nice:20", "fifo:0", "fifo:100", "rr:5"] {
            assert!(priority(wrong).is_err(), "{wrong}");
        }
    }
}
