//! How often a CPU quota stopped this process: the quotas of its control group and the parents, in version 1 and
//! version 2.

use std::fs;
use std::path::{Path, PathBuf};

use units::Nanos;

/// The `cpu.stat` of every group from this process's own up to the root: a quota on any of them stops the process.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    accounts: Vec<PathBuf>,
}

/// What quotas took so far, summed over the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Throttled {
    /// Periods in which the quota was used up.
    pub times: u64,
    /// How long CPUs of the group were stopped by the quota, summed over CPUs.
    pub time: Nanos,
}

impl Quota {
    /// Finds the groups of this process that account for a quota.
    ///
    /// # Errors
    ///
    /// A message for the record when there is none.
    pub(crate) fn find() -> Result<Quota, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let (groups, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
        let accounts: Vec<PathBuf> =
            candidates(&groups, &mounts).into_iter().filter(|path| account(path).is_some()).collect();
        match accounts.is_empty() {
            true => Err("no control group of this process accounts for a CPU quota".to_owned()),
            false => Ok(Quota { accounts }),
        }
    }

    /// What quotas took since boot; `None` when no group can be read any more.
    ///
    /// # Cost
    ///
    /// One small file per group: once per interval.
    pub(crate) fn read(&self) -> Option<Throttled> {
        let each: Option<Vec<Throttled>> = self.accounts.iter().map(|path| account(path)).collect();
        each.map(|each| {
            each.into_iter().fold(Throttled::default(), |sum, one| Throttled {
                times: sum.times + one.times,
                time: sum.time + one.time,
            })
        })
    }
}

fn account(path: &Path) -> Option<Throttled> {
    parse(&fs::read_to_string(path).ok()?)
}

/// Version 1 counts nanoseconds, version 2 microseconds.
fn parse(text: &str) -> Option<Throttled> {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    let time = number("throttled_time").or_else(|| number("throttled_usec")?.checked_mul(1_000))?;
    Some(Throttled { times: number("nr_throttled")?, time: Nanos(time) })
}

/// The possible paths of `cpu.stat`, that of the process's own group first. `groups` is /proc/self/cgroup, `mounts`
/// /proc/self/mountinfo.
pub(crate) fn candidates(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for line in groups.lines() {
        // `4:cpu,cpuacct:/a/b`, or in version 2 `0::/a/b`.
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let hierarchy = match controllers {
            "" => Hierarchy::Two,
            _ if controllers.split(',').any(|name| name == "cpu") => Hierarchy::One("cpu"),
            _ => continue,
        };
        let Some((mounted, inner)) = place(mounts, hierarchy, path) else { continue };
        all.extend(inner.ancestors().map(|group| mounted.join(group).join("cpu.stat")));
    }
    all
}

/// One tree of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    /// The tree of version 1 with this controller.
    One(&'static str),
    Two,
}

/// The folder of the group that a process is in. `groups` is its /proc/PID/cgroup, `mounts` /proc/self/mountinfo.
pub(crate) fn group_of(groups: &str, mounts: &str, hierarchy: Hierarchy) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_it = match hierarchy {
            Hierarchy::Two => controllers.is_empty(),
            Hierarchy::One(name) => controllers.split(',').any(|controller| controller == name),
        };
        is_it.then_some(path)
    })?;
    let (mounted, inner) = place(mounts, hierarchy, path)?;
    Some(mounted.join(inner))
}

/// The folder of this process's group in version 2, also where that is mounted next to version 1. `None` if it is not
/// mounted.
pub fn own_group() -> Option<PathBuf> {
    let read = |path: &str| fs::read_to_string(path).ok();
    group_of(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?, Hierarchy::Two)
}

