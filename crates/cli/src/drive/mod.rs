//! `parallax drive`: options to a plan, a run, its record, and what it says.

mod args;
mod conduct;
mod folder;
mod options;
mod plan;
mod secrets;

use std::io::{self, Write};

use anyhow::Context;
use clap::{ArgMatches, CommandFactory};
use report::Report;

pub use self::args::Args;
pub use self::conduct::{Conducted, Progress, conduct};
pub use self::folder::new_folder;
pub use self::options::effective;
pub use self::plan::prepare;
use crate::exit::Exit;
use crate::{printed, signals, terminal};

/// Runs the verb.
///
/// # Errors
///
/// Usage and environment, in one line each; nothing has been sent then.
pub fn run(args: &Args, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let prepared = prepare(args)?;
    let command = crate::Cli::command();
    let command = command.find_subcommand("drive").expect("drive is a verb of this program");
    let folder = args.output.clone().unwrap_or_else(new_folder);
    let options = effective(command, matches, &prepared, &folder);
    let stop = signals::stop_flag()?;
    let progress = if args.quiet { Progress::Quiet } else { Progress::Lines };
    let conducted = conduct(&prepared, options, &folder, progress, &stop)?;
    if !args.json && progress == Progress::Lines {
        let _ = writeln!(io::stderr());
    }
    printed(print(args, &conducted))?;
    conclude(conducted)
}

fn print(args: &Args, conducted: &Conducted) -> io::Result<()> {
    let mut out = io::stdout();
    if args.json {
        return report::json(&conducted.document, &mut out);
    }
    let style = terminal::style(&out, args.no_color);
    let report = Report {
        document: &conducted.document,
        seconds: &conducted.seconds,
        folder: Some(&conducted.folder),
    };
    report::text(&report, &mut out, style)
}

/// The exit code of a run, or why it has none: told after the report, so that nothing measured is lost to it.
pub fn conclude(conducted: Conducted) -> anyhow::Result<Exit> {
    if let Some(error) = conducted.broken {
        let _ = writeln!(io::stderr(), "parallax: {error}");
    }
    match conducted.damage {
        Some(error) => Err(error).context("the record is incomplete"),
        None => Ok(Exit::of(&conducted.document)),
    }
}
