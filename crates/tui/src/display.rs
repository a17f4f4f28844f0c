//! The terminal with a picture on it, and the thread that draws it and reads keys.
//!
//! The thread sleeps but for a glance at the keys ten times a second and a redraw when there is something new. Whoever
//! measures changes the picture and never waits for the terminal.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEvent};
use ratatui::Frame;
use units::Nanos;

use super::screen::{self, Screen};
use super::terminal_style::TerminalStyle;

/// What is shown, and what keys do.
pub trait LiveView: Send + 'static {
    /// Draws it as of `now`, on the monotonic clock.
    fn draw(&mut self, frame: &mut Frame<'_>, now: Nanos, look: TerminalStyle);

    fn press(&mut self, key: KeyEvent);
}

/// A picture on the terminal, until it is ended or dropped.
pub struct Display<P> {
    shared: Arc<Shared<P>>,
    thread: Option<JoinHandle<()>>,
}

/// What the viewer's thread and those who change the picture have in common.
struct Shared<P> {
    picture: Mutex<P>,
    fresh: AtomicBool,
    over: AtomicBool,
}

/// How often the keys are looked at: a key seems to act at once, and ten wake-ups a second cost nothing.
const GLANCE: Duration = Duration::from_millis(100);

/// How long the viewer may take to see that it is over.
const LONGEST_FAREWELL: Duration = Duration::from_secs(1);

/// How often the clock on the screen moves when nothing else is new.
const TICK: Nanos = Nanos::from_millis(500);

impl<P: LiveView> Display<P> {
    /// Takes the terminal, and shows.
    ///
    /// # Errors
    ///
    /// Those of the terminal, which is as before then.
    pub fn raise(picture: P, look: TerminalStyle) -> io::Result<Display<P>> {
        let screen = Screen::enter()?;
        let shared = Arc::new(Shared {
            picture: Mutex::new(picture),
            fresh: AtomicBool::new(true),
            over: AtomicBool::new(false),
        });
        let mut viewer = Viewer { screen, shared: Arc::clone(&shared), look, drawn: None };
        let thread = thread::Builder::new().name("live-view".to_owned()).spawn(move || viewer.view());
        match thread {
            Ok(thread) => Ok(Display { shared, thread: Some(thread) }),
            Err(error) => {
                screen::leave();
                Err(error)
            }
        }
    }

    /// Changes the picture; it is drawn again soon.
    pub fn change(&self, change: impl FnOnce(&mut P)) {
        change(&mut lock(&self.shared.picture));
        self.shared.fresh.store(true, Ordering::Release);
    }
}

impl<P> Display<P> {
    /// Gives the terminal back.
    pub fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.over.store(true, Ordering::Release);
            // A terminal that takes no output holds its viewer for as long as it likes, but not the run.
            for _ in 0..LONGEST_FAREWELL.as_millis() / 5 {
                if thread.is_finished() {
                    break;
                }
                clock::sleep_until(clock::now() + Nanos::from_millis(5));
            }
            screen::leave();
        }
    }
}

impl<P> Drop for Display<P> {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<P>(picture: &Mutex<P>) -> MutexGuard<'_, P> {
    picture.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that draws and reads keys.
struct Viewer<P> {
    screen: Screen,
    shared: Arc<Shared<P>>,
    look: TerminalStyle,
    drawn: Option<Nanos>,
}

impl<P: LiveView> Viewer<P> {
    fn view(&mut self) {
        while !self.shared.over.load(Ordering::Acquire) {
            if self.draw_if_due().is_err() {
                // The terminal has gone; what is measured has not.
                screen::leave();
                return;
            }
            match event::poll(GLANCE) {
                Ok(true) => self.attend(),
                Ok(false) => {}
                // No keys: it is a view all the same.
                Err(_) => clock::sleep_until(clock::now() + TICK),
            }
        }
    }

    fn attend(&mut self) {
        match event::read() {
            Ok(Event::Key(key)) if key.is_press() => {
                lock(&self.shared.picture).press(key);
                self.drawn = None;
            }
            Ok(Event::Resize(..)) => self.drawn = None,
            Ok(_) | Err(_) => {}
        }
    }

    fn draw_if_due(&mut self) -> io::Result<()> {
        let now = clock::now();
        let fresh = self.shared.fresh.swap(false, Ordering::Acquire);
        if !fresh && self.drawn.is_some_and(|drawn| now.saturating_sub(drawn) < TICK) {
            return Ok(());
        }
        self.drawn = Some(now);
        let mut picture = lock(&self.shared.picture);
        self.screen.draw(|frame| picture.draw(frame, now, self.look))?;
        // A terminal can be slow; a change of the picture must not wait for it.
        drop(picture);
        self.screen.show()
    }
}
