//! The control group in which a process is frozen: the whole group it is in, or one made for the process alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use units::Nanos;

use super::conduct::{Run, is_past};
use super::error::DisturbError;
use super::guard::Guard;
use super::undo::{MADE, PROCS, Undo, Version, bring_home, is_made};
use super::victim::Victim;
use crate::cgroup::{Hierarchy, group_of};

/// What to freeze.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The process alone: for the time of the run it is moved to a new group below the one it is in.
    Process,
    /// The group that the process is in, with everything in it.
    Group,
}

/// A group that can be frozen and thawed.
#[derive(Debug)]
pub(crate) struct Freezer {
    version: Version,
    group: PathBuf,
    /// Freezes and thaws the group. Kept open: without a free descriptor it could be frozen and then not thawed.
    switch: File,
    /// Shows whether everything in the group has stopped.
    state: File,
    /// The group the process was in, when a group was made for it.
    home: Option<PathBuf>,
}

impl Freezer {
    /// Prepares the group. `version` selects one of the two kinds of groups.
    ///
    /// # Errors
    ///
    /// When there is no such kind, no permission, or freezing it would freeze this process too.
    pub(crate) fn prepare(
        victim: &Victim,
        scope: Scope,
        version: Option<Version>,
        guard: &mut Guard,
    ) -> Result<Freezer, DisturbError> {
        let pid = victim.pid();
        match scope {
            Scope::Group => {
                let (version, group) = whole(pid, version)?;
                Freezer::open(version, group, None)
            }
            Scope::Process => {
                let (version, group) = find(pid, version)?.remove(0);
                Freezer::alone(victim, version, group, guard)
            }
        }
    }

    fn alone(
        victim: &Victim,
        version: Version,
        home: PathBuf,
        guard: &mut Guard,
    ) -> Result<Freezer, DisturbError> {
        let pid = victim.pid();
        refuse_made(pid, &home)?;
        remove_stale(&home);
        let name = format!("{MADE}{}-{pid}", std::process::id());
        let group = home.join(name);
        if group.exists() {
            return Err(DisturbError::Unwise(format!("{} already exists; remove it", group.display())));
        }
        // For the whole run: it is undone when the guard's orders end, after this process has undone it itself.
        let _for_good =
            guard.arm(&Undo::Home { freezer: version, group: group.clone(), home: home.clone() }, None)?;
        let shown = group.display().to_string();
        fs::create_dir(&group).map_err(denied(&format!("make the control group {shown}")))?;
        // From here on the guard removes it if this function fails.
        if !group.join(version.file()).exists() {
            return Err(DisturbError::Lacking { what: "freezer in its control groups", instead: INSTEAD });
        }
        let freezer = Freezer::open(version, group, Some(home))?;
        fs::write(freezer.group.join(PROCS), pid.to_string())
            .map_err(denied(&format!("move pid {pid} to {shown}")))?;
        Ok(freezer)
    }

    /// What undoes a freeze.
    pub(crate) fn undo(&self) -> Undo {
        Undo::Thaw { freezer: self.version, group: self.group.clone() }
    }

    pub(super) fn open(
        version: Version,
        group: PathBuf,
        home: Option<PathBuf>,
    ) -> Result<Freezer, DisturbError> {
        let shown = group.display().to_string();
        let (switch, state) = (group.join(version.file()), group.join(version.state()));
        let switch = OpenOptions::new().read(true).write(true).open(switch);
        let switch = switch.map_err(denied(&format!("freeze {shown}")))?;
        let state = File::open(state).map_err(denied(&format!("see whether {shown} is frozen")))?;
        Ok(Freezer { version, group, switch, state, home })
    }

    /// Whether it is frozen, or about to be.
    pub(crate) fn is_frozen(&self) -> bool {
        read(&self.switch).is_ok_and(|state| matches!(state.trim(), "1" | "FROZEN" | "FREEZING"))
    }

    /// Whether everything in it has stopped.
    pub(crate) fn is_frozen_completely(&self) -> bool {
        let still = match self.version {
            Version::One => "FROZEN",
            Version::Two => "frozen 1",
        };
        read(&self.state).is_ok_and(|state| state.lines().any(|line| line == still))
    }

    /// Freezes the group and waits until everything in it has stopped, but at most until `end` or a request to stop.
    /// Returns the instant from which all was stopped, or `None` when that was not reached.
    pub(crate) fn freeze(
        &self,
        end: Option<Nanos>,
        run: &mut Run<'_>,
    ) -> Result<Option<Nanos>, DisturbError> {
        self.write(self.version.freeze()).map_err(DisturbError::system(self.shown("freeze")))?;
        loop {
            if self.is_frozen_completely() {
                return Ok(Some(clock::now()));
            }
            if is_past(end) || !run.should_continue()? {
                return Ok(None);
            }
            clock::sleep_until(clock::now() + BETWEEN_LOOKS);
        }
    }

    pub(crate) fn thaw(&self) -> Result<(), DisturbError> {
        match self.write(self.version.thaw()) {
            // The group is gone, and everything in it.
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => Ok(()),
            result => result.map_err(DisturbError::system(self.shown("thaw"))),
        }
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        self.switch.write_all_at(text, 0)
    }

    fn shown(&self, verb: &str) -> String {
        format!("{verb} {}", self.group.display())
    }
}

/// The current content of a small kernel file.
fn read(file: &File) -> io::Result<String> {
    let mut bytes = [0; 512];
    let length = file.read_at(&mut bytes, 0)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = self.thaw();
        if let Some(home) = &self.home {
            // If it fails, the guard tries again.
            let _ = bring_home(self.version, &self.group, home);
        }
    }
}

