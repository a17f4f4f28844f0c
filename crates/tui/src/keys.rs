//! The keys of the live view: commands to the run, and the messages about them at the bottom of the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use engine::{Controls, Order, Tempo};
use record::document::Model as LoadModel;

/// The state of the user's control over the run.
#[derive(Debug, Default)]
pub struct KeyControls {
    /// Steps of 10 % away from the planned rate.
    steps: i32,
    paused: bool,
    ended: bool,
    /// The key that was pressed once and takes effect if it is pressed again at once.
    asked: Option<char>,
    pub help: bool,
    /// The last message, until the next key.
    pub message: Option<String>,
}

impl KeyControls {
    /// Handles one key: gives the command to the run, and sets the message to show.
    pub fn press(&mut self, key: KeyEvent, model: LoadModel, controls: &Controls) {
        self.message = None;
        let shut = std::mem::take(&mut self.help);
        let asked = self.asked.take();
        match key.code {
            KeyCode::Char('?' | 'h') => self.help = !shut,
            // If the terminal delivers it as a key instead of a signal.
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => controls.stop(),
            KeyCode::Esc if shut => {}
            KeyCode::Char('p' | ' ') if self.paused || asked == Some('p') => self.pause(controls),
            KeyCode::Char('p' | ' ') => {
                self.ask('p', "pause the run? p again pauses it, any other key does not")
            }
            KeyCode::Char('+' | '=') | KeyCode::Up => self.tempo(1, model, controls),
            KeyCode::Char('-' | '_') | KeyCode::Down => self.tempo(-1, model, controls),
            KeyCode::Char('0') => self.tempo(-self.steps, model, controls),
            KeyCode::Char('q' | 's') if self.ended || asked == Some('q') => self.end(controls),
            KeyCode::Char('q' | 's') => self.ask('q', "end the run? q again ends it, any other key does not"),
            _ => {}
        }
    }

    /// A key pressed by accident must not spoil a run.
    fn ask(&mut self, key: char, question: &str) {
        self.asked = Some(key);
        self.message = Some(question.to_owned());
    }

    fn pause(&mut self, controls: &Controls) {
        let (order, message) = if self.paused {
            (Order::Resume, "resumed: what was due during the pause becomes due from now on")
        } else {
            (Order::Pause, "paused: nothing becomes due, the end of the run does not move; p resumes")
        };
        if controls.order(order).is_some() {
            self.paused = !self.paused;
            self.message = Some(message.to_owned());
        }
    }

    fn tempo(&mut self, steps: i32, model: LoadModel, controls: &Controls) {
        if model == LoadModel::Closed {
            self.message =
                Some("a closed loop has no rate to change: virtual users wait for responses".to_owned());
            return;
        }
        let wanted = (self.steps + steps).clamp(-50, 50);
        if controls.order(Order::Tempo(Tempo::of_steps(wanted))).is_some() {
            self.steps = wanted;
        }
    }

    fn end(&mut self, controls: &Controls) {
        if self.ended {
            controls.stop();
        } else if controls.order(Order::End).is_some() {
            self.ended = true;
            self.message =
                Some("ending: waits for outstanding requests; q again stops immediately".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crossterm::event::KeyModifiers;

    use super::*;

    #[test]
    fn before_the_run_begins_keys_do_nothing() {
        let controls = Controls::new(Arc::default());
        let mut hand = KeyControls::default();
        for key in ['p', '+', 'q'] {
            hand.press(KeyEvent::from(KeyCode::Char(key)), LoadModel::Open, &controls);
        }
        assert!(!hand.paused && !hand.ended && hand.steps == 0);
        assert!(!controls.is_stopped());
    }

    /// If this fails, a key pressed by accident spoils a run of an hour.
    #[test]
    fn pause_and_end_take_effect_when_their_key_is_pressed_twice() {
        let controls = Controls::new(Arc::default());
        let mut hand = KeyControls::default();
        let mut press = |key| {
            hand.press(KeyEvent::from(KeyCode::Char(key)), LoadModel::Open, &controls);
            hand.asked
        };
        assert_eq!(press('p'), Some('p'));
        assert_eq!(press('q'), Some('q'), "another key is another question");
        assert_eq!(press('?'), None);
        assert_eq!(press('p'), Some('p'));
        assert_eq!(press('p'), None, "it was an order");
    }

    #[test]
    fn a_closed_loop_says_that_it_has_no_rate() {
        let controls = Controls::new(Arc::default());
        let mut hand = KeyControls::default();
        hand.press(KeyEvent::from(KeyCode::Up), LoadModel::Closed, &controls);
        assert!(hand.message.unwrap().contains("no rate"));
    }

    #[test]
    fn control_c_stops_and_any_key_shuts_the_help() {
        let controls = Controls::new(Arc::default());
        let mut hand = KeyControls::default();
        hand.press(KeyEvent::from(KeyCode::Char('?')), LoadModel::Open, &controls);
        assert!(hand.help);
        hand.press(KeyEvent::from(KeyCode::Esc), LoadModel::Open, &controls);
        assert!(!hand.help);
        hand.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), LoadModel::Open, &controls);
        assert!(controls.is_stopped());
    }
}
