//! A command that runs while this host is measured: start, stop, exit code.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

use record::record_mode::with_given_umask;

/// What to run.
#[derive(Debug, Clone)]
pub struct MeasuredCommand {
    /// The program and its arguments; not empty.
    pub line: Vec<OsString>,
    /// How long the command may take to end by itself after a stop is requested, before it gets SIGTERM: a Ctrl-C on a
    /// terminal reaches the command, too.
    pub grace: Nanos,
}

/// A running command.
pub(super) struct Running {
    child: Child,
    status: Option<ExitStatus>,
    grace: Nanos,
    /// When the stop was requested.
    asked: Option<Nanos>,
    signaled: bool,
}

impl Running {
    /// # Errors
    ///
    /// When the command cannot be started.
    pub fn start(command: &MeasuredCommand) -> anyhow::Result<Running> {
        let (program, arguments) = command.line.split_first().context("there is no command after --")?;
        let child = with_given_umask(|| Command::new(program).args(arguments).spawn());
        let shown = program.to_string_lossy();
        let child = child.with_context(|| format!("cannot run `{shown}`; is it installed and in PATH?"))?;
        Ok(Running { child, status: None, grace: command.grace, asked: None, signaled: false })
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Stops the command: first gives it time to react to a signal from the terminal, then sends one. Call repeatedly.
    pub fn end(&mut self) {
        let now = clock::now();
        let since = *self.asked.get_or_insert(now);
        if !self.signaled && now >= since + self.grace && !self.has_ended() {
            self.signaled = true;
            if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }

    /// The exit code as a shell reports it: 128 plus the signal if it was killed.
    pub fn exit_code(&self) -> Option<u8> {
        let status = self.status?;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        u8::try_from(code?).ok()
    }
}
