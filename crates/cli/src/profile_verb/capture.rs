//! Takes a profile.

use std::io;
use std::path::Path;
use std::sync::Arc;

use record::Observation;
use record::document::State;
use record::observation::ObservationBody;
use run::effective::EffectiveOptions;
use run::observe::profile::{ProfileSpec, observe};

use super::args::Args;
use super::frames::{self, Printing};
use crate::environment::Process;
use crate::exit::Exit;
use crate::output::{printed, report_line};
use crate::{controlled, signals, terminal};

/// Profiles according to the options, and prints the profile.
///
/// # Errors
///
/// A problem of this host, in one line, or why the record is incomplete.
pub fn profile(args: &Args, options: EffectiveOptions, folder: &Path) -> anyhow::Result<Exit> {
    let stop = signals::stop_flag()?;
    let spec = ProfileSpec {
        pids: args.pid.iter().map(|pid| pid.0).collect(),
        rate: args.rate,
        spins: args.frames.spin.clone(),
        duration: (!args.controlled).then_some(args.duration),
    };
    let process = Process::new();
    let setting = process.setting(options, Some(folder), &stop);
    let mut ready = || if args.controlled { controlled::follow(Arc::clone(&stop)) } else { Ok(()) };
    let observed = observe(&spec, setting, &mut ready)?;
    if args.controlled {
        observed.check_record()?;
        controlled::closed();
        return Ok(Exit::Done);
    }
    let exit = print(&observed.document, args.json, args.no_color)?;
    observed.check_record()?;
    let printing = Printing { json: args.json, no_color: args.no_color };
    frames::run_on_new(&args.frames, folder, printing)?;
    report_line(format_args!("record: {}", folder.display()));
    Ok(exit)
}

fn print(observation: &Observation, json: bool, no_color: bool) -> anyhow::Result<Exit> {
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    printed(if json {
        report::json(observation, &mut out)
    } else {
        let ObservationBody::Profile(results) = &observation.body else {
            panic!("it is the record of a profile")
        };
        report::text(&findings::profile_view(observation, results), &mut out, style)
    })?;
    let stopped = observation.state == State::Interrupted;
    Ok(if stopped { Exit::Interrupted } else { Exit::Done })
}
