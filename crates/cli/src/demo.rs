//! `parallax demo`: a connection pool that is too small, and a timer around it that blames the server.

use std::io::{self, Write};
use std::path::PathBuf;

use engine::Controls;
use run::conduct::{Conduct, Quiet, conduct};
use run::effective::EffectiveOptions;
use run::folder::new_folder;
use run::options::GivenOptions;
use run::prepare::prepare;
use target::{Options, Server};

use crate::drive;
use crate::environment::Process;
use crate::exit::Exit;
use crate::output::printed;
use crate::{signals, terminal};

/// Show, in under 20 seconds, how a connection pool makes a timer lie.
///
/// Starts the built-in server on a free port of this host, drives it with four virtual users over two connections, and
/// prints what an interceptor around the pool would report, what the request took, and what the pool cost.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server responds after 200 ms instead of 2 s.
    #[arg(long)]
    fast: bool,

    /// Results directory [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,
}

/// Runs the verb.
///
/// # Errors
///
/// When the server cannot be started or the record cannot be written.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let server = Server::start(Options::default())?;
    let controls = Controls::new(signals::stop_flag()?);
    let delay = if args.fast { "0.2" } else { "2" };
    let url = format!("http://{}/delay/{delay}", server.local_addr());
    // The same options as on the command line, so that a user can repeat what the demo does.
    let mut given = GivenOptions::default();
    for (name, text) in
        [("url", url.as_str()), ("connections", "2"), ("users", "4"), ("count", "12"), ("quiet", "true")]
    {
        given.set(name, [text]);
    }
    let spec = given.spec()?;
    let process = Process::new();
    let environment = process.environment();
    let prepared = prepare(&spec, &environment)?;
    let folder = args.output.clone().unwrap_or_else(new_folder);
    let mut out = io::stdout();
    let style = terminal::style(&out, args.no_color);
    // Not on standard output, which begins with the verdict.
    let _ = writeln!(
        io::stderr(),
        "12 requests from 4 virtual users over 2 connections to a server that responds after {delay} s: {}",
        if args.fast { "about 1 s" } else { "about 12 s" }
    );
    let with = Conduct {
        folder: &folder,
        options: EffectiveOptions::new(),
        environment: &environment,
        progress: &mut Quiet,
        controls: &controls,
    };
    let completed = conduct(&prepared, with)?;
    drop(server);
    printed(report::text(&findings::demo_view(&drive::record_of(&completed)), &mut out, style))?;
    drive::conclude(&prepared.spec, completed)
}
