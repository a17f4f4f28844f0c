//! What cannot be watched is said in one line; what ends while it is watched ends the record, with what was seen.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use units::Nanos;

use crate::support::planted::Plan;
use crate::support::watched::Watching;
use crate::support::{binary, quiet, wait};

/// The number of the user who is nobody, on Debian and elsewhere.
const NOBODY: u32 = 65_534;

fn watch(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary::parallax());
    command.arg("watch").args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Refused in one line on standard error, with the exit code of what never began, and no record.
#[track_caller]
fn check_refused(output: &Output, told: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.starts_with("parallax: "), "{said}");
    told.iter().for_each(|text| assert!(said.contains(text), "`{text}` is not in: {said}"));
}

#[test]
fn a_process_that_is_not_there_is_refused() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    // Above the largest number that the kernel gives to a process.
    let output = watch(&["-p", "4194305", "-d", "1s", "-o", record.to_str().unwrap()]).output().unwrap();
    check_refused(&output, &["4194305"]);
    assert!(!record.exists(), "bad input began a record");
}

#[test]
fn a_port_that_nobody_listens_on_is_refused() {
    let _together = quiet::together();
    let port = crate::support::port::free().to_string();
    check_refused(&watch(&["--port", &port, "-d", "1s"]).output().unwrap(), &[&port]);
}

#[test]
fn a_user_without_the_privilege_is_told_what_is_needed() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    // Where nobody may run it from: what is built may lie in a folder of root's.
    let copy = folder.path().join("parallax");
    std::fs::copy(binary::parallax(), &copy).unwrap();
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).unwrap();
    let server = Plan::of("threads").start();
    let mut command = Command::new(copy);
    command
        .args(["watch", "-p", &server.pid().to_string(), "-d", "1s", "-o"])
        .arg(folder.path().join("record"));
    command.env("NO_COLOR", "1").current_dir("/").stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
    check_refused(&command.output().unwrap(), &["root"]);
}

#[test]
fn a_server_that_ends_ends_the_record_with_what_was_seen() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let mut watching = Watching::of(&server);
    let mut client = server.new_client();
    (0..50).for_each(|_| drop(client.http("/burn=100us")));
    drop(server);
    assert!(wait::until(Nanos::from_secs(10), || watching.has_ended()), "the watch goes on without a server");
    let watched = watching.finish();
    assert_eq!(watched.served.len(), 50, "{}", watched.losses());
}

/// Two observers of one server see the same, or the second is refused in a line; in no case is the first disturbed.
#[test]
fn a_second_observer_does_not_disturb_the_first() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let first = Watching::of(&server);
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let mut second = watch(&["-p", &server.pid().to_string(), "-d", "1s", "-o", record.to_str().unwrap()]);
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut client = server.new_client();
    (0..100).for_each(|_| drop(client.http("/burn=100us,sleep=10ms")));
    let output = second.wait_with_output().unwrap();
    if !output.status.success() {
        check_refused(&output, &["watch"]);
    }
    let watched = first.finish();
    assert_eq!(watched.served.len(), 100, "{}", watched.losses());
}
