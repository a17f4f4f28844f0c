//! The options of `parallax drive`.

use std::path::PathBuf;

use clap::ValueHint;
use engine::Pace;
use findings::Condition;
use schedule::{Jitter, Speed, Think, Written};
use units::{Bytes, Nanos, Rate};

use super::connect_args::ConnectArgs;
pub use super::requests::KeepArg;
pub use super::sinks::SinkArgs;
pub use crate::beside::WatchArg;
use codec::web::{Sha256Digest, StatusSet};

/// Drive a server with requests and say where their time went.
///
/// Without --rate the load is a closed loop: each caller sends its next request when its last one has ended. With
/// --rate, --stage or --replay it is an open loop: requests are due on a schedule whatever became of the earlier
/// ones, and time that a request spent waiting to be sent counts.
///
/// Exit codes: 0 done and valid (or degraded, with the reasons printed); 1 usage or environment; 2 a condition of
/// --fail-if holds or cannot be decided, or a search found no rate that holds; 3 the measurement is invalid;
/// 4 nothing could be reached; 130 interrupted, with the partial record kept.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  parallax drive http://127.0.0.1:8080/
      closed loop: 10 connections, 10 s
  parallax drive -r 500/s -c 20 -d 30s http://127.0.0.1:8080/
      open loop at a steady rate
  parallax drive -r 500/s --arrivals poisson --seed 7 http://127.0.0.1:8080/
      the same rate at random; the same seed is the same schedule
  parallax drive --stage 'ramp 0/s..1k/s 30s' --stage 'constant 1k/s 1m' http://127.0.0.1:8080/
      stages, one after another
  parallax drive --stage 'constant 500/s weight 1' --stage 'ramp 500/s..1k/s weight 3' -d 60s http://127.0.0.1:8080/
      stages that share a time by their weights
  parallax drive -c 2 --callers 4 -n 20 http://127.0.0.1:8080/
      more callers than connections: what a pool costs
  parallax drive -r 500/s --fail-if 'response.p99 > 50ms' --fail-if 'error_share > 1%' http://127.0.0.1:8080/
      exit with 2 when the server is too slow or fails too often
  parallax drive --targets targets.txt -r 100/s
      several requests in turn, in vegeta's formats
  parallax drive --http 2 --streams 10 -c 2 --cacert ca.pem https://127.0.0.1:8443/
      HTTP/2 over TLS, ten requests at once on each connection
  parallax drive shop.toml --set rate=200/s
      a scenario: requests, journeys, data and checks in a file (docs/scenario.md)
  parallax drive --search 'p99 < 20ms' http://127.0.0.1:8080/
      the highest rate that holds it, and the load curve")]
pub struct Args {
    /// What to request: http[s]://HOST[:PORT]/PATH, HOST:PORT/PATH or unix:/SOCKET:/PATH; several take turns. Or a
    /// scenario file that ends in .toml.
    #[arg(required_unless_present_any = ["targets", "calibrate"], value_name = "URL", value_hint = ValueHint::Url)]
    pub url: Vec<String>,

    /// Connections to each server.
    #[arg(short = 'c', long, value_name = "N", default_value = "10", value_parser = count, help_heading = "Load")]
    pub connections: u64,

    /// Requests that may be under way or queueing at once. Closed loop: callers, by default as many as the
    /// connections carry. Open loop: the bound of the queue, by default 100k.
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Load")]
    pub callers: Option<u64>,

    /// Open loop at this steady rate: 500/s, 10k/s, 30/m.
    #[arg(short = 'r', long, visible_short_alias = 'R', value_name = "RATE", help_heading = "Load")]
    pub rate: Option<Rate>,

    /// How requests at --rate, or those of a probe, are placed: evenly, or as a Poisson process, each at random
    /// whatever the others do [default: even].
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Load")]
    pub arrivals: Option<ArrivalsArg>,

    /// Move each request at --rate, or of a probe, by a random time, evenly over plus or minus this: 5ms, or 10% of
    /// the gap. Neither depends on the number of connections.
    #[arg(long, value_name = "TIME|PERCENT", help_heading = "Load")]
    pub jitter: Option<Jitter>,

