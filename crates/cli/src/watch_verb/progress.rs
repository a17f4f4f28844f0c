//! What is shown during a watch: nothing, one plain line per interval, or the live table.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use run::observe::watch::WatchInterval;

use super::args::Args;
use crate::terminal;
use tui::display::Display;
use tui::table::{LiveTable, RequestSample, TableSnapshot, TableSubject};
use units::Nanos;

pub enum Progress {
    Quiet,
    Lines,
    /// The live table on a terminal.
    Live(Display<LiveTable>),
}

impl Progress {
    /// Starts the display that the options and the terminal allow. Its keys set `stop`.
    pub fn begin(args: &Args, subject: &TableSubject<'_>, stop: &Arc<AtomicBool>) -> Progress {
        if args.json || args.controlled {
            return Progress::Quiet;
        }
        let look = terminal::live_style(args.no_color).filter(|_| !args.no_tui);
        // If the table cannot be drawn, plain lines can still be printed.
        look.and_then(|look| Display::raise(LiveTable::new(subject, Arc::clone(stop)), look).ok())
            .map_or(Progress::Lines, Progress::Live)
    }

    /// Shows an interval.
    pub fn interval(&self, interval: &WatchInterval<'_>) {
        match self {
            Progress::Quiet => {}
            Progress::Lines => {
                let at = run::date::timestamp(clock::wall()).strftime("%Y-%m-%d %H:%M:%S").to_string();
                // If this cannot be printed, the report at the end cannot either, and returns the error.
                let _ =
                    writeln!(io::stdout(), "{at}   {}", findings::watch_line(interval.line, interval.length));
            }
            Progress::Live(stage) => {
                let snapshot = snapshot(interval);
                stage.change(|table| table.add(snapshot));
            }
        }
    }

    /// Ends the display and restores the terminal.
    pub fn end(&mut self) {
        if let Progress::Live(stage) = self {
            stage.end();
        }
    }
}

/// The figures for the live table.
fn snapshot(interval: &WatchInterval<'_>) -> TableSnapshot {
    TableSnapshot {
        length: interval.length,
        seen: interval.line.seen_ns.map(Nanos),
        lately: RequestSample::of(interval.interval),
        whole: RequestSample::of(interval.total),
        protocols: interval.total.protocols(),
        connections: interval.connections(),
        digests: interval.digests(),
        preemptors: interval.preemptors(),
        losses: interval.losses,
        inexact: interval.inexact,
    }
}
