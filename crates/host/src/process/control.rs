//! A control group's own account of CPU time, faults and storage, in version 1 and version 2.
//!
//! Exact to the microsecond or better, and complete whatever its processes do. Sources: the kernel's
//! Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{cpuacct,memory,blkio-controller}.rst.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::group::Level;
use crate::cgroup::{Hierarchy, place};

/// The folders of one group: one in version 2, one per controller in version 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ControlGroup {
    /// Directory with the CPU time and the processes.
    cpu: PathBuf,
    memory: Option<PathBuf>,
    storage: Option<PathBuf>,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl ControlGroup {
    /// Finds a group by its path: `/system.slice/nginx.service` as in /proc/PID/cgroup, or its folder below
    /// Finds a group by its path: `/system.slice/nginx.service` as in /proc/PID/cgroup, or its directory below
    /// /sys/fs/cgroup. A hierarchy in which it has processes is preferred to one in which it has none.
    /// # Errors
    ///
    /// When no mounted hierarchy with CPU time has it.
    pub(super) fn open(path: &str) -> io::Result<ControlGroup> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let of = |hierarchy| folder(&mounts, hierarchy, path).filter(|folder| folder.is_dir());
        let two = of(Hierarchy::Two).filter(|folder| folder.join("cpu.stat").exists()).map(|folder| {
            let here = |file: &str| folder.join(file).exists().then(|| folder.clone());
            ControlGroup {
                memory: here("memory.stat"),
                storage: here("io.stat"),
                cpu: folder.clone(),
                version: Version::Two,
            }
        });
        let one = of(Hierarchy::One("cpuacct")).map(|cpu| ControlGroup {
            cpu,
            memory: of(Hierarchy::One("memory")),
            storage: of(Hierarchy::One("blkio")),
            version: Version::One,
        });
        let mut found: Vec<ControlGroup> = two.into_iter().chain(one).collect();
        found.sort_by_key(|group| group.processes().is_ok_and(|pids| pids.is_empty()));
        found.into_iter().next().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Its processes, with those of the groups below.
    pub(super) fn processes(&self) -> io::Result<Vec<u32>> {
        let mut pids = BTreeSet::new();
        let mut folders = vec![self.cpu.clone()];
        while let Some(folder) = folders.pop() {
            let text = match fs::read_to_string(folder.join("cgroup.procs")) {
                Ok(text) => text,
                // A group below that was removed in the meantime.
                Err(_) if folder != self.cpu => continue,
                // A threaded group lists no processes.
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => String::new(),
                Err(error) => return Err(error),
            };
            pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
            let below = fs::read_dir(&folder).into_iter().flatten().flatten();
            folders.extend(
                below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()),
            );
        }
        Ok(pids.into_iter().collect())
    }

    /// What it has used so far.
    pub(super) fn level(&self) -> io::Result<Level> {
        let (run_ns, user, system) = match self.version {
            Version::Two => {
                let text = fs::read_to_string(self.cpu.join("cpu.stat"))?;
                let usec = |name| field(&text, name).ok_or_else(not_of_form);
                (usec("usage_usec")? * 1_000, usec("user_usec")? / 10_000, usec("system_usec")? / 10_000)
            }
            Version::One => {
                let usage = fs::read_to_string(self.cpu.join("cpuacct.usage"))?;
                let text = fs::read_to_string(self.cpu.join("cpuacct.stat"))?;
                let ticks = |name| field(&text, name).ok_or_else(not_of_form);
                (usage.trim().parse().map_err(|_| not_of_form())?, ticks("user")?, ticks("system")?)
            }
        };
        let faults = self.memory.as_ref().and_then(|folder| {
            let text = fs::read_to_string(folder.join("memory.stat")).ok()?;
            let of = |name: &str| match self.version {
                Version::Two => field(&text, name),
                Version::One => field(&text, &format!("total_{name}")).or_else(|| field(&text, name)),
            };
            let major = of("pgmajfault")?;
            Some((of("pgfault")? - major, major))
        });
        Ok(Level { run_ns, user, system, faults, storage: self.bytes() })
    }

    fn bytes(&self) -> Option<(i128, i128)> {
        let folder = self.storage.as_ref()?;
        match self.version {
            Version::Two => storage_two(&fs::read_to_string(folder.join("io.stat")).ok()?),
            Version::One => {
                let file = "blkio.throttle.io_service_bytes_recursive";
                let text = fs::read_to_string(folder.join(file)).ok()?;
                Some(storage_one(&text))
            }
        }
    }
}

