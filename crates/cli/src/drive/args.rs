//! The options of `parallax drive`.

use std::path::PathBuf;

use clap::ValueHint;
use codec::http1::{Sha256Digest, StatusSet};
use units::{Bytes, Nanos, Rate};

/// Drive a server with requests and say where their time went.
///
/// Without --rate the load is a closed loop: each caller sends its next request when its last one has ended. With
/// --rate it is an open loop: requests are due on a fixed schedule whatever became of the earlier ones, and time
/// that a request spent waiting to be sent counts.
///
/// Exit codes: 0 done and valid (or degraded, with the reasons printed); 1 usage or environment; 3 the measurement
/// is invalid; 4 nothing could be reached; 130 interrupted, with the partial record kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax drive http://127.0.0.1:8080/
      closed loop: 10 connections, 10 s
  parallax drive -r 500/s -c 20 -d 30s http://127.0.0.1:8080/
      open loop at a steady rate
  parallax drive -c 2 --callers 4 -n 20 http://127.0.0.1:8080/
      more callers than connections: what a pool costs
  parallax drive --targets targets.txt -r 100/s
      several requests in turn, in vegeta's formats")]
pub struct Args {
    /// What to request: http://HOST[:PORT]/PATH, or HOST:PORT/PATH.
    #[arg(required_unless_present = "targets", value_name = "URL", value_hint = ValueHint::Url)]
    pub url: Option<String>,

    /// Connections of the pool.
    #[arg(short = 'c', long, value_name = "N", default_value = "10", value_parser = count, help_heading = "Load")]
    pub connections: u64,

    /// Requests that may be under way or queueing at once. Closed loop: callers, by default as many as the
    /// connections carry. Open loop: the bound of the queue, by default 100k.
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Load")]
    pub callers: Option<u64>,

    /// Open loop at this steady rate: 500/s, 10k/s, 30/m.
    #[arg(short = 'r', long, visible_short_alias = 'R', value_name = "RATE", help_heading = "Load")]
    pub rate: Option<Rate>,

    /// Schedule requests for this long [default: 10s, or without end when -n is given].
    #[arg(short = 'd', long, value_name = "TIME", value_parser = positive, help_heading = "Load")]
    pub duration: Option<Nanos>,

    /// Schedule this many requests.
    #[arg(short = 'n', long, value_name = "N", value_parser = count, help_heading = "Load")]
    pub requests: Option<u64>,

    /// Requests that may be outstanding on one connection (HTTP pipelining).
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, help_heading = "Load")]
    pub pipeline: u64,

    /// Threads, each with its share of the connections [default: one for every 32 connections, at most the CPUs].
    #[arg(short = 'w', long, value_name = "N", value_parser = count, help_heading = "Load")]
    pub workers: Option<u64>,

    /// Method [default: GET, or POST with a body].
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = "Request")]
    pub method: Option<String>,

    /// A header `Name: value`; may be given again.
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = "Request")]
    pub headers: Vec<String>,

    /// Body, or @FILE to read it from one.
    #[arg(short = 'b', long, value_name = "BODY", help_heading = "Request")]
    pub body: Option<String>,

    /// Requests from a file in vegeta's HTTP or JSON form, in turn by weight (`# weight: 3` before a target).
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["url", "method", "body"],
        help_heading = "Request"
    )]
    pub targets: Option<PathBuf>,

    /// Statuses that count as good: 200, 2xx, 200-299, 200,404 [default: below 400].
    #[arg(long, value_name = "SET", help_heading = "Checks")]
    pub expect_status: Option<StatusSet>,

    /// Text that every body must contain.
    #[arg(long, value_name = "TEXT", help_heading = "Checks")]
    pub expect_body_contains: Option<String>,

    /// Digest of every body, in hexadecimal.
    #[arg(long, value_name = "HEX", help_heading = "Checks")]
    pub expect_sha256: Option<Sha256Digest>,

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

    /// Where the arrival of an answer is stamped.
    #[arg(long, value_enum, value_name = "WHERE", default_value = "kernel", help_heading = "Limits")]
    pub stamps: StampsArg,

    /// Folder of the record [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Print the result as JSON (formats/run.schema.json).
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// No line a second on standard error.
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,

    /// No colours, as with NO_COLOR set.
    #[arg(long, help_heading = "Output")]
    pub no_color: bool,
}

/// A time limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub Option<Nanos>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StampsArg {
    /// By the kernel, as packets arrive.
    Kernel,
    /// When the client reads it.
    Read,
}

fn count(text: &str) -> Result<u64, String> {
    match units::parse_count(text) {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

fn positive(text: &str) -> Result<Nanos, String> {
    match text.parse() {
        Ok(Nanos::ZERO) => Err("must be longer than 0".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

fn drain(text: &str) -> Result<Limit, String> {
    // Unlike a limit, it may be 0: nothing is waited for.
    if text == "off" {
        return Ok(Limit(None));
    }
    text.parse().map(|time| Limit(Some(time))).map_err(|error: units::ParseError| format!("{error}, or off"))
}

fn limit(text: &str) -> Result<Limit, String> {
    if text == "off" {
        return Ok(Limit(None));
    }
    positive(text).map(|time| Limit(Some(time))).map_err(|error| format!("{error}, or off"))
}
