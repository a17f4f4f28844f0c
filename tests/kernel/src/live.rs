//! The live table on a pseudo-terminal that `script` of util-linux makes: its figures, another size of the window,
//! keys and signals, and the terminal afterwards.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use record::document::State;
use record::observation::{ObservationBody, read_observation};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use units::Nanos;

use crate::support::planted::{Plan, Planted};
use crate::support::{binary, quiet, wait};

const ENTERS: &str = "\u{1b}[?1049h";
const LEAVES: &str = "\u{1b}[?1049l";
const SHOWS_CURSOR: &str = "\u{1b}[?25h";
const CLEARS: &str = "\u{1b}[2J";

/// Longer than any step here takes, also on a busy machine.
const LONGEST: Nanos = Nanos::from_secs(30);

/// A terminal of 100x30 in which `parallax watch` runs, and then a look at the terminal's modes.
struct Terminal {
    script: Child,
    folder: TempDir,
}

impl Terminal {
    fn start(server: &Planted, arguments: &str) -> Terminal {
        let folder = tempfile::tempdir().unwrap();
        // Ctrl-C goes to the shell as well, and would end some shells before they say how it went.
        let line = format!(
            "trap : INT; stty rows 30 cols 100; {} watch -i 200ms -o record -p {} {arguments}; echo EXIT=$?; stty -a",
            binary::parallax().display(),
            server.pid(),
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
        Terminal { script, folder }
    }

    /// What the terminal has shown. The first line of the file is not: `script` repeats the command there.
    fn shown(&self) -> String {
        let text = fs::read(self.folder.path().join("typescript")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.split_once('\n').map_or_else(String::new, |(_, shown)| shown.to_owned())
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        assert!(wait::until(LONGEST, || self.shown().contains(text)), "no `{text}`: {}", self.shown());
    }

    fn press(&mut self, key: &str) {
        let keyboard = self.script.stdin.as_mut().unwrap();
        keyboard.write_all(key.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    fn parallax(&self) -> u32 {
        let only_child = |pid: u32| -> u32 {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
            children.split_whitespace().next().unwrap().parse().unwrap()
        };
        only_child(only_child(self.script.id()))
    }

    fn resize(&self, rows: u16, columns: u16) {
        let terminal = fs::read_link(format!("/proc/{}/fd/2", self.parallax())).unwrap();
        let mut stty = Command::new("stty");
        stty.arg("-F").arg(terminal).args(["rows", &rows.to_string(), "cols", &columns.to_string()]);
        assert!(stty.status().unwrap().success());
    }

    /// What was shown once the table had gone, after the terminal was found as it was before.
    fn finish(mut self, requests: u64) -> String {
        self.wait_for("EXIT=");
        self.script.wait().unwrap();
        let shown = self.shown();
        let (before, after) = shown.rsplit_once(LEAVES).unwrap();
        assert!(before.contains(SHOWS_CURSOR), "the cursor stays hidden");
        let (totals, modes) = after.rsplit_once("EXIT=").unwrap();
        assert!(modes.starts_with('0'), "{modes}");
        for mode in ["icanon", "echo", "isig", "ixon"] {
            assert!(modes.split_whitespace().any(|word| word == mode), "{mode}: {modes}");
        }
        assert!(modes.contains("susp = ^Z"), "{modes}");
        assert!(totals.contains("where the time at the server went"), "{totals}");
        let observed = read_observation(&self.folder.path().join("record")).unwrap();
        let ObservationBody::Watch(results) = &observed.document.body else { panic!("another kind") };
        assert_eq!(results.requests, requests);
        let profile = self.folder.path().join("record/profile");
        if profile.exists() {
            assert_eq!(read_observation(&profile).unwrap().document.state, State::Finished);
            assert!(profile.join("off-cpu.svg").exists());
        }
        after.to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// The highest row that the text moves the cursor to.
fn lowest_row(text: &str) -> u16 {
    let moves = text.split("\u{1b}[").filter_map(|sequence| {
        let (place, _) = sequence.split_once('H')?;
        place.split_once(';')?.0.parse().ok()
    });
    moves.max().unwrap_or(0)
}

/// If this fails, somebody who shrinks the window sees a torn table, or none.
#[test]
fn the_table_has_the_figures_and_fits_a_window_that_changes() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let mut terminal = Terminal::start(&server, "");
    terminal.wait_for(ENTERS);
    let mut client = server.new_client();
    (0..200).for_each(|_| drop(client.http("/burn=1ms")));
    // Words, not sentences: a cell that was blank before is jumped over.
    for word in ["throughput", "p95", "pre-empted", "CPU", "statement", "/burn", "lost"] {
        terminal.wait_for(word);
    }
    let known = terminal.shown().len();
    terminal.resize(10, 60);
    let redrawn = || {
        let shown = terminal.shown();
        let (_, drawn) = shown[known..].rsplit_once(CLEARS)?;
        // Its last row has been drawn.
        drawn.contains("Ctrl-C").then(|| drawn.to_owned())
    };
    assert!(wait::until(LONGEST, || redrawn().is_some()), "not drawn anew: {}", terminal.shown());
    (0..20).for_each(|_| drop(client.http("/burn=1ms")));
    wait::pause(Nanos::from_millis(500));
    assert_eq!(lowest_row(&redrawn().unwrap()), 10);
    terminal.press("q");
    let after = terminal.finish(220);
    assert!(after.contains("220 requests"), "{after}");
}

/// If this fails, the terminal's Ctrl-C also reaches the profile, which then takes its end for a second one.
#[test]
fn control_c_ends_the_watch_with_its_totals_and_its_profile() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let mut terminal = Terminal::start(&server, "--profile");
    terminal.wait_for(ENTERS);
    let mut client = server.new_client();
    (0..20).for_each(|_| drop(client.http("/burn=100us")));
    terminal.wait_for("statement");
    terminal.press("\u{3}");
    let after = terminal.finish(20);
    assert!(after.contains("parallax: profile: record/profile"), "{after}");
}

#[test]
fn a_signal_or_the_end_of_the_server_gives_the_terminal_back() {
    let _together = quiet::together();
    for ends_by_signal in [true, false] {
        let server = Plan::of("threads").start();
        let terminal = Terminal::start(&server, "");
        terminal.wait_for(ENTERS);
        let mut client = server.new_client();
        (0..20).for_each(|_| drop(client.http("/burn=100us")));
        if ends_by_signal {
            let pid = Pid::from_raw(i32::try_from(terminal.parallax()).unwrap()).unwrap();
            kill_process(pid, Signal::TERM).unwrap();
        } else {
            drop(server);
        }
        let after = terminal.finish(20);
        assert_eq!(after.contains("the server has ended"), !ends_by_signal, "{after}");
    }
}

#[test]
fn lines_stay_where_no_table_is_wanted() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let mut terminal = Terminal::start(&server, "--no-tui");
    terminal.wait_for("throughput ");
    terminal.press("\u{3}");
    terminal.wait_for("EXIT=0");
    assert!(!terminal.shown().contains(ENTERS), "{}", terminal.shown());
}
