//! `parallax watch`: a running server, from its kernel.

mod args;
mod class;
mod keep;
mod observe;

use std::io;
use std::sync::Arc;

use clap::ArgMatches;

pub use args::Args;

use crate::drive::{Claim, new_folder};
use crate::exit::Exit;
use crate::{led, say, signals, terminal};

/// Runs the verb. A watch that was ended by Ctrl-C is a watch that went well.
///
/// # Errors
///
/// Usage and environment, in one line each; nothing is attached then.
pub fn run(args: &Args, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let plan = args.plan()?;
    let stop = signals::stop_flag()?;
    let folder = args.output.clone().unwrap_or_else(new_folder);
    let claim = Claim::make(&folder)?;
    let out = io::stdout();
    let style = terminal::style(&out, args.no_color);
    let observing = match observe::Observing::begin(&plan, args, matches, &folder) {
        Ok(observing) => observing,
        Err(error) => {
            claim.release();
            return Err(error);
        }
    };
    if args.led {
        led::follow(Arc::clone(&stop))?;
        observing.run(&plan, &stop)?;
        led::closed();
        return Ok(Exit::Done);
    }
    let watched = observing.run(&plan, &stop)?;
    watched.print(args, &mut out.lock(), style)?;
    if !args.json {
        say(format_args!("record: {}", folder.display()));
    }
    Ok(Exit::Done)
}
