//! Ctrl-C, SIGTERM and SIGHUP end a run gracefully: the first one stops it and keeps the record, the second one ends
//! the process at once.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use rustix::process::getpid;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use units::Nanos;

use tui::screen;

/// The exit code for the first signal that ended a run; 0 before it.
static CODE: AtomicU8 = AtomicU8::new(0);

/// The exit code of a command that was interrupted: 128 plus the signal's number as in shells (130 for Ctrl-C, 143 for
/// SIGTERM); 130 if the signal is not known, as in a record.
pub fn interrupted_code() -> u8 {
    match CODE.load(Ordering::Relaxed) {
        0 => code(SIGINT),
        code => code,
    }
}

fn code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Whether a signal has asked this process to end.
pub fn is_interrupted() -> bool {
    CODE.load(Ordering::Relaxed) != 0
}

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets. The second ends the process at once.
///
/// SIGHUP stays ignored if it was ignored at the start, as with nohup.
///
/// A thread takes the signals instead of handlers: the terminal of the live view must be restored first, and a signal
/// handler is not allowed to do that.
///
/// # Errors
///
/// When the kernel refuses the handlers.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    stop_flag_until(2)
}

/// The same for what cleans up after itself: the third signal ends the process at once.
///
/// # Errors
///
/// As [`stop_flag`].
pub fn patient_stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    stop_flag_until(3)
}

/// A flag that the first signal sets; the signal of this number ends the process.
fn stop_flag_until(last: u32) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let signals = if ignores_hangup() { &[SIGINT, SIGTERM][..] } else { &[SIGINT, SIGTERM, SIGHUP] };
    let stopped = Arc::clone(&stop);
    let context = "cannot handle signals, so Ctrl-C would lose the run";
    let mut signals = Signals::new(signals).context(context)?;
    let take = move || {
        for (signal, number) in signals.forever().zip(1..) {
            let _ = CODE.compare_exchange(0, code(signal), Ordering::Relaxed, Ordering::Relaxed);
            stopped.store(true, Ordering::Relaxed);
            if number >= last {
                screen::leave();
                low_level::exit(i32::from(interrupted_code()));
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(take).context(context)?;
    Ok(stop)
}

/// The times at which this process received SIGCONT; the latest thousand are kept.
///
/// # Errors
///
/// As [`stop_flag`].
pub fn continuations() -> anyhow::Result<Arc<Mutex<Vec<Nanos>>>> {
    const KEPT: usize = 1_000;
    let noted = Arc::<Mutex<Vec<Nanos>>>::default();
    let ours = Arc::clone(&noted);
    let context = "cannot handle signals, so stops by a signal would have no name";
    let mut signals = Signals::new([SIGCONT]).context(context)?;
    let note = move || {
        for _ in signals.forever() {
            let at = clock::now();
            let mut noted = ours.lock().unwrap_or_else(PoisonError::into_inner);
            if noted.len() == KEPT {
                noted.remove(0);
            }
            noted.push(at);
        }
    };
    thread::Builder::new().name("continued".to_owned()).spawn(note).context(context)?;
    Ok(noted)
}

/// Whether this process was started with SIGHUP ignored (`SigIgn` in proc_pid_status(5): one bit per signal).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", getpid().as_raw_nonzero()));
    status.is_ok_and(|status| is_ignored(&status, SIGHUP))
}

fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_which_signals_are_ignored() {
        assert!(is_ignored("Name:\tx\nSigIgn:\t0000000000000001\n", SIGHUP));
        assert!(!is_ignored("Name:\tx\nSigIgn:\t0000000000001002\n", SIGHUP));
        assert!(!is_ignored("", SIGHUP));
    }
}
