//! How to undo a disturbance, in the form it is sent to the guard: one line of text each.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use units::Nanos;

use super::error::DisturbError;
use super::victim::Victim;

/// How to undo one disturbance. Doing it twice, or when nothing was done, is harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undo {
    /// SIGCONT to a process that may have been stopped.
    Continue(Who),
    /// SIGKILL to a process that we started.
    Kill(Who),
    /// Thaws a control group that may have been frozen.
    Thaw { freezer: Version, group: PathBuf },
    /// Moves every process in `group`, which was made for the pause, back to `home`, and removes the group.
    Home { freezer: Version, group: PathBuf, home: PathBuf },
    /// Removes a folder that we made, with one level of files.
    Remove(PathBuf),
}

/// A process by pid and start time, which together are unique until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who {
    pub pid: u32,
    pub started: u64,
}

/// The kind of control group that is frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The freezer controller of version 1.
    One,
    /// `cgroup.freeze` of version 2.
    Two,
}

impl Version {
    pub(crate) fn file(self) -> &'static str {
        match self {
            Version::One => "freezer.state",
            Version::Two => "cgroup.freeze",
        }
    }

    /// The file of a group that shows whether everything in it has stopped.
    pub(crate) fn state(self) -> &'static str {
        match self {
            Version::One => "freezer.state",
            Version::Two => "cgroup.events",
        }
    }

    pub(crate) fn thaw(self) -> &'static [u8] {
        match self {
            Version::One => b"THAWED",
            Version::Two => b"0",
        }
    }

    pub(crate) fn freeze(self) -> &'static [u8] {
        match self {
            Version::One => b"FROZEN",
            Version::Two => b"1",
        }
    }

    fn number(self) -> &'static str {
        match self {
            Version::One => "1",
            Version::Two => "2",
        }
    }

    fn parse(text: &str) -> Option<Version> {
        [Version::One, Version::Two].into_iter().find(|version| version.number() == text)
    }
}

impl Undo {
    /// The line for the guard, without its line feed.
    ///
    /// # Errors
    ///
    /// [`DisturbError::Unwise`] for a path that a line cannot contain.
    pub(crate) fn encode(&self) -> Result<String, DisturbError> {
        let path = |path: &Path| match path.to_str().filter(|text| !text.contains(['\t', '\n'])) {
            Some(text) => Ok(text.to_owned()),
            None => Err(DisturbError::Unwise(format!(
                "`{}` cannot be used here: its name has control characters",
                path.display()
            ))),
        };
        Ok(match self {
            Undo::Continue(who) => format!("continue\t{}\t{}", who.pid, who.started),
            Undo::Kill(who) => format!("kill\t{}\t{}", who.pid, who.started),
            Undo::Thaw { freezer, group } => format!("thaw\t{}\t{}", freezer.number(), path(group)?),
            Undo::Home { freezer, group, home } => {
                format!("home\t{}\t{}\t{}", freezer.number(), path(group)?, path(home)?)
            }
            Undo::Remove(folder) => format!("remove\t{}", path(folder)?),
        })
    }

    /// `None` if the line does not have this form.
    pub(crate) fn parse(line: &str) -> Option<Undo> {
        let fields: Vec<&str> = line.split('\t').collect();
        let who =
            |pid: &str, started: &str| Some(Who { pid: pid.parse().ok()?, started: started.parse().ok()? });
        Some(match *fields.as_slice() {
            ["continue", pid, started] => Undo::Continue(who(pid, started)?),
            ["kill", pid, started] => Undo::Kill(who(pid, started)?),
            ["thaw", freezer, group] => Undo::Thaw { freezer: Version::parse(freezer)?, group: group.into() },
            ["home", freezer, group, home] => {
                Undo::Home { freezer: Version::parse(freezer)?, group: group.into(), home: home.into() }
            }
            ["remove", folder] => Undo::Remove(folder.into()),
            _ => return None,
        })
    }
}

/// An undo that is ready to run: its process or file is open, so that nothing else can take its place.
#[derive(Debug)]
pub(crate) enum Ready {
    Signal(Victim, Signal),
    Write(File, &'static [u8]),
    Home { freezer: Version, group: PathBuf, home: PathBuf },
    Remove(PathBuf),
}

impl Ready {
    /// Opens what the undo needs.
    ///
    /// # Errors
    ///
    /// Why it could not be undone; the disturbance must not be applied in that case.
    pub(crate) fn open(undo: Undo) -> Result<Ready, String> {
        let found = |who: Who| {
            let victim = Victim::find(who.pid).map_err(|error| error.to_string())?;
            match victim.started() == who.started {
                true => Ok(victim),
                false => Err(format!("pid {} is now another process", who.pid)),
            }
        };
        Ok(match undo {
            Undo::Continue(who) => Ready::Signal(found(who)?, Signal::CONT),
            Undo::Kill(who) => Ready::Signal(found(who)?, Signal::KILL),
            Undo::Thaw { freezer, group } => {
                let path = group.join(freezer.file());
                let file = OpenOptions::new().write(true).open(&path);
                Ready::Write(file.map_err(|error| format!("{}: {error}", path.display()))?, freezer.thaw())
            }
            Undo::Home { freezer, group, home } => Ready::Home { freezer, group, home },
            Undo::Remove(folder) => Ready::Remove(folder),
        })
    }

