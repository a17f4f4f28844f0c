//! What can be asked of `watch`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::{ValueEnum, ValueHint};
use units::Nanos;
use watch::Named;
use watch::kernel::CaptureSettings;

use super::class::ClassArg;
use super::keep::KeepRequests;

/// Watch the requests of a running server from its kernel.
///
/// Nothing is restarted and nothing in the server is changed. Each request is timed from the return of the read that
/// brought it to the end of the write that answered it, and that time is split into what the server's threads did:
/// on CPU, waiting for one (and for whom), blocked on disk, lock, network or else, or serving others. Ends with
/// Ctrl-C or after -d, with totals, distributions and the table of those who took the CPU. Needs root, or CAP_BPF,
/// CAP_PERFMON and CAP_SYS_RESOURCE.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax watch -p $(pidof mariadbd)
  parallax watch --port 6379 -d 10s --self
  parallax watch --comm nginx --requests all -o runs/nginx
  parallax watch -p 4711 --class mariadb-query-cache
  parallax watch -p 4711 -d 30s --profile

Exit codes: 0 done; 1 usage or environment.")]
#[command(group = clap::ArgGroup::new("server").required(true).args(["pid", "port", "comm"]))]
pub struct Args {
    /// The server's process; its children count, too. May be given again.
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,

    /// Whoever listens on this TCP port, and only connections to it.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// All processes of this name.
    #[arg(long, value_name = "NAME")]
    comm: Option<String>,

    /// A line is printed this often; on a terminal the table is renewed.
    #[arg(short, long, value_name = "TIME", default_value = "3s")]
    pub interval: Nanos,

    /// Ends after this time [default: with Ctrl-C].
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,

    /// Results directory [default: a new one under parallax-runs].
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// Which requests to keep one by one in served.parquet: all, slowest=100 or sample=1%.
    #[arg(long, value_name = "WHICH", default_value = "slowest=100")]
    pub requests: KeepRequests,

    /// Split requests by what a function of the server returned: uretprobe:BINARY:SYMBOL[:bool|i32|i64], or
    /// mariadb-query-cache (hit or miss).
    #[arg(long, value_name = "WHAT")]
    pub class: Option<ClassArg>,

    /// What the server speaks, where its bytes leave that open.
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<ProtocolArg>,

    /// Most bytes of one read or write to look at.
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(64..=16384))]
    capture: u32,

    /// Room for events on the way from the kernel, in MiB; a power of two.
    #[arg(long, value_name = "MIB", default_value_t = 8)]
    ring: u32,

    /// Measure what watching costs, and say it.
    #[arg(long = "self")]
    pub self_cost: bool,

    /// Profile the server, too: where its threads are, on a CPU, asleep or waiting for one. The profile's record is the
    /// folder `profile` of this one.
    #[arg(long)]
    pub profile: bool,

    /// At the end, print the record's document as JSON instead of text.
    #[arg(long)]
    pub json: bool,

    /// No live table on a terminal, but a plain line an interval.
    #[arg(long)]
    pub no_tui: bool,

    /// Another parallax leads: see `crate::controlled`.
    #[arg(long, alias = "led", hide = true, conflicts_with = "json")]
    pub controlled: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    pub no_color: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProtocolArg {
    Http1,
    Postgres,
    Mysql,
    Redis,
}

/// What will be done.
pub struct Plan {
    pub named: Named,
    /// As it was said.
    pub told: String,
    pub settings: CaptureSettings,
    pub hint: Option<dissect::Protocol>,
}

impl Args {
    /// # Errors
    ///
    /// One line for what makes no sense.
    pub fn plan(&self) -> anyhow::Result<Plan> {
        ensure!(
            self.interval >= Nanos::from_millis(100),
            "--interval {} is too short; the least is 100 ms",
            self.interval
        );
        ensure!(
            self.duration != Some(Nanos::ZERO),
            "-d 0s would watch nothing; leave -d out to watch until Ctrl-C"
        );
        ensure!(
            self.ring.is_power_of_two() && self.ring <= 1024,
            "--ring takes a power of two up to 1024 (MiB), not {}",
            self.ring
        );
        let (named, told) = match (self.port, &self.comm) {
            (Some(port), _) => (Named::Port(port), format!("--port {port}")),
            (None, Some(comm)) => (Named::Comm(comm.clone()), format!("--comm {comm}")),
            (None, None) => {
                let pids: Vec<String> = self.pid.iter().map(u32::to_string).collect();
                (Named::Pids(self.pid.clone()), format!("-p {}", pids.join(",")))
            }
        };
        let class = self.class.as_ref().map(|class| class.probe(&named)).transpose()?;
        let settings = CaptureSettings { capture: self.capture, ring_bytes: self.ring << 20, class };
        Ok(Plan { named, told, settings, hint: self.protocol.map(ProtocolArg::hint) })
    }
}

impl ProtocolArg {
    fn hint(self) -> dissect::Protocol {
        match self {
            ProtocolArg::Http1 => dissect::Protocol::Http1,
            ProtocolArg::Postgres => dissect::Protocol::Postgres,
            ProtocolArg::Mysql => dissect::Protocol::MySql,
            ProtocolArg::Redis => dissect::Protocol::Redis,
        }
    }
}
