//! A control group that only accounts for CPU time, in the version that this host has; removed when dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use units::Nanos;

use super::wait;

pub struct Accounted {
    folder: PathBuf,
}

impl Accounted {
    pub fn new() -> Accounted {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let first = Path::new("/sys/fs/cgroup/cpuacct");
        let parent = if first.exists() { first } else { Path::new("/sys/fs/cgroup") };
        let folder = parent.join(format!("parallax-tree-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap_or_else(|error| {
            panic!("no control group can be made at {}: {error}; the tests need root", folder.display())
        });
        Accounted { folder }
    }

    /// Its path in the form of `parallax cpu --cgroup`.
    pub fn path(&self) -> &str {
        self.folder.to_str().unwrap()
    }

    /// A command line that starts `command` in the group, with all its children.
    pub fn command(&self, command: &[&str]) -> Vec<String> {
        let enter = ["sh", "-c", r#"echo $$ >"$1/cgroup.procs" && shift && exec "$@""#, "sh", self.path()];
        enter.iter().chain(command).map(|word| (*word).to_owned()).collect()
    }

    /// CPU time of everything that was ever in it, by the kernel's account.
    pub fn used(&self) -> Nanos {
        let read = |file: &str| fs::read_to_string(self.folder.join(file));
        if let Ok(text) = read("cpuacct.usage") {
            return Nanos(text.trim().parse().unwrap());
        }
        let text = read("cpu.stat").unwrap();
        let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
        Nanos(usage.parse::<u64>().unwrap() * 1_000)
    }
}

impl Drop for Accounted {
    fn drop(&mut self) {
        // Members that were killed leave a moment later.
        wait::until(Nanos::from_secs(5), || fs::remove_dir(&self.folder).is_ok());
    }
}
