//! What is shown while a run goes on: nothing, a plain line per second, or the live view with its keys.

use std::io::{self, Write};
use std::sync::Arc;

use engine::{Controls, Plan};
use record::document::Document;
use record::{Interval, Second};
use run::conduct::Progress;
use run::spec::RunSpec;
use tui::Live;
use units::Nanos;

use crate::terminal;

/// What is shown while a run goes on.
pub enum Shown {
    Quiet,
    /// One plain line per second on standard error.
    Lines,
    /// The live view, on a terminal of our own.
    Live(Live),
}

impl Shown {
    /// What the spec asks for, and the terminal can show.
    pub fn of(spec: &RunSpec, controls: &Arc<Controls>) -> Shown {
        let output = &spec.output;
        if output.quiet {
            return Shown::Quiet;
        }
        // Rows on standard output would run through the view.
        let wanted = !output.json && !output.no_tui && !spec.sinks.to_stdout();
        match terminal::live_style(output.no_color).filter(|_| wanted) {
            Some(style) => Shown::Live(Live::new(style, Arc::clone(controls))),
            None => Shown::Lines,
        }
    }
}

impl Progress for Shown {
    fn started(&mut self, document: &Document, plan: &Plan, at: Nanos) {
        if let Shown::Live(live) = self
            && live.start(document, plan, at).is_err()
        {
            // A terminal that cannot be drawn on can still be written on.
            *self = Shown::Lines;
        }
    }

    fn interval(&mut self, interval: &Interval, second: &Second, document: &Document) {
        match self {
            Shown::Quiet => {}
            // What is left of a second when a run ends may be too short for anything to have happened in it.
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
