//! The live view of a run of `drive`, and the user's control over the run.
//!
//! Intervals come from the engine's collector once per second; the workers are not involved.

use std::io;
use std::sync::Arc;

use crossterm::event::KeyEvent;
use engine::{Controls, RunPlan};
use ratatui::Frame;
use record::document::Document;
use record::{Interval, Second};
use units::Nanos;

use crate::display::{Display, LiveView};
use crate::keys::KeyControls;
use crate::model::Model;
use crate::terminal_style::TerminalStyle;
use crate::view::{self, Footer};

/// The live view of one run.
pub struct Live {
    look: TerminalStyle,
    controls: Arc<Controls>,
    stage: Option<Display<Driven>>,
}

impl Live {
    /// A view of the run controlled by `controls`; it shows nothing before [`Live::start`].
    pub fn new(look: TerminalStyle, controls: Arc<Controls>) -> Live {
        Live { look, controls, stage: None }
    }

    /// Takes over the terminal; the run has begun at `at`.
    ///
    /// # Errors
    ///
    /// The errors of the terminal, whose state is restored then.
    pub fn start(&mut self, document: &Document, plan: &RunPlan, at: Nanos) -> io::Result<()> {
        let model =
            Model::new(&document.subject.url, document.load.clone(), document.stamps.clone(), plan.drain);
        let driven = Driven {
            model,
            controls: Arc::clone(&self.controls),
            plan: plan.clone(),
            start: at,
            hand: KeyControls::default(),
            seen: 0,
        };
        self.stage = Some(Display::raise(driven, self.look)?);
        Ok(())
    }

    /// Adds an interval that has ended.
    pub fn interval(&self, interval: &Interval, second: &Second) {
        if let Some(stage) = &self.stage {
            stage.change(|driven| driven.model.add(interval, second));
        }
    }

    /// Restores the terminal.
    pub fn end(&mut self) {
        self.stage = None;
    }
}

/// A run in progress, and the user's control over it.
struct Driven {
    model: Model,
    controls: Arc<Controls>,
    plan: RunPlan,
    start: Nanos,
    hand: KeyControls,
    /// The number of changes of the load that are already shown.
    seen: usize,
}

impl LiveView for Driven {
    fn draw(&mut self, frame: &mut Frame<'_>, now: Nanos, look: TerminalStyle) {
        let model = &mut self.model;
        model.now = now.saturating_sub(self.start);
        for change in self.controls.changes(self.seen) {
            model.steer(change);
            self.seen += 1;
        }
        model.window = self.controls.window(&self.plan);
        let foot = Footer { message: self.hand.message.as_deref(), help: self.hand.help };
        view::draw(frame, model, foot, look);
    }

    fn press(&mut self, key: KeyEvent) {
        self.hand.press(key, self.model.load.model, &self.controls);
    }
}
