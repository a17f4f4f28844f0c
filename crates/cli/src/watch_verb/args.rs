//! The options of `parallax watch`.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{ValueEnum, ValueHint};
use dissect::RouteTemplate;
use run::observe::watch::{PeerPattern, RequestClass, RequestFilter, StatementPattern, WatchSpec};
use run::requests_file::KeepRequests;
use run::values::ListenAddress;
use units::Nanos;
use watch::kernel::CaptureSettings;
use watch::{Budget, KnownRequests, Named};

use crate::watch_query_args::WatchQueryArgs;

/// Watch the requests of a running server from its kernel.
///
/// The server is neither restarted nor changed. Each request is timed from the return of the read that took its last
/// byte to the end of the write of its response's last byte. That time is split into what the server's threads did:
/// run on a CPU, wait for a CPU (and which process ran instead), wait for a disk, a lock or the network, or work on
/// other requests. Ctrl-C or -d ends it; it then prints totals, distributions, and the processes that took the CPU.
/// Needs root, or CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax watch -p $(pidof mariadbd)
  parallax watch --port 6379 -d 10s --self
  parallax watch --port 6379 -d 60s --budget 2%
  parallax watch --comm nginx --requests all -o runs/nginx
  parallax watch -p 4711 --class mariadb-query-cache
  parallax watch --port 5432 --tls
  parallax watch -p 4711 -d 30s --profile
  parallax watch --port 3306 -d 30s --where 'p99 > 5ms' --sort p99
  parallax watch --port 3306 -i 10s --no-record --prometheus 9464

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

    /// Reporting interval: time between two lines, or two updates of the live table. The record's series has the same;
    /// if the watch is killed, at most this much is missing.
    #[arg(short, long, value_name = "TIME", default_value = "1s")]
    pub interval: Nanos,

    /// How long to watch [default: until Ctrl-C].
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,

    /// Results directory [default: a new one under parallax-runs/].
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// Keep no record: for a service that is scraped.
    #[arg(long, conflicts_with_all = ["output", "profile", "requests"])]
    pub no_record: bool,

    /// Serve the figures for Prometheus at http://ADDR/metrics while watching; `9464` alone is a port of 127.0.0.1.
    #[arg(long, value_name = "ADDR")]
    prometheus: Option<ListenAddress>,

    #[command(flatten)]
    pub record_mode: crate::record_mode::RecordModeArg,

    /// Keep individual requests in served.parquet: all, slowest=100, or sample=1%.
    #[arg(long, value_name = "WHICH", default_value = "slowest=100")]
    pub requests: KeepRequests,

    /// Split the requests by the return value of a function of the server: uretprobe:BINARY:SYMBOL[:bool|i32|i64], or
    /// mariadb-query-cache (hit or miss).
    #[arg(long, value_name = "WHAT")]
    pub class: Option<RequestClass>,

    /// Count only requests of statements or routes with this text, in which * is anything, or that match /REGEX/.
    #[arg(long, value_name = "TEXT")]
    statement: Option<StatementPattern>,

    /// Count only requests of the client with this IP address, or with `unix` those of Unix sockets.
    #[arg(long, value_name = "ADDR")]
    peer: Option<PeerPattern>,

    /// List requests that take longer than this at the server, with the reason of each.
    #[arg(long, value_name = "TIME", default_value = "5ms")]
    slow: Nanos,

    #[command(flatten)]
    pub query: WatchQueryArgs,

    /// Report statements and routes of TLS connections too, from calls of OpenSSL in the server. Each call costs two traps,
    /// 17 us of CPU time on a virtual machine, also in other programs that use the same library.
    #[arg(long)]
    tls: bool,

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

    /// Maximum memory for events that wait to be processed, in MiB; a power of two. Up to 16 MiB of it are allocated in
    /// the kernel, the rest by this process as it is needed.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    ring: u32,

    /// The most that watching may cost, of the server's CPU time: `2%`. Where counting everything costs more, requests are
    /// counted in windows at random times, and totals are estimated. `off` counts everything, whatever it costs.
    #[arg(long, value_name = "SHARE", default_value = "off", value_parser = budget)]
    budget: BudgetArg,

    /// Random seed for the windows of --budget [default: from the clock].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Windows in cycles of this length, whatever they cost: for tests.
    #[arg(long, value_name = "TIME", hide = true, requires = "budget")]
    cycle: Option<Nanos>,

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

/// A share of the server's CPU time; `None` counts everything.
#[derive(Debug, Clone, Copy)]
struct BudgetArg(Option<f64>);

/// `off`, or a share such as `2%`.
fn budget(text: &str) -> Result<BudgetArg, String> {
    if text == "off" {
        return Ok(BudgetArg(None));
    }
    let percent = text.strip_suffix('%').and_then(|percent| percent.parse::<f64>().ok());
    match percent {
        Some(percent) if (0.1..=100.0).contains(&percent) => Ok(BudgetArg(Some(percent / 100.0))),
        _ => Err("give a share of the server's CPU time from 0.1% to 100%, such as 2%, or off".to_owned()),
    }
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
            !(self.json && self.query.is_given()),
            "--json prints the whole record; to select from it, leave out --json, or use `parallax report --json DIR` with these options"
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
        if let Some(share) = self.budget.0 {
            let all = [
                (matches!(self.requests, KeepRequests::All), "--requests all"),
                (self.class.is_some(), "--class"),
                (self.tls, "--tls"),
            ];
            if let Some((_, option)) = all.into_iter().find(|(is_given, _)| *is_given) {
                let share = units::percent(share);
                bail!("{option} counts everything and --budget {share} does not; leave out one of them");
            }
        }
        let (named, selection) = match (self.port, &self.comm) {
            (Some(port), _) => (Named::Port(port), format!("--port {port}")),
            (None, Some(comm)) => (Named::Comm(comm.clone()), format!("--comm {comm}")),
            (None, None) => {
                let pids: Vec<String> = self.pid.iter().map(u32::to_string).collect();
                (Named::Pids(self.pid.clone()), format!("-p {}", pids.join(",")))
            }
        };
        let class = self.class.as_ref().map(|class| class.probe(&named)).transpose()?;
        let (capture, ring_bytes, tls) = (self.capture, self.ring << 20, self.tls);
        let settings = CaptureSettings { capture, ring_bytes, class, tls };
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
            only: RequestFilter { statement: self.statement.clone(), peer: self.peer },
            slow: self.slow,
            budget: self.budget.0.map(|share| Budget {
                share,
                seed: self.seed.unwrap_or_else(|| clock::wall().0),
                cycle: self.cycle,
            }),
            prometheus: self.prometheus,
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