/// The topmost visible group of every mounted hierarchy. `mounts` is /proc/self/mountinfo.
pub(crate) fn tops(mounts: &str) -> Vec<PathBuf> {
    let top = |line: &str| {
        let (own, filesystem) = line.split_once(" - ")?;
        let is_it = ["cgroup ", "cgroup2 "].iter().any(|kind| filesystem.starts_with(kind));
        is_it.then(|| own.split(' ').nth(4).map(PathBuf::from)).flatten()
    };
    mounts.lines().filter_map(top).collect()
}

/// Where a hierarchy is mounted, and where below that the group `path` of /proc is.
pub(crate) fn place<'a>(
    mounts: &'a str,
    hierarchy: Hierarchy,
    path: &'a str,
) -> Option<(&'a Path, &'a Path)> {
    let (root, mounted) = mount(mounts, hierarchy)?;
    // In a container the mount may show only a part of the tree.
    let inner = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path.trim_start_matches('/')));
    Some((Path::new(mounted), inner))
}

/// Root and mount point of a hierarchy.
fn mount(mounts: &str, hierarchy: Hierarchy) -> Option<(&str, &str)> {
    mounts.lines().find_map(|line| {
        // `32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu`
        let (own, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let kind = filesystem.next()?;
        let options = filesystem.nth(1)?;
        let is_it = match hierarchy {
            Hierarchy::Two => kind == "cgroup2",
            Hierarchy::One(name) => kind == "cgroup" && options.split(',').any(|option| option == name),
        };
        let mut own = own.split(' ').skip(3);
        is_it.then_some((own.next()?, own.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn every_group_around_this_process_is_read() {
        let paths = candidates("4:cpu,cpuacct:/a/b\n2:cpuset:/c\n", MOUNTS);
        let expected = ["a/b/cpu.stat", "a/cpu.stat", "cpu.stat"];
        assert_eq!(paths, expected.map(|path| Path::new("/sys/fs/cgroup/cpu,cpuacct").join(path)));
        let paths = candidates("0::/a\n", MOUNTS);
        assert_eq!(
            paths,
            ["a/cpu.stat", "cpu.stat"].map(|path| Path::new("/sys/fs/cgroup/unified").join(path))
        );
    }

    #[test]
    fn a_process_is_in_one_group_of_each_tree() {
        let groups = "9:freezer:/\n4:cpu,cpuacct:/a/b\n0::/c\n";
        let freezer = "33 31 0:30 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";
        let mounts = format!("{MOUNTS}{freezer}");
        for (hierarchy, path) in [
            (Hierarchy::One("cpu"), "/sys/fs/cgroup/cpu,cpuacct/a/b"),
            (Hierarchy::One("freezer"), "/sys/fs/cgroup/freezer/"),
            (Hierarchy::Two, "/sys/fs/cgroup/unified/c"),
        ] {
            assert_eq!(group_of(groups, &mounts, hierarchy).as_deref(), Some(Path::new(path)));
        }
        assert_eq!(group_of(groups, MOUNTS, Hierarchy::One("freezer")), None);
        assert_eq!(group_of("", &mounts, Hierarchy::Two), None);
    }

    #[test]
    fn every_hierarchy_has_a_top() {
        let tops = tops(MOUNTS);
        assert_eq!(tops, ["cpu,cpuacct", "unified"].map(|name| Path::new("/sys/fs/cgroup").join(name)));
    }

    #[test]
    fn a_container_sees_a_part_of_the_tree() {
        let mounts = "32 31 0:29 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(candidates("0::/docker/x\n", mounts), [Path::new("/sys/fs/cgroup/cpu.stat")]);
    }

    #[test]
    fn both_versions_are_read_in_nanoseconds() {
        let v1 = "nr_periods 9\nnr_throttled 4\nthrottled_time 1234567\n";
        assert_eq!(parse(v1), Some(Throttled { times: 4, time: Nanos(1_234_567) }));
        let v2 = "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1234\n";
        assert_eq!(parse(v2), Some(Throttled { times: 4, time: Nanos(1_234_000) }));
        // The root of version 2 has no quota, and does not account for one.
        assert_eq!(parse("usage_usec 5\n"), None);
    }
}
