//! `parallax report`: reports a run again, from its results directory alone.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use findings::{Condition, Rebuilt, RunRecord};
use record::document::State;
use record::observation::ObservationKind;
use report::Style;

use crate::exit::Exit;
use crate::output::{report_line, report_notes};
use crate::watch_query_args::WatchQueryArgs;
use crate::{import_verb, observation_report, records, terminal};
use run::record_lock::is_running;
use run::records::{RECORDS, latest};

/// Print the report of a record, also of one that was interrupted or cut off.
///
/// All figures are computed again from the histograms in the record. If the run's process was killed, at most the last
/// second is missing.
///
/// The exit code is the one that the run had: see `parallax drive --help`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax report
  parallax report parallax-runs/20260101-120000-4711
  parallax report --sort p99 --where 'p99 > 5ms' runs/watched
  parallax report --fail-if 'response.p99 > 50ms' --fail-if 'error_share > 1%' runs/one")]
pub struct Args {
    /// Results directory, or its run.json [default: the latest in parallax-runs/].
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Print the report as JSON (formats/view.schema.json).
    #[arg(long)]
    json: bool,

    /// Exit with status 2 if this condition is true; repeat it for more. Replaces the conditions of the run.
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,

    #[command(flatten)]
    watch: WatchQueryArgs,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,

    /// Details: limits and advice of the checks, percentile intervals, options, host.
    #[arg(short, long)]
    verbose: bool,
}

/// Runs the verb. The exit code is the run's own.
///
/// # Errors
///
/// When the directory contains no run, or one that cannot be read.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let named = args.folder.clone().map_or_else(|| latest(Path::new(RECORDS)), Ok)?;
    let folder = records::folder(&named);
    if record::search::is_search(folder) {
        return search(args, folder);
    }
    if record::import::is_import(folder)? {
        return import_verb::report(folder, &args.fail_if, args.json, args.no_color);
    }
    if let Some(kind) = ObservationKind::from_name(&record::kind_of(folder)?) {
        ensure!(
            args.fail_if.is_empty(),
            "--fail-if needs a record of `drive` or `import`, but `{}` is a record of `{}`",
            folder.display(),
            kind.name()
        );
        let is_watch = kind == ObservationKind::Watch;
        ensure!(
            is_watch || !args.watch.is_given(),
            "--top, --sort, --where and --bucket need a record of `watch`, but `{}` is a record of `{}`",
            folder.display(),
            kind.name()
        );
        return observation_report::report(folder, args.json, args.no_color, &args.watch.query()?);
    }
    ensure!(
        !args.watch.is_given(),
        "--top, --sort, --where and --bucket need a record of `watch`, but `{}` is a record of `drive`",
        folder.display()
    );
    // Checked before the record is read: a run that ends in between is read in its final state.
    let at_work = is_running(folder);
    let recording = record::read(folder)?;
    let under_way = recording.document.state == State::Running && at_work;
    let mut rebuilt =
        if under_way { findings::rebuild_so_far(recording) } else { findings::rebuild(recording) };
    if !args.fail_if.is_empty() {
        rebuilt.judge(&args.fail_if);
    }
    let Rebuilt { document, seconds, differences, .. } = rebuilt;
    let mut out = io::stdout();
    let style = Style { details: args.verbose, ..terminal::style(&out, args.no_color) };
    let run = RunRecord { document: &document, seconds: &seconds, folder: Some(folder) };
    records::print(&findings::run_view(&run), args.json, &mut out, style)?;
    report_notes(&document);
    if let Some(first) = differences.first() {
        report_line(format_args!(
            "run.json differs from its histograms in {} places, first at {first}; \
             what is printed comes from the histograms",
            differences.len()
        ));
    }
    Ok(Exit::of(&document))
}

/// A search: its probes are separate runs, in the directories that it names.
fn search(args: &Args, folder: &Path) -> anyhow::Result<Exit> {
    ensure!(
        args.fail_if.is_empty(),
        "--fail-if needs a single run, but `{}` is a search; give the directory of one of its probes",
        folder.display()
    );
    let document = record::search::read_search(folder)?;
    let mut out = io::stdout();
    let style = terminal::style(&out, args.no_color);
    records::print(&findings::search_view(&document, Some(folder)), args.json, &mut out, style)?;
    report_notes(&document);
    Ok(Exit::of_search(&document))
}