    /// A stage of an open loop; may be given again, one after another:
    /// 'constant 500/s 30s', 'ramp 100/s..1k/s 30s', 'steps 100/s,200/s 10s' (10s each),
    /// 'sine 500/s amplitude 200/s period 10s 60s', 'spikes 100/s peak x10 width 1s period 10s 60s', 'pause 5s'.
    /// At its end it may say poisson, or jitter TIME|PERCENT. With -d, each says `weight N` in place of its length:
    /// its share of that time.
    #[arg(
        long = "stage",
        value_name = "STAGE",
        value_parser = stage,
        conflicts_with_all = ["rate", "replay"],
        help_heading = "Load"
    )]
    pub stages: Vec<Vec<Written>>,

    /// Open loop at the instants of a recording: a time a line (seconds, epoch of any unit, RFC 3339), JSON lines,
    /// CSV, or a web server's common log.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with = "rate",
        help_heading = "Load"
    )]
    pub replay: Option<PathBuf>,

    /// Replay so many times faster: 2x, 0.5x [default: 1x].
    #[arg(long, value_name = "FACTOR", help_heading = "Load")]
    pub speed: Option<Speed>,

    /// Where the times of a recording are: a field of JSON, a header of CSV or the column's number from 1
    /// [default: timestamp, time, ts or the like].
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub replay_column: Option<String>,

    /// Closed loop: how long a caller pauses before it asks again: 100ms, 50ms..150ms (evenly between), exp:100ms
    /// (exponential with this mean).
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub think: Option<Think>,

    /// What random arrivals and think times are drawn from; the same seed draws the same
    /// [default: a fresh one, printed and recorded].
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub seed: Option<u64>,

    /// How closely an open loop follows its schedule: lateness against CPU time.
    #[arg(long, value_enum, value_name = "PACE", default_value = "balanced", help_heading = "Load")]
    pub pace: PaceArg,

    /// Schedule requests for this long [default: 10s, without end when -n is given, to the end of a
    /// replay].
    #[arg(short = 'd', long, value_name = "TIME", value_parser = positive, help_heading = "Load")]
    pub duration: Option<Nanos>,

    /// Schedule this many requests.
    #[arg(short = 'n', long, value_name = "N", value_parser = count, help_heading = "Load")]
    pub count: Option<u64>,

    /// Requests that may be outstanding on one connection (HTTP pipelining).
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, help_heading = "Load")]
    pub pipeline: u64,

    /// Threads, each with its share of the connections [default: one for every 32 connections, at most the CPUs].
    #[arg(short = 'w', long, value_name = "N", value_parser = count, help_heading = "Load")]
    pub workers: Option<u64>,

    /// Find the highest rate that holds this, in a dozen probes at most: 'p99 < 20ms', 'response.p99.9 < 50ms and
    /// error_share < 0.1%'. Unless it names error_share or failed, error_share < 1% has to hold too.
    #[arg(
        long,
        value_name = "OBJECTIVE",
        conflicts_with_all = OF_ONE_RUN,
        help_heading = "Search"
    )]
    pub search: Option<String>,

    /// Lowest rate of interest [default: the lowest that a probe of a minute can measure].
    #[arg(long, value_name = "RATE", requires = "search", help_heading = "Search")]
    pub search_from: Option<Rate>,

    /// Highest rate that may be tried, to spare a server [default: none; a closed loop then shows where to begin].
    #[arg(long, value_name = "RATE", requires = "search", help_heading = "Search")]
    pub search_to: Option<Rate>,

    /// How near the rate that holds and the one that fails shall be: 0.5% to 20%.
    #[arg(
        long,
        value_name = "SHARE",
        requires = "search",
        default_value = "2%",
        value_parser = tolerance,
        help_heading = "Search"
    )]
    pub search_tolerance: Tolerance,

    /// How long each probe is measured, after 1 s of warm-up [default: 4s, or what the objective needs].
    #[arg(long, value_name = "TIME", requires = "search", value_parser = positive, help_heading = "Search")]
    pub probe_duration: Option<Nanos>,

    /// Probes at most.
    #[arg(
        long,
        value_name = "N",
        requires = "search",
        default_value = "12",
        value_parser = count,
        help_heading = "Search"
    )]
    pub probes: u64,

    /// Method [default: GET, or POST with a body].
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = "Request")]
    pub method: Option<String>,

    /// A header `Name: value`; may be given again.
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = "Request")]
    pub headers: Vec<String>,

    /// Body, or @FILE to read it from one.
    #[arg(short = 'b', long, value_name = "BODY", help_heading = "Request")]
    pub body: Option<String>,

    /// Requests from a file (- is standard input) in vegeta's HTTP or JSON form, in turn by weight (`# weight: 3` before a target).
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["url", "method", "body"],
        help_heading = "Request"
    )]
    pub targets: Option<PathBuf>,

    /// Change a scenario file: run.rate=500/s, vars.user=ann, request.NAME.weight=3; may be given again.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Scenario")]
    pub set: Vec<String>,

    /// Print what the first journeys of a scenario would send, with all their steps, and send nothing.
    #[arg(long, help_heading = "Scenario")]
    pub dry_run: bool,

    #[command(flatten)]
    pub connect: ConnectArgs,

    /// Statuses that count as good: 200, 2xx, 200-299, 200,404 [default: below 400].
    #[arg(long, value_name = "SET", help_heading = "Checks")]
    pub expect_status: Option<StatusSet>,

    /// Text that every body must contain.
    #[arg(long, value_name = "TEXT", help_heading = "Checks")]
    pub expect_body_contains: Option<String>,

    /// Digest of every body, in hexadecimal.
    #[arg(long, value_name = "HEX", help_heading = "Checks")]
    pub expect_sha256: Option<Sha256Digest>,

    /// Exit with 2 if this holds; may be given again: `response.p99 > 50ms`, `wait.max > 1s`, `throughput < 450/s`,
    /// `error_share > 1%`, `outcome.reset > 0`, `code.503 > 10`.
    ///
    /// METRIC OP VALUE. Times: response, service or a phase, then .p50, .p99.9 or any percentile, .mean or .max. Rates:
    /// throughput, sent_rate. Counts, or shares with %: outcome.NAME, code.N, failed, ok; error_share. A percentile
    /// that the sample cannot carry is not met.
    #[arg(long, value_name = "CONDITION", help_heading = "Checks")]
    pub fail_if: Vec<Condition>,

    /// Measure the CPU time of the server's processes, on this host, over the run; may be given again. The report
    /// divides it by the requests.
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = crate::cpu::pid, help_heading = "Output")]
    pub watch_cpu: Vec<u32>,

    /// Largest header of an answer.
    #[arg(long, value_name = "SIZE", default_value = "64KiB", help_heading = "Checks")]
    pub max_head: Bytes,

    /// Largest body of an answer.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", help_heading = "Checks")]
    pub max_body: Bytes,

    /// From the first byte sent to the whole answer read; `off` for none.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = limit, help_heading = "Limits")]
    pub timeout: Limit,

    /// For a connection to stand; `off` for none.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = limit, help_heading = "Limits")]
    pub connect_timeout: Limit,

    /// For a connection of the pool to become free; `off` for none.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = limit, help_heading = "Limits")]
    pub checkout_timeout: Limit,

    /// How long after the last request was due outstanding ones may still be answered; `off`: each until its answer
    /// or its timeout [default: 5s when a duration ends the run, off with -n alone].
    #[arg(long, value_name = "TIME", value_parser = drain, help_heading = "Limits")]
    pub drain: Option<Limit>,

    /// Instead of driving, measure this client's own ceiling against the built-in target, with the connections,
    /// workers, pace and stamps given. It is kept, and later runs of the same shape say how near they came.
    #[arg(long, conflicts_with_all = NOT_OF_A_CLIENT, help_heading = "Limits")]
    pub calibrate: bool,

    /// Where the arrival of an answer is stamped.
    #[arg(long, value_enum, value_name = "WHERE", default_value = "kernel", help_heading = "Limits")]
    pub stamps: StampsArg,

    /// Folder of the record [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Keep requests one by one, each with its whole timeline, in requests.parquet of the record: all, slowest=100, or
    /// sample=1%.
    #[arg(long = "requests", value_name = "WHICH", help_heading = "Output")]
    pub keep: Option<KeepArg>,

    /// Watch this process of the server meanwhile, and say where the time of requests went: PID, or ssh:HOST:PID with
    /// parallax and the right to watch on that host. HOST is as ssh takes it, with its configuration; nothing is asked.
    /// Keeps all requests unless --requests says which.
    #[arg(long, value_name = "SERVER", help_heading = "Output")]
    pub watch: Option<WatchArg>,

    /// Profile this process of the server meanwhile: where its threads are, as flame graphs in the record.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    pub profile: Option<u32>,

    /// Print the result as JSON (formats/run.schema.json).
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Nothing while it runs: no live view, no line a second.
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,

    /// No live view on a terminal, but a plain line a second on standard error.
    #[arg(long, help_heading = "Output")]
    pub no_tui: bool,

    /// No colours, as with NO_COLOR set.
    #[arg(long, help_heading = "Output")]
    pub no_color: bool,

    #[command(flatten)]
    pub sinks: SinkArgs,
}