/// The path of the control group with the name of a systemd unit, below any mounted hierarchy with CPU time: systemd
/// names groups after units.
///
/// # Errors
///
/// All matches, if there is not exactly one.
pub(super) fn unit(name: &str) -> io::Result<Result<String, Vec<String>>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let roots = [Hierarchy::Two, Hierarchy::One("cpuacct")];
    let mut found = BTreeSet::new();
    for root in roots.into_iter().filter_map(|hierarchy| folder(&mounts, hierarchy, "/")) {
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                if entry.file_name() == name {
                    let path = entry.path();
                    let inner = path.strip_prefix(&root).expect("it was found below the root");
                    found.insert(format!("/{}", inner.display()));
                } else {
                    folders.push(entry.path());
                }
            }
        }
    }
    let mut found: Vec<String> = found.into_iter().collect();
    Ok(if found.len() == 1 { Ok(found.remove(0)) } else { Err(found) })
}

fn folder(mounts: &str, hierarchy: Hierarchy, path: &str) -> Option<PathBuf> {
    let (mounted, inner) = place(mounts, hierarchy, path)?;
    let inner = Path::new(path).strip_prefix(mounted).unwrap_or(inner);
    // `..` would lead out of the hierarchy.
    let is_plain = inner.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    is_plain.then(|| mounted.join(inner))
}

fn field(text: &str, name: &str) -> Option<i128> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// `8:0 rbytes=90112 wbytes=299008 rios=3 …`, one line per device.
fn storage_two(text: &str) -> Option<(i128, i128)> {
    let sum = |name: &str| {
        let words = text.split_ascii_whitespace().filter_map(|word| word.strip_prefix(name));
        words.map(|number| number.parse::<i128>().ok()).sum::<Option<i128>>()
    };
    Some((sum("rbytes=")?, sum("wbytes=")?))
}

/// `8:0 Read 90112`, one line per device and operation.
fn storage_one(text: &str) -> (i128, i128) {
    let sum = |operation: &str| {
        let of = |line: &str| {
            let mut words = line.split_ascii_whitespace().skip(1);
            (words.next()? == operation).then(|| words.next()?.parse::<i128>().ok())?
        };
        text.lines().filter_map(of).sum()
    };
    (sum("Read"), sum("Write"))
}

fn not_of_form() -> io::Error {
    io::Error::other("its content does not have the documented form")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct
40 31 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    #[test]
    fn a_group_is_named_by_its_path_or_its_folder() {
        for (path, found) in [
            ("/a/b.service", Some("/sys/fs/cgroup/unified/a/b.service")),
            ("a", Some("/sys/fs/cgroup/unified/a")),
            ("/sys/fs/cgroup/unified/a", Some("/sys/fs/cgroup/unified/a")),
            ("/../../etc", None),
            ("/sys/fs/cgroup/unified/../../etc", None),
        ] {
            let folder = folder(MOUNTS, Hierarchy::Two, path);
            assert_eq!(folder.as_deref(), found.map(Path::new), "{path}");
        }
    }

    #[test]
    fn bytes_of_all_devices_are_summed() {
        let two = "8:0 rbytes=10 wbytes=4 rios=1\n8:16 rbytes=5 wbytes=0 rios=9\n";
        assert_eq!(storage_two(two), Some((15, 4)));
        assert_eq!(storage_two(""), Some((0, 0)));
        let one = "8:0 Read 10\n8:0 Write 4\n8:0 Sync 9\n8:16 Read 5\nTotal 19\n";
        assert_eq!(storage_one(one), (15, 4));
    }
}
