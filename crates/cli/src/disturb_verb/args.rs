//! The options of `parallax disturb`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueHint;
use units::{Bytes, Nanos, Rate, parse_count};

use host::{CpuList, cpu_list};

/// Disturb a process, a CPU, memory, a disk or a network on a known schedule.
///
/// With --every, disturbances of length --for are repeated; without it, there is one, of length --for, or until -d or
/// Ctrl-C. The same --seed gives the same schedule. Each disturbance is recorded in events.ndjson, with the intended
/// and the real times.
///
/// If this process is killed, a guard process undoes the disturbance.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:
  parallax disturb pause -p 4242 --for 50ms --every 5s --jitter 1s --seed 7
      a stall of 50 ms about every 5 s, until Ctrl-C
  parallax disturb cpu --cpus 0 --duty 80% --for 2s --every 10s -d 60s
      80 % load on CPU 0
  parallax disturb memory --size 1GiB --touch 200MiB/s -d 30s
  parallax disturb disk /var/lib/data --rate 100/s -d 30s
  parallax disturb net 127.0.0.1:9000 127.0.0.1:8080 --delay 20ms --delay-jitter 5ms
      a relay: send requests to port 9000 instead of 8080
  parallax disturb pause -p 4242 --for 50ms --every 5s --count 10 --dry-run
      print the schedule, and do nothing

Exit codes: 0 done, or stopped with Ctrl-C if no end was set; 1 wrong usage or a problem of this host; 130 stopped with
Ctrl-C before the end that was set, 143 by SIGTERM."
)]
pub struct Args {
    #[command(subcommand)]
    pub means: Means,
}

#[derive(Debug, clap::Subcommand)]
pub enum Means {
    Pause(PauseArgs),
    Cpu(CpuArgs),
    Memory(MemoryArgs),
    Disk(DiskArgs),
    Net(NetArgs),
    /// Guard process: undoes a disturbance when its parent is gone. Started by `disturb` itself.
    #[command(hide = true)]
    Guard,
    /// Worker process: loads a CPU, memory or a disk. Started by `disturb` itself.
    #[command(hide = true)]
    Worker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        work: Vec<OsString>,
    },
}

/// When to disturb, and where to record it.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Schedule")]
pub struct TimingArgs {
    /// Time from the start of one disturbance to the start of the next.
    #[arg(long, value_name = "TIME")]
    pub every: Option<Nanos>,

    /// Length of each disturbance.
    #[arg(long = "for", value_name = "TIME")]
    pub length: Option<Nanos>,

    /// Start each one earlier or later by a random time of up to this.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub jitter: Nanos,

    /// Random seed; the same seed reproduces the same schedule [default: a fresh one, printed].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Time until the first disturbance [default: --every; without --every, 0].
    #[arg(long, value_name = "TIME")]
    pub start: Option<Nanos>,

    /// End after this time. A disturbance that would last longer is not started.
    #[arg(short = 'd', long, value_name = "TIME")]
    pub duration: Option<Nanos>,

    /// End after this many disturbances.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub count: Option<u64>,

    /// Print the schedule as text, and disturb nothing; no record is kept.
    #[arg(long, conflicts_with_all = ["output", "record_mode", "json"])]
    pub dry_run: bool,

    /// Results directory [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub record_mode: crate::record_mode::RecordModeArg,

    /// At the end, print the record as JSON (formats/observation.schema.json), and nothing else.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Pause a process, and resume it.
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// Process to pause.
    #[arg(short = 'p', long, value_name = "PID")]
    pub pid: u32,

    /// How to pause it. signal: SIGSTOP and SIGCONT. cgroup, cgroup-v1, cgroup-v2: move it to a new control group and
    /// freeze that. whole-group: freeze the control group that it is in.
    #[arg(long, value_enum, default_value_t = By::Signal)]
    pub by: By,

    /// Allow pausing a process that started this one, such as its shell.
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub timing: TimingArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    Signal,
    Cgroup,
    CgroupV1,
    CgroupV2,
    WholeGroup,
}

/// Burn CPU time.
#[derive(Debug, clap::Args)]
pub struct CpuArgs {
    /// CPUs to load, such as 0,2-3: one busy thread pinned to each [default: one busy thread, not pinned].
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,

    /// Number of busy threads, spread over the CPUs in turn [default: one per CPU of --cpus].
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub hogs: Option<u64>,

    /// Share of the time in which each thread is busy, in periods of 10 ms.
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = share)]
    pub duty: Ppm,

    /// Run the busy threads in the control groups of this process, so that they use up its CPU quota.
    #[arg(short = 'p', long, value_name = "PID")]
    pub pid: Option<u32>,

    /// Nice value of the busy threads; a value below 0 needs privileges.
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true,
        value_parser = clap::value_parser!(i32).range(-20..=19))]
    pub nice: i32,

    #[command(flatten)]
    pub timing: TimingArgs,
}

/// Allocate memory and touch it.
#[derive(Debug, clap::Args)]
pub struct MemoryArgs {
    /// Amount to allocate; freed at the end of each disturbance.
    #[arg(long, value_name = "BYTES")]
    pub size: Bytes,

    /// Touch this many bytes per second, over and over [default: touch all of it once, as fast as possible].
    #[arg(long, value_name = "RATE", value_parser = bytes_per_s)]
    pub touch: Option<u64>,

    /// Allow more than this host has available.
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub timing: TimingArgs,
}

