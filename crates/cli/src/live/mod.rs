//! What is told while a run goes on: nothing, a plain line a second, or the live view with its keys.
//!
//! The view has a thread of its own, which sleeps but for a glance at the keys ten times a second and a redraw when
//! there is something new. Intervals come from the engine's collector once a second; no worker knows of any of this.

mod heat;
mod keys;
mod lights;
mod look;
mod model;
pub mod screen;
mod sections;
mod tally;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossterm::event::{self, Event};
use engine::{Controls, Plan};
use record::document::Document;
use record::{Interval, Second};
use units::Nanos;

use self::keys::Hand;
pub use self::look::Look;
use self::model::Model;
use self::screen::Screen;
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
            Progress::Lines => {
                let _ = writeln!(io::stderr(), "{}", report::second_line(second, &document.load));
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

/// The live view of one run.
pub struct Live {
    look: Look,
    controls: Arc<Controls>,
    running: Option<Running>,
}

/// What the view's thread and the engine's collector have in common.
struct Shared {
    model: Mutex<Model>,
    fresh: AtomicBool,
    over: AtomicBool,
}

struct Running {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl Live {
    pub fn new(look: Look, controls: Arc<Controls>) -> Live {
        Live { look, controls, running: None }
    }

    fn start(&mut self, document: &Document, plan: &Plan, at: Nanos) -> io::Result<()> {
        let screen = Screen::enter()?;
        let shared = Arc::new(Shared {
            model: Mutex::new(Model::new(
                &document.subject.url,
                document.load.clone(),
                document.stamps.clone(),
                plan.drain,
            )),
            fresh: AtomicBool::new(true),
            over: AtomicBool::new(false),
        });
        let mut viewer = Viewer {
            screen,
            shared: Arc::clone(&shared),
            controls: Arc::clone(&self.controls),
            plan: plan.clone(),
            start: at,
            look: self.look,
            hand: Hand::default(),
            seen: 0,
            drawn: None,
        };
        let thread = thread::Builder::new().name("live-view".to_owned()).spawn(move || viewer.view());
        match thread {
            Ok(thread) => {
                self.running = Some(Running { shared, thread });
                Ok(())
            }
            Err(error) => {
                screen::leave();
                Err(error)
            }
        }
    }

    fn interval(&self, interval: &Interval, second: &Second) {
        if let Some(running) = &self.running {
            lock(&running.shared.model).add(interval, second);
            running.shared.fresh.store(true, Ordering::Release);
        }
    }

    fn end(&mut self) {
        if let Some(Running { shared, thread }) = self.running.take() {
            shared.over.store(true, Ordering::Release);
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

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(model: &Mutex<Model>) -> MutexGuard<'_, Model> {
    model.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often the keys are looked at: a key seems to act at once, and ten wake-ups a second cost nothing.
const GLANCE: Duration = Duration::from_millis(100);

/// How long the viewer may take to see that the run is over.
const LONGEST_FAREWELL: Duration = Duration::from_secs(1);

/// How often the clock on the screen moves when nothing else is new.
const TICK: Nanos = Nanos::from_millis(500);

/// The thread that draws and reads keys.
struct Viewer {
    screen: Screen,
    shared: Arc<Shared>,
    controls: Arc<Controls>,
    plan: Plan,
    start: Nanos,
    look: Look,
    hand: Hand,
    /// How many changes of the load are on the screen.
    seen: usize,
    drawn: Option<Nanos>,
}

impl Viewer {
    fn view(&mut self) {
        while !self.shared.over.load(Ordering::Acquire) {
            if self.draw_if_due().is_err() {
                // The terminal has gone; the run has not.
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
                let model = lock(&self.shared.model).load.model;
                self.hand.press(key, model, &self.controls);
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
        let mut model = lock(&self.shared.model);
        model.now = now.saturating_sub(self.start);
        for change in self.controls.changes(self.seen) {
            model.steer(change);
            self.seen += 1;
        }
        model.window = self.controls.window(&self.plan);
        let foot = Foot { said: self.hand.said.as_deref(), help: self.hand.help };
        let look = self.look;
        self.screen.draw(|frame| view::draw(frame, &model, foot, look))?;
        // A terminal may take its time; the collector, which adds to the model, must not wait for it.
        drop(model);
        self.screen.show()
    }
}
