//! Processes that have the token of a session in their environment: found without their parents and groups.
//!
//! One that clears its environment is not found; where control groups can be made, it is found by those.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

/// The variable with the token.
pub(crate) const MARK: &str = "PARALLAX_LAB_SESSION";

/// How long killed processes may take to end.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Kills them until none is left, or until the kernel does not end them.
pub(crate) fn end_marked(token: &str) {
    let deadline = clock::now() + PATIENCE;
    loop {
        let found = marked(token);
        if found.is_empty() || clock::now() >= deadline {
            return;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
        clock::sleep_until(clock::now() + Nanos::from_millis(5));
    }
}

/// All of them; one that has ended and was not waited for has no environment any more.
fn marked(token: &str) -> Vec<Pid> {
    let wanted = format!("{MARK}={token}");
    let is_marked = |pid: &Pid| {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(is_marked).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// If this fails, a server that leaves its parent, group and session survives a lab that was killed.
    #[test]
    fn what_left_its_parent_is_found_by_its_environment() {
        let token = format!("test-{}", std::process::id());
        let script = "setsid sh -c 'sleep 4711 & exec sleep 4712' &";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env(MARK, &token).stdout(Stdio::null()).spawn().unwrap().wait().unwrap();
        // The shell has ended; what it started may not have begun yet.
        while marked(&token).is_empty() {
            clock::sleep_until(clock::now() + Nanos::from_millis(1));
        }
        end_marked(&token);
        assert_eq!(marked(&token), []);
    }
}
