//! A process that ends the running trial if this one is killed.
//!
//! It reads process groups from a pipe, and kills the last one when the pipe closes, which the kernel does however this
//! process ends. It has a separate process group, so Ctrl-C on a terminal does not reach it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context;

/// The guard of an experiment.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

const SCRIPT: &str = r#"group=
while read -r line; do group=$line; done
[ -z "$group" ] || kill -s KILL -- "-$group""#;

impl Guard {
    /// # Errors
    ///
    /// When the shell cannot be started.
    pub(crate) fn start() -> anyhow::Result<Guard> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).process_group(0).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start `sh`, which guards the runs")?;
        let pipe = child.stdin.take();
        Ok(Guard { child, pipe })
    }

    /// The process of the guard, which is not part of a trial.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Names the group of the running trial; `None` when it has ended.
    pub(crate) fn watch(&mut self, group: Option<u32>) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let line = group.map_or(String::new(), |group| group.to_string());
        pipe.write_all(format!("{line}\n").as_bytes())
    }

    /// What the kernel does when this process is killed.
    #[cfg(test)]
    pub(crate) fn close_as_if_killed(&mut self) {
        drop(self.pipe.take());
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.watch(None);
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}
