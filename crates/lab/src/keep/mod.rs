//! Keeps the processes of an experiment: starts them where they can be found again, and ends every one of them.
//!
//! Each process is in a control group of this experiment, where version 2 is writable, has the token of the session in
//! its environment, and is below this process, which adopts orphans. A guard process ends them if this one is killed.

mod cores;
mod group;
mod guard;
mod marked;
mod running;

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use units::Nanos;

pub(crate) use self::cores::{CpuSplit, split, with_cpus};
use self::group::Groups;
pub(crate) use self::group::Role;
use self::guard::GuardProcess;
pub use self::guard::guard;
use self::marked::{MARK, end_marked};
pub(crate) use self::running::{Running, Wait};
use crate::conduct::Subreaper;
use crate::supervise::end_all;
use crate::tree::{below_this_process, reap};

/// What keeps the processes of one session.
#[derive(Debug)]
pub(crate) struct Keeper {
    guard: GuardProcess,
    groups: Option<Groups>,
    token: String,
    _reaper: Subreaper,
}

impl Keeper {
    /// Starts the guard, and makes the control group if that is permitted.
    ///
    /// # Errors
    ///
    /// When no process can be started, or the kernel has no subreapers.
    pub(crate) fn start() -> anyhow::Result<Keeper> {
        anyhow::ensure!(
            Path::new("/proc/thread-self/children").exists(),
            "this kernel does not list children (CONFIG_PROC_CHILDREN): processes would be left behind"
        );
        let token = format!("{}-{}", std::process::id(), clock::wall().0);
        let reaper = Subreaper::become_one()?;
        let mut guard = GuardProcess::start()?;
        guard.order("token", &token)?;
        let groups = Groups::make(&token);
        if let Some(groups) = &groups {
            guard.order("group", &groups.top().display().to_string())?;
        }
        Ok(Keeper { guard, groups, token, _reaper: reaper })
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The control group of the session; `None` where none can be made.
    pub(crate) fn group(&self) -> Option<PathBuf> {
        self.groups.as_ref().map(|groups| groups.top().to_owned())
    }

    /// How processes are found again.
    pub(crate) fn method(&self) -> &'static str {
        if self.groups.is_some() { "control group" } else { "process tree" }
    }

    /// Makes the control groups of the next run.
    ///
    /// # Errors
    ///
    /// When the guard is gone, or a group cannot be made.
    pub(crate) fn begin_run(&mut self) -> anyhow::Result<()> {
        self.guard.check()?;
        self.groups.as_ref().map_or(Ok(()), Groups::begin_run)
    }

    /// Starts `command` with its output in `log`.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub(crate) fn spawn(
        &self,
        role: Role,
        command: Command,
        cpus: Option<&[usize]>,
        log: &File,
    ) -> anyhow::Result<Running> {
        let shown = command.get_program().to_string_lossy().into_owned();
        let mut command = match &self.groups {
            Some(groups) => groups.placed(role, &command),
            None => command,
        };
        let output = log.try_clone().context("cannot share the log")?;
        let errors = log.try_clone().context("cannot share the log")?;
        command.env(MARK, &self.token).process_group(0);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let started = clock::now();
        let child = with_cpus(cpus, || command.spawn());
        let child = child.with_context(|| format!("cannot run `{shown}`; is it installed and in PATH?"))?;
        Running::new(child, started).with_context(|| format!("cannot wait for `{shown}`"))
    }

    /// CPU time of everything that was started in this role during this run.
    pub(crate) fn cpu(&self, role: Role) -> Option<Nanos> {
        self.groups.as_ref().and_then(|groups| groups.cpu(role))
    }

    /// Kills what is left of a run: how many processes there were.
    ///
    /// # Errors
    ///
    /// When one that was killed does not end.
    pub(crate) fn end_run(&mut self) -> anyhow::Result<usize> {
        reap();
        let left = below_this_process(Some(self.guard.pid())).len();
        if let Some(groups) = &self.groups {
            groups.kill();
        }
        end_all(self.guard.pid())?;
        self.groups.as_ref().map_or(Ok(()), Groups::end_run)?;
        Ok(left)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.end_run();
    }
}

/// Ends what an earlier session left: its guard may have been killed, too, or still be at work.
///
/// # Errors
///
/// When a process does not end, or a control group stays.
pub(crate) fn end_remains(token: &str, group: Option<&Path>) -> anyhow::Result<()> {
    let ended = group.map_or(Ok(()), group::end_group);
    end_marked(token);
    ended
}
