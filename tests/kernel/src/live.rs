//! The live table in a terminal: its figures, another size of the window, keys and signals, and the terminal afterwards.

use std::path::Path;

use record::document::State;
use record::observation::{ObservationBody, read_observation};
use rustix::process::Signal;
use testkit::terminal::{ENTERS, Ended, Terminal};
use units::Nanos;

use crate::support::planted::{Plan, Planted};
use crate::support::{quiet, wait};

const SHOWS_CURSOR: &str = "\u{1b}[?25h";
const CLEARS: &str = "\u{1b}[2J";

/// Longer than any step here takes, also on a busy machine.
const LONGEST: Nanos = Nanos::from_secs(30);

fn watch<'a>(folder: &'a Path, server: &Planted, more: &str) -> Terminal<'a> {
    let arguments = format!("watch -i 200ms -o record -p {} {more}", server.pid());
    Terminal::start(folder, (30, 100), &arguments)
}

/// The text shown after the table was closed.
fn finish(terminal: Terminal<'_>, folder: &Path, requests: u64) -> String {
    let Ended { view, after, code } = terminal.finish();
    assert!(view.contains(SHOWS_CURSOR), "the cursor stays hidden");
    assert_eq!(code, 0, "{after}");
    assert!(after.contains("where the time at the server went"), "{after}");
    let observed = read_observation(&folder.join("record")).unwrap();
    let ObservationBody::Watch(results) = &observed.document.body else { panic!("another kind") };
    assert_eq!(results.requests, requests);
    let profile = folder.join("record/profile");
    if profile.exists() {
        assert_eq!(read_observation(&profile).unwrap().document.state, State::Finished);
        assert!(profile.join("off-cpu.svg").exists());
    }
    after
}

/// The highest row that the text moves the cursor to.
fn lowest_row(text: &str) -> u16 {
    let moves = text.split("\u{1b}[").filter_map(|sequence| {
        let (place, _) = sequence.split_once('H')?;
        place.split_once(';')?.0.parse().ok()
    });
    moves.max().unwrap_or(0)
}

/// If this fails, shrinking the window leaves a torn table, or none.
#[test]
fn the_table_has_the_figures_and_fits_a_window_that_changes() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = watch(folder.path(), &server, "");
    terminal.wait_for(ENTERS);
    let mut client = server.new_client();
    (0..200).for_each(|_| drop(client.http("/burn=1ms")));
    // Words, not sentences: the cursor skips cells that were blank before.
    for word in ["throughput", "p95", "preempted", "CPU", "statement", "/burn", "lost"] {
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
    let after = finish(terminal, folder.path(), 220);
    assert!(after.contains("220 requests"), "{after}");
}

/// If this fails, the terminal's Ctrl-C also reaches the profile, which then takes its end for a second one.
#[test]
fn control_c_ends_the_watch_with_its_totals_and_its_profile() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = watch(folder.path(), &server, "--profile");
    terminal.wait_for(ENTERS);
    let mut client = server.new_client();
    (0..20).for_each(|_| drop(client.http("/burn=100us")));
    terminal.wait_for("statement");
    terminal.press("\u{3}");
    let after = finish(terminal, folder.path(), 20);
    assert!(after.contains("parallax: profile: record/profile"), "{after}");
}

#[test]
fn a_signal_or_the_end_of_the_server_gives_the_terminal_back() {
    let _together = quiet::together();
    for ends_by_signal in [true, false] {
        let server = Plan::of("threads").start();
        let folder = tempfile::tempdir().unwrap();
        let terminal = watch(folder.path(), &server, "");
        terminal.wait_for(ENTERS);
        let mut client = server.new_client();
        (0..20).for_each(|_| drop(client.http("/burn=100us")));
        if ends_by_signal {
            terminal.signal(Signal::TERM);
        } else {
            drop(server);
        }
        let after = finish(terminal, folder.path(), 20);
        assert_eq!(after.contains("the server has ended"), !ends_by_signal, "{after}");
    }
}

#[test]
fn lines_stay_where_no_table_is_wanted() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = watch(folder.path(), &server, "--no-tui");
    terminal.wait_for("throughput ");
    terminal.press("\u{3}");
    terminal.wait_for("EXIT=0");
    assert!(!terminal.shown().contains(ENTERS), "{}", terminal.shown());
}