/// Options that a search has no use for: it says itself at which rates it probes, for how long and what has to hold,
/// and rows or totals of one probe would pass for those of another.
const OF_ONE_RUN: [&str; 15] = [
    "rate",
    "stages",
    "replay",
    "speed",
    "replay_column",
    "think",
    "duration",
    "count",
    "fail_if",
    "keep",
    "prometheus",
    "otlp",
    "otlp_interval",
    "jsonl",
    "csv",
];

/// Options that say nothing of the shape of a client, which is all that a calibration measures: it has a target, loads
/// and an answer of its own.
const NOT_OF_A_CLIENT: [&str; 46] = [
    "url",
    "targets",
    "callers",
    "rate",
    "arrivals",
    "jitter",
    "stages",
    "replay",
    "speed",
    "replay_column",
    "think",
    "seed",
    "duration",
    "count",
    "search",
    "method",
    "headers",
    "body",
    "set",
    "dry_run",
    "http",
    "streams",
    "resolve",
    "unix",
    "source",
    "insecure",
    "cacert",
    "cert",
    "key",
    "sni",
    "alpn",
    "tls_version",
    "tls_resumption",
    "expect_status",
    "expect_body_contains",
    "expect_sha256",
    "fail_if",
    "watch_cpu",
    "output",
    "keep",
    "prometheus",
    "prometheus_linger",
    "otlp",
    "otlp_interval",
    "jsonl",
    "csv",
];

