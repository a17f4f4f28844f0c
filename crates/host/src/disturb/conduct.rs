//! One episode after another: waits for its begin, does the deed, waits for its end, undoes it, and tells.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

use schedule::{Episode, Episodes};
use units::Nanos;

use super::error::DisturbError;
use super::guard::Guard;

/// Something that can be done and undone again and again.
pub trait Deed {
    /// Shortly before the begin: what takes time and disturbs nobody. Undone by [`Deed::begin`] where that skips.
    ///
    /// # Errors
    ///
    /// As [`Deed::begin`].
    fn ready(&mut self, _end: Option<Nanos>, _guard: &mut Guard) -> Result<(), DisturbError> {
        Ok(())
    }

    /// Does it. `end` is when it will be undone, on the monotonic clock, where that is known.
    ///
    /// # Errors
    ///
    /// [`DisturbError::Gone`] where nothing is left to disturb; others end the run.
    fn begin(&mut self, end: Option<Nanos>, guard: &mut Guard) -> Result<Began, DisturbError>;

    /// Undoes what has begun.
    ///
    /// # Errors
    ///
    /// As [`Deed::begin`].
    fn end(&mut self, guard: &mut Guard) -> Result<Done, DisturbError>;
}

/// What came of the begin of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Began {
    /// In effect from then on, on the monotonic clock.
    At(Nanos),
    /// Not done, and why.
    Skipped(String),
}

/// What an episode really was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Done {
    /// In effect from then on, on the monotonic clock: never before it was.
    pub begin: Nanos,
    /// In effect until then: never after it was.
    pub end: Nanos,
    pub facts: Vec<Fact>,
    /// For people, where something was not as intended.
    pub note: Option<String>,
}

/// A figure of an episode, with its unit in its name, such as `cpu_ns`.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    pub name: String,
    pub value: u64,
}

/// One episode of the schedule, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub episode: Episode,
    /// `None` where it was not done; the note says why.
    pub done: Option<Done>,
    pub note: Option<String>,
}

/// Why a run of disturbances was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// All that was planned has been.
    Schedule,
    /// Somebody asked for the end.
    Stopped,
    /// Who was disturbed is no more.
    VictimGone,
}

/// Does the episodes of a run that began at `zero`, and tells each as it ends. Whatever ends it, nothing is left
/// done.
///
/// # Errors
///
/// What could not be done, or undone.
///
/// # Cost
///
/// Looks at `stop` fifty times a second.
pub fn conduct(
    episodes: &Episodes,
    zero: Nanos,
    (deed, guard): (&mut dyn Deed, &mut Guard),
    stop: &AtomicBool,
    told: &mut dyn FnMut(Told),
) -> Result<Over, DisturbError> {
    // The kernel may fire a timer late by the thread's slack, 50 us unless changed.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    for episode in (0..).map_while(|n| episodes.nth(n)) {
        let (begin, end) = (zero + episode.begin, episode.end.map(|end| zero + end));
        if wait(Some(begin.saturating_sub(LEAD)), stop) == Wait::Stopped {
            return Ok(Over::Stopped);
        }
        guard.check()?;
        if end.is_some_and(|end| clock::now() >= end) {
            let note = Some("missed: this process did not run at that time".to_owned());
            told(Told { episode, done: None, note });
            continue;
        }
        match deed.ready(end, guard) {
            Ok(()) => {}
            Err(DisturbError::Gone { .. }) => return Ok(Over::VictimGone),
            Err(error) => return Err(error),
        }
        // So short that the wish to stop can wait.
        clock::sleep_until(begin);
        let stopped = match deed.begin(end, guard) {
            Ok(Began::At(at)) => {
                // One that began late lasts as long all the same, as far as the next leaves room.
                let length = episode.end.map(|end| end - episode.begin);
                let room = episodes.nth(episode.n + 1).map_or(Nanos::MAX, |next| zero + next.begin);
                let whole = length.map(|length| at.saturating_add(length).min(room.saturating_sub(LEAD)));
                wait(end.max(whole), stop)
            }
            Ok(Began::Skipped(why)) => {
                told(Told { episode, done: None, note: Some(why) });
                continue;
            }
            Err(DisturbError::Gone { .. }) => return Ok(Over::VictimGone),
            Err(error) => return Err(error),
        };
        let done = deed.end(guard)?;
        let note = done.note.clone();
        told(Told { episode, done: Some(done), note });
        if stopped == Wait::Stopped {
            return Ok(Over::Stopped);
        }
    }
    // A relay goes on relaying until the run is over.
    match episodes.until().map(|until| wait(Some(zero + until), stop)) {
        Some(Wait::Stopped) => Ok(Over::Stopped),
        _ => Ok(Over::Schedule),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Due,
    Stopped,
}

/// Sleeps until `due`, or without end, in slices, so that the wish to stop is heard.
fn wait(due: Option<Nanos>, stop: &AtomicBool) -> Wait {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Wait::Stopped;
        }
        let now = clock::now();
        let due = due.unwrap_or(Nanos::MAX);
        if now >= due {
            return Wait::Due;
        }
        clock::sleep_until(due.min(now + SLICE));
    }
}

/// The guard is told in some tenths of a millisecond, on a busy host in a few.
const LEAD: Nanos = Nanos::from_millis(3);

/// Nobody sees that Ctrl-C takes so long.
const SLICE: Nanos = Nanos::from_millis(20);
