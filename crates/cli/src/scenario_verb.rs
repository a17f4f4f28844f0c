//! `parallax scenario`: checks a scenario file without running it, creates a new one, and converts pgbench scripts.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::ValueHint;
use run::options::GivenOptions;
use run::prepare::{PreparedRun, prepare};
use scenario::pgbench;

use crate::drive;
use crate::environment::Process;
use crate::exit::Exit;
use crate::output::printed;

/// Create, check or describe scenario files, and convert pgbench scripts.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Write an example scenario with a page, a journey and checks, which runs against `parallax serve`.
    Init {
        /// File to write; an existing file is never overwritten.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "scenario.toml")]
        file: PathBuf,
    },
    /// Check a scenario and all files it uses, and print what it would send first.
    Check {
        /// Scenario file (TOML).
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,

        /// Change a value: run.rate=500/s, vars.user=ann; repeat it for more.
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,

        /// Number of journeys to print, with all their steps.
        #[arg(short = 'n', long, value_name = "N", default_value = "5")]
        journeys: u64,
    },
    /// Convert pgbench scripts to a scenario file, on standard output. Takes \set with whole numbers and random functions,
    /// \sleep, and statements; names the line of anything else.
    FromPgbench(FromPgbench),
    /// Print the JSON Schema of scenario files, for editors.
    Schema,
}

#[derive(Debug, clap::Args)]
struct FromPgbench {
    /// pgbench script, with its weight relative to the others [default: 1].
    #[arg(value_name = "FILE[@WEIGHT]", value_hint = ValueHint::FilePath, required = true, value_parser = pgbench::weighted)]
    scripts: Vec<pgbench::PgbenchScript>,

    /// URL of the server and database, without a password.
    #[arg(long, value_name = "URL", default_value = "postgres://postgres@127.0.0.1/postgres")]
    url: String,

    /// Value of the variable :scale.
    #[arg(short = 's', long, value_name = "N", default_value = "1")]
    scale: u32,

    /// Value of another variable; repeat it for more.
    #[arg(short = 'D', long, value_name = "NAME=NUMBER", value_parser = pgbench::variable)]
    define: Vec<(String, i64)>,

    /// Prepare each statement once per connection, as `pgbench -M prepared`.
    #[arg(long)]
    prepared: bool,
}

/// Runs the verb.
///
/// # Errors
///
/// The first error in the file, with its place.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.what {
        What::Init { file } => init(file),
        What::Check { file, set, journeys } => check(file, set, *journeys),
        What::FromPgbench(args) => from_pgbench(args),
        What::Schema => {
            printed(write!(io::stdout(), "{}", scenario::SCHEMA))?;
            Ok(Exit::Done)
        }
    }
}

/// The contents of a new scenario: a shipped one, so that tests run it.
const START: &str = include_str!("../../../scenarios/start.toml");
const SHIPPED_AS: &str = "start.toml";

/// Never overwrites an existing file.
fn init(file: &Path) -> anyhow::Result<Exit> {
    let shown = file.display();
    ensure!(
        file.extension().is_some_and(|ending| ending == "toml"),
        "`{shown}` does not end in .toml, by which `parallax drive` recognizes a scenario; add .toml"
    );
    let mut created = File::create_new(file)
        .with_context(|| format!("cannot create the scenario `{shown}`; give the name of a new file"))?;
    // The text mentions its own file name.
    let text = START.replace(SHIPPED_AS, &file.file_name().unwrap_or_default().to_string_lossy());
    created.write_all(text.as_bytes()).with_context(|| format!("cannot write `{shown}`"))?;
    let shown = record::escape_text(&shown.to_string());
    printed(writeln!(
        io::stdout(),
        "Wrote {shown}. Next: run `parallax serve` in one terminal and `parallax drive {shown}` in another"
    ))?;
    Ok(Exit::Done)
}

fn from_pgbench(args: &FromPgbench) -> anyhow::Result<Exit> {
    let variables = [&[("scale".to_owned(), i64::from(args.scale))], &args.define[..]].concat();
    let mut scripts = args.scripts.clone();
    for script in &mut scripts {
        let text = File::open(&script.name).and_then(|file| units::read_text_at_most(file, 1 << 20));
        script.text = text.with_context(|| format!("cannot read the script `{}`", script.name))?;
    }
    let url = database::without_password(&args.url);
    printed(write!(io::stdout(), "{}", pgbench::scenario(&scripts, &url, &variables, args.prepared)?))?;
    Ok(Exit::Done)
}

/// Uses the same code as `drive FILE --dry-run`, so that what passes here runs there.
fn check(file: &Path, sets: &[String], journeys: u64) -> anyhow::Result<Exit> {
    let prepared = prepared(file, sets)?;
    let exit = drive::show(&prepared, journeys)?;
    crate::output::report_line(format_args!("{}: OK", file.display()));
    Ok(exit)
}

fn prepared(file: &Path, sets: &[String]) -> anyhow::Result<PreparedRun> {
    let mut given = GivenOptions::default();
    given.set("url", [file.to_string_lossy()]);
    if !sets.is_empty() {
        given.set("set", sets);
    }
    prepare(&run::scenario_file::merge(&given)?.spec, &Process::new().environment())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a user's first scenario does not run, or their second overwrites it.
    #[test]
    fn a_scenario_to_begin_with_passes_the_check_and_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        init(&file).unwrap();
        prepared(&file, &[]).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("parallax drive mine.toml") && !text.contains(SHIPPED_AS), "{text}");
        std::fs::write(&file, "mine").unwrap();
        assert!(init(&file).unwrap_err().to_string().contains("give the name of a new file"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        assert!(init(&folder.path().join("mine")).is_err());
    }

    /// If this fails, a shipped example is refused.
    #[test]
    fn the_scenarios_that_are_shipped_pass_the_check() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        for name in ["start.toml", "mix.toml", "shop.toml"] {
            prepared(&folder.join(name), &[]).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
    }
}
