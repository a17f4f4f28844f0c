//! What is shown while a run goes on: nothing, a plain line per second, or the live view with its keys.

use std::io::{self, Write};

use engine::Plan;
use record::document::Document;
use record::{Interval, Second};
use tui::Live;
use units::Nanos;

/// What is told while the run goes on.
pub enum Progress {
    Quiet,
    /// One plain line a second on standard error.
    Lines,
    /// The live view, on a terminal of our own.
    Live(Live),
}

impl Progress {
    /// The run begins.
    pub fn started(&mut self, document: &Document, plan: &Plan, at: Nanos) {
        if let Progress::Live(live) = self
            && live.start(document, plan, at).is_err()
        {
            // A terminal that cannot be drawn on can still be written on.
            *self = Progress::Lines;
        }
    }

    /// An interval is over.
    pub fn interval(&mut self, interval: &Interval, second: &Second, document: &Document) {
        match self {
            Progress::Quiet => {}
            // What is left of a second when a run ends may be too short for anything to have happened in it.
            Progress::Lines if second.scheduled + second.ok + second.failed == 0 && !is_whole(second) => {}
            Progress::Lines => {
                let _ = writeln!(io::stderr(), "{}", findings::second_line(second, &document.load));
            }
            Progress::Live(live) => live.interval(interval, second),
        }
    }

    /// The run is over: a terminal is given back.
    pub fn end(&mut self) {
        if let Progress::Live(live) = self {
            live.end();
        }
    }
}

fn is_whole(second: &Second) -> bool {
    second.length_ns >= Nanos::from_secs(1).0
}
