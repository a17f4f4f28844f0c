//! `--controlled`: an observer that another parallax controls, over its standard input and output.
//!
//! Once it sees what it is to observe, it writes one line of JSON to standard error. It replies to each line of its
//! input with this host's monotonic clock, so that the other side can compare the two clocks. The end of the input ends
//! the observer, also if the other side is killed or the connection is lost; a last line reports that the record is
//! closed. Used by `drive --watch` and `drive --profile`.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use run::companion::wire::{CLOSED, Ready, line};

/// Reports that this observer is ready, replies to each line until the input ends, then sets `stop`.
///
/// # Errors
///
/// When its thread cannot be started.
pub fn follow(stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let answer = move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(_)) = line(&mut input) {
            let reported = writeln!(io::stdout(), "{}", clock::now().0).and_then(|()| io::stdout().flush());
            if reported.is_err() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new()
        .name("controlled".to_owned())
        .spawn(answer)
        .context("cannot start the thread that follows the controlling parallax")?;
    let _ = writeln!(io::stderr(), "{}", Ready::now().line());
    Ok(())
}

/// Prints the line that reports that the record is closed. A closed output is not an error.
pub fn closed() {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{CLOSED}").and_then(|()| out.flush());
    // The lock is never released: a reply to a later line would appear where the record is expected.
    std::mem::forget(out);
}
