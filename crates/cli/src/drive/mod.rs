//! `parallax drive`: from options to a spec, the run, and what is printed.

mod args;
mod calibrate;
mod connect_args;
mod database_args;
pub mod given;
mod search;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use engine::Controls;
use findings::RunRecord;
use record::record_mode::{self, RecordMode};
use report::Style;
use run::conduct::{CompletedRun, Conduct, conduct};
use run::effective::EffectiveOptions;
use run::folder::new_folder;
use run::mode::Mode;
use run::options::{GivenOptions, or_default};
use run::prepare::{PreparedRun, prepare};
use run::scenario_file::names_scenario;
use run::search::SearchRequest;
use run::spec::RunSpec;
use run::values::OnInvalid;
use units::read_text_at_most;

pub use self::args::Args;
pub use self::connect_args::{TlsArgs, text};
use crate::command_line::CommandLine;
use crate::environment::Process;
use crate::exit::Exit;
use crate::explain_verb;
use crate::output::{one_line, printed, report_line};
use crate::progress::Shown;
use crate::{signals, terminal};

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing has been sent then.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    let (given, order) = plan(args, line)?;
    record_mode::apply(given_record_mode(&given));
    match order {
        Order::Calibrate => calibrate::run(&given),
        Order::Search(request) => search::run(&request, given, given::other_options(line)),
        Order::PrintWorkload => print_workload(&given),
        Order::Run | Order::DryRun | Order::PrintSpec => one_run(&order, &given, line),
    }
}

/// What is done with the options of a run.
#[derive(Debug)]
pub enum Order {
    Run,
    /// Print the first journeys of a scenario.
    DryRun,
    /// Print the spec.
    PrintSpec,
    /// Print the scenario file of a built-in workload.
    PrintWorkload,
    Search(SearchRequest),
    Calibrate,
}

impl Order {
    fn mode(&self, given: &GivenOptions) -> Mode {
        match self {
            Order::Search(_) => Mode::Search,
            Order::Calibrate => Mode::Calibrate,
            _ => Mode::of(given),
        }
    }
}

/// The options, and what is done with them.
///
/// # Errors
///
/// One line for options that are not used, and for a spec that cannot be read.
pub fn plan(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<(GivenOptions, Order)> {
    let given = merged(args, line)?;
    let order = order(args, &given)?;
    order.mode(&given).check(&given)?;
    Ok((given, order))
}

/// The given permissions of a record; its text has been checked.
fn given_record_mode(given: &GivenOptions) -> Option<RecordMode> {
    given.0.get("record-mode")?.texts.last()?.parse().ok()
}

/// The options given on the command line, which override those of a spec.
fn merged(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<GivenOptions> {
    let typed = given::given(line);
    let Some(path) = &args.spec else { return Ok(typed) };
    let text = read_spec(path)?;
    let mut given = RunSpec::from_json(&text).with_context(|| format!("`{path}`"))?.given();
    given.0.extend(typed.0);
    Ok(given)
}

/// Maximum size of a spec.
const LARGEST_SPEC: u64 = 16 << 20;

fn read_spec(path: &str) -> anyhow::Result<String> {
    let text = match path {
        "-" => read_text_at_most(io::stdin(), LARGEST_SPEC),
        path => File::open(path).and_then(|file| read_text_at_most(file, LARGEST_SPEC)),
    };
    text.with_context(|| format!("cannot read the spec `{path}`"))
}

fn order(args: &Args, given: &GivenOptions) -> anyhow::Result<Order> {
    let urls = given.0.get("url").map_or(&[][..], |url| &url.texts);
    let is_scenario = names_scenario(urls)? || given.is_built_in();
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
        !(args.dry_run && args.print_spec),
        "--dry-run cannot be used with --print-spec: each prints something else, and sends nothing"
    );
    ensure!(
        !(args.calibrate && args.search.is_some()),
        "--search cannot be used with --calibrate, which makes its own search"
    );
    ensure!(
        !args.database.print_workload || given.has("workload"),
        "--print-workload needs --workload NAME, the workload to print"
    );
    if args.calibrate {
        return Ok(Order::Calibrate);
    }
    ensure!(
        !urls.is_empty() || given.has("targets"),
        "nothing to request; give a URL, a scenario file that ends in .toml, --targets FILE or --spec FILE; see --help"
    );
    if let Some(request) = search::request(args) {
        return Ok(Order::Search(request));
    }
    ensure!(is_scenario || !args.dry_run, "--dry-run needs a scenario; give a file that ends in .toml");
    Ok(match args {
        Args { dry_run: true, .. } => Order::DryRun,
        Args { print_spec: true, .. } => Order::PrintSpec,
        Args { database, .. } if database.print_workload => Order::PrintWorkload,
        _ => Order::Run,
    })
}

/// The number of journeys that `--dry-run` prints: enough to see a mix and its data; `scenario check -n` prints more.
const JOURNEYS_SHOWN: u64 = 5;

fn one_run(order: &Order, given: &GivenOptions, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    // The `[run]` part of a scenario file is part of its spec.
    let spec = if given.names_scenario() { run::scenario_file::merge(given)?.spec } else { given.spec()? };
    let process = Process::new();
    let environment = process.environment();
    let prepared = prepare(&spec, &environment)?;
    match order {
        Order::PrintSpec => {
            let spec = run::secrets::spec(&spec);
            printed(writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&spec)?))?;
            return Ok(Exit::Done);
        }
        Order::DryRun => return show(&prepared, JOURNEYS_SHOWN),
        _ => {}
    }
    let stop = signals::stop_flag()?;
    let mut attempt = 1;
    loop {
        let controls = Arc::new(Controls::new(Arc::clone(&stop)));
        let options = given::other_options(line);
        let exit = attempted(&prepared, attempt, (&controls, options))?;
        match on_invalid(&spec) {
            OnInvalid::Retry(times) if exit == Exit::Invalid && attempt <= times => {
                report_line(format_args!(
                    "the measurement is invalid: repeating the run ({attempt} of {times})"
                ));
                attempt += 1;
            }
            _ => return Ok(exit),
        }
    }
}

