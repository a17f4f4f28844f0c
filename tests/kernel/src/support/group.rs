//! Control groups that have precedence over other work on this host, with or without a CPU quota, in the version that
//! this host has; each is removed when dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use units::Nanos;

pub struct Group {
    folder: PathBuf,
}

impl Group {
    /// The group for servers and hogs: other work on this host gets next to nothing of a CPU that they need, and among
    /// them niceness decides.
    pub fn ahead() -> Arc<Group> {
        static AHEAD: Mutex<Weak<Group>> = Mutex::new(Weak::new());
        let mut ahead = AHEAD.lock().unwrap_or_else(PoisonError::into_inner);
        ahead.upgrade().unwrap_or_else(|| {
            let group = Arc::new(Group::make());
            *ahead = Arc::downgrade(&group);
            group
        })
    }

    /// Its members get `quota` of CPU time in every `period`.
    pub fn with_quota(quota: Nanos, period: Nanos) -> Group {
        let group = Group::make();
        let (quota, period) = (quota.0 / 1_000, period.0 / 1_000);
        if group.is_first() {
            write(&group.folder.join("cpu.cfs_period_us"), &period.to_string());
            write(&group.folder.join("cpu.cfs_quota_us"), &quota.to_string());
        } else {
            write(&group.folder.join("cpu.max"), &format!("{quota} {period}"));
        }
        group
    }

    fn make() -> Group {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("parallax-kernel-{}-{number}", std::process::id());
        let (first, second) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let is_first = first.join("cpu.shares").exists();
        if !is_first {
            write(&second.join("cgroup.subtree_control"), "+cpu");
        }
        let folder = if is_first { first } else { second }.join(name);
        fs::create_dir(&folder).unwrap_or_else(|error| {
            panic!("no control group can be made at {}: {error}; the tests need root", folder.display())
        });
        let group = Group { folder };
        // The maximum that each version accepts.
        let (file, most) = if group.is_first() { ("cpu.shares", "262144") } else { ("cpu.weight", "10000") };
        write(&group.folder.join(file), most);
        group
    }

    fn is_first(&self) -> bool {
        self.folder.join("cpu.shares").exists()
    }

    pub fn take_in(&self, pid: u32) {
        write(&self.folder.join("cgroup.procs"), &pid.to_string());
    }

    /// How long its members were throttled by the quota, by the kernel's account.
    pub fn throttled(&self) -> Nanos {
        let text = fs::read_to_string(self.folder.join("cpu.stat")).unwrap();
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        // Version 1 has nanoseconds, version 2 microseconds.
        let second = || number("throttled_usec ").map(|us: u64| us * 1_000);
        Nanos(number("throttled_time ").or_else(second).unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A member that was killed leaves a moment later.
        for _ in 0..200 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            clock::sleep_until(clock::now() + Nanos::from_millis(5));
        }
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}; the tests need root", path.display()));
}
