//! `explain` on the records of a client and of its server: does it name the place where 50 ms were planted?
//!
//! The trials are made by `bench/blame.py`, 20 of each place in its long form. This is the short form: five of each, of
//! which one may miss. One that names 99 of 100 fails that in one of a thousand runs, one that names 19 of 20 in one of
//! 44; one that guesses among six passes in one of 300.

use std::path::Path;
use std::process::Command;

use crate::support::{binary, quiet};

#[track_caller]
fn check(place: &str) {
    let _alone = quiet::alone();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/blame.py");
    let output = Command::new("python3")
        .arg(program)
        .args(["--only", place, "--trials", "5", "--misses", "1", "--parallax"])
        .arg(binary::parallax())
        .args(["--planted", env!("CARGO_BIN_EXE_planted"), "--hog", env!("CARGO_BIN_EXE_hog")])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let reported =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    println!("{reported}");
    assert!(output.status.success(), "{place}: {reported}");
}

/// If this fails, a stopped client is reported as a slow server: the question that no other tool can answer.
#[test]
fn a_client_that_is_stopped() {
    check("client");
}

#[test]
fn a_network_that_is_slow() {
    check("network");
}

#[test]
fn a_server_that_does_not_read() {
    check("queue");
}

#[test]
fn a_handler_that_works() {
    check("cpu");
}

#[test]
fn a_handler_that_sleeps() {
    check("blocked");
}

#[test]
fn others_on_the_servers_core() {
    check("hog");
}
