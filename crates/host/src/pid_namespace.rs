//! Whether this program sees processes by the host's process IDs.
//!
//! Programs in the kernel see processes by the host's ids. Inside a PID namespace, as in containers, the same process
//! has another id, and the host's id names another process or none.
//!
//! Sources: pid_namespaces(7); `PROC_PID_INIT_INO` in the kernel's include/linux/proc_ns.h.

use std::fs;
use std::path::Path;

/// The first PID namespace has the same inode on every kernel since 3.8.
const FIRST: &str = "pid:[4026531836]";

/// Whether the PID namespace is the host's; `None` if /proc does not show it. `root` is `/` on a real host.
pub fn sees_host_pids(root: &Path) -> Option<bool> {
    let link = fs::read_link(root.join("proc/self/ns/pid")).ok()?;
    Some(link.as_os_str() == FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_namespace_is_the_hosts() {
        let root = std::env::temp_dir().join(format!("parallax-pid-namespace-{}", std::process::id()));
        let folder = root.join("proc/self/ns");
        assert_eq!(sees_host_pids(&root), None);
        fs::create_dir_all(&folder).unwrap();
        for (link, expected) in [(FIRST, true), ("pid:[4026532621]", false)] {
            std::os::unix::fs::symlink(link, folder.join("pid")).unwrap();
            assert_eq!(sees_host_pids(&root), Some(expected), "{link}");
            fs::remove_file(folder.join("pid")).unwrap();
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