    /// Undoes the disturbance.
    ///
    /// # Errors
    ///
    /// What is left behind, and why.
    pub(crate) fn undo(&mut self) -> Result<(), String> {
        match self {
            Ready::Signal(victim, signal) => match victim.signal(*signal) {
                Ok(()) | Err(DisturbError::Gone { .. }) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
            Ready::Write(file, text) => match file.write_all_at(text, 0) {
                // The group is gone, and everything in it.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => Ok(()),
                result => result.map_err(|error| format!("a control group stays frozen: {error}")),
            },
            Ready::Home { freezer, group, home } => {
                bring_home(*freezer, group, home).map_err(|error| format!("{}: {error}", group.display()))
            }
            Ready::Remove(folder) => match fs::remove_dir_all(&*folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(format!("{} is left behind: {error}", folder.display()))
                }
                _ => Ok(()),
            },
        }
    }
}

/// Thaws a group, moves every process in it to `home`, and removes it. Succeeds if the group is already gone.
pub(crate) fn bring_home(freezer: Version, group: &Path, home: &Path) -> io::Result<()> {
    if !group.exists() {
        return Ok(());
    }
    fs::write(group.join(freezer.file()), freezer.thaw())?;
    let begin = clock::now();
    loop {
        let inside = fs::read_to_string(group.join(PROCS))?;
        for pid in inside.lines() {
            // A process that has just ended cannot be moved, and need not be.
            let _ = fs::write(refuge(home).join(PROCS), pid);
        }
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Processes that have just left are still counted for a moment; a fork may have come after the list was
            // read.
            Err(_) if clock::now() < begin + PATIENCE => clock::sleep_until(clock::now() + BETWEEN_TRIES),
            result => return result,
        }
    }
}

/// The nearest existing group at or above `home` that was not made for a pause: such a group will be removed too.
fn refuge(home: &Path) -> &Path {
    let lasts = |group: &&Path| !is_made(group) && group.join(PROCS).exists();
    home.ancestors().find(lasts).unwrap_or(home)
}

/// Whether a control group was made for a pause, or is inside one that was.
pub(crate) fn is_made(group: &Path) -> bool {
    group.iter().any(|name| name.to_string_lossy().starts_with(MADE))
}

/// The prefix of the names of groups made for a pause.
pub(crate) const MADE: &str = "parallax-pause-";

/// The file of a control group that lists its processes.
pub(crate) const PROCS: &str = "cgroup.procs";

/// How long a group may take to become empty. A dying process with much memory takes tenths of a second.
const PATIENCE: Nanos = Nanos::from_secs(5);
const BETWEEN_TRIES: Nanos = Nanos::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a process is moved back to a group that is about to be removed, and stays in it.
    #[test]
    fn no_process_is_moved_to_a_group_that_is_being_removed_or_gone() {
        let tree = tempfile::tempdir().unwrap();
        let (service, made) = (tree.path().join("service"), tree.path().join("service/parallax-pause-1-2"));
        for group in [tree.path(), &service, &made] {
            fs::create_dir_all(group).unwrap();
            fs::write(group.join(PROCS), "").unwrap();
        }
        for (home, to) in [(&service, &service), (&made, &service), (&service.join("gone/deep"), &service)] {
            assert_eq!(refuge(home), to, "{home:?}");
        }
    }

    #[test]
    fn every_undo_survives_its_line_of_text() {
        let who = Who { pid: 7, started: 99 };
        let (group, home) = (PathBuf::from("/sys/fs/cgroup/a b"), PathBuf::from("/sys/fs/cgroup"));
        for undo in [
            Undo::Continue(who),
            Undo::Kill(who),
            Undo::Thaw { freezer: Version::One, group: group.clone() },
            Undo::Home { freezer: Version::Two, group, home },
            Undo::Remove("/tmp/x".into()),
        ] {
            assert_eq!(Undo::parse(&undo.encode().unwrap()), Some(undo));
        }
        for line in ["", "continue\t7", "kill\tx\t1", "thaw\t3\t/a", "remove\ta\tb", "sing\t1"] {
            assert_eq!(Undo::parse(line), None, "{line}");
        }
        assert!(Undo::Remove("/tmp/a\nkill".into()).encode().is_err());
    }
}
