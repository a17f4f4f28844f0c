//! The audit against real faults: does it report each planted fault with the right finding, and nothing on a quiet
//! host?
//!
//! `bench/audit.py` makes the faults, with 20 trials each in its long form. This is the short one: four trials of
//! about a second each, of which one may miss. An audit that finds 19 of 20 fails it in one of 70 runs, one that
//! finds 199 of 200 in one of 6,700; one that finds half passes in three of ten. A quiet trial counts only when the
//! raw figures of its own record show a quiet host, and is repeated otherwise. A trial
//! that misses the slow worker is repeated too if the raw figures show that the other worker was late in a tenth of its
//! responses or more: the hypervisor takes time from whom it likes, and then not one worker is slow.

use std::path::Path;
use std::process::Command;

use crate::{binary, quiet};

#[track_caller]
fn check(fault: &str) {
    let _alone = quiet::alone();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/audit.py");
    let output = Command::new("python3")
        .arg(program)
        .args(["--only", fault, "--trials", "4", "--misses", "1", "--short", "--parallax"])
        .arg(binary::path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let printed =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    println!("{printed}");
    assert!(output.status.success(), "{fault}: {printed}");
}

/// If this fails, a client that other processes kept from its CPU is reported as a slow server.
#[test]
fn other_work_on_the_clients_core() {
    check("cpu_hog");
}

#[test]
fn a_cpu_quota() {
    check("cpu_quota");
}

#[test]
fn a_limit_of_descriptors() {
    check("descriptors");
}

#[test]
fn a_range_of_ports_that_is_too_small() {
    check("ports");
}

#[test]
fn a_stop_of_300_ms() {
    check("stop");
}

#[test]
fn other_work_on_the_core_of_one_worker() {
    check("slow_worker");
}

/// If this fails, nobody will believe the audit when it is right.
#[test]
fn nothing_on_a_quiet_host() {
    check("quiet");
}
