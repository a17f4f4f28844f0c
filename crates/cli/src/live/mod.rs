//! What is told while a run goes on: nothing, a plain line a second, or the live view with its keys.
//!
//! Intervals come from the engine's collector once a second; no worker knows of any of this. What other verbs show
//! live stands on the same stage.

mod heat;
mod keys;
mod lights;
mod look;
mod model;
pub mod pieces;
pub mod screen;
mod sections;
pub mod stage;
pub mod tally;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, Write};
use std::sync::Arc;

use crossterm::event::KeyEvent;
use engine::{Controls, Plan};
use ratatui::Frame;
use record::document::Document;
use record::{Interval, Second};
use units::Nanos;

use self::keys::Hand;
pub use self::look::Look;
use self::model::Model;
use self::stage::{Picture, Stage};
use self::view::Foot;

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

/// The live view of one run.
pub struct Live {
    look: Look,
    controls: Arc<Controls>,
    stage: Option<Stage<Driven>>,
}

impl Live {
    pub fn new(look: Look, controls: Arc<Controls>) -> Live {
        Live { look, controls, stage: None }
    }

    fn start(&mut self, document: &Document, plan: &Plan, at: Nanos) -> io::Result<()> {
        let model =
            Model::new(&document.subject.url, document.load.clone(), document.stamps.clone(), plan.drain);
        let driven = Driven {
            model,
            controls: Arc::clone(&self.controls),
            plan: plan.clone(),
            start: at,
            hand: Hand::default(),
            seen: 0,
        };
        self.stage = Some(Stage::raise(driven, self.look)?);
        Ok(())
    }

    fn interval(&self, interval: &Interval, second: &Second) {
        if let Some(stage) = &self.stage {
            stage.change(|driven| driven.model.add(interval, second));
        }
    }

    fn end(&mut self) {
        self.stage = None;
    }
}

/// A run on the stage, and the user's hand on it.
struct Driven {
    model: Model,
    controls: Arc<Controls>,
    plan: Plan,
    start: Nanos,
    hand: Hand,
    /// How many changes of the load are on the screen.
    seen: usize,
}

impl Picture for Driven {
    fn draw(&mut self, frame: &mut Frame<'_>, now: Nanos, look: Look) {
        let model = &mut self.model;
        model.now = now.saturating_sub(self.start);
        for change in self.controls.changes(self.seen) {
            model.steer(change);
            self.seen += 1;
        }
        model.window = self.controls.window(&self.plan);
        let foot = Foot { said: self.hand.said.as_deref(), help: self.hand.help };
        view::draw(frame, model, foot, look);
    }

    fn press(&mut self, key: KeyEvent) {
        self.hand.press(key, self.model.load.model, &self.controls);
    }
}
