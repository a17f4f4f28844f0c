//! `parallax profile`: where the threads of a server are, as flame graphs and as tables.

mod args;
mod difference;

use std::io;
use std::path::Path;

use anyhow::ensure;
use record::Observation;
use record::document::{EffectiveOption, OptionSource, State};
use record::observation::ObservationBody;
use run::effective::EffectiveOptions;
use run::folder::new_folder;
use units::Nanos;

pub use self::args::Args;
use crate::command_line::CommandLine;
use crate::exit::Exit;
use crate::output::printed;
use crate::terminal;

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing has been profiled then.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let folder = args.output.clone().unwrap_or_else(new_folder);
    if let [before, after] = args.diff.as_slice() {
        return difference::run(before, after, &folder, args.no_color);
    }
    ensure!(args.duration > Nanos::ZERO, "--duration is 0; give a time, such as 10s");
    let mut options = line.effective();
    let shown = folder.display().to_string();
    options.insert("output".to_owned(), EffectiveOption { value: shown, source: OptionSource::Derived });
    profile(args, options, &folder)
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

#[cfg(feature = "ebpf")]
fn profile(args: &Args, options: EffectiveOptions, folder: &Path) -> anyhow::Result<Exit> {
    use run::observe::profile::{ProfileSpec, observe};
    use std::sync::Arc;

    use crate::environment::Process;
    use crate::output::report_line;
    use crate::{controlled, signals};

    let stop = signals::stop_flag()?;
    let spec = ProfileSpec {
        pids: args.pid.iter().map(|pid| pid.0).collect(),
        rate: args.rate,
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
    report_line(format_args!("record: {}", folder.display()));
    Ok(exit)
}

#[cfg(not(feature = "ebpf"))]
fn profile(_: &Args, _: EffectiveOptions, _: &Path) -> anyhow::Result<Exit> {
    anyhow::bail!("this parallax was built without eBPF; build it with the feature `ebpf`")
}