/// One attempt at the run; the first has number 1.
fn attempted(
    prepared: &PreparedRun,
    attempt: u64,
    (controls, options): (&Arc<Controls>, EffectiveOptions),
) -> anyhow::Result<Exit> {
    let process = Process::new();
    let output = &prepared.spec.output;
    // Without a record its files are kept only during the run.
    let temporary = output.no_record.then(tempfile::tempdir).transpose().context("--no-record")?;
    let folder = match (&temporary, &output.folder) {
        (Some(temporary), _) => temporary.path().to_owned(),
        (None, Some(folder)) if attempt > 1 => PathBuf::from(format!("{folder}-{attempt}")),
        (None, Some(folder)) => PathBuf::from(folder),
        (None, None) => new_folder(),
    };
    let mut progress = Shown::of(&prepared.spec, controls);
    let is_plain = matches!(progress, Shown::Lines);
    let with = Conduct {
        folder: &folder,
        options,
        environment: &process.environment(),
        progress: &mut progress,
        controls,
    };
    let completed = match conduct(prepared, with) {
        // By the user, before anything was sent. The controls are stopped by errors, too.
        Err(error) if signals::is_interrupted() => {
            report_line(one_line(&error));
            return Ok(Exit::Interrupted);
        }
        completed => completed?,
    };
    if let Some(profile) = &completed.profile {
        match profile {
            Ok(folder) => report_line(format_args!("profile: {}", folder.display())),
            Err(error) => report_line(format_args!("--profile: {error:#}")),
        }
    }
    if !output.json && is_plain {
        let _ = writeln!(io::stderr());
    }
    match &completed.unreachable {
        // One line: there is nothing to report.
        Some(why) if !output.json => report_line(why),
        _ => printed(print(&prepared.spec, &completed))?,
    }
    conclude(&prepared.spec, completed)
}

fn print_workload(given: &GivenOptions) -> anyhow::Result<Exit> {
    let name = given.0.get("workload").and_then(|name| name.texts.last());
    let name = name.context("--print-workload needs --workload NAME")?;
    printed(io::stdout().write_all(run::workload::text(name, given)?.as_bytes()))?;
    Ok(Exit::Done)
}

fn on_invalid(spec: &RunSpec) -> OnInvalid {
    or_default(&spec.checks.on_invalid, "on-invalid")
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
    let mut record = record_of(completed);
    record.folder = record.folder.filter(|_| !spec.output.no_record);
    let view = findings::run_view(&record);
    if spec.sinks.to_stdout() {
        // Standard output has the rows of the seconds, so the report is not printed there.
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

/// The record from which the report of a run is made.
pub fn record_of(completed: &CompletedRun) -> RunRecord<'_> {
    RunRecord { document: &completed.document, seconds: &completed.seconds, folder: Some(&completed.folder) }
}

/// The exit code of a run, or an error instead of it. Called after the report was printed, so that an error hides no
/// result.
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
        None if on_invalid(spec) == OnInvalid::Warn => Ok(Exit::of_believed(&completed.document)),
        None => Ok(Exit::of(&completed.document)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, `--spec /dev/zero` uses up all memory.
    #[test]
    fn a_spec_has_a_bound() {
        let error = format!("{:#}", read_spec("/dev/zero").unwrap_err());
        assert_eq!(error, "cannot read the spec `/dev/zero`: it is over 16.0 MiB; use a smaller file");
    }
}
