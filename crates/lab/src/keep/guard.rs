//! A process that ends the running processes of an experiment if the lab is killed.
//!
//! It holds the reading end of a pipe whose writing end belongs to the lab: when the lab is gone, for whatever reason,
//! the kernel closes the pipe. It is protected like the guard of `disturb`, and is the same program.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, ensure};

use super::end_remains;

/// The lab's handle to the guard.
#[derive(Debug)]
pub(super) struct GuardProcess {
    child: Child,
    /// Closed to end the guard.
    orders: Option<ChildStdin>,
}

const READY: &str = "ready";

impl GuardProcess {
    /// Starts it and waits until it is protected from what may happen to this process.
    pub(super) fn start() -> anyhow::Result<GuardProcess> {
        let context = "cannot start the guard process";
        // Also works if the file has been replaced since: this is the running executable.
        let mut child = Command::new("/proc/self/exe")
            // Under another name: killing the lab by name does not hit its guard.
            .arg0("plx-guard")
            .args(["lab", "guard"])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context(context)?;
        let orders = child.stdin.take();
        let mut reply = String::new();
        let output = child.stdout.take().expect("the guard's output was asked for as a pipe");
        BufReader::new(output).read_line(&mut reply).context(context)?;
        ensure!(reply.trim() == READY, "{context}: it does not become ready");
        Ok(GuardProcess { child, orders })
    }

    /// Its process, which is not part of a run.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Names what it ends: `token` or `group`.
    pub(super) fn order(&mut self, what: &str, value: &str) -> anyhow::Result<()> {
        let orders = self.orders.as_mut().context("the guard is gone")?;
        orders.write_all(format!("{what} {value}\n").as_bytes()).context("the guard process was killed")
    }

    /// Whether it is alive: without it, nothing is started.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait().context("cannot wait for the guard process")?;
        ensure!(ended.is_none(), "the guard process was killed: runs would survive this process");
        Ok(())
    }
}

impl Drop for GuardProcess {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.child.wait();
    }
}

/// The guard process from start to end: waits for the end of its input, and ends what its orders name.
///
/// # Errors
///
/// Why it cannot guard.
pub fn guard() -> io::Result<()> {
    host::disturb::protect()?;
    let mut out = io::stdout();
    writeln!(out, "{READY}")?;
    out.flush()?;
    let mut orders = String::new();
    // Lines that were complete are used, whatever ended the input.
    let _ = io::stdin().lock().read_to_string(&mut orders);
    let named = |what: &str| orders.lines().filter_map(move |line| line.strip_prefix(what)).next_back();
    let group = named("group ").map(Path::new);
    named("token ").map_or(Ok(()), |token| end_remains(token, group)).map_err(io::Error::other)
}
