//! The command that `hiccup -- COMMAND` runs while it measures: start, stop, exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, ensure};
use run::record_mode::with_given_umask;
use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

/// Ctrl-C on a terminal also reaches the command: it has this long to end by itself.
const GRACE: Nanos = Nanos::from_secs(5);

/// Checks that the program of `command` exists, before anything is measured. An empty command is accepted.
///
/// # Errors
///
/// When the program does not exist.
pub fn check(command: &[OsString]) -> anyhow::Result<()> {
    let Some(program) = command.first() else { return Ok(()) };
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(program);
    let found = if path.components().count() > 1 {
        is_program(path)
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| is_program(&folder.join(path)))
    };
    ensure!(found, "cannot run `{}`: no such program; is it installed and in PATH?", path.display());
    Ok(())
}

/// A running command.
pub struct Running {
    child: Child,
    status: Option<ExitStatus>,
    /// When the stop was requested.
    asked: Option<Nanos>,
    signaled: bool,
}

impl Running {
    /// # Errors
    ///
    /// When the command cannot be started.
    pub fn start(command: &[OsString]) -> anyhow::Result<Running> {
        let (program, arguments) = command.split_first().context("there is no command after --")?;
        let child = with_given_umask(|| Command::new(program).args(arguments).spawn());
        let shown = program.to_string_lossy();
        let child = child.with_context(|| format!("cannot run `{shown}`; is it installed and in PATH?"))?;
        Ok(Running { child, status: None, asked: None, signaled: false })
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Stops the command: waits for it to react to a signal from the terminal, then sends one. Call repeatedly.
    pub fn end(&mut self) {
        let now = clock::now();
        let since = *self.asked.get_or_insert(now);
        let grace = if io::stdin().is_terminal() { GRACE } else { Nanos::ZERO };
        if !self.signaled && now >= since + grace && !self.has_ended() {
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
