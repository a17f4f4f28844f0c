//! A process that runs: waiting for its end with a limit, next to another one that must stay alive.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use units::Nanos;

use crate::supervise::Ended;

/// A process that was started.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    descriptor: OwnedFd,
    pub(crate) started: Nanos,
    status: Option<ExitStatus>,
}

/// How waiting for a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wait {
    Ended(Ended),
    /// The other process ended first.
    OtherEnded(Ended),
}

/// How often the limit, the stop flag and the other process are looked at.
const LOOK: Nanos = Nanos::from_millis(20);

impl Running {
    pub(super) fn new(child: Child, started: Nanos) -> io::Result<Running> {
        let descriptor = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Running { child, descriptor, started, status: None })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, once it has; waits up to `patience` for that.
    pub(crate) fn ended_within(&mut self, patience: Nanos) -> io::Result<Option<Ended>> {
        let deadline = clock::now() + patience;
        while self.status.is_none() {
            let left = deadline.saturating_sub(clock::now());
            let timeout =
                Timespec { tv_sec: (left.0 / 1_000_000_000) as _, tv_nsec: (left.0 % 1_000_000_000) as _ };
            let mut waited = [PollFd::new(&self.descriptor, PollFlags::IN)];
            match poll(&mut waited, Some(&timeout)) {
                Ok(0) => break,
                Ok(_) => self.status = Some(self.child.wait()?),
                // A signal to this process: it waits on.
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.status.map(ended))
    }

    /// Waits for its end; ends it when the limit is over, when the user stops the experiment, and when `other` ends.
    pub(crate) fn wait(
        &mut self,
        longest: Nanos,
        stop: &AtomicBool,
        mut other: Option<&mut Running>,
        mut look: impl FnMut(u32),
    ) -> io::Result<Wait> {
        loop {
            look(self.pid());
            if let Some(ended) = self.ended_within(LOOK)? {
                // A client that fails because its server is gone is no failure of the client.
                let gone = other.as_deref_mut().map(|other| other.ended_within(Nanos::ZERO)).transpose()?;
                return Ok(gone.flatten().map_or(Wait::Ended(ended), Wait::OtherEnded));
            }
            let gone = other.as_deref_mut().map(|other| other.ended_within(Nanos::ZERO)).transpose()?;
            let reason = if let Some(gone) = gone.flatten() {
                Wait::OtherEnded(gone)
            } else if stop.load(Ordering::Relaxed) {
                Wait::Ended(Ended::Interrupted)
            } else if clock::now().saturating_sub(self.started) > longest {
                Wait::Ended(Ended::TimedOut(longest))
            } else {
                continue;
            };
            self.end(GRACE)?;
            return Ok(reason);
        }
    }

    /// Asks its group to end, and kills it after `patience`.
    pub(crate) fn end(&mut self, patience: Nanos) -> io::Result<()> {
        if self.ended_within(Nanos::ZERO)?.is_none() {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::TERM);
            self.kill_after(patience)?;
        }
        Ok(())
    }

    /// Waits, and kills it if it has not ended after `patience`. The rest of its tree is killed with the run.
    pub(crate) fn kill_after(&mut self, patience: Nanos) -> io::Result<()> {
        if self.ended_within(patience)?.is_none() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::KILL);
            self.status = Some(self.child.wait()?);
        }
        Ok(())
    }
}

/// How long a load may take to end after SIGTERM; a run of `drive` closes its record in that time.
const GRACE: Nanos = Nanos::from_secs(5);

fn ended(status: ExitStatus) -> Ended {
    status.code().map_or_else(|| Ended::Signaled(status.signal().unwrap_or(0)), Ended::Exited)
}
