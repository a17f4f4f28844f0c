//! Pauses a process: by SIGSTOP and SIGCONT, or by freezing a control group.

use rustix::process::Signal;
use units::Nanos;

use super::claim::Claim;
use super::conduct::{Began, Disturbance, Done, Ended, MISSED, Run, is_past};
use super::error::DisturbError;
use super::freezer::{BETWEEN_LOOKS, Freezer, Scope};
use super::guard::{Armed, Guard};
use super::undo::{Undo, Version, Who};
use super::victim::Victim;

/// How the process is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseMethod {
    /// SIGSTOP, which the process's parent can see, and which a debugger or a shell may undo.
    Signal,
    /// The freezer of a control group, which no other process notices.
    Freezer { scope: Scope, version: Option<Version> },
}

/// A disturbance that stops a process for the length of each episode.
#[derive(Debug)]
pub struct Pause {
    victim: Victim,
    _claim: Claim,
    /// `None` if signals do it.
    freezer: Option<Freezer>,
    armed: Option<Armed>,
    /// Since when it has been stopped.
    since: Option<Nanos>,
    /// When the guard woke it, because this process was late.
    woken: Option<Nanos>,
}

impl Pause {
    /// Prepares to pause `victim`; it keeps running until an episode begins.
    ///
    /// # Errors
    ///
    /// When the method is not available or not permitted, or another process pauses `victim`.
    pub fn prepare(victim: Victim, means: PauseMethod, guard: &mut Guard) -> Result<Pause, DisturbError> {
        let claim = Claim::take(&victim)?;
        let freezer = match means {
            PauseMethod::Signal => None,
            PauseMethod::Freezer { scope, version } => {
                Some(Freezer::prepare(&victim, scope, version, guard)?)
            }
        };
        Ok(Pause { victim, _claim: claim, freezer, armed: None, since: None, woken: None })
    }

    /// Call only when nothing is left to be undone.
    fn disarm(&mut self, guard: &mut Guard) -> Result<(), DisturbError> {
        let Some(armed) = self.armed.take() else { return Ok(()) };
        let woken = guard.disarm(&armed)?;
        self.woken = self.woken.or(woken);
        Ok(())
    }

    fn undo(&self) -> Undo {
        let who = Who { pid: self.victim.pid(), started: self.victim.started() };
        self.freezer.as_ref().map_or(Undo::Continue(who), Freezer::undo)
    }

    /// Whether it is stopped or about to be, by any process.
    fn is_held(&self) -> bool {
        self.freezer.as_ref().map_or_else(|| self.victim.is_stopped(), Freezer::is_frozen)
    }

    fn is_frozen_completely(&self) -> bool {
        self.freezer.as_ref().map_or_else(|| self.victim.is_stopped(), Freezer::is_frozen_completely)
    }

    /// When the victim was seen to have noticed SIGSTOP; `None` if it had not by `end`, or the run is to stop.
    fn noticed(&self, end: Option<Nanos>, run: &mut Run<'_>) -> Result<Option<Nanos>, DisturbError> {
        while !self.victim.has_noticed_stop() {
            if self.victim.has_ended() {
                return Err(DisturbError::Gone { pid: self.victim.pid() });
            }
            if is_past(end) || !run.should_continue()? {
                return Ok(None);
            }
            clock::sleep_until(clock::now() + BETWEEN_LOOKS);
        }
        Ok(Some(clock::now()))
    }

    fn release(&self) -> Result<(), DisturbError> {
        let released = match &self.freezer {
            None => self.victim.signal(Signal::CONT),
            Some(freezer) => freezer.thaw(),
        };
        match released {
            Err(DisturbError::Gone { .. }) => Ok(()),
            released => released,
        }
    }

    /// Until when it was stopped, as far as that is known, and a note about it.
    fn account(&self, begin: Nanos, stood: bool, end: Nanos) -> (Option<Nanos>, Option<&'static str>) {
        match (self.woken.filter(|&woken| woken >= begin), stood) {
            (Some(woken), _) => (
                Some(woken.min(end)),
                Some("the guard ended it: this process did not run when it was due to end it"),
            ),
            (None, _) if self.victim.has_ended() => (Some(end), Some("it ended in the meantime")),
            (None, false) => {
                (None, Some("it was not stopped at the end: something else woke it, at an unknown time"))
            }
            (None, true) => (Some(end), None),
        }
    }
}

