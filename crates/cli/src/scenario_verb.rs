//! `parallax scenario`: looks at a scenario file without driving it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, ValueHint};

use crate::drive::{self, scenario_file};
use crate::exit::Exit;
use crate::printed;

/// Look at a scenario file without driving it.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Read a scenario with all the files that it names, and print what it would send first.
    Check {
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,

        /// Change it: run.rate=500/s, vars.user=ann; may be given again.
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,

        /// Journeys to print, with all their steps.
        #[arg(short = 'n', long, value_name = "N", default_value = "5")]
        journeys: u64,
    },
    /// Print the JSON Schema of scenario files, for editors.
    Schema,
}

/// Runs the verb.
///
/// # Errors
///
/// The first thing that is wrong with the file, with its place.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.what {
        What::Check { file, set, journeys } => check(file, set, *journeys),
        What::Schema => {
            printed(writeln!(io::stdout(), "{:#}", scenario::schema()))?;
            Ok(Exit::Done)
        }
    }
}

/// Through the same door as `drive FILE --dry-run`, so that what passes here runs there.
fn check(file: &std::path::Path, sets: &[String], journeys: u64) -> anyhow::Result<Exit> {
    let command = crate::Cli::command();
    let command = command.find_subcommand("drive").expect("drive is a verb of this program");
    let line: [OsString; 2] = ["drive".into(), file.into()];
    let matches = command.clone().try_get_matches_from(line).context("cannot name this file")?;
    drive::Args::from_arg_matches(&matches).context("cannot name this file")?;
    let mut loaded = scenario_file::load(file.to_owned(), command, &matches, sets)?;
    drive::show(&drive::prepare_scenario(&mut loaded)?, journeys)
}
