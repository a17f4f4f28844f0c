//! `parallax lab`: experiments from a file: planned, carried out, resumed and reported.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::ValueHint;
use comparison::{Progress, combined_view, compare_combinations};
use lab::experiment::{
    Choice, Experiment, Reruns, Results, SCHEMA, START, Selection, SessionEnd, carry_on, create, results,
    results_against, set_aside_invalid, status,
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
        What::Init { file } => init(file),
        What::Plan { file, from } => {
            let (experiment, _) = read(file)?;
            let forecast = experiment.forecast(from.as_deref())?;
            printed(write!(io::stdout(), "{}", forecast.text(&experiment)))?;
            Ok(Exit::Done)
        }
        What::Run { file, output, shown } => {
            let (experiment, text) = read(file)?;
            let folder = output.clone().unwrap_or_else(|| named_folder(&experiment.name));
            create(&experiment, file, &text, &folder)?;
            carry_out(&folder, shown)
        }
        What::Resume { folder, shown } => carry_out(folder, shown),
        What::Rerun { folder, shown } => {
            rerun(&set_aside_invalid(folder)?, shown);
            carry_out(folder, shown)
        }
        What::Status { folder } => {
            printed(write!(io::stdout(), "{}", status(folder)?.text()))?;
            Ok(Exit::Done)
        }
        What::Report { folder, choices, shown } => report(results(folder, &choices.selection())?, shown),
        What::Compare { folder, to, choices, shown } => {
            let (results, notes) = results_against(folder, to, &choices.selection())?;
            notes.iter().for_each(report_line);
            report(results, shown)
        }
        What::Export { folder, output } => {
            let exported = lab::experiment::export(folder, output)?;
            printed(writeln!(io::stdout(), "{exported}"))?;
            Ok(Exit::Done)
        }
        What::Schema => {
            printed(write!(io::stdout(), "{SCHEMA}"))?;
            Ok(Exit::Done)
        }
        What::Guard => {
            lab::guard().context("cannot guard")?;
            Ok(Exit::Done)
        }
    }
}

/// Never overwrites an existing file.
fn init(file: &Path) -> anyhow::Result<Exit> {
    let shown = file.display();
    let mut created = File::create_new(file)
        .with_context(|| format!("cannot create the experiment `{shown}`; give the name of a new file"))?;
    // The text mentions its own file name.
    let text = START.replace("start.toml", &file.file_name().unwrap_or_default().to_string_lossy());
    created.write_all(text.as_bytes()).with_context(|| format!("cannot write `{shown}`"))?;
    let shown = record::escape_text(&shown.to_string());
    printed(writeln!(
        io::stdout(),
        "Wrote {shown}. Next: `parallax lab plan {shown}`, then `parallax lab run {shown}`"
    ))?;
    Ok(Exit::Done)
}

/// The largest experiment file.
const LONGEST: u64 = 1 << 20;

fn read(file: &Path) -> anyhow::Result<(Experiment, String)> {
    let shown = file.display();
    let length = fs::metadata(file).with_context(|| format!("cannot read `{shown}`"))?.len();
    ensure!(length <= LONGEST, "`{shown}` is no experiment: it has more than {LONGEST} bytes");
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{shown}`"))?;
    let experiment = Experiment::read(&shown.to_string(), &text).map_err(anyhow::Error::msg)?;
    Ok((experiment, text))
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

/// Tells which runs are made again, and why.
fn rerun(reruns: &Reruns, shown: &ShownArgs) {
    if shown.quiet {
        return;
    }
    for (run, fault) in &reruns.again {
        let why = fault.as_deref().unwrap_or("it is compared with one of these");
        report_line(format_args!("run {run} is made again: {why}"));
    }
    for run in &reruns.given_up {
        report_line(format_args!("run {run} was made again three times, and stays as it is"));
    }
    if reruns.again.is_empty() && reruns.given_up.is_empty() {
        report_line(format_args!("no run failed or is invalid"));
    }
}

/// The report, and 3 if nothing has figures.
fn report(results: Results, shown: &ShownArgs) -> anyhow::Result<Exit> {
    let progress = Progress {
        name: results.name.clone(),
        planned: results.planned,
        committed: results.committed,
        failures: results.failures.clone(),
    };
    let combined = match compare_combinations(results.cells, &results.settings) {
        Ok(combined) => combined,
        Err(why) => {
            let causes: Vec<String> =
                results.failures.iter().map(|(cause, count)| format!("{count}x {cause}")).collect();
            report_line(format_args!(
                "{why}: {} of {} runs; {}",
                progress.committed,
                progress.planned,
                causes.join("; ")
            ));
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