impl Disturbance for Pause {
    fn get_ready(&mut self, end: Option<Nanos>, guard: &mut Guard) -> Result<(), DisturbError> {
        if self.victim.has_ended() {
            return Err(DisturbError::Gone { pid: self.victim.pid() });
        }
        self.woken = None;
        match guard.arm(&self.undo(), end) {
            Ok(armed) => self.armed = Some(armed),
            // It ended while the guard looked for it.
            Err(_) if self.victim.has_ended() => return Err(DisturbError::Gone { pid: self.victim.pid() }),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn begin(&mut self, end: Option<Nanos>, run: &mut Run<'_>) -> Result<Began, DisturbError> {
        // What the guard has undone as overdue is no longer in effect.
        if is_past(end) {
            self.disarm(run.guard)?;
            return Ok(Began::Skipped(MISSED.to_owned()));
        }
        // Waking it afterwards would undo what somebody else did.
        if self.is_held() {
            self.disarm(run.guard)?;
            return Ok(Began::Skipped("it was already stopped by something else".to_owned()));
        }
        let stopped = match &self.freezer {
            None => self.victim.signal(Signal::STOP).and_then(|()| self.noticed(end, run)),
            Some(freezer) => freezer.freeze(end, run),
        };
        if let Ok(Some(begin)) = stopped {
            self.since = Some(begin);
            return Ok(Began::At(begin));
        }
        self.release()?;
        self.disarm(run.guard)?;
        stopped.map(|_| Began::Skipped(NEVER_STILL.to_owned()))
    }

    fn prolong(&mut self, end: Nanos, guard: &mut Guard) -> Result<(), DisturbError> {
        let longer = guard.arm(&self.undo(), Some(end))?;
        self.disarm(guard)?;
        self.armed = Some(longer);
        Ok(())
    }

    fn end(&mut self, guard: &mut Guard) -> Ended {
        let begin = self.since.expect("only an episode that has begun is ended");
        let (stood, now) = (self.is_frozen_completely(), clock::now());
        let released = self.release();
        if released.is_err() {
            // It stays stopped until the guard wakes it.
            let note = Some("it could not be ended here; the guard has to end it".to_owned());
            return Ended { done: Some(Done { begin, note, ..Done::default() }), result: released };
        }
        self.since = None;
        let result = self.disarm(guard);
        let (end, note) = self.account(begin, stood, now);
        let note = note.map(str::to_owned);
        Ended { done: Some(Done { begin, end, facts: Vec::new(), note }), result }
    }
}

/// For a freeze that the kernel did not complete, and for a signal that the process did not notice.
const NEVER_STILL: &str = "not all of it had stopped before the end: a part may wait for a CPU, or in the kernel \
                           where it cannot be stopped";

impl Drop for Pause {
    fn drop(&mut self) {
        if self.since.is_some() {
            let _ = self.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::disturb::testing::{Sleeper, agreeing_guard};

    /// A control group simulated by files in a folder, with the given content of `cgroup.events`.
    fn pause(group: &Path, events: &str) -> (Pause, Sleeper) {
        fs::write(group.join("cgroup.freeze"), "0").unwrap();
        fs::write(group.join("cgroup.events"), events).unwrap();
        let sleeper = Sleeper::start();
        let victim = Victim::find(sleeper.pid()).unwrap();
        let freezer = Some(Freezer::open(Version::Two, group.to_owned(), None).unwrap());
        let claim = Claim::take(&victim).unwrap();
        (Pause { victim, _claim: claim, freezer, armed: None, since: None, woken: None }, sleeper)
    }

    const RUNS: &str = "populated 1\nfrozen 0\n";
    const STILL: &str = "populated 1\nfrozen 1\n";

    fn began(pause: &mut Pause, end: Nanos, stop: bool) -> Began {
        let (mut guard, stop) = (agreeing_guard(), AtomicBool::new(stop));
        pause.get_ready(Some(end), &mut guard).unwrap();
        pause.begin(Some(end), &mut Run { guard: &mut guard, stop: &stop }).unwrap()
    }

    /// If this fails, a pause is recorded that never happened.
    #[test]
    fn a_process_that_never_stopped_was_not_paused() {
        let group = tempfile::tempdir().unwrap();
        let (mut pause, _sleeper) = pause(group.path(), RUNS);
        // Long enough to be ready before it on a busy host.
        let end = clock::now() + Nanos::from_millis(500);
        assert_eq!(began(&mut pause, end, false), Began::Skipped(NEVER_STILL.to_owned()));
        assert!(clock::now() >= end && pause.armed.is_none());
        assert_eq!(fs::read_to_string(group.path().join("cgroup.freeze")).unwrap(), "0");
    }

    #[test]
    fn a_request_to_stop_is_noticed_during_a_freeze() {
        let group = tempfile::tempdir().unwrap();
        let (mut pause, _sleeper) = pause(group.path(), RUNS);
        let end = clock::now() + Nanos::from_secs(20);
        assert!(matches!(began(&mut pause, end, true), Began::Skipped(_)));
        assert!(clock::now() < end);
        assert_eq!(fs::read_to_string(group.path().join("cgroup.freeze")).unwrap(), "0");
    }

    /// If this fails, a pause that somebody else ended is recorded as having lasted.
    #[test]
    fn a_pause_found_ended_has_no_known_end() {
        for (at_the_end, known) in [(STILL, true), (RUNS, false)] {
            let group = tempfile::tempdir().unwrap();
            let (mut pause, _sleeper) = pause(group.path(), STILL);
            assert!(matches!(began(&mut pause, Nanos::MAX, false), Began::At(_)));
            fs::write(group.path().join("cgroup.events"), at_the_end).unwrap();
            let done = pause.end(&mut agreeing_guard()).done.unwrap();
            assert_eq!((done.end.is_some(), done.note.is_none()), (known, known), "{done:?}");
        }
    }

    /// If this fails, a disturbance that the guard has given up as overdue is applied, and no guard would undo it.
    #[test]
    fn an_episode_in_the_past_is_not_started() {
        let group = tempfile::tempdir().unwrap();
        let (mut pause, _sleeper) = pause(group.path(), STILL);
        assert_eq!(began(&mut pause, clock::now(), false), Began::Skipped(MISSED.to_owned()));
        assert!(pause.armed.is_none());
    }
}
