//! Servers of other projects, each with a separate directory and port: `watch` counts the same as they do.

mod mariadb;
mod names;
mod nginx;
mod postgres;
mod redis;
mod rows;
mod trees;

use std::process::{Command, Output, Stdio};

use record::observation::WatchResults;

use crate::support::cores::{self, Core};

/// What the server counted and what was seen of it agree within 0.01 %; a gap must be counted as lost.
#[track_caller]
fn check_reconciled(what: &str, seen: u64, counted: u64, results: &WatchResults) {
    let losses = &results.losses;
    println!("{what}: seen {seen} of {counted}, {losses:?}");
    assert!(counted > 0, "{what}: the server counted nothing");
    let gap = counted.abs_diff(seen);
    assert!(gap * 10_000 <= counted, "{what}: seen {seen} of {counted}, {losses:?}");
    let lost =
        losses.ring_full + losses.map_full + losses.recursion + losses.mid_connection + losses.unparsed;
    assert!(counted >= seen, "{what}: more seen than counted: {seen} of {counted}");
    assert!(gap <= lost, "{what}: {gap} are missing and {lost} were counted as lost: {losses:?}");
}

/// At the default settings nothing is lost: what was seen is what the server counted, request by request.
#[track_caller]
fn check_all_counted(what: &str, seen: u64, counted: u64, results: &WatchResults) {
    let losses = &results.losses;
    println!("{what}: seen {seen} of {counted}, {losses:?}");
    assert_eq!((seen, losses.ring_full, results.missed), (counted, 0, None), "{what}: {losses:?}");
}

/// Events were lost: what was seen and what was missed are what the server counted, within the stated margin, which is
/// at most 5 % wide.
#[track_caller]
fn check_missed(what: &str, seen: u64, counted: u64, results: &WatchResults) {
    let losses = &results.losses;
    let missed = results.missed.unwrap_or_else(|| panic!("{what}: nothing was missed: {losses:?}"));
    println!("{what}: seen {seen} of {counted}, {missed:?}, {losses:?}");
    assert!(losses.ring_full > 0 && missed.requests > 0, "{what}: nothing was lost: {losses:?}");
    let off = counted.abs_diff(seen + missed.requests);
    assert!(off <= missed.margin, "{what}: seen {seen} of {counted}, {missed:?}");
    assert!(missed.margin * 40 <= missed.requests, "{what}: the margin is too wide: {missed:?}");
}

/// Runs a client to its end, on the same host as the server.
fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("XDG_CACHE_HOME", "/dev/null");
    let output = cores::start(&mut command, Core::First, 0).wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {}: {message}", arguments.join(" "), output.status);
    output
}

/// Fails unless this program is installed.
#[track_caller]
pub(crate) fn require(program: &str) {
    let found = Command::new("sh").args(["-c", r#"command -v "$1""#, "sh", program]).output().unwrap();
    assert!(found.status.success(), "{program} is not here: run scripts/setup test");
}