/// Write blocks, each followed by an fsync.
#[derive(Debug, clap::Args)]
pub struct DiskArgs {
    /// Directory on the disk. Files are written to a temporary subdirectory, which is removed at the end.
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Bytes written between two fsyncs.
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = some_bytes)]
    pub block: Bytes,

    /// Size of each writer's file, which is overwritten again and again.
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = some_bytes)]
    pub file: Bytes,

    /// Number of concurrent writers.
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub writers: u64,

    /// Fsyncs per second and writer [default: one after another].
    #[arg(long, value_name = "RATE", value_parser = whole_rate)]
    pub rate: Option<u64>,

    #[command(flatten)]
    pub timing: TimingArgs,
}

/// Relay TCP connections with added delay, loss, rate limit, resets or a black hole.
///
/// The relay works on streams, not packets. Between disturbances it forwards everything immediately.
#[derive(Debug, clap::Args)]
pub struct NetArgs {
    /// Address and port to listen on, or a port on 127.0.0.1; port 0 picks a free one.
    #[arg(value_name = "LISTEN", value_parser = address)]
    pub listen: SocketAddr,

    /// Address and port to connect to.
    #[arg(value_name = "TARGET", value_parser = address)]
    pub target: SocketAddr,

    /// Delay everything by this time.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub delay: Nanos,

    /// Vary --delay by up to this, longer or shorter; the order of bytes is kept.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub delay_jitter: Nanos,

    /// Share of segments (of 1448 bytes) that are lost. A lost segment stalls its direction for --rto, as TCP does when no
    /// other segments follow the lost one.
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    pub loss: Ppm,

    /// Retransmission timeout of a lost segment; doubled each time that it is lost again.
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    pub rto: Nanos,

    /// Maximum bytes per second in each direction, for all connections together.
    #[arg(long, value_name = "RATE", value_parser = bytes_per_s)]
    pub rate: Option<u64>,

    /// Direction to disturb.
    #[arg(long, value_enum, default_value_t = Way::Responses)]
    pub direction: Way,

    /// Reset all connections, and new ones as soon as they are opened.
    #[arg(long, conflicts_with = "black_hole")]
    pub reset: bool,

    /// Forward nothing in either direction until the disturbance ends.
    #[arg(long)]
    pub black_hole: bool,

    #[command(flatten)]
    pub timing: TimingArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Way {
    #[value(alias = "answers")]
    Responses,
    Requests,
    Both,
}

impl Means {
    /// The schedule; `None` for the helper processes, which disturb nothing by themselves.
    pub fn timing(&self) -> Option<&TimingArgs> {
        Some(match self {
            Means::Pause(args) => &args.timing,
            Means::Cpu(args) => &args.timing,
            Means::Memory(args) => &args.timing,
            Means::Disk(args) => &args.timing,
            Means::Net(args) => &args.timing,
            Means::Guard | Means::Worker { .. } => return None,
        })
    }

    /// The name of the subcommand.
    pub fn name(&self) -> &'static str {
        match self {
            Means::Pause(_) => "pause",
            Means::Cpu(_) => "cpu",
            Means::Memory(_) => "memory",
            Means::Disk(_) => "disk",
            Means::Net(_) => "net",
            Means::Guard => "guard",
            Means::Worker { .. } => "worker",
        }
    }
}

/// A share in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ppm(pub u64);

fn share(text: &str) -> Result<Ppm, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(Ppm((percent * 10_000.0).round() as u64)),
        _ => Err("not a share; write it in percent, from 0% to 100%".to_owned()),
    }
}

fn bytes_per_s(text: &str) -> Result<u64, String> {
    let bytes = text.strip_suffix("/s").unwrap_or(text).trim().parse::<Bytes>();
    match bytes {
        Ok(Bytes(0)) => Err("must be more than 0".to_owned()),
        Ok(bytes) => Ok(bytes.0),
        Err(_) => Err(format!("`{text}` is no rate of bytes; write it like 10MiB/s")),
    }
}

fn some_bytes(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(Bytes(0)) => Err("must be more than 0".to_owned()),
        Ok(bytes) if bytes.0 > 1 << 40 => Err("at most 1024GiB".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

fn whole_rate(text: &str) -> Result<u64, String> {
    let rate = text.parse::<Rate>().map_err(|error| error.to_string())?.as_per_second_f64();
    if rate < 1.0 || rate.fract() != 0.0 {
        return Err("write a whole number per second, 1/s or more".to_owned());
    }
    Ok(rate as u64)
}

fn at_least_one(text: &str) -> Result<u64, String> {
    match parse_count(text) {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| "not an address; write ADDRESS:PORT, [ADDRESS]:PORT or PORT".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn a_dry_run_refuses_the_options_of_a_record() {
        let line = ["parallax", "disturb", "cpu", "-d", "1s", "--dry-run"];
        let parsed = |more: &[&str]| crate::Cli::command().try_get_matches_from([&line, more].concat());
        parsed(&[]).unwrap();
        for more in [&["--json"][..], &["-o", "x"], &["--record-mode", "600"]] {
            assert_eq!(parsed(more).unwrap_err().kind(), ErrorKind::ArgumentConflict, "{more:?}");
        }
    }

    #[test]
    fn shares_and_rates_are_read_as_people_write_them() {
        assert_eq!(share("0.5%").unwrap(), Ppm(5_000));
        assert!(share("101%").is_err() && share("1").is_err() && share("nan%").is_err());
        assert_eq!(bytes_per_s("10MiB/s").unwrap(), 10 << 20);
        assert!(bytes_per_s("0/s").is_err() && whole_rate("1/3s").is_err());
        assert_eq!(whole_rate("100/s").unwrap(), 100);
    }
}
