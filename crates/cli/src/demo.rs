//! `parallax demo`: a pool that is too small, and the timer around it that blames the server.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser};
use engine::Controls;
use findings::RunRecord;
use target::{Options, Server};

use crate::drive;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::{printed, signals, terminal};

/// Show, in under 20 seconds, how a connection pool makes a timer lie.
///
/// Starts the built-in server on a free port of this host, drives it with four callers over two connections, and
/// prints what an interceptor around the pool would have said, what the request took, and what the pool cost.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server answers after 200 ms instead of 2 s.
    #[arg(long)]
    fast: bool,

    /// Folder of the record [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// No colours, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,
}

/// Runs the verb.
///
/// # Errors
///
/// When the server cannot be started or the record not be kept.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let server = Server::start(Options::default())?;
    let controls = Controls::new(signals::stop_flag()?);
    let delay = if args.fast { "0.2" } else { "2" };
    let url = format!("http://{}/delay/{delay}", server.local_addr());
    // Through the same door as everybody: what the demo does can be typed.
    let line = ["parallax", "-c", "2", "--callers", "4", "-n", "16", "--quiet", &url];
    let command = DriveLine::command();
    let matches = command.clone().try_get_matches_from(line)?;
    let prepared = drive::prepare(&DriveLine::from_arg_matches(&matches)?.args)?;
    let folder = args.output.clone().unwrap_or_else(drive::new_folder);
    let options = drive::effective(&command, &matches, &prepared, &folder);
    let mut out = io::stdout();
    let style = terminal::style(&out, args.no_color);
    // Not on standard output: there the verdict comes first.
    let _ = writeln!(
        io::stderr(),
        "16 requests from 4 callers over 2 connections to a server that answers after {delay} s: {}",
        if args.fast { "about 2 s" } else { "about 16 s" }
    );
    let conducted = drive::conduct(&prepared, options, &folder, Progress::Quiet, &controls)?;
    drop(server);
    let run = RunRecord {
        document: &conducted.document,
        seconds: &conducted.seconds,
        folder: Some(&conducted.folder),
    };
    printed(report::text(&findings::demo_view(&run), &mut out, style))?;
    drive::conclude(conducted)
}

#[derive(Debug, Parser)]
struct DriveLine {
    #[command(flatten)]
    args: drive::Args,
}
