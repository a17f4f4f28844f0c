//! The live view in a terminal: keys, signals, and the terminal afterwards.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;
use testkit::terminal::{ENTERS, Ended, Terminal};
use units::Nanos;

use crate::support::nginx::Nginx;
use crate::support::{turn, wait};

/// `parallax drive` whose first second has been measured and drawn.
fn drive<'a>(folder: &'a Path, arguments: &str) -> Terminal<'a> {
    let terminal = Terminal::start(folder, (24, 80), &format!("drive -o record {arguments}"));
    terminal.wait_for(ENTERS);
    terminal.wait_for("last 10 s");
    terminal
}

/// How it ended: its exit, its document, and its events.
fn finish(terminal: Terminal<'_>, folder: &Path) -> (Ended, Value, String) {
    let ended = terminal.finish();
    assert!(!ended.view.is_empty(), "the view did not leave the screen");
    let document = fs::read_to_string(folder.join("record/run.json")).unwrap();
    let events = fs::read_to_string(folder.join("record/events.ndjson")).unwrap_or_default();
    (ended, serde_json::from_str(&document).unwrap(), events)
}

/// If this fails, keys do something other than their labels, or the record does not contain their effect.
#[test]
fn keys_steer_a_run_and_are_on_record() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = drive(folder.path(), &format!("-r 200/s -d 60s {}", nginx.url("/")));
    for key in ["+", "p", "p", "p", "?", "q", "q"] {
        terminal.press(key);
        wait::pause(Nanos::from_millis(700));
    }
    let (ended, document, events) = finish(terminal, folder.path());
    // As for any run that finished: by its verdict, which on a busy machine may report a late client.
    let code = if document["verdict"]["word"] == "invalid" { 3 } else { 0 };
    assert_eq!(ended.code, code, "{ended:?}");
    let words: Vec<&str> = ended.after.split_whitespace().collect();
    assert!(words.join(" ").contains("ended by the user after"), "{ended:?}");
    assert_eq!(document["state"], "finished");
    let changes = document["load"]["changes"].as_array().unwrap();
    let reported: Vec<_> = changes.iter().map(|change| change["change"].as_str().unwrap()).collect();
    assert_eq!(reported, ["rate", "paused", "resumed", "ended"]);
    let rate = changes[0]["rate_per_s"].as_f64().unwrap();
    assert!((rate - 220.0).abs() < 1e-6, "{rate}");
    // Nothing was due after the end, and nothing before it was lost.
    assert_eq!(document["time"]["window_ns"], changes[3]["at_ns"]);
    let totals = &document["results"]["totals"];
    assert_eq!(totals["scheduled"], totals["ok"]);
    assert_eq!(events.lines().count(), 4, "{events}");
    let findings = document["verdict"]["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["check"] == "load_changed"), "{findings:?}");
}

/// If this fails, a run that is ended from outside leaves an unusable terminal.
#[test]
fn a_signal_gives_the_terminal_back() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    let terminal = drive(folder.path(), &format!("-c 2 -d 60s {}", nginx.url("/")));
    terminal.signal(Signal::TERM);
    let (ended, document, _) = finish(terminal, folder.path());
    assert_eq!(ended.code, 143, "{ended:?}");
    assert_eq!(document["state"], "interrupted");
}

#[test]
fn control_c_is_still_a_signal() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = drive(folder.path(), &format!("-c 2 -d 60s {}", nginx.url("/")));
    terminal.press("\u{3}");
    let (ended, document, _) = finish(terminal, folder.path());
    assert_eq!(ended.code, 130, "{ended:?}");
    assert_eq!(document["state"], "interrupted");
}
