//! Control groups of version 2: one for the server and one for the load of a run, below one of the session.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    /// The load and its observers.
    Load,
}

impl Role {
    const ALL: [Role; 2] = [Role::Server, Role::Load];

    fn name(self) -> &'static str {
        match self {
            Role::Server => "server",
            Role::Load => "load",
        }
    }
}

/// The control groups of a session.
#[derive(Debug)]
pub(crate) struct Groups {
    top: PathBuf,
}

/// How the name of the group of a session begins.
const PREFIX: &str = "parallax-lab-";

/// A group without processes is removed at once; killed processes may take this long to end.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Moves itself into the group and becomes the command: nothing of it is ever outside.
const PLACE: &str = r#"echo $$ > "$0" && exec "$@""#;

impl Groups {
    /// Makes the group of a session. `None` where that is not permitted, or version 2 is not mounted.
    pub(crate) fn make(token: &str) -> Option<Groups> {
        let top = host::own_group()?.join(format!("{PREFIX}{token}"));
        fs::create_dir(&top).ok()?;
        let groups = Groups { top };
        let is_usable = groups.begin_run().is_ok() && {
            let mut probe = groups.placed(Role::Server, &Command::new("true"));
            probe.output().is_ok_and(|output| output.status.success())
        };
        // Dropped, it removes what was made.
        is_usable.then_some(groups)
    }

    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    fn of(&self, role: Role) -> PathBuf {
        self.top.join(role.name())
    }

    /// New groups, whose accounts begin at zero.
    pub(crate) fn begin_run(&self) -> anyhow::Result<()> {
        self.end_run()?;
        for role in Role::ALL {
            let group = self.of(role);
            fs::create_dir(&group).with_context(|| format!("cannot make `{}`", group.display()))?;
        }
        Ok(())
    }

    /// `command`, started within the group.
    pub(crate) fn placed(&self, role: Role, command: &Command) -> Command {
        let mut placed = Command::new("sh");
        placed.arg("-c").arg(PLACE).arg(self.of(role).join("cgroup.procs"));
        placed.arg(command.get_program()).args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            placed.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => placed.env(name, value),
                None => placed.env_remove(name),
            };
        }
        placed
    }

    /// The group's own account, which is complete whatever its processes do.
    pub(crate) fn cpu(&self, role: Role) -> Option<Nanos> {
        let text = fs::read_to_string(self.of(role).join("cpu.stat")).ok()?;
        let usec = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        Some(Nanos(usec.trim().parse::<u64>().ok()?.checked_mul(1_000)?))
    }

    /// Kills everything in the groups.
    pub(crate) fn kill(&self) {
        kill(&self.top);
    }

    /// Removes the groups of a run.
    pub(crate) fn end_run(&self) -> anyhow::Result<()> {
        Role::ALL
            .into_iter()
            .map(|role| self.of(role))
            .filter(|group| group.exists())
            .try_for_each(|group| end_group(&group))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let _ = end_group(&self.top);
    }
}

/// Kills everything in a group and below, and removes it. One that does not exist is ended.
///
/// # Errors
///
/// When it cannot be removed in time.
pub(crate) fn end_group(group: &Path) -> anyhow::Result<()> {
    let deadline = clock::now() + PATIENCE;
    loop {
        match remove(group) {
            Ok(()) => return Ok(()),
            Err(error) if clock::now() >= deadline => {
                bail!("cannot remove the control group `{}`: {error}", group.display())
            }
            Err(_) => kill(group),
        }
        clock::sleep_until(clock::now() + Nanos::from_millis(5));
    }
}

fn kill(group: &Path) {
    // From Linux 5.14 on; it also reaches what is being forked.
    if fs::write(group.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for pid in processes(group) {
        let _ = kill_process(pid, Signal::KILL);
    }
    for inner in below(group) {
        kill(&inner);
    }
}

fn processes(group: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

fn below(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// The kernel removes a group only if it is empty, so this cannot remove more than it should.
fn remove(group: &Path) -> io::Result<()> {
    below(group).iter().try_for_each(|inner| remove(inner))?;
    match fs::remove_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
