//! `parallax hiccup`: starts meters according to the options, prints each interval and the totals at the end.

mod args;

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use report::Style;
use run::observe::hiccup::{HiccupEvent, HiccupSpec, observe};

pub use self::args::Args;
use crate::command_line::CommandLine;
use crate::environment::Process;
use crate::exit::Exit;
use crate::output::printed;
use crate::{signals, terminal};

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing was measured then.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let spec = args.spec()?;
    let stop = signals::stop_flag()?;
    let folder = args.output.clone().unwrap_or_else(run::folder::new_folder);
    let process = Process::new();
    let setting = process.setting(line.effective(), Some(&folder), &stop);
    // Standard output belongs to the command, so our lines go to standard error.
    let mut out: Box<dyn Write> = match (args.json, args.command.is_empty()) {
        (true, _) => Box::new(io::sink()),
        (false, true) => Box::new(io::stdout()),
        (false, false) => Box::new(io::stderr()),
    };
    let style = terminal::style(&io::stdout(), args.no_color);
    let mut live = |event: HiccupEvent<'_>| match event {
        HiccupEvent::Begun => printed(announce(args, &spec, &folder, &mut out, style)),
        event => {
            // A closed pipe does not end the measurement.
            let _ = show(&event, &mut out);
            Ok(())
        }
    };
    let measured = observe(&spec, signals::continuations()?, setting, &mut live)?;
    if args.json {
        printed(report::json(&measured.observed.document, &mut io::stdout()))?;
    }
    let view = findings::hiccup_view(&measured.results, &measured.ticks);
    printed(writeln!(out).and_then(|()| report::text(&view, &mut out, style)))?;
    measured.observed.check_record()?;
    let has_end = args.duration.is_some() || !args.command.is_empty();
    Ok(match measured.exit_code {
        Some(code) => Exit::Command(code),
        None => Exit::of_observer(has_end, stop.load(Ordering::Relaxed)),
    })
}

/// Maximum number of stalls printed per interval.
const STALLS_SHOWN: usize = 3;

fn announce(
    args: &Args,
    spec: &HiccupSpec,
    folder: &Path,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    let meters = spec.cpus.len();
    let plural = if meters == 1 { "meter" } else { "meters" };
    let end = match (args.duration, args.command.is_empty()) {
        (Some(duration), _) => format!("for {}", duration.written()),
        (None, true) => "until Ctrl-C".to_owned(),
        (None, false) => {
            format!("idle for {}, then as long as the command runs", args.baseline.written())
        }
    };
    let (tick, priority) = (args.resolution.written(), &spec.meters.urgency);
    writeln!(out, "{meters} {plural}, one tick per {tick}, priority {priority}; {end}")?;
    writeln!(out, "record {}", record::escape_text(&folder.display().to_string()))?;
    writeln!(out, "{}", style.faint(findings::hiccup_head()))
}

fn show(event: &HiccupEvent<'_>, out: &mut dyn Write) -> io::Result<()> {
    match event {
        HiccupEvent::Begun => {}
        HiccupEvent::Interval { end, line } => {
            write!(out, "{}", findings::hiccup_line(*end, line, STALLS_SHOWN))?;
        }
        HiccupEvent::CommandStarted { at } => writeln!(out, "{:>10} command started", at.to_string())?,
    }
    out.flush()
}
