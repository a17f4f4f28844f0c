//! The terminal with a live view on it, and the thread that draws it and reads keys.
//!
//! The thread sleeps, except for checking the keys ten times per second and redrawing if there is something new. The
//! measuring threads change the view and never wait for the terminal.

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

/// A view on the terminal, until it is ended or dropped.
pub struct Display<P> {
    shared: Arc<Shared<P>>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the viewer's thread and the threads that change the view.
struct Shared<P> {
    picture: Mutex<P>,
    fresh: AtomicBool,
    over: AtomicBool,
}

/// How often keys are checked: a key seems to act at once, and ten wake-ups per second cost nothing.
const GLANCE: Duration = Duration::from_millis(100);

/// How long the viewer may take to notice that it must end.
const LONGEST_FAREWELL: Duration = Duration::from_secs(1);

/// How often the clock on the screen is updated if nothing else is new.
const TICK: Nanos = Nanos::from_millis(500);

impl<P: LiveView> Display<P> {
    /// Takes over the terminal, and shows `picture`.
    ///
    /// # Errors
    ///
    /// The errors of the terminal, whose state is restored then.
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

    /// Changes the view; it is redrawn soon.
    pub fn change(&self, change: impl FnOnce(&mut P)) {
        change(&mut lock(&self.shared.picture));
        self.shared.fresh.store(true, Ordering::Release);
    }
}

impl<P> Display<P> {
    /// Restores the terminal.
    pub fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.over.store(true, Ordering::Release);
            // A terminal that accepts no output can block the viewer, but must not block the run.
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
                // The terminal has disappeared; the measurement goes on.
                screen::leave();
                return;
            }
            match event::poll(GLANCE) {
                Ok(true) => self.attend(),
                Ok(false) => {}
                // Keys cannot be read: the view is still useful.
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
        // A terminal can be slow; changes of the view must not wait for it.
        drop(picture);
        self.screen.show()
    }
}
