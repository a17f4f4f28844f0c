//! A command beside which is measured: started, told to end when we are, and its exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

/// Ctrl-C on a terminal reaches the command, too: it has this long to end by itself.
const GRACE: Nanos = Nanos::from_secs(5);

/// Whether there is such a program, before anything is measured. No command at all is well, too.
///
/// # Errors
///
/// Where there is none.
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
    ensure!(
        found,
        "there is no program `{}` that could be run; is it installed and in PATH?",
        path.display()
    );
    Ok(())
}

/// A command under way.
pub struct Running {
    child: Child,
    status: Option<ExitStatus>,
    /// Since when we are to end.
    asked: Option<Nanos>,
    told: bool,
}

impl Running {
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(command: &[OsString]) -> anyhow::Result<Running> {
        let (program, arguments) = command.split_first().context("no command was given after --")?;
        let child = Command::new(program).args(arguments).spawn();
        let shown = program.to_string_lossy();
        let child = child.with_context(|| format!("cannot run `{shown}`; is it installed and in PATH?"))?;
        Ok(Running { child, status: None, asked: None, told: false })
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// We are to end: where it was not told by a terminal, it is by us. Call again and again.
    pub fn end(&mut self) {
        let now = clock::now();
        let since = *self.asked.get_or_insert(now);
        let grace = if io::stdin().is_terminal() { GRACE } else { Nanos::ZERO };
        if !self.told && now >= since + grace && !self.has_ended() {
            self.told = true;
            if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }

    /// As a shell tells it.
    pub fn exit_code(&self) -> Option<u8> {
        let status = self.status?;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        u8::try_from(code?).ok()
    }
}
