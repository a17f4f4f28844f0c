//! `--controlled`: an observer that another parallax controls, over its standard input and output.
//!
//! Each line that comes gets this host's monotonic clock as its response, so that the other side can compare the two
//! clocks. The end of the input ends the observer, as it does when the other side is killed or the connection between
//! them is lost; a last line says that the record is closed. `drive --watch` and `drive --profile` control.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use run::companion::wire::{CLOSED, line};

/// Answers until the input ends, and then sets `stop`.
///
/// # Errors
///
/// When there can be no thread for it.
pub fn follow(stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let answer = move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(_)) = line(&mut input) {
            let told = writeln!(io::stdout(), "{}", clock::now().0).and_then(|()| io::stdout().flush());
            if told.is_err() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new()
        .name("controlled".to_owned())
        .spawn(answer)
        .context("cannot start the thread that follows the controlling parallax")?;
    Ok(())
}

/// Says that the record is closed, and nothing after it. Nobody may be there to hear it.
pub fn closed() {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{CLOSED}").and_then(|()| out.flush());
    // Kept for good: what is asked now gets no answer, which would stand where the record is expected.
    std::mem::forget(out);
}
