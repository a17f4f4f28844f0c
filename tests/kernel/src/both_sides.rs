//! `drive --watch` and `drive --profile`: both sides of a run in one step, and their records read again.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::planted::Plan;
use crate::support::{binary, quiet};

fn parallax(arguments: &[&str]) -> Output {
    Command::new(binary::parallax()).args(arguments).env("NO_COLOR", "1").output().unwrap()
}

#[track_caller]
fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_run_is_watched_and_explained_in_one_step() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let (record, pid) = (record.to_str().unwrap(), server.pid().to_string());
    let url = format!("http://{}/sleep=2ms", server.address());
    let output = parallax(&[
        "drive",
        "-r",
        "100/s",
        "-c",
        "4",
        "-d",
        "2s",
        "-o",
        record,
        "--watch",
        &pid,
        "--profile",
        &pid,
        &url,
    ]);
    let told = said(&output);
    // Few requests make a run that is not to be believed, and yet one that can be explained.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{told}");
    assert!(told.contains("200 by their connection"), "{told}");
    assert!(Path::new(record).join("profile/run.json").exists(), "{told}");
    for part in ["", "server", "profile"] {
        let folder = Path::new(record).join(part);
        let again = parallax(&["report", folder.to_str().unwrap()]);
        // A profile that was ended with the run was ended early.
        assert!(
            matches!(again.status.code(), Some(0 | 3 | 130)) && !again.stdout.is_empty(),
            "{part}: {}",
            said(&again)
        );
    }
}

#[test]
fn a_server_that_is_not_there_begins_no_run() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let output = parallax(&[
        "drive",
        "-d",
        "1s",
        "-o",
        record.to_str().unwrap(),
        "--watch",
        "4194305",
        "http://127.0.0.1:9/",
    ]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("there is no process 4194305"), "{told}");
    assert!(!record.join("run.json").exists(), "{told}");
}
