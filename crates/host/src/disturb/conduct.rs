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

    /// It began late, and will be undone at `end`, which is later than was said.
    ///
    /// # Errors
    ///
    /// As [`Deed::begin`]; it is ended then.
    fn prolong(&mut self, _end: Nanos, _guard: &mut Guard) -> Result<(), DisturbError> {
        Ok(())
    }

    /// Does it. `end` is when it will be undone, on the monotonic clock, where that is known.
    ///
    /// # Errors
    ///
    /// [`DisturbError::Gone`] where nothing is left to disturb; others end the run.
    fn begin(&mut self, end: Option<Nanos>, run: &mut Run<'_>) -> Result<Began, DisturbError>;

    /// Undoes what has begun, and tells what it was, also where it could not be undone well.
    fn end(&mut self, guard: &mut Guard) -> Ended;
}

/// What a disturbance needs to go on: its guard, and that nobody wants it to stop.
#[derive(Debug)]
pub struct Run<'a> {
    pub(super) guard: &'a mut Guard,
    pub(super) stop: &'a AtomicBool,
}

impl Run<'_> {
    /// # Errors
    ///
    /// [`DisturbError::NoGuard`].
    pub(super) fn goes_on(&mut self) -> Result<bool, DisturbError> {
        self.guard.check()?;
        Ok(!self.stop.load(Ordering::Relaxed))
    }
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
    /// In effect until then: never after it was. `None` where nobody knows.
    pub end: Option<Nanos>,
    pub facts: Vec<Fact>,
    /// For people, where something was not as intended.
    pub note: Option<String>,
}

/// What came of the end of an episode.
#[derive(Debug)]
pub struct Ended {
    /// `None` where nothing can be said of it.
    pub done: Option<Done>,
    pub result: Result<(), DisturbError>,
}

impl From<Result<Done, DisturbError>> for Ended {
    fn from(result: Result<Done, DisturbError>) -> Ended {
        match result {
            Ok(done) => Ended { done: Some(done), result: Ok(()) },
            Err(error) => Ended { done: None, result: Err(error) },
        }
    }
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
/// Looks at `stop` and the guard fifty times a second.
pub fn conduct(
    episodes: &Episodes,
    zero: Nanos,
    (deed, guard): (&mut dyn Deed, &mut Guard),
    stop: &AtomicBool,
    told: &mut dyn FnMut(Told),
) -> Result<Over, DisturbError> {
    // The kernel may fire a timer late by the thread's slack, 50 us unless changed.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut run = Run { guard, stop };
    for episode in (0..).map_while(|n| episodes.nth(n)) {
        let begin = zero.saturating_add(episode.begin);
        let end = episode.end.map(|end| zero.saturating_add(end));
        if wait(Some(begin.saturating_sub(LEAD)), &mut run)? == Wait::Stopped {
            return Ok(Over::Stopped);
        }
        if is_past(end) {
            told(Told { episode, done: None, note: Some(MISSED.to_owned()) });
            continue;
        }
        match deed.ready(end, run.guard) {
            Ok(()) => {}
            Err(DisturbError::Gone { .. }) => return Ok(Over::VictimGone),
            Err(error) => return Err(error),
        }
        // So short that the wish to stop can wait.
        clock::sleep_until(begin);
        let waited = match deed.begin(end, &mut run) {
            Ok(Began::At(at)) => {
                let room = episodes.nth(episode.n + 1).map(|next| zero.saturating_add(next.begin));
                last(deed, end, length_within(&episode, at, room), &mut run)
            }
            Ok(Began::Skipped(why)) => {
                told(Told { episode, done: None, note: Some(why) });
                continue;
            }
            Err(DisturbError::Gone { .. }) => return Ok(Over::VictimGone),
            Err(error) => return Err(error),
        };
        let Ended { done, result } = deed.end(run.guard);
        if let Some(done) = done {
            let note = done.note.clone();
            told(Told { episode, done: Some(done), note });
        }
        result?;
        if waited? == Wait::Stopped {
            return Ok(Over::Stopped);
        }
    }
    // A relay goes on relaying until the run is over.
    match episodes.until().map(|until| wait(Some(zero.saturating_add(until)), &mut run)).transpose()? {
        Some(Wait::Stopped) => Ok(Over::Stopped),
        _ => Ok(Over::Schedule),
    }
}

/// Whether that time has come.
pub(super) fn is_past(end: Option<Nanos>) -> bool {
    end.is_some_and(|end| clock::now() >= end)
}

/// One that began late lasts as long all the same, as far as the next leaves room: until when.
fn length_within(episode: &Episode, at: Nanos, room: Option<Nanos>) -> Option<Nanos> {
    let length = episode.end?.saturating_sub(episode.begin);
    Some(at.saturating_add(length).min(room.unwrap_or(Nanos::MAX).saturating_sub(LEAD)))
}

/// Lets what has begun last.
fn last(
    deed: &mut dyn Deed,
    end: Option<Nanos>,
    whole: Option<Nanos>,
    run: &mut Run<'_>,
) -> Result<Wait, DisturbError> {
    if let (Some(end), Some(whole)) = (end, whole)
        && whole > end.saturating_add(LATE)
    {
        deed.prolong(whole, run.guard)?;
    }
    wait(end.max(whole), run)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Due,
    Stopped,
}

/// Sleeps until `due`, or without end, in slices, so that the wish to stop is heard, and the end of the guard.
fn wait(due: Option<Nanos>, run: &mut Run<'_>) -> Result<Wait, DisturbError> {
    loop {
        if !run.goes_on()? {
            return Ok(Wait::Stopped);
        }
        let now = clock::now();
        let due = due.unwrap_or(Nanos::MAX);
        if now >= due {
            return Ok(Wait::Due);
        }
        clock::sleep_until(due.min(now + SLICE));
    }
}

pub(super) const MISSED: &str = "missed: this process did not run at that time";

/// Some lateness the guard puts up with; it is told of more.
const LATE: Nanos = Nanos::from_millis(100);

/// The guard is told in some tenths of a millisecond, on a busy host in a few.
const LEAD: Nanos = Nanos::from_millis(3);

/// Nobody sees that Ctrl-C takes so long.
const SLICE: Nanos = Nanos::from_millis(20);

#[cfg(test)]
mod tests {
    use schedule::Timing;

