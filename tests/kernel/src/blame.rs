//! `explain` on the records of a client and of its server: does it name the place where 50 ms were planted, and what
//! the server waited for?
//!
//! The trials are made by `bench/blame.py`, 20 of each in its long form. This is the short form: five of each place, of
//! which one may miss. One that names 99 of 100 fails that in one of a thousand runs, one that names 19 of 20 in one of
//! 44; one that guesses among six passes in one of 300.

use std::path::Path;
use std::process::Command;

use crate::servers::require;
use crate::support::{binary, quiet};

#[track_caller]
fn check(place: &str) {
    found(&[place], &["--trials", "5", "--misses", "1"]);
}

/// Each of these causes is named in one of two brief trials at least. The long form has 20 of each, of 20 to 120 ms.
#[track_caller]
fn check_causes(causes: &[&str]) {
    for program in ["node", "nginx", "redis-server", "mariadbd", "mariadb-install-db", "mariadb", "python3"] {
        require(program);
    }
    found(causes, &["--trials", "2", "--misses", "1", "--brief"]);
}

#[track_caller]
fn found(names: &[&str], options: &[&str]) {
    let _alone = quiet::alone();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/blame.py");
    let output = Command::new("python3")
        .arg(program)
        .args(["--only", &names.join(",")])
        .args(options)
        .arg("--parallax")
        .arg(binary::parallax())
        .args(["--planted", env!("CARGO_BIN_EXE_planted"), "--hog", env!("CARGO_BIN_EXE_hog")])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let reported =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    println!("{reported}");
    assert!(output.status.success(), "{names:?}: {reported}");
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

/// If this fails, a server's own timer is reported as another server.
#[test]
fn a_timer_of_the_server() {
    check_causes(&["timer-node", "timer-asyncio", "timer-python"]);
}

/// If this fails, another server's time is reported as this one's event loop.
#[test]
fn another_server() {
    check_causes(&["upstream-nginx", "upstream-node", "upstream-node-new"]);
}

#[test]
fn a_server_that_is_stopped_or_frozen() {
    check_causes(&["stopped", "frozen"]);
}

/// If this fails, nobody learns what holds a lock.
#[test]
fn a_lock_and_its_owner() {
    check_causes(&["lock-mariadb", "lock-python"]);
}

#[test]
fn an_acknowledgment_that_is_delayed() {
    check_causes(&["delayed-ack"]);
}

/// If this fails, contention is claimed whatever happens, or never.
#[test]
fn others_on_the_core_of_real_servers_and_the_same_servers_without_them() {
    check_causes(&["hog-nginx", "quiet-nginx", "hog-mariadb", "quiet-mariadb", "hog-python", "quiet-python"]);
}
