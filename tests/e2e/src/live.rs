//! The live view on a pseudo-terminal that `script` of util-linux makes: keys, signals, and the terminal afterwards.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use units::Nanos;

use crate::support::nginx::Nginx;
use crate::support::{binary, turn, wait};

const ENTERS: &str = "\u{1b}[?1049h";
const LEAVES: &str = "\u{1b}[?1049l";

/// Longer than any step here takes, also on a busy machine.
const LONGEST: Nanos = Nanos::from_secs(30);

/// A terminal of 80x24 in which `parallax drive` runs, and then a look at the terminal's modes.
struct Terminal {
    script: Child,
    folder: TempDir,
}

impl Terminal {
    fn start(arguments: &str) -> Terminal {
        let folder = tempfile::tempdir().unwrap();
        // Ctrl-C goes to the shell as well, and would end some shells before they say how it went.
        let line = format!(
            "trap : INT; stty rows 24 cols 80; {} drive -o record {arguments}; echo EXIT=$?; stty -a",
            binary::parallax().display()
        );
        let script = Command::new("script")
            .args(["-qefc", &line, "typescript"])
            .current_dir(folder.path())
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let terminal = Terminal { script, folder };
        assert!(wait::until(LONGEST, || terminal.shown().contains(ENTERS)), "no view: {}", terminal.shown());
        // The first second has been measured and drawn.
        assert!(wait::until(LONGEST, || terminal.shown().contains("last 10 s")), "{}", terminal.shown());
        terminal
    }

    fn record(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    /// What the terminal has shown. The first line of the file is not: `script` repeats the command there.
    fn shown(&self) -> String {
        let text = fs::read(self.folder.path().join("typescript")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.split_once('\n').map_or_else(String::new, |(_, shown)| shown.to_owned())
    }

    fn press(&mut self, keys: &str) {
        let keyboard = self.script.stdin.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
        wait::pause(Nanos::from_millis(700));
    }

    fn parallax(&self) -> Pid {
        let only_child = |pid: u32| -> u32 {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
            children.split_whitespace().next().unwrap().parse().unwrap()
        };
        let shell = only_child(self.script.id());
        Pid::from_raw(i32::try_from(only_child(shell)).unwrap()).unwrap()
    }

    /// What was shown once the view had gone, after the terminal was found as it was before.
    fn finish(mut self) -> (String, Value, String) {
        assert!(wait::until(LONGEST, || self.shown().contains("EXIT=")), "it goes on: {}", self.shown());
        self.script.wait().unwrap();
        let shown = self.shown();
        let (_, after) = shown.rsplit_once(LEAVES).unwrap();
        let modes = after.rsplit_once("EXIT=").unwrap().1;
        for mode in ["icanon", "echo", "isig", "ixon"] {
            assert!(modes.split_whitespace().any(|word| word == mode), "{mode}: {modes}");
        }
        assert!(modes.contains("susp = ^Z"), "{modes}");
        let document = fs::read_to_string(self.record().join("run.json")).unwrap();
        let events = fs::read_to_string(self.record().join("events.ndjson")).unwrap_or_default();
        (after.to_owned(), serde_json::from_str(&document).unwrap(), events)
    }
}

/// If this fails, keys do something else than they say, or the record does not tell of them.
#[test]
fn keys_steer_a_run_and_are_on_record() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let mut terminal = Terminal::start(&format!("-r 200/s -d 60s {}", nginx.url("/")));
    for key in ["+", "p", "p", "?", "q"] {
        terminal.press(key);
    }
    let (after, document, events) = terminal.finish();
    // As any run that finished: by its verdict, which on a busy machine may be that of a late client.
    let code = if document["verdict"]["word"] == "invalid" { "EXIT=3" } else { "EXIT=0" };
    assert!(after.contains(code), "{after}");
    assert!(after.contains("ended by hand after"), "{after}");
    assert_eq!(document["state"], "finished");
    let changes = document["load"]["changes"].as_array().unwrap();
    let told: Vec<_> = changes.iter().map(|change| change["change"].as_str().unwrap()).collect();
    assert_eq!(told, ["rate", "paused", "resumed", "ended"]);
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

/// If this fails, a run that is ended from outside leaves a terminal in which nobody can type.
#[test]
fn a_signal_gives_the_terminal_back() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let terminal = Terminal::start(&format!("-c 2 -d 60s {}", nginx.url("/")));
    kill_process(terminal.parallax(), Signal::TERM).unwrap();
    let (after, document, _) = terminal.finish();
    assert!(after.contains("EXIT=130"), "{after}");
    assert_eq!(document["state"], "interrupted");
}

#[test]
fn control_c_is_still_a_signal() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let mut terminal = Terminal::start(&format!("-c 2 -d 60s {}", nginx.url("/")));
    terminal.press("\u{3}");
    let (after, document, _) = terminal.finish();
    assert!(after.contains("EXIT=130"), "{after}");
    assert_eq!(document["state"], "interrupted");
}
