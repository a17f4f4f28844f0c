//! `parallax lab`: experiments from a file: planned, carried out, resumed and reported.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueHint;
use comparison::{combined_view, compare_combinations};
use lab::experiment::{
    Choice, Experiment, Results, SCHEMA, Selection, SessionEnd, carry_on, create, results, results_against,
    set_aside_invalid, status,
};
use run::folder::new_folder;

use crate::exit::Exit;
use crate::output::{printed, report_line};
use crate::{records, signals, terminal};

/// Run experiments: servers, loads and everything that varies, from a file, with a verdict at the end.
///
/// Each combination of values runs once per block, in random order, with a fresh server for each run. A server that
/// does not start or answers wrongly makes a failed run, and the plan goes on. After a crash, `lab resume` continues.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax lab init
  parallax lab plan experiment.toml
  parallax lab run experiment.toml -o runs/first
  parallax lab resume runs/first
  parallax lab report runs/first --without clients=64
  parallax lab compare runs/first --to runs/second
  parallax lab export runs/first -o tables")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Write an example experiment with two arms, which runs against `parallax serve`.
    Init {
        /// File to write; an existing file is never overwritten.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "experiment.toml")]
        file: PathBuf,
    },
    /// Print every run in its order, with its commands and expected time, and what the comparisons can show. Starts
    /// nothing.
    Plan {
        /// Experiment file (TOML).
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,

        /// Directory of an earlier run of the same experiment, whose times are taken.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        from: Option<PathBuf>,
    },
    /// Carry out an experiment and print its report.
    Run {
        /// Experiment file (TOML).
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,

        /// New directory for the experiment [default: in parallax-runs/].
        #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        output: Option<PathBuf>,

        #[command(flatten)]
        shown: ShownArgs,
    },
    /// Continue an experiment that was interrupted or crashed, and print its report.
    Resume {
        /// Directory of the experiment.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,

        #[command(flatten)]
        shown: ShownArgs,
    },
    /// Make the runs again that failed or are invalid, with those that they are compared with, at most three times each.
    Rerun {
        /// Directory of the experiment.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,

        #[command(flatten)]
        shown: ShownArgs,
    },
    /// Print how far an experiment has come, and which runs failed.
    Status {
        /// Directory of the experiment.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Print the report of an experiment, as far as it has come.
    Report {
        /// Directory of the experiment.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,

        #[command(flatten)]
        choices: ChoiceArgs,

        #[command(flatten)]
        shown: ShownArgs,
    },
    /// Compare an experiment with an earlier one, at each combination of values that both have.
    Compare {
        /// Directory of the experiment that is the base.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,

        /// Directory of the other experiment.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        to: PathBuf,

        #[command(flatten)]
        choices: ChoiceArgs,

        #[command(flatten)]
        shown: ShownArgs,
    },
    /// Write the runs and their seconds as tables, CSV and Parquet, for DuckDB, pandas or R.
    Export {
        /// Directory of the experiment.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,

        /// New directory for the files.
        #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        output: PathBuf,
    },
    /// Print the JSON Schema of experiment files, for editors.
    Schema,
    /// Ends what the experiment runs if that is killed.
    #[command(hide = true)]
    Guard,
}

#[derive(Debug, clap::Args)]
struct ChoiceArgs {
    /// Only runs with these values of a factor: FACTOR=VALUE[,VALUE...]. May be given once per factor.
    #[arg(long = "where", value_name = "CHOICE")]
    only: Vec<Choice>,

    /// Leave out the runs with these values of a factor.
    #[arg(long, value_name = "CHOICE")]
    without: Vec<Choice>,
}

impl ChoiceArgs {
    fn selection(&self) -> Selection {
        Selection { only: self.only.clone(), without: self.without.clone() }
    }
}

#[derive(Debug, clap::Args)]
struct ShownArgs {
    /// Print the report as JSON (formats/view.schema.json).
    #[arg(long)]
    json: bool,

    /// Print the report as Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Print all metrics, also those that the experiment does not name.
    #[arg(short, long)]
    verbose: bool,

    /// Suppress progress output.
    #[arg(short, long)]
    quiet: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,
}

/// Runs the verb.
///
/// # Errors
///
/// The first mistake of the file with its place; a directory that is none of an experiment.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.what {
        What::Init { file } => say(&lab::experiment::init(file)?),
        What::Plan { file, from } => {
            let (experiment, _) = Experiment::read_file(file)?;
            say(experiment.forecast(from.as_deref())?.text(&experiment).trim_end())
        }
        What::Run { file, output, shown } => {
            let (experiment, text) = Experiment::read_file(file)?;
            let folder = output.clone().unwrap_or_else(|| named_folder(&experiment.name));
            create(&experiment, file, &text, &folder)?;
            carry_out(&folder, shown)
        }
        What::Resume { folder, shown } => carry_out(folder, shown),
        What::Rerun { folder, shown } => {
            let reruns = set_aside_invalid(folder)?;
            reruns.lines().iter().filter(|_| !shown.quiet).for_each(report_line);
            carry_out(folder, shown)
        }
        What::Status { folder } => say(status(folder)?.text().trim_end()),
        What::Report { folder, choices, shown } => report(results(folder, &choices.selection())?, shown),
        What::Compare { folder, to, choices, shown } => {
            let (results, notes) = results_against(folder, to, &choices.selection())?;
            notes.iter().for_each(report_line);
            report(results, shown)
        }
        What::Export { folder, output } => say(&lab::experiment::export(folder, output)?.to_string()),
        What::Schema => say(SCHEMA.trim_end()),
        What::Guard => {
            lab::guard().context("cannot guard")?;
            Ok(Exit::Done)
        }
    }
}

fn say(text: &str) -> anyhow::Result<Exit> {
    printed(writeln!(io::stdout(), "{text}"))?;
    Ok(Exit::Done)
}

/// `parallax-runs/20260102-030405-77-NAME`
fn named_folder(name: &str) -> PathBuf {
    let mut folder = new_folder().into_os_string();
    folder.push(format!("-{name}"));
    folder.into()
}

fn carry_out(folder: &Path, shown: &ShownArgs) -> anyhow::Result<Exit> {
    let program = std::env::current_exe().context("cannot find the parallax binary")?;
    let stop = signals::stop_flag()?;
    let mut say = |line: &str| {
        if !shown.quiet {
            let _ = writeln!(io::stderr(), "{}", units::escape_text(line));
        }
    };
    match carry_on(folder, &program, &stop, &mut say)? {
        SessionEnd::Complete => report(results(folder, &Selection::default())?, shown),
        SessionEnd::Interrupted => {
            report_line(format_args!(
                "interrupted; continue with `parallax lab resume {}`",
                folder.display()
            ));
            Ok(Exit::Interrupted)
        }
    }
}

/// The report, and 3 if nothing has figures.
fn report(results: Results, shown: &ShownArgs) -> anyhow::Result<Exit> {
    let progress = results.progress();
    let combined = match compare_combinations(results.cells, &results.settings) {
        Ok(combined) => combined,
        Err(why) => {
            report_line(format_args!("{why}: {progress}"));
            return Ok(Exit::Invalid);
        }
    };
    let mut view = combined_view(&combined, &progress);
    if !shown.verbose && !shown.json {
        view.sections.retain(|section| !section.detail);
    }
    let mut out = io::stdout();
    if shown.markdown {
        printed(report::markdown(&view, &mut out))?;
    } else {
        let style = terminal::style(&out, shown.no_color);
        records::print(&view, shown.json, &mut out, style)?;
    }
    Ok(Exit::Done)
}