    use super::*;
    use crate::disturb::testing::agreeing_guard;

    /// Takes a time to begin, and does nothing.
    struct Slow {
        takes: Nanos,
        begun: Nanos,
        prolonged: Option<Nanos>,
    }

    impl Deed for Slow {
        fn begin(&mut self, _end: Option<Nanos>, _run: &mut Run<'_>) -> Result<Began, DisturbError> {
            clock::sleep_until(clock::now() + self.takes);
            self.begun = clock::now();
            Ok(Began::At(self.begun))
        }

        fn prolong(&mut self, end: Nanos, _guard: &mut Guard) -> Result<(), DisturbError> {
            self.prolonged = Some(end);
            Ok(())
        }

        fn end(&mut self, _guard: &mut Guard) -> Ended {
            Ok(Done { begin: self.begun, end: Some(clock::now()), ..Done::default() }).into()
        }
    }

    fn once(takes: Nanos, timing: Timing, stop: bool) -> (Slow, Vec<Told>, Over) {
        let mut deed = Slow { takes, begun: Nanos::ZERO, prolonged: None };
        let (mut told, mut guard) = (Vec::new(), agreeing_guard());
        let episodes = Episodes::new(timing).unwrap();
        let stop = AtomicBool::new(stop);
        let over =
            conduct(&episodes, clock::now(), (&mut deed, &mut guard), &stop, &mut |one| told.push(one));
        (deed, told, over.unwrap())
    }

    /// If this fails, the guard ends as overdue what only began late.
    #[test]
    fn the_guard_is_told_of_one_that_began_late() {
        let length = Nanos::from_millis(10);
        let timing = Timing { length: Some(length), ..Timing::default() };
        let (deed, told, over) = once(LATE + length, timing, false);
        assert_eq!((deed.prolonged, over), (Some(deed.begun + length), Over::Schedule));
        let done = told[0].done.as_ref().unwrap();
        assert!(done.end.unwrap() >= deed.begun + length, "{done:?}");
    }

    #[test]
    fn a_begin_beyond_the_end_of_time_does_not_come() {
        let start = Some(Nanos(u64::MAX - 1_000));
        let timing = Timing { start, length: Some(Nanos(1)), ..Timing::default() };
        let (_, told, over) = once(Nanos::ZERO, timing, true);
        assert_eq!((told.len(), over), (0, Over::Stopped));
    }
}
