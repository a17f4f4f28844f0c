//! `parallax watch`: observes a running server from its kernel.

mod args;
mod progress;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use findings::view::Subject;
use findings::{WatchQuery, WatchRecord};
use record::observation::watch::WatchSubject;
use report::Style;
use run::folder::new_folder;
use run::observe::watch::{WatchEvent, WatchObserved, WatchSpec, observe};
use tui::table::TableSubject;
use units::Nanos;

pub use args::Args;

use self::progress::Progress;
use crate::command_line::CommandLine;
use crate::environment::Process;
use crate::exit::Exit;
use crate::output::{printed, report_line};
use crate::{controlled, signals, terminal};

/// Runs the verb. Without -d, Ctrl-C is how it ends.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing is attached then.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let spec = args.spec()?;
    let query = args.query.query()?;
    let stop = signals::stop_flag()?;
    let folder = (!args.no_record).then(|| args.output.clone().unwrap_or_else(new_folder));
    let process = Process::new();
    let setting = process.setting(line.effective(), folder.as_deref(), &stop);
    let mut progress = Progress::Quiet;
    let mut live = |event: WatchEvent<'_>| {
        match event {
            WatchEvent::Ready { subject, started } => {
                progress = begin(args, &spec, (subject, started), &stop)?;
            }
            WatchEvent::Interval(interval) => progress.interval(interval),
            WatchEvent::Over { server_has_ended } => {
                progress.end();
                if server_has_ended {
                    report_line("the server has ended");
                }
            }
        }
        Ok(())
    };
    let watched = observe(&spec, setting, &mut live)?;
    // Before the report is printed: a signal after the end stops nothing.
    let is_stopped = stop.load(Ordering::Relaxed);
    if args.controlled {
        controlled::closed();
    } else {
        print(args, &query, &watched, folder.as_deref())?;
    }
    watched.observed.check_record()?;
    // The end of its input is how a controlled observer ends.
    Ok(Exit::of_observer(args.duration.is_some() && !args.controlled, is_stopped))
}

/// Reports that the watch has begun, and starts the display.
fn begin(
    args: &Args,
    spec: &WatchSpec,
    (subject, start): (&WatchSubject, Nanos),
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Progress> {
    if args.controlled {
        controlled::follow(Arc::clone(stop))?;
    }
    let who = format!("{} ({})", subject.comm.as_deref().unwrap_or("server"), spec.selection);
    if !args.json && !args.controlled {
        report_line(format_args!("watching {who}; Ctrl-C ends it"));
    }
    let subject = TableSubject { who: &who, ports: &subject.ports, start, length: args.duration };
    Ok(Progress::begin(args, &subject, stop))
}

fn print(
    args: &Args,
    query: &WatchQuery,
    watched: &WatchObserved,
    folder: Option<&Path>,
) -> anyhow::Result<()> {
    // The window may have been resized in the meantime.
    let out = io::stdout();
    let style = terminal::style(&out, args.no_color);
    print_report(args, query, watched, (&mut out.lock(), style))?;
    if let Some(folder) = folder.filter(|_| !args.json) {
        report_line(format_args!("record: {}", folder.display()));
    }
    match &watched.profile {
        Some(Ok(folder)) if !args.json => report_line(format_args!("profile: {}", folder.display())),
        Some(Err(error)) => report_line(format_args!("--profile: {error:#}")),
        Some(Ok(_)) | None => {}
    }
    Ok(())
}

fn print_report(
    args: &Args,
    query: &WatchQuery,
    watched: &WatchObserved,
    (out, style): (&mut dyn Write, Style),
) -> anyhow::Result<()> {
    let WatchObserved { observed, results, logs, .. } = watched;
    let document = &observed.document;
    if args.json {
        return printed(report::json(document, &mut *out));
    }
    let record = WatchRecord { document, results, logs, query };
    printed(writeln!(out).and_then(|()| report::text(&findings::watch_view(&record), out, style)))?;
    if args.self_cost {
        let elapsed = Nanos(document.time.elapsed_ns.unwrap_or(0));
        let cost = findings::watch_cost(results, elapsed);
        printed(writeln!(out).and_then(|()| report::section(Subject::Watch, &cost, out, style)))?;
    }
    Ok(())
}
