//! The options of `parallax watch`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::{ValueEnum, ValueHint};
use dissect::RouteTemplate;
use run::observe::watch::{RequestClass, WatchSpec};
use run::requests_file::KeepRequests;
use units::Nanos;
use watch::kernel::CaptureSettings;
use watch::{KnownRequests, Named};

/// Watch the requests of a running server from its kernel.
///
/// The server is neither restarted nor changed. Each request is timed from the return of the read that took its last
/// byte to the end of the write of its response's last byte. That time is split into what the server's threads did:
/// run on a CPU, wait for a CPU (and which process ran instead), wait for a disk, a lock or the network, or work on
/// other requests. Ctrl-C or -d ends it; it then prints totals, distributions, and the processes that took the CPU.
/// Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax watch -p $(pidof mariadbd)
  parallax watch --port 6379 -d 10s --self
  parallax watch --comm nginx --requests all -o runs/nginx
  parallax watch -p 4711 --class mariadb-query-cache
  parallax watch -p 4711 -d 30s --profile

Exit codes: 0 done, or stopped with Ctrl-C if no end was set; 1 wrong usage or a problem of this host; 130 stopped with
Ctrl-C before the end that was set, 143 by SIGTERM.")]
#[command(group = clap::ArgGroup::new("server").required(true).args(["pid", "port", "comm"]))]
pub struct Args {
    /// Server process, with its children; repeat it for more.
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pid: Vec<u32>,

    /// The process that listens on this TCP port; only connections to this port are watched.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// All processes with this name.
    #[arg(long, value_name = "NAME")]
    comm: Option<String>,

    /// Reporting interval: time between two lines, or two updates of the live table.
    #[arg(short, long, value_name = "TIME", default_value = "3s")]
    pub interval: Nanos,

    /// How long to watch [default: until Ctrl-C].
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,

    /// Results directory [default: a new one under parallax-runs/].
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub record_mode: crate::record_mode::RecordModeArg,

    /// Keep individual requests in served.parquet: all, slowest=100, or sample=1%.
    #[arg(long, value_name = "WHICH", default_value = "slowest=100")]
    pub requests: KeepRequests,

    /// Split the requests by the return value of a function of the server: uretprobe:BINARY:SYMBOL[:bool|i32|i64], or
    /// mariadb-query-cache (hit or miss).
    #[arg(long, value_name = "WHAT")]
    pub class: Option<RequestClass>,

    /// Protocol of the server, if it cannot be detected from the traffic.
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<ProtocolArg>,

    /// Report HTTP requests under this route, for parts of a path that vary but look like words: 'GET /reset/{token}'.
    /// Repeat it for more; the first that matches counts.
    #[arg(long, value_name = "ROUTE")]
    route: Vec<RouteTemplate>,

    /// Maximum number of bytes to inspect per read or write.
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(64..=16384))]
    capture: u32,

    /// Size of the buffer for events from the kernel, in MiB; a power of two.
    #[arg(long, value_name = "MIB", default_value_t = 8)]
    ring: u32,

    /// Measure the CPU time that watching costs, and print it.
    #[arg(long = "self")]
    pub self_cost: bool,

    /// Also profile the server: on-CPU, off-CPU and run-queue flame graphs, in the directory `profile` of the results.
    #[arg(long)]
    pub profile: bool,

    /// At the end, print the result as JSON (formats/observation.schema.json) instead of text.
    #[arg(long)]
    pub json: bool,

    /// On a terminal, print one plain line per interval instead of the live table.
    #[arg(long)]
    pub no_tui: bool,

    /// Another parallax controls this observer, and ends it: see `crate::controlled`.
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

impl Args {
    /// What to watch.
    ///
    /// # Errors
    ///
    /// Options that contradict each other, in one line.
    pub fn spec(&self) -> anyhow::Result<WatchSpec> {
        ensure!(
            self.interval >= Nanos::from_millis(100),
            "--interval {} is too short; use at least 100ms",
            self.interval
        );
        ensure!(
            self.duration != Some(Nanos::ZERO),
            "-d 0s would watch nothing; leave out -d to watch until Ctrl-C"
        );
        ensure!(
            self.ring.is_power_of_two() && self.ring <= 1024,
            "--ring {} is not a power of two up to 1024 (MiB)",
            self.ring
        );
        let (named, selection) = match (self.port, &self.comm) {
            (Some(port), _) => (Named::Port(port), format!("--port {port}")),
            (None, Some(comm)) => (Named::Comm(comm.clone()), format!("--comm {comm}")),
            (None, None) => {
                let pids: Vec<String> = self.pid.iter().map(u32::to_string).collect();
                (Named::Pids(self.pid.clone()), format!("-p {}", pids.join(",")))
            }
        };
        let class = self.class.as_ref().map(|class| class.probe(&named)).transpose()?;
        let settings = CaptureSettings { capture: self.capture, ring_bytes: self.ring << 20, class };
        let known =
            KnownRequests { protocol: self.protocol.map(ProtocolArg::hint), routes: self.route.clone() };
        Ok(WatchSpec {
            named,
            selection,
            settings,
            known,
            class: self.class.clone(),
            interval: self.interval,
            duration: self.duration,
            requests: self.requests,
            self_cost: self.self_cost,
            profile: self.profile,
        })
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
