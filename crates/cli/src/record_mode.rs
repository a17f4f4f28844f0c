//! `--record-mode`: who else may read a record. A record holds routes, statements and names of this host, so that of
//! root is root's alone unless this option says otherwise.
//!
//! It is applied as this process's umask, before anything is written: so it holds for every file of the record, and for
//! the observers that a run starts.

use std::sync::OnceLock;

use run::folder::RecordMode;
use rustix::fs::Mode;
use rustix::process::{geteuid, umask};

/// The option, for the verbs that keep a record.
#[derive(Debug, Clone, clap::Args)]
pub struct RecordModeArg {
    /// Permissions of the record's files, in octal: 600, 640 or 644. A folder can be entered by those who may read
    /// [default: 600 for root, else as the umask has it].
    #[arg(long, value_name = "MODE", help_heading = "Output")]
    record_mode: Option<RecordMode>,
}

impl RecordModeArg {
    /// Sets the umask. To be called once, before anything is written and any thread is started.
    pub fn apply(&self) {
        let of_root = || geteuid().is_root().then_some(RecordMode::OWN);
        if let Some(mode) = self.record_mode.or_else(of_root) {
            let _ = GIVEN.set(umask(mode.as_umask()));
        }
    }
}

/// The umask that this process was started with, if it has another one now.
static GIVEN: OnceLock<Mode> = OnceLock::new();

/// Starts a command of the user with the user's umask: what it writes is no record. No other thread creates files.
pub fn with_given_umask<T>(start: impl FnOnce() -> T) -> T {
    let own = GIVEN.get().map(|given| umask(*given));
    let started = start();
    own.map(umask);
    started
}
