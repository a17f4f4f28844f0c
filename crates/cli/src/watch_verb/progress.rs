//! What is told while a watch goes on: nothing, a plain line an interval, or the live table.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use record::observation::watch::WatchLine;
use units::Nanos;

use super::args::Args;
use crate::terminal;
use tui::display::Display;
use tui::table::{LiveTable, TableSnapshot, TableSubject};

pub enum Progress {
    Quiet,
    Lines,
    /// On a terminal of our own.
    Live(Display<LiveTable>),
}

impl Progress {
    pub fn begin(args: &Args, subject: &TableSubject<'_>, stop: &Arc<AtomicBool>) -> Progress {
        if args.json || args.controlled {
            return Progress::Quiet;
        }
        let look = terminal::live_style(args.no_color).filter(|_| !args.no_tui);
        // A terminal that cannot be drawn on can still be written on.
        look.and_then(|look| Display::raise(LiveTable::new(subject, Arc::clone(stop)), look).ok())
            .map_or(Progress::Lines, Progress::Live)
    }

    /// An interval is over; `seen` is made only where it is shown.
    pub fn interval(&self, line: &WatchLine, length: Nanos, seen: impl FnOnce() -> TableSnapshot) {
        match self {
            Progress::Quiet => {}
            Progress::Lines => {
                let at = run::conduct::timestamp(clock::wall()).strftime("%Y-%m-%d %H:%M:%S").to_string();
                // Where it cannot be printed, the report at the end cannot either, and says so.
                let _ = writeln!(io::stdout(), "{at}   {}", findings::watch_line(line, length));
            }
            Progress::Live(stage) => {
                let seen = seen();
                stage.change(|table| table.add(seen));
            }
        }
    }

    /// It is over: a terminal is given back.
    pub fn end(&mut self) {
        if let Progress::Live(stage) = self {
            stage.end();
        }
    }
}