/// How requests at one rate are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ArrivalsArg {
    Even,
    Poisson,
}

/// A time limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub Option<Nanos>);

/// A share between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance(pub f64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PaceArg {
    /// Late by some microseconds: stays awake before a request is due, a whole core from 1,000/s on.
    Precise,
    /// Late by up to 250 us, answers read late too: wakes at most that often at rates over 4,000/s.
    Balanced,
    /// Late by up to 1 ms, answers read late too: wakes at most that often at rates over 1,000/s.
    Efficient,
}

impl From<PaceArg> for Pace {
    fn from(pace: PaceArg) -> Pace {
        match pace {
            PaceArg::Precise => Pace::Precise,
            PaceArg::Balanced => Pace::Balanced,
            PaceArg::Efficient => Pace::Efficient,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StampsArg {
    /// By the kernel, as packets arrive.
    Kernel,
    /// When the client reads it.
    Read,
}

pub(super) fn count(text: &str) -> Result<u64, String> {
    match units::parse_count(text) {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

fn stage(text: &str) -> Result<Vec<Written>, schedule::StageError> {
    schedule::parse_written(text)
}

pub fn positive(text: &str) -> Result<Nanos, String> {
    match text.parse() {
        Ok(Nanos::ZERO) => Err("must be longer than 0".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

fn tolerance(text: &str) -> Result<Tolerance, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if (0.5..=20.0).contains(&percent) => Ok(Tolerance(percent / 100.0)),
        _ => Err("must be 0.5% to 20%, with its sign".to_owned()),
    }
}

fn drain(text: &str) -> Result<Limit, String> {
    // Unlike a limit, it may be 0: nothing is waited for.
    if text == "off" {
        return Ok(Limit(None));
    }
    text.parse().map(|time| Limit(Some(time))).map_err(|error: units::ParseError| format!("{error}, or off"))
}

pub(super) fn limit(text: &str) -> Result<Limit, String> {
    if text == "off" {
        return Ok(Limit(None));
    }
    positive(text).map(|time| Limit(Some(time))).map_err(|error| format!("{error}, or off"))
}
