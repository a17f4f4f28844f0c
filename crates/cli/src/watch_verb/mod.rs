//! `parallax watch`: a running server, from its kernel.

mod args;
mod class;
mod keep;
mod observe;
mod progress;
mod recording;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;

pub use args::Args;

use crate::command_line::CommandLine;
use crate::exit::Exit;
use crate::output::report_line;
use crate::{controlled, signals, terminal};
use run::companion::CompanionObserver;
use run::folder::{ClaimedFolder, new_folder};

/// Runs the verb. Ending it with Ctrl-C is not an error.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing is attached then.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let plan = args.plan()?;
    let stop = signals::stop_flag()?;
    let folder = args.output.clone().unwrap_or_else(new_folder);
    let claim = ClaimedFolder::make(&folder)?;
    let profile = match args.profile.then(|| profile(&plan, &folder)).transpose() {
        Ok(profile) => profile,
        Err(error) => {
            claim.release();
            return Err(error);
        }
    };
    let observing = match observe::Observing::begin(&plan, args, line, &folder) {
        Ok(observing) => observing,
        Err(error) => {
            profile.into_iter().for_each(CompanionObserver::abandon);
            claim.release();
            return Err(error);
        }
    };
    if args.controlled {
        controlled::follow(Arc::clone(&stop))?;
    }
    let watched = observing.run(&plan, &stop);
    let profile = profile.map(CompanionObserver::finish);
    if args.controlled {
        controlled::closed();
    } else {
        print(args, &watched, &folder, profile)?;
    }
    match watched.damage {
        Some(error) => Err(error).context("the record is incomplete"),
        None => Ok(Exit::Done),
    }
}

fn print(
    args: &Args,
    watched: &observe::Watched,
    folder: &Path,
    profile: Option<anyhow::Result<PathBuf>>,
) -> anyhow::Result<()> {
    // The window may have been resized in the meantime.
    let out = io::stdout();
    let style = terminal::style(&out, args.no_color);
    watched.print(args, &mut out.lock(), style)?;
    if !args.json {
        report_line(format_args!("record: {}", folder.display()));
    }
    match profile {
        Some(Ok(folder)) if !args.json => report_line(format_args!("profile: {}", folder.display())),
        Some(Err(error)) => report_line(format_args!("--profile: {error:#}")),
        Some(Ok(_)) | None => {}
    }
    Ok(())
}

/// Also profiles the server. It starts before the watch does, because nothing would drain the ring buffer while the
/// profile is being set up.
fn profile(plan: &args::WatchPlan, folder: &Path) -> anyhow::Result<CompanionObserver> {
    let program = std::env::current_exe().ok();
    CompanionObserver::profile(&watch::find(&plan.named)?.roots, folder, program.as_deref())
}
