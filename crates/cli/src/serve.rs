//! `parallax serve`: the built-in reference server in the foreground.

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Context;
use clap::ValueHint;
use target::{Freeze, Options, Server, Truth};
use units::{Nanos, parse_count};

use crate::exit::Exit;
use crate::signals;

/// How often the stop flag is checked.
const STOP_EVERY: Nanos = Nanos::from_millis(50);

/// 80 megabytes of address space; memory that is not used is not allocated.
const MOST_ARRIVALS: usize = 10_000_000;

/// How many planned freezes are printed at the start.
const FREEZES_SHOWN: usize = 5;

/// Run the reference server, with known delays and faults, to test load generators against.
///
/// `/` lists what it serves: plain text, JSON, delays, slow bodies, statuses, sizes, and faults on demand. `/truth`
/// reports what it really did, with the exact distribution of the time from the arrival of a request in the kernel to
/// the last byte of its response.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address and port to listen on, or a port on 127.0.0.1; port 0 picks a free one.
    #[arg(short = 'l', long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,

    /// Threads, each with its own listening socket.
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    threads: u64,

    /// Length of the listen queue: connections that wait to be accepted.
    #[arg(long, value_name = "N", default_value = "4096")]
    backlog: i32,

    /// Freeze the whole server for this long, on a schedule printed at the start.
    #[arg(long, value_name = "TIME", requires = "freeze_every")]
    freeze: Option<Nanos>,

    /// Time from the start of one freeze to the start of the next.
    #[arg(long, value_name = "TIME", requires = "freeze")]
    freeze_every: Option<Nanos>,

    /// Time until the first freeze [default: as --freeze-every].
    #[arg(long, value_name = "TIME", requires = "freeze")]
    freeze_first: Option<Nanos>,

    /// Number of freezes [default: unlimited].
    #[arg(long, value_name = "N", requires = "freeze", value_parser = at_least_one)]
    freeze_count: Option<u64>,

    /// At the end, write the arrival time of each request to this file (at most ten million): one line per request,
    /// when it arrived in this host's kernel, in nanoseconds on the monotonic clock.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    arrivals: Option<PathBuf>,

    /// On Ctrl-C, print everything that /truth reports as JSON, instead of a summary.
    #[arg(long)]
    json: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| "not an address; write ADDRESS:PORT, [ADDRESS]:PORT or PORT".to_owned())
}

/// Serves until Ctrl-C.
///
/// # Errors
///
/// When the server cannot be started: address, permission, limits.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let server = Server::start(options(args))?;
    let stop = signals::stop_flag()?;
    let mut out = io::stdout();
    announce(&server, &mut out)?;
    while !stop.load(Ordering::Relaxed) {
        clock::sleep_until(clock::now() + STOP_EVERY);
    }
    let truth = server.stop();
    if let Some(path) = &args.arrivals {
        write_arrivals(&truth, path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        writeln!(out, "{}", truth.to_json())?
    } else {
        summarize(&truth, &mut out)?
    }
    Ok(Exit::Done)
}

fn options(args: &Args) -> Options {
    let freeze = args.freeze.zip(args.freeze_every).map(|(length, every)| Freeze {
        length,
        every,
        first: args.freeze_first.unwrap_or(every),
        count: args.freeze_count,
    });
    Options {
        listen: args.listen,
        threads: args.threads as usize,
        backlog: args.backlog,
        freeze,
        arrivals_kept: if args.arrivals.is_some() { MOST_ARRIVALS } else { 0 },
        ..Options::default()
    }
}

fn announce(server: &Server, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "listening on http://{}", server.local_addr())?;
    for (begin, end) in server.freeze_schedule(FREEZES_SHOWN) {
        let offset = begin.saturating_sub(server.started());
        writeln!(out, "freeze at {offset} for {}, on the monotonic clock {} ns", end - begin, begin.0)?;
    }
    out.flush()
}

fn write_arrivals(truth: &Truth, path: &Path) -> io::Result<()> {
    let mut file = io::BufWriter::new(File::create(path)?);
    for arrival in truth.arrivals() {
        writeln!(file, "{}", arrival.0)?;
    }
    file.flush()
}

fn summarize(truth: &Truth, out: &mut dyn Write) -> io::Result<()> {
    let connections = truth.connections();
    writeln!(
        out,
        "{} requests, {} responses, {} ended by a fault, {} abandoned; {} connections accepted",
        truth.requests(),
        truth.responses(),
        truth.ended_by_fault(),
        truth.abandoned(),
        connections.accepted
    )?;
    let response = truth.response();
    if let Some((mean, max)) = response.mean().zip(response.max()) {
        writeln!(out, "arrival to last write: {} responses, mean {mean}, max {max}", response.count())?;
    }
    Ok(())
}

fn at_least_one(text: &str) -> Result<u64, String> {
    match parse_count(text) {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}
