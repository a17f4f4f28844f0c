//! The options of `parallax disturb`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueHint;
use units::{Bytes, Nanos, Rate, parse_count};

use crate::cpu_list::{CpuList, cpu_list};

/// Disturb a process, a CPU, memory, a disk or a network on a known schedule, and write down what really was.
///
/// With --every, one disturbance of --for each time; without, one as long as --for, or until -d or Ctrl-C. The
/// schedule is drawn from --seed: the same seed plants the same truth. Each disturbance goes to events.ndjson in the
/// record, with what was intended and what really was.
///
/// Whatever happens to this process, a guard process undoes what it did.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:
  parallax disturb pause -p 4242 --for 50ms --every 5s --jitter 1s --seed 7
      a stall of 50 ms about every 5 s, until Ctrl-C
  parallax disturb cpu --cpus 0 --duty 80% --for 2s --every 10s -d 60s
      a hog on CPU 0
  parallax disturb memory --size 1GiB --touch 200MiB/s -d 30s
  parallax disturb disk /var/lib/data --rate 100/s -d 30s
  parallax disturb net 127.0.0.1:9000 127.0.0.1:8080 --delay 20ms --delay-jitter 5ms
      a relay: send requests to port 9000 instead of 8080
  parallax disturb pause -p 4242 --for 50ms --every 5s --count 10 --dry-run
      print the schedule, and do nothing

Exit codes: 0 done, or ended by hand where no end was set; 1 usage or environment; 130 ended by hand before its end."
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
    /// Undoes what its parent did, when that is gone. Started by `disturb` alone.
    #[command(hide = true)]
    Guard,
    /// Uses something up. Started by `disturb` alone.
    #[command(hide = true)]
    Worker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        work: Vec<OsString>,
    },
}

/// When, and where that is written down.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Schedule")]
pub struct TimingArgs {
    /// From the begin of one disturbance to the begin of the next.
    #[arg(long, value_name = "TIME")]
    pub every: Option<Nanos>,

    /// How long each lasts.
    #[arg(long = "for", value_name = "TIME")]
    pub length: Option<Nanos>,

    /// Move each begin by a random time of up to this, either way.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub jitter: Nanos,

    /// What random times are drawn from [default: a fresh one, printed].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// When the first begins [default: --every; without it at once].
    #[arg(long, value_name = "TIME")]
    pub start: Option<Nanos>,

    /// End after this time. Only disturbances that are over by then are begun.
    #[arg(short = 'd', long, value_name = "TIME")]
    pub duration: Option<Nanos>,

    /// End after so many.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub count: Option<u64>,

    /// Print the schedule, and do nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// Results directory [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Print the record's document at the end, and nothing else.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Stop a process, and let it go on.
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// The process.
    #[arg(short = 'p', long, value_name = "PID")]
    pub pid: u32,

    /// How: by SIGSTOP and SIGCONT; in a control group of its own that is frozen (whichever version this host has, or
    /// the one named); or by freezing the whole control group that it is in.
    #[arg(long, value_enum, default_value_t = By::Signal)]
    pub by: By,

    /// Also a process that this one was started by, such as its shell.
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
    /// CPUs to burn, such as 0,2-3: one hog bound to each [default: one hog that the scheduler places].
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,

    /// How many hogs; they take the CPUs in turn [default: one for each of --cpus].
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub hogs: Option<u64>,

    /// The share of the time in which each is busy, in periods of 10 ms.
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = share)]
    pub duty: Ppm,

    /// Put the hogs into the control groups of this process, under its CPU quota.
    #[arg(short = 'p', long, value_name = "PID")]
    pub pid: Option<u32>,

    /// The hogs' nice value; below 0 needs privileges.
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true,
        value_parser = clap::value_parser!(i32).range(-20..=19))]
    pub nice: i32,

    #[command(flatten)]
    pub timing: TimingArgs,
}

/// Take memory and touch it.
#[derive(Debug, clap::Args)]
pub struct MemoryArgs {
    /// How much; it is given back at the end of each disturbance.
    #[arg(long, value_name = "BYTES")]
    pub size: Bytes,

    /// Touch so many bytes a second, round and round [default: all of it once, as fast as it goes].
    #[arg(long, value_name = "RATE", value_parser = bytes_per_s)]
    pub touch: Option<u64>,

    /// Also more than this host has left.
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub timing: TimingArgs,
}

/// Write blocks, and wait for the disk after each (fsync).
#[derive(Debug, clap::Args)]
pub struct DiskArgs {
    /// A folder on that disk. Files are made in a folder of their own in there, which goes at the end.
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Bytes written between two fsyncs.
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = some_bytes)]
    pub block: Bytes,

    /// The size of each writer's file, which is written round and round.
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = some_bytes)]
    pub file: Bytes,

    /// How many write at once.
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub writers: u64,

    /// Fsyncs a second of each writer [default: one after another].
    #[arg(long, value_name = "RATE", value_parser = whole_rate)]
    pub rate: Option<u64>,

    #[command(flatten)]
    pub timing: TimingArgs,
}

/// Relay TCP connections, and hold them up.
///
/// It sees streams, not packets. Outside of the disturbances it passes everything on at once.
#[derive(Debug, clap::Args)]
pub struct NetArgs {
    /// Where to listen: address and port, or a port on 127.0.0.1; port 0 takes a free one.
    #[arg(value_name = "LISTEN", value_parser = address)]
    pub listen: SocketAddr,

    /// Where to connect to.
    #[arg(value_name = "TARGET", value_parser = address)]
    pub target: SocketAddr,

    /// Hold each piece up for so long.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub delay: Nanos,

    /// And up to so much longer or shorter; the order stays.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub delay_jitter: Nanos,

    /// Of the segments of 1448 bytes, this share is lost. A stream loses nothing, so what is lost holds its direction
    /// up for --rto: that is how a lost packet looks to an application without others behind it.
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    pub loss: Ppm,

    /// The time until a lost segment is sent again; doubled each time that it is lost again.
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    pub rto: Nanos,

    /// So many bytes a second in each direction, of all connections together.
    #[arg(long, value_name = "RATE", value_parser = bytes_per_s)]
    pub rate: Option<u64>,

    /// Which way these work.
    #[arg(long, value_enum, default_value_t = Way::Answers)]
    pub direction: Way,

    /// Reset all connections, and new ones as they come.
    #[arg(long, conflicts_with = "black_hole")]
    pub reset: bool,

    /// Let nothing through, in either direction; it comes through at the end of the disturbance.
    #[arg(long)]
    pub black_hole: bool,

    #[command(flatten)]
    pub timing: TimingArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Way {
    Answers,
    Requests,
    Both,
}

impl Means {
    /// `None` for those that are no disturbance.
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

    /// As it is called on the command line.
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
        return Err("write a whole number a second, from 1/s on".to_owned());
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
    use super::*;

    #[test]
    fn shares_and_rates_are_read_as_people_write_them() {
        assert_eq!(share("0.5%").unwrap(), Ppm(5_000));
        assert!(share("101%").is_err() && share("1").is_err() && share("nan%").is_err());
        assert_eq!(bytes_per_s("10MiB/s").unwrap(), 10 << 20);
        assert!(bytes_per_s("0/s").is_err() && whole_rate("1/3s").is_err());
        assert_eq!(whole_rate("100/s").unwrap(), 100);
    }
}
