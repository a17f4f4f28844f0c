//! `parallax drive`: options to a plan, a run, its record, and what it says.

mod args;
mod calibrate;
mod ceiling;
mod conduct;
mod connect_args;
mod folder;
mod load;
mod options;
mod plan;
mod requests;
mod said;
pub mod scenario_file;
mod secrets;
mod servers;
mod sinks;
mod surroundings;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::{ArgMatches, CommandFactory};
use engine::Controls;
use findings::RunRecord;
use record::document::EffectiveOption;
use report::Style;

pub use self::args::{Args, ArrivalsArg};
pub use self::conduct::{Conducted, conduct, host_facts, opening_document, timestamp};
pub use self::folder::{Claim, new_folder};
pub use self::load::{effective_seed, fresh_seed, seed};
pub use self::options::{Options, effective, typed};
pub use self::plan::{Prepared, prepare, prepare_scenario};
#[cfg(feature = "ebpf")]
pub use self::requests::KeepArg;
use crate::beside::Beside;
use crate::exit::Exit;
use crate::explain_verb;
use crate::progress::Progress;
use crate::{printed, say, search, signals, terminal};

/// Runs the verb.
///
/// # Errors
///
/// Usage and environment, in one line each; nothing has been sent then.
pub fn run(args: &Args, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let command = crate::Cli::command();
    let command = command.find_subcommand("drive").expect("drive is a verb of this program");
    if args.calibrate {
        return calibrate::run(args);
    }
    let Some(path) = scenario_file::named_by(args)? else {
        scenario_file::refuse_options_of_scenarios(args)?;
        if args.search.is_some() {
            return search::run(args, matches);
        }
        let prepared = prepare(args)?;
        return run_prepared(args, &prepared, |folder| effective(command, matches, &prepared, folder));
    };
    let mut loaded = scenario_file::load(path, command, matches, &args.set)?;
    let prepared = prepare_scenario(&mut loaded)?;
    if args.dry_run {
        return show(&prepared, JOURNEYS_SHOWN);
    }
    run_prepared(&loaded.args, &prepared, |folder| {
        let mut options = effective(command, &loaded.matches, &prepared, folder);
        loaded.note(&mut options);
        options
    })
}

/// What `--dry-run` shows: enough to see a mix and its rows; `scenario check -n` shows more.
const JOURNEYS_SHOWN: u64 = 5;

/// Prints what a scenario would send.
pub fn show(prepared: &Prepared, units: u64) -> anyhow::Result<Exit> {
    let scenario = prepared.protocol.scenario();
    let text = scenario.map_or_else(String::new, |scenario| scenario.preview(units, &secrets::header));
    printed(io::stdout().write_all(text.as_bytes()))?;
    Ok(Exit::Done)
}

fn run_prepared(
    args: &Args,
    prepared: &Prepared,
    options: impl FnOnce(&Path) -> BTreeMap<String, EffectiveOption>,
) -> anyhow::Result<Exit> {
    let folder = args.output.clone().unwrap_or_else(new_folder);
    let options = options(&folder);
    let controls = Arc::new(Controls::new(signals::stop_flag()?));
    let progress = progress(args, &controls);
    let plain = matches!(progress, Progress::Lines);
    let beside = args.watch.as_ref().map(|subject| Beside::start(subject, &folder)).transpose()?;
    let profile = match args.profile.map(|pid| Beside::profile(&[pid], &folder)).transpose() {
        Ok(profile) => profile,
        Err(error) => {
            beside.into_iter().for_each(Beside::abandon);
            return Err(error);
        }
    };
    let conducted = match conduct(prepared, options, &folder, progress, &controls) {
        Ok(conducted) => conducted,
        Err(error) => {
            beside.into_iter().chain(profile).for_each(Beside::abandon);
            return Err(error);
        }
    };
    match profile.map(Beside::finish) {
        Some(Ok(folder)) => say(format_args!("profile: {}", folder.display())),
        Some(Err(error)) => say(format_args!("--profile: {error:#}")),
        None => {}
    }
    let server = beside.map(Beside::finish);
    if !args.json && plain {
        let _ = writeln!(io::stderr());
    }
    printed(print(args, &conducted))?;
    if let Some(Err(error)) = server.map(|server| explain_beside(args, &conducted.folder, server?)) {
        say(format_args!("--watch: {error:#}"));
    }
    conclude(conducted)
}

/// Says where the time went, now that both sides are known. A run whose server's side was lost is a run.
fn explain_beside(args: &Args, client: &Path, server: PathBuf) -> anyhow::Result<()> {
    if args.json || args.sinks.to_stdout() {
        say(format_args!("parallax explain {} {} joins them", client.display(), server.display()));
        return Ok(());
    }
    explain_verb::print(&[client.to_owned(), server], args.no_color)
}

fn progress(args: &Args, controls: &Arc<Controls>) -> Progress {
    if args.quiet {
        return Progress::Quiet;
    }
    // Lines of the seconds on standard output would run through the view.
    let wanted = !args.json && !args.no_tui && !args.sinks.to_stdout();
    match terminal::live_look(args.no_color).filter(|_| wanted) {
        Some(look) => Progress::Live(tui::Live::new(look, Arc::clone(controls))),
        None => Progress::Lines,
    }
}

fn print(args: &Args, conducted: &Conducted) -> io::Result<()> {
    if args.sinks.to_stdout() {
        // There the lines of the seconds stand: the report makes way.
        let view = findings::run_view(&record_of(conducted));
        return report::text(&view, &mut io::stderr(), Style { colour: false, ..Style::PLAIN });
    }
    let mut out = io::stdout();
    if args.json {
        return report::json(&conducted.document, &mut out);
    }
    let style = terminal::style(&out, args.no_color);
    report::text(&findings::run_view(&record_of(conducted)), &mut out, style)
}

fn record_of(conducted: &Conducted) -> RunRecord<'_> {
    RunRecord { document: &conducted.document, seconds: &conducted.seconds, folder: Some(&conducted.folder) }
}

/// The exit code of a run, or why it has none: told after the report, so that nothing measured is lost to it.
pub fn conclude(conducted: Conducted) -> anyhow::Result<Exit> {
    if let Some(error) = conducted.broken {
        say(error);
    }
    for untold in &conducted.untold {
        say(untold);
    }
    match conducted.damage {
        Some(error) => Err(error).context("the record is incomplete"),
        None => Ok(Exit::of(&conducted.document)),
    }
}
