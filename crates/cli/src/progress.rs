//! What is shown during a run: nothing, one plain line per second, or the live view with its keys.

use std::io::{self, Write};
use std::sync::Arc;

use engine::{Controls, RunPlan};
use record::document::Document;
use record::{Interval, Second};
use run::conduct::Progress;
use run::spec::{Display, RunSpec};
use tui::Live;
use units::Nanos;

use crate::terminal;

/// The display of a run in progress.
pub enum Shown {
    Quiet,
    /// One plain line per second on standard error.
    Lines,
    /// The live view on a terminal.
    Live(Live),
}

impl Shown {
    /// The display that the spec requests and the terminal supports.
    pub fn of(spec: &RunSpec, controls: &Arc<Controls>) -> Shown {
        match spec.display() {
            Display::Nothing => Shown::Quiet,
            Display::Lines => Shown::Lines,
            Display::Live { no_color } => terminal::live_style(no_color)
                .map_or(Shown::Lines, |style| Shown::Live(Live::new(style, Arc::clone(controls)))),
        }
    }
}

impl Progress for Shown {
    fn started(&mut self, document: &Document, plan: &RunPlan, at: Nanos) {
        if let Shown::Live(live) = self
            && live.start(document, plan, at).is_err()
        {
            // If the view cannot be drawn, plain lines can still be printed.
            *self = Shown::Lines;
        }
    }

    fn interval(&mut self, interval: &Interval, second: &Second, document: &Document) {
        match self {
            Shown::Quiet => {}
            // The last, partial second of a run may be too short to contain any requests.
            Shown::Lines if second.scheduled + second.ok + second.failed == 0 && !is_whole(second) => {}
            Shown::Lines => {
                let _ = writeln!(io::stderr(), "{}", findings::second_line(second, &document.load));
            }
            Shown::Live(live) => live.interval(interval, second),
        }
    }

    fn end(&mut self) {
        if let Shown::Live(live) = self {
            live.end();
        }
    }
}

fn is_whole(second: &Second) -> bool {
    second.length_ns >= Nanos::from_secs(1).0
}
