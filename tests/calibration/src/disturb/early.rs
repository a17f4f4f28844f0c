//! SIGKILL while `disturb` prepares: before it has printed anything, when its guard may not exist yet, or not know
//! everything.

use std::io::Read;
use std::thread;

use super::*;

/// Trials per means.
const EACH: u64 = 10;

/// If this fails, a `disturb` that was killed at its start leaves something behind.
#[test]
fn killed_while_it_prepares_it_leaves_nothing() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().to_str().unwrap();
    let kinds = [("cgroup-v1", "cgroup"), ("cgroup-v2", "cgroup2")].into_iter();
    let mut means: Vec<Vec<&str>> =
        kinds.filter(|(_, kind)| has_freezer(kind)).map(|(by, _)| vec!["pause", "--by", by, "-p"]).collect();
    assert!(
        !means.is_empty(),
        "this host has no control groups with a freezer that this test may use (root may)"
    );
    means.push(vec!["pause", "-p"]);
    means.push(vec!["disk", shown, "--file", "128KiB", "--writers", "4"]);
    means.push(vec!["cpu", "--hogs", "4", "--duty", "1%"]);
    for trial in 0..EACH * means.len() as u64 {
        let victim = Victim::start();
        let (pid, before) = (victim.pid().to_string(), victim.groups());
        let mut line = means[trial as usize % means.len()].clone();
        if line.last() == Some(&"-p") {
            line.push(&pid);
        }
        line.extend(["--for", "15ms", "--every", "20ms", "--start", "0s"]);
        let killed = killed_early(&line, trial);
        assert_eq!(victim.groups(), before, "trial {trial}, {line:?}");
        assert!(own_groups(killed).is_empty(), "trial {trial}, {line:?}");
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "trial {trial}: {left:?}");
        // Neither stopped nor frozen: a signal that can be caught ends it.
        victim.end_by_term();
    }
}

/// Starts it, kills it 5 to 80 ms later, and waits until everything that it started has ended. Returns its pid.
fn killed_early(line: &[&str], trial: u64) -> u32 {
    let record = tempfile::tempdir().unwrap();
    let mut child = Command::new(binary::path())
        .arg("disturb")
        .args(line)
        .arg("-o")
        .arg(record.path().join("record"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    // Steps of the golden ratio, as in `Running::wait_for_a_random_moment`.
    let moment = 5_000_000 + trial.wrapping_mul(46_352_549) % 75_000_000;
    clock::sleep_until(clock::now() + Nanos(moment));
    let pid = pid_of(child.id());
    match trial % 2 {
        0 => kill_process(pid, Signal::KILL).unwrap(),
        _ => kill_process_group(pid, Signal::KILL).unwrap(),
    }
    child.wait().unwrap();
    // All of them have the pipe from their start: its end is the end of the last of them.
    let mut errors = child.stderr.take().unwrap();
    let ended = thread::spawn(move || errors.read_to_end(&mut Vec::new()));
    wait_until("its guard and workers have ended", || ended.is_finished());
    ended.join().unwrap().unwrap();
    child.id()
}