/// The groups that the process is in, of the requested kind or of all kinds on this host: at least one.
fn find(pid: u32, wish: Option<Version>) -> Result<Vec<(Version, PathBuf)>, DisturbError> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))
        .map_err(DisturbError::system(format!("read the control groups of pid {pid}")))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(DisturbError::system("read /proc/self/mountinfo"))?;
    let hierarchy = |version| match version {
        Version::One => Hierarchy::One("freezer"),
        Version::Two => Hierarchy::Two,
    };
    let wanted = [Version::One, Version::Two].into_iter();
    let wanted = wanted.filter(|&version| wish.is_none_or(|wish| wish == version));
    let found: Vec<_> = wanted
        .filter_map(|version| Some((version, group_of(&groups, &mounts, hierarchy(version))?)))
        .collect();
    match found.is_empty() {
        true => Err(DisturbError::Lacking {
            what: "control groups with a freezer of that kind",
            instead: INSTEAD,
        }),
        false => Ok(found),
    }
}

/// The whole group, unless it is the root group or our own. A host may have both kinds of groups, and a process may
/// be in one of each.
fn whole(pid: u32, wish: Option<Version>) -> Result<(Version, PathBuf), DisturbError> {
    let all = find(pid, wish)?;
    let Some((version, group)) = all.iter().find(|(version, group)| group.join(version.file()).exists())
    else {
        let shown = all[0].1.display();
        return Err(DisturbError::Unwise(format!(
            "pid {pid} is in the root control group ({shown}), which cannot be frozen; freeze the process alone"
        )));
    };
    refuse_made(pid, group)?;
    let own = find(std::process::id(), Some(*version))?;
    if own.iter().any(|(_, own)| is_within(own, group)) {
        return Err(DisturbError::Unwise(format!(
            "this process is in the control group of pid {pid} ({}) too, and would freeze itself; freeze the process alone",
            group.display()
        )));
    }
    let file = group.join(version.file());
    fs::OpenOptions::new().write(true).open(file).map_err(denied(&format!("freeze {}", group.display())))?;
    Ok((*version, group.clone()))
}

/// A group that another pause made is removed with that pause, and so is any group below it.
fn refuse_made(pid: u32, group: &Path) -> Result<(), DisturbError> {
    match is_made(group) {
        true => Err(DisturbError::Unwise(format!(
            "pid {pid} is already being paused, in the control group {}; wait until that ends, or move pid \
             {pid} out of it and remove it",
            group.display()
        ))),
        false => Ok(()),
    }
}

/// Removes the groups of earlier runs that were killed together with their guards. A group with a process in it remains:
/// the kernel does not remove it.
fn remove_stale(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(MADE)?.split('-').next());
        let maker = maker.and_then(|maker| maker.parse::<u32>().ok());
        // The group of a run that has just made it is empty too.
        if maker.is_some_and(|maker| !Path::new("/proc").join(maker.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn is_within(inner: &Path, outer: &Path) -> bool {
    inner.components().collect::<PathBuf>().starts_with(outer.components().collect::<PathBuf>())
}

fn denied(what: &str) -> impl FnOnce(io::Error) -> DisturbError {
    move |error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => DisturbError::Unwise(format!(
            "cannot {what}: {error}; run as root, or have the group delegated to you, or pause by signal"
        )),
        _ => DisturbError::System { what: what.to_owned(), source: error },
    }
}

const INSTEAD: &str = "pause by signal";

/// A group takes some tens of microseconds to freeze.
pub(super) const BETWEEN_LOOKS: Nanos = Nanos::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a process left in the group of an earlier pause is paused again, and ends up in the wrong
    /// group.
    #[test]
    fn a_process_in_a_group_made_for_a_pause_is_refused() {
        let made = Path::new("/cg/a").join(format!("{MADE}1-2"));
        for group in [made.as_path(), &made.join("b")] {
            let error = refuse_made(2, group).unwrap_err().to_string();
            assert!(error.contains("pid 2 is already being paused, in the control group /cg/a/"), "{error}");
        }
        refuse_made(2, Path::new("/cg/a")).unwrap();
    }

    /// If this fails, each run that is killed together with its guard leaves a control group for ever.
    #[test]
    fn only_empty_groups_of_runs_that_have_ended_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: String| home.path().join(name);
        // No process has this ID.
        let (stale, used) = (at(format!("{MADE}4294967295-7")), at(format!("{MADE}4294967295-8")));
        let (own, other) = (at(format!("{MADE}{}-7", std::process::id())), at("4294967295-7".to_owned()));
        for group in [&stale, &used, &own, &other] {
            fs::create_dir(group).unwrap();
        }
        // In place of a process: what is not empty cannot be removed.
        fs::write(used.join("inside"), "").unwrap();
        remove_stale(home.path());
        assert_eq!([&stale, &used, &own, &other].map(|group| group.exists()), [false, true, true, true]);
    }

    #[test]
    fn a_group_is_within_itself_and_those_above_it() {
        for (inner, outer, within) in [
            ("/cg/a/b", "/cg/a", true),
            ("/cg/a/", "/cg/a", true),
            ("/cg/ab", "/cg/a", false),
            ("/cg", "/cg/a", false),
        ] {
            assert_eq!(is_within(Path::new(inner), Path::new(outer)), within, "{inner} {outer}");
        }
    }
}
