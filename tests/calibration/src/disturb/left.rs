//! What `disturb` reports if it cannot undo, or cannot continue.

use std::process::Output;

use super::*;

fn kind_with_a_freezer() -> (&'static str, &'static str) {
    let mut kinds = [("cgroup-v1", "cgroup"), ("cgroup-v2", "cgroup2")].into_iter();
    let found = kinds.find(|(_, kind)| has_freezer(kind));
    found.expect("this host has no control groups with a freezer that this test may use (root may)")
}

fn spawn(line: &[&str], folder: &Path) -> Child {
    let mut command = Command::new(binary::path());
    command.arg("disturb").args(line).arg("-o").arg(folder.join("record")).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// If this fails, two pauses of one process leave a control group behind, with the process in it.
#[test]
fn a_process_that_is_already_paused_is_refused() {
    let _together = quiet::together();
    let (by, _) = kind_with_a_freezer();
    let (victim, folder) = (Victim::start(), tempfile::tempdir().unwrap());
    let (pid, before) = (victim.pid().to_string(), victim.groups());
    let line = ["pause", "-p", &pid, "--by", by, "--for", "5ms", "--every", "20ms"];
    let first = Running::start(&line);
    let (out, error) = texts(&spawn(&line, folder.path()).wait_with_output().unwrap());
    assert_eq!(out, "");
    assert!(error.contains("is already being paused by another parallax"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    kill_process(first.as_pid(), Signal::INT).unwrap();
    first.wait_for_success();
    assert_eq!(victim.groups(), before);
    assert!(own_groups(first.pid()).is_empty());
}

/// If this fails, a service manager that kills the group of a client leaves the client's victim stopped for ever.
#[test]
fn killed_with_its_whole_control_group_it_leaves_nothing_stopped() {
    let _together = quiet::together();
    let (_, kind) = kind_with_a_freezer();
    let (victim, folder) = (Victim::start(), tempfile::tempdir().unwrap());
    let group = Group(mounts(kind)[0].join(format!("parallax-test-killed-{}", std::process::id())));
    fs::create_dir(&group.0).unwrap();
    let (record, pid) = (folder.path().join("record"), victim.pid().to_string());
    let enter = r#"echo $$ >"$0/cgroup.procs" && exec "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", enter]).arg(&group.0).arg(binary::path());
    command.args(["disturb", "pause", "-p", &pid, "--for", "60s", "-o"]).arg(record);
    let mut run = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the victim is stopped", || victim.is_stopped());
    // `cgroup.kill` is newer than the oldest kernel that is supported.
    let members = fs::read_to_string(group.0.join("cgroup.procs")).unwrap();
    for member in members.lines() {
        kill_process(pid_of(member.parse().unwrap()), Signal::KILL).unwrap();
    }
    run.wait().unwrap();
    wait_until("the victim runs again", || !victim.is_stopped());
    victim.end_by_term();
}

/// If this fails, it reports that everything is undone when it is not.
#[test]
fn what_cannot_be_undone_is_reported() {
    let _together = quiet::together();
    let (by, _) = kind_with_a_freezer();
    let (victim, other, folder) = (Victim::start(), Victim::start(), tempfile::tempdir().unwrap());
    let pid = victim.pid().to_string();
    let run = spawn(&["pause", "-p", &pid, "--by", by, "--for", "60s"], folder.path());
    let group = || own_groups(run.id()).into_iter().next();
    wait_until("the group is frozen", || group().is_some_and(|group| is_frozen(&group)));
    // A group that contains another program's group cannot be removed.
    let group = group().unwrap();
    let inner = Group(group.join("parallax-test-inner"));
    fs::create_dir(&inner.0).unwrap();
    inner.add(other.pid());
    kill_process(pid_of(run.id()), Signal::INT).unwrap();
    let output = run.wait_with_output().unwrap();
    let (out, error) = texts(&output);
    drop((other, inner));
    fs::remove_dir(&group).unwrap();
    assert_eq!(output.status.code(), Some(1), "{out}{error}");
    assert!(!out.contains("everything is undone"), "{out}");
    let named = format!("a disturbance was not fully undone: {}", group.display());
    assert!(error.contains(&named), "{error}");
    victim.end_by_term();
}

/// If this fails, a full disk ends a run without naming the disk or a remedy.
#[test]
fn a_full_disk_is_named() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    // More than a file may have here: the same effect as a full disk, without filling it.
    let line = "ulimit -f 64; trap '' XFSZ; exec \"$0\" \"$@\"";
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let output = Command::new("sh")
        .args(["-c", line])
        .arg(binary::path())
        .args(["disturb", "disk", disk.to_str().unwrap(), "--file", "1MiB", "--for", "5s", "-o"])
        .arg(folder.path().join("record"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (_, error) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains(&format!("cannot write `{}/", fs::canonicalize(&disk).unwrap().display())),
        "{error}"
    );
    assert!(error.contains("; use a directory on a writable disk"), "{error}");
}

/// If this fails, starting too many workers gives an error that names neither them nor a remedy.
#[test]
fn too_many_hogs_for_the_descriptors_is_one_line_with_a_way_out() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
        .arg(binary::path())
        .args(["disturb", "cpu", "--hogs", "40", "--duty", "0.1%", "--for", "10ms", "-o"])
        .arg(folder.path().join("record"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (_, error) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot start a process that disturbs (cpu): Too many open files"), "{error}");
    assert!(error.contains("raise `ulimit -n`"), "{error}");
}

/// If this fails, a begin far in the future happens at once.
#[test]
fn a_begin_in_centuries_is_waited_for() {
    let _together = quiet::together();
    let (victim, folder) = (Victim::start(), tempfile::tempdir().unwrap());
    let pid = victim.pid().to_string();
    let line = ["pause", "-p", &pid, "--start", "18446744073s", "--for", "1ms"];
    let run = Running::start_in(&line, folder.path());
    wait_until("the record exists", || read_observation(folder.path()).is_ok());
    clock::sleep_until(clock::now() + Nanos::from_millis(200));
    kill_process(run.as_pid(), Signal::INT).unwrap();
    assert_eq!(run.wait().code(), Some(130));
    assert_eq!(kept(folder.path()).1.episodes, 0);
}
