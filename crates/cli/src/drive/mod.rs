//! `parallax drive`: options to a spec, a run of it, and what is printed.

mod args;
mod calibrate;
mod connect_args;
mod given;
mod search;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::{ArgMatches, Command, CommandFactory};
use engine::Controls;
use findings::RunRecord;
use report::Style;
use run::conduct::{CompletedRun, Conduct, conduct};
use run::folder::new_folder;
use run::options::GivenOptions;
use run::prepare::{PreparedRun, prepare};
use run::spec::RunSpec;

pub use self::args::Args;
use self::given::Mode;
pub use self::given::typed;
use crate::environment::Process;
use crate::exit::Exit;
use crate::explain_verb;
use crate::progress::Shown;
use crate::{printed, report_line, signals, terminal};

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing has been sent then.
pub fn run(args: &Args, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let command = crate::Cli::command();
    let command = command.find_subcommand("drive").expect("drive is a verb of this program");
    let given = merged(args, command, matches)?;
    let mode = mode(args, &given)?;
    mode.check(&given)?;
    match mode {
        Mode::Calibrate => calibrate::run(&given),
        Mode::Search => search::run(args, given, given::other_options(command, matches)),
        Mode::Run | Mode::Scenario => one_run(args, &given, command, matches),
    }
}

/// The options given on the command line, which override those of a spec.
fn merged(args: &Args, command: &Command, matches: &ArgMatches) -> anyhow::Result<GivenOptions> {
    let typed = given::given(command, matches);
    let Some(path) = &args.spec else { return Ok(typed) };
    let text = match path.as_str() {
        "-" => io::read_to_string(io::stdin()),
        path => fs::read_to_string(path),
    };
    let text = text.with_context(|| format!("cannot read the spec `{path}`"))?;
    let mut given = RunSpec::from_json(&text).with_context(|| format!("`{path}`"))?.given();
    given.0.extend(typed.0);
    Ok(given)
}

fn mode(args: &Args, given: &GivenOptions) -> anyhow::Result<Mode> {
    let urls = given.0.get("url").map_or(&[][..], |url| &url.texts);
    let is_scenario = given::names_scenario(urls)?;
    for (is_set, option) in [(args.dry_run, "--dry-run"), (args.print_spec, "--print-spec")] {
        ensure!(
            !(is_set && args.calibrate),
            "{option} cannot be used with --calibrate, which makes several runs"
        );
        ensure!(
            !(is_set && args.search.is_some()),
            "{option} cannot be used with --search, which makes several runs"
        );
    }
    ensure!(
        !(args.calibrate && args.search.is_some()),
        "--search cannot be used with --calibrate, which makes its own search"
    );
    if args.calibrate {
        return Ok(Mode::Calibrate);
    }
    ensure!(
        !urls.is_empty() || given.has("targets"),
        "nothing to request; give a URL, a scenario file that ends in .toml, --targets FILE or --spec FILE; see --help"
    );
    if args.search.is_some() {
        return Ok(Mode::Search);
    }
    ensure!(is_scenario || !args.dry_run, "--dry-run needs a scenario; give a file that ends in .toml");
    Ok(if is_scenario { Mode::Scenario } else { Mode::Run })
}

/// The number of journeys that `--dry-run` prints: enough to see a mix and its data; `scenario check -n` prints more.
const JOURNEYS_SHOWN: u64 = 5;

fn one_run(
    args: &Args,
    given: &GivenOptions,
    command: &Command,
    matches: &ArgMatches,
) -> anyhow::Result<Exit> {
    // The `[run]` part of a scenario file is part of its spec.
    let spec = if given.names_scenario() { run::scenario_file::merge(given)?.spec } else { given.spec()? };
    let process = Process::new();
    let environment = process.environment();
    let prepared = prepare(&spec, &environment)?;
    if args.print_spec {
        printed(writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&spec)?))?;
        return Ok(Exit::Done);
    }
    if args.dry_run {
        return show(&prepared, JOURNEYS_SHOWN);
    }
    let output = &prepared.spec.output;
    let folder = output.folder.as_ref().map_or_else(new_folder, PathBuf::from);
    let controls = Arc::new(Controls::new(signals::stop_flag()?));
    let mut progress = Shown::of(&prepared.spec, &controls);
    let is_plain = matches!(progress, Shown::Lines);
    let with = Conduct {
        folder: &folder,
        options: given::other_options(command, matches),
        environment: &environment,
        progress: &mut progress,
        controls: &controls,
    };
    let completed = conduct(&prepared, with)?;
    if let Some(profile) = &completed.profile {
        match profile {
            Ok(folder) => report_line(format_args!("profile: {}", folder.display())),
            Err(error) => report_line(format_args!("--profile: {error:#}")),
        }
    }
    if !output.json && is_plain {
        let _ = writeln!(io::stderr());
    }
    printed(print(&prepared.spec, &completed))?;
    conclude(&prepared.spec, completed)
}

/// Prints what a scenario would send.
pub fn show(prepared: &PreparedRun, units: u64) -> anyhow::Result<Exit> {
    let scenario = prepared.protocol.scenario();
    let text = scenario.map_or_else(String::new, |scenario| scenario.preview(units, &run::secrets::header));
    printed(io::stdout().write_all(text.as_bytes()))?;
    Ok(Exit::Done)
}

/// Explains where the time went, once both records are complete. If the server's record was lost, the run still counts.
fn explain(spec: &RunSpec, client: &Path, server: PathBuf) -> anyhow::Result<()> {
    if spec.output.json || spec.sinks.to_stdout() {
        report_line(format_args!(
            "to explain them together: parallax explain {} {}",
            client.display(),
            server.display()
        ));
        return Ok(());
    }
    explain_verb::print(&[client.to_owned(), server], spec.output.no_color)
}

fn print(spec: &RunSpec, completed: &CompletedRun) -> io::Result<()> {
    let view = findings::run_view(&record_of(completed));
    if spec.sinks.to_stdout() {
        // Standard output has the rows of the seconds: the report makes way.
        let style = Style { details: spec.output.verbose, ..Style::PLAIN };
        return report::text(&view, &mut io::stderr(), style);
    }
    let mut out = io::stdout();
    if spec.output.json {
        return report::json(&completed.document, &mut out);
    }
    let style = Style { details: spec.output.verbose, ..terminal::style(&out, spec.output.no_color) };
    report::text(&view, &mut out, style)
}

/// What the report of a run is made from.
pub fn record_of(completed: &CompletedRun) -> RunRecord<'_> {
    RunRecord { document: &completed.document, seconds: &completed.seconds, folder: Some(&completed.folder) }
}

/// The exit code of a run, or the error that takes its place. Called after the report was printed, so that an error
/// hides no result.
///
/// # Errors
///
/// When the record is incomplete.
pub fn conclude(spec: &RunSpec, completed: CompletedRun) -> anyhow::Result<Exit> {
    if let Some(Err(error)) = completed.server.map(|server| explain(spec, &completed.folder, server?)) {
        report_line(format_args!("--watch: {error:#}"));
    }
    if let Some(error) = completed.aborted {
        report_line(error);
    }
    for warning in &completed.warnings {
        report_line(warning);
    }
    match completed.write_error {
        Some(error) => Err(error).context("the record is incomplete"),
        None => Ok(Exit::of(&completed.document)),
    }
}
