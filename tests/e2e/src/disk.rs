//! A disk that fills up, or a file that may not grow: the measurement is printed, and the gap is reported.

use std::path::Path;
use std::process::{Command, Output};

use rustix::process::geteuid;
use serde_json::Value;

use crate::support::nginx::Nginx;
use crate::support::{binary, turn};

/// `script` runs `parallax drive` as `"$@"`, with the directory `record` on a disk that will be full.
#[track_caller]
fn check_full(command: &[&str], script: &str) {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    let output = run(command, script, folder.path(), &nginx.url("/"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        !stderr.contains("mount"),
        "needs a file system of its own: run as root, or allow user namespaces; {stderr}"
    );
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("the record is incomplete"), "{stderr}");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("the result is printed all the same");
    assert_eq!(printed["results"]["totals"]["scheduled"], 1_250);
    assert_eq!(printed["results"]["totals"]["ok"], nginx.finish().len());
}

/// Long enough for several commits, of which the first fit.
fn run(command: &[&str], script: &str, folder: &Path, url: &str) -> Output {
    let (program, before) = command.split_first().unwrap();
    Command::new(program)
        .args(before)
        .args(["sh", "-c", script, "sh"])
        .arg(binary::parallax())
        .args(["drive", "--json", "--quiet", "-r", "500/s", "-d", "2500ms", "-c", "4", "-o", "record", url])
        .current_dir(folder)
        .output()
        .unwrap()
}

/// If this fails, a full disk costs the run, or the gap goes unnoticed.
#[test]
fn a_full_disk_is_reported_after_the_results() {
    // The mount is visible only to these processes, and is removed with them.
    let root = geteuid().is_root();
    let unshare: &[&str] = if root { &["unshare", "-m"] } else { &["unshare", "-r", "-m"] };
    check_full(unshare, "mkdir record && mount -t tmpfs -o size=48k tmpfs record && \"$@\"");
}

/// The same with a limit of this process, which needs no privilege: 12 KiB hold the document at the start, but not that
/// at the end.
#[test]
fn a_file_that_may_not_grow_is_reported_after_the_results() {
    check_full(&["env"], "trap '' XFSZ; ulimit -f 24; \"$@\"");
}
