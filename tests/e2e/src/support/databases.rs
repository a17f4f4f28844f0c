//! What the tests with databases share: the account, the programs around a server, and what must hold with each of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::geteuid;
use serde_json::Value;
use units::Nanos;

use super::run::{Run, Running, start};
use super::wait;

/// The account of the tests.
pub const PASSWORD: &str = "hunter2-of-the-tests";

/// Runs a program that comes with a server, and returns its output.
pub fn command(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}: run scripts/setup test"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {message}");
    String::from_utf8(output.stdout).unwrap()
}

/// If this fails, a password that was typed is in a record, or in the list of processes. `url` has the password.
pub fn check_password_is_hidden(url: &str, what: &[&str]) {
    let running = start(&[&["-c", "1", "-d", "2s", "--quiet"][..], what, &[url]].concat());
    running.wait_for_record();
    let pid = running.pid();
    let title = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(title.starts_with(b"/") || geteuid().is_root());
    assert!(!String::from_utf8_lossy(&title).contains(PASSWORD), "the title has it");
    let run = running.finish();
    assert!(run.stderr.contains("--password-file"), "{}", run.stderr);
    assert!(run.ended("ok") > 0, "{:?}", run.reported());
    assert!(!run.stderr.contains(PASSWORD) && !run.stdout.contains(PASSWORD));
    let mut files = Vec::new();
    list(&run.record(), &mut files);
    assert!(files.len() > 5);
    for file in files {
        assert!(!String::from_utf8_lossy(&fs::read(&file).unwrap()).contains(PASSWORD), "{}", file.display());
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}

/// If this fails, a run ends with its server, or requests vanish while the server is away. `what` is sent at 100/s for
/// 9 s, and `restart` ends the server and starts it again.
pub fn check_goes_on(what: &[&str], restart: impl FnOnce()) {
    let load = ["--json", "--quiet", "-r", "100/s", "-c", "8", "-d", "9s", "--max-in-flight", "2000"];
    let running = start(&[&load[..], what].concat());
    running.wait_for_record();
    assert!(wait::until(Nanos::from_secs(20), || is_under_way(&running)), "no series");
    restart();
    let run = running.finish();
    let seconds = fs::read_to_string(run.record().join("series.ndjson")).unwrap();
    let seconds: Vec<Value> = seconds.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ok = |second: &Value| second["ok"].as_u64().unwrap_or(0);
    assert!(ok(&seconds[0]) > 50, "{}", seconds[0]);
    assert!(
        seconds.iter().rev().take(3).map(ok).sum::<u64>() > 50,
        "the run did not go on: {:?}",
        run.reported()
    );
    assert_eq!(run.total("scheduled"), 900);
    for row in run.outcomes() {
        let outcome = row["outcome"].as_str().unwrap();
        // `tls_failed`: PostgreSQL is asked for TLS first.
        let opening = ["connect_refused", "tls_failed", "auth_failed"];
        let is_expected = [&["ok", "closed_before_response", "reset"][..], &opening].concat();
        // PostgreSQL and Redis say that they stop, or that they are not ready yet.
        let is_said = outcome == "app_error" && row["blame"] == "server";
        assert!(is_said || is_expected.contains(&outcome), "{:?}: {:?}", run.reported(), run.reasons());
    }
    assert!(run.ended("ok") >= 300, "{:?}", run.reported());
}

fn is_under_way(running: &Running) -> bool {
    let series = running.record().join("series.ndjson");
    fs::read_to_string(series).is_ok_and(|text| text.lines().count() > 1)
}

/// A scenario of transactions that lock the same two rows of table `t` in opposite orders.
pub fn opposite_orders(url: &str) -> String {
    let journey = |name: &str, first: u32, second: u32| {
        let update = |id: u32| format!("UPDATE t SET k = k + 1 WHERE id = {id}");
        let steps = ["BEGIN".to_owned(), update(first), update(second)];
        let steps = steps.map(|sql| format!("[[journey.step]]\nsql = \"{sql}\"\nthink = \"1ms\"\n"));
        let head = format!("[[journey]]\nname = \"{name}\"\nretries = 1000\n");
        let look = "[[journey.step]]\nsql = \"SELECT k FROM t WHERE id = 1\"\nexpect.rows = 1\n";
        format!("{head}{}{look}[[journey.step]]\nsql = \"COMMIT\"\n", steps.concat())
    };
    let head = format!("[targets.db]\nurl = \"{url}\"\n[defaults]\nprepared = false\n");
    head + &journey("up", 1, 2) + &journey("down", 2, 1)
}

/// The sum of a figure over all journeys of a run.
pub fn of_journeys(run: &Run, field: &str) -> u64 {
    let journeys = run.json["results"]["journeys"].as_array().unwrap();
    journeys.iter().map(|row| row[field].as_u64().unwrap_or(0)).sum()
}
