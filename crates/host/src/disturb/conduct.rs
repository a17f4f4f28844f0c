//! Runs one episode after another: waits for its begin, applies the disturbance, waits for its end, undoes it, and
//! reports it.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

use schedule::{Episode, Episodes};
use units::Nanos;

use super::error::DisturbError;
use super::guard::Guard;

/// Something that can be done and undone repeatedly.
pub trait Disturbance {
    /// Prepares, shortly before the begin, what takes time and disturbs nothing. [`Disturbance::begin`] undoes it
    /// when it skips the episode.
    ///
    /// # Errors
    ///
    /// As for [`Disturbance::begin`].
    fn get_ready(&mut self, _end: Option<Nanos>, _guard: &mut Guard) -> Result<(), DisturbError> {
        Ok(())
    }

    /// Called when it began late, and will therefore be undone at `end`, later than announced.
    ///
    /// # Errors
    ///
    /// As for [`Disturbance::begin`]; the episode is ended in that case.
    fn prolong(&mut self, _end: Nanos, _guard: &mut Guard) -> Result<(), DisturbError> {
        Ok(())
    }

    /// Applies the disturbance. `end` is when it will be undone, on the monotonic clock, if that is known.
    ///
    /// # Errors
    ///
    /// [`DisturbError::Gone`] where nothing is left to disturb; any other error ends the run.
    fn begin(&mut self, end: Option<Nanos>, run: &mut Run<'_>) -> Result<Began, DisturbError>;

    /// Undoes the disturbance, and reports what it was, even where undoing it failed.
    fn end(&mut self, guard: &mut Guard) -> Ended;
}

/// What a disturbance needs to continue: its guard, and the flag that requests a stop.
#[derive(Debug)]
pub struct Run<'a> {
    pub(super) guard: &'a mut Guard,
    pub(super) stop: &'a AtomicBool,
}

impl Run<'_> {
    /// Whether no stop has been requested.
    ///
    /// # Errors
    ///
    /// [`DisturbError::NoGuard`].
    pub(super) fn should_continue(&mut self) -> Result<bool, DisturbError> {
        self.guard.check()?;
        Ok(!self.stop.load(Ordering::Relaxed))
    }
}

/// The result of beginning an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Began {
    /// In effect from this instant on, on the monotonic clock.
    At(Nanos),
    /// Not done, with the reason.
    Skipped(String),
}

/// What happened in an episode.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Done {
    /// In effect from then on, on the monotonic clock: never earlier than it actually was.
    pub begin: Nanos,
    /// In effect until then: never later than it actually was. `None` if unknown.
    pub end: Option<Nanos>,
    /// Figures of the episode.
    pub facts: Vec<Fact>,
    /// A remark for people, if something was not as intended.
    pub note: Option<String>,
}

/// The result of ending an episode.
#[derive(Debug)]
pub struct Ended {
    /// `None` if nothing is known about it.
    pub done: Option<Done>,
    /// Whether it could be undone.
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

/// A figure of an episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Its name with its unit, such as `cpu_ns`.
    pub name: String,
    /// Its value, in that unit.
    pub value: u64,
}

/// One episode of the schedule, and what happened.
#[derive(Debug, Clone, PartialEq)]
pub struct EpisodeReport {
    /// The episode as planned.
    pub episode: Episode,
    /// What actually happened; `None` if it was not done, and the note has the reason.
    pub done: Option<Done>,
    /// A remark for people.
    pub note: Option<String>,
}

/// What happens to an episode, as it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Moment {
    /// It is in effect since `at`, on the monotonic clock.
    Began { episode: Episode, at: Nanos },
    /// It has ended, or was not done.
    Over(EpisodeReport),
}

/// Why a run of disturbances ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The schedule is complete.
    Schedule,
    /// A stop was requested.
    Stopped,
    /// The disturbed process has ended.
    VictimGone,
}

