//! A process that stands still: by SIGSTOP and SIGCONT, or in a control group that is frozen.

use rustix::process::Signal;
use units::Nanos;

use super::conduct::{Began, Deed, Done};
use super::error::DisturbError;
use super::freezer::{Freezer, Scope};
use super::guard::{Armed, Guard};
use super::undo::{Undo, Version, Who};
use super::victim::Victim;

/// How it is made to stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// SIGSTOP, which the process's parent can see, and which a debugger or a shell may undo.
    Signal,
    /// The freezer of a control group, which nobody sees.
    Freezer { scope: Scope, version: Option<Version> },
}

/// The deed.
#[derive(Debug)]
pub struct Pause {
    victim: Victim,
    /// Absent where signals do it.
    freezer: Option<Freezer>,
    armed: Option<Armed>,
    /// Since when it stands still.
    since: Option<Nanos>,
}

impl Pause {
    /// Prepares to pause `victim`; it runs on until an episode begins.
    ///
    /// # Errors
    ///
    /// When the means is not there, or not permitted.
    pub fn prepare(victim: Victim, means: Means, guard: &mut Guard) -> Result<Pause, DisturbError> {
        let freezer = match means {
            Means::Signal => None,
            Means::Freezer { scope, version } => Some(Freezer::prepare(&victim, scope, version, guard)?),
        };
        Ok(Pause { victim, freezer, armed: None, since: None })
    }

    fn disarm(&mut self, guard: &mut Guard) -> Result<(), DisturbError> {
        self.armed.take().map_or(Ok(()), |armed| guard.disarm(&armed))
    }

    fn undo(&self) -> Undo {
        let who = Who { pid: self.victim.pid(), started: self.victim.started() };
        self.freezer.as_ref().map_or(Undo::Continue(who), Freezer::undo)
    }

    fn stands_still(&self) -> bool {
        self.freezer.as_ref().map_or_else(|| self.victim.is_stopped(), Freezer::is_frozen)
    }

    fn release(&self) -> Result<(), DisturbError> {
        match &self.freezer {
            None => self.victim.signal(Signal::CONT),
            Some(freezer) => freezer.thaw(),
        }
    }
}

impl Deed for Pause {
    fn ready(&mut self, end: Option<Nanos>, guard: &mut Guard) -> Result<(), DisturbError> {
        if self.victim.has_ended() {
            return Err(DisturbError::Gone { pid: self.victim.pid() });
        }
        self.armed = Some(guard.arm(&self.undo(), end)?);
        Ok(())
    }

    fn begin(&mut self, end: Option<Nanos>, guard: &mut Guard) -> Result<Began, DisturbError> {
        // To wake it afterwards would undo what somebody else did.
        if self.stands_still() {
            self.disarm(guard)?;
            return Ok(Began::Skipped("it stood still already, by somebody else's doing".to_owned()));
        }
        let stopped = match &self.freezer {
            None => self.victim.signal(Signal::STOP).map(|()| Some(clock::now())),
            Some(freezer) => freezer.freeze(end),
        };
        match stopped {
            Ok(begin) => {
                let begin = begin.unwrap_or_else(clock::now);
                self.since = Some(begin);
                Ok(Began::At(begin))
            }
            Err(error) => {
                let _ = self.release();
                self.disarm(guard)?;
                Err(error)
            }
        }
    }

    fn end(&mut self, guard: &mut Guard) -> Result<Done, DisturbError> {
        let begin = self.since.take().expect("only an episode that has begun is ended");
        let stood = self.stands_still();
        let end = clock::now();
        let released = self.release();
        self.disarm(guard)?;
        let note = match (stood, self.victim.has_ended()) {
            (_, true) => Some("it ended meanwhile".to_owned()),
            (false, _) => {
                Some("it was not seen to stand still at the end: somebody else may have woken it".to_owned())
            }
            (true, _) => None,
        };
        match released {
            Err(DisturbError::Gone { .. }) | Ok(()) => Ok(Done { begin, end, facts: Vec::new(), note }),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if self.since.is_some() {
            let _ = self.release();
        }
    }
}