/// Runs the episodes of a run that began at `zero`, and calls `report` as each one begins and ends. However the run ends,
/// nothing is left disturbed.
///
/// # Errors
///
/// What could not be done, or not be undone.
///
/// # Cost
///
/// Checks `stop` and the guard fifty times per second.
pub fn conduct(
    episodes: &Episodes,
    zero: Nanos,
    (disturbance, guard): (&mut dyn Disturbance, &mut Guard),
    stop: &AtomicBool,
    report: &mut dyn FnMut(Moment),
) -> Result<Over, DisturbError> {
    // The kernel may fire a timer late by the thread's slack, 50 us unless changed.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // On a busy host, this thread would miss its instants. If that is not permitted, it has the priority it has.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    let mut run = Run { guard, stop };
    for episode in (0..).map_while(|n| episodes.nth(n)) {
        let begin = zero.saturating_add(episode.begin);
        let end = episode.end.map(|end| zero.saturating_add(end));
        if wait(Some(begin.saturating_sub(LEAD)), &mut run)? == Wait::Stopped {
            return Ok(Over::Stopped);
        }
        if is_past(end) {
            report(Moment::Over(EpisodeReport { episode, done: None, note: Some(MISSED.to_owned()) }));
            continue;
        }
        match disturbance.get_ready(end, run.guard) {
            Ok(()) => {}
            Err(DisturbError::Gone { .. }) => return Ok(Over::VictimGone),
            Err(error) => return Err(error),
        }
        // So short that a request to stop can wait.
        clock::sleep_until(begin);
        let waited = match disturbance.begin(end, &mut run) {
            Ok(Began::At(at)) => {
                report(Moment::Began { episode, at });
                let room = episodes.nth(episode.n + 1).map(|next| zero.saturating_add(next.begin));
                last(disturbance, end, length_within(&episode, at, room), &mut run)
            }
            Ok(Began::Skipped(why)) => {
                report(Moment::Over(EpisodeReport { episode, done: None, note: Some(why) }));
                continue;
            }
            Err(DisturbError::Gone { .. }) => return Ok(Over::VictimGone),
            Err(error) => return Err(error),
        };
        let Ended { done, result } = disturbance.end(run.guard);
        if let Some(done) = done {
            let note = done.note.clone();
            report(Moment::Over(EpisodeReport { episode, done: Some(done), note }));
        }
        result?;
        if waited? == Wait::Stopped {
            return Ok(Over::Stopped);
        }
    }
    // A relay keeps relaying until the run is over.
    match episodes.until().map(|until| wait(Some(zero.saturating_add(until)), &mut run)).transpose()? {
        Some(Wait::Stopped) => Ok(Over::Stopped),
        _ => Ok(Over::Schedule),
    }
}

/// Whether `end` has passed.
pub(super) fn is_past(end: Option<Nanos>) -> bool {
    end.is_some_and(|end| clock::now() >= end)
}

/// An episode that began late still lasts as long as planned, if the next one leaves room: returns its end.
fn length_within(episode: &Episode, at: Nanos, room: Option<Nanos>) -> Option<Nanos> {
    let length = episode.end?.saturating_sub(episode.begin);
    Some(at.saturating_add(length).min(room.unwrap_or(Nanos::MAX).saturating_sub(LEAD)))
}

/// Waits for the end of an episode that has begun.
fn last(
    disturbance: &mut dyn Disturbance,
    end: Option<Nanos>,
    whole: Option<Nanos>,
    run: &mut Run<'_>,
) -> Result<Wait, DisturbError> {
    if let (Some(end), Some(whole)) = (end, whole)
        && whole > end.saturating_add(LATE)
    {
        disturbance.prolong(whole, run.guard)?;
    }
    wait(end.max(whole), run)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Due,
    Stopped,
}

/// Sleeps until `due`, or without end, in slices, so that a request to stop and the end of the guard are noticed.
fn wait(due: Option<Nanos>, run: &mut Run<'_>) -> Result<Wait, DisturbError> {
    loop {
        if !run.should_continue()? {
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

/// The guard tolerates some lateness; it is informed of more.
const LATE: Nanos = Nanos::from_millis(100);

/// Informing the guard takes some tenths of a millisecond, on a busy host a few milliseconds.
const LEAD: Nanos = Nanos::from_millis(3);

/// Above what it disturbs, as the guard is.
const NICENESS: i32 = -10;

/// Not noticeable when stopping with Ctrl-C.
const SLICE: Nanos = Nanos::from_millis(20);

#[cfg(test)]
mod tests {
    use schedule::Timing;

    use super::*;
    use crate::disturb::testing::agreeing_guard;

    /// Takes a given time to begin, and does nothing.
    struct Slow {
        takes: Nanos,
        begun: Nanos,
        prolonged: Option<Nanos>,
    }

    impl Disturbance for Slow {
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

    fn once(takes: Nanos, timing: Timing, stop: bool) -> (Slow, Vec<EpisodeReport>, Over) {
        let mut disturbance = Slow { takes, begun: Nanos::ZERO, prolonged: None };
        let (mut reports, mut guard) = (Vec::new(), agreeing_guard());
        let episodes = Episodes::new(timing).unwrap();
        let stop = AtomicBool::new(stop);
        let over = conduct(&episodes, clock::now(), (&mut disturbance, &mut guard), &stop, &mut |moment| {
            if let Moment::Over(one) = moment {
                reports.push(one);
            }
        });
        (disturbance, reports, over.unwrap())
    }

    /// If this fails, the guard ends as overdue what only began late.
    #[test]
    fn the_guard_is_informed_of_an_episode_that_began_late() {
        let length = Nanos::from_millis(10);
        let timing = Timing { length: Some(length), ..Timing::default() };
        let (disturbance, reports, over) = once(LATE + length, timing, false);
        assert_eq!((disturbance.prolonged, over), (Some(disturbance.begun + length), Over::Schedule));
        let done = reports[0].done.as_ref().unwrap();
        assert!(done.end.unwrap() >= disturbance.begun + length, "{done:?}");
    }

    #[test]
    fn a_begin_beyond_the_end_of_time_is_never_reached() {
        let start = Some(Nanos(u64::MAX - 1_000));
        let timing = Timing { start, length: Some(Nanos(1)), ..Timing::default() };
        let (_, reports, over) = once(Nanos::ZERO, timing, true);
        assert_eq!((reports.len(), over), (0, Over::Stopped));
    }
}
