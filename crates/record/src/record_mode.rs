//! Who else may read a record. A record contains routes, statements and names of this host, so a record of root is
//! readable by root only, unless the user permits more.
//!
//! Implemented as this process's umask, set before anything is written: so it applies to every file of the record, and
//! to the observers that a run starts. A command of the user is started with the user's umask.

use std::str::FromStr;
use std::sync::OnceLock;

use rustix::fs::Mode;
use rustix::process::{geteuid, umask};

/// Permissions of a record's files: 600, 640 or 644.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordMode(u32);

impl FromStr for RecordMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<RecordMode, &'static str> {
        let digits = text.strip_prefix("0o").unwrap_or(text).trim_start_matches('0');
        match digits {
            "600" => Ok(RecordMode(0o600)),
            "640" => Ok(RecordMode(0o640)),
            "644" => Ok(RecordMode(0o644)),
            _ => Err("is 600 (the owner alone), 640 (the group reads) or 644 (everybody reads)"),
        }
    }
}

impl RecordMode {
    /// Access for the owner only.
    pub const OWN: RecordMode = RecordMode(0o600);

    /// The umask that removes the other bits; a directory keeps the right to enter with the right to read.
    fn as_umask(self) -> Mode {
        Mode::from_raw_mode(!(self.0 | (self.0 & 0o444) >> 2) & 0o777)
    }
}

/// The umask that this process was started with, if it has another one now.
static GIVEN: OnceLock<Mode> = OnceLock::new();

/// Sets the umask for `mode`; without one, for [`RecordMode::OWN`] if this is root, and otherwise leaves it. Call once,
/// before anything is written and any thread is started.
pub fn apply(mode: Option<RecordMode>) {
    let of_root = || geteuid().is_root().then_some(RecordMode::OWN);
    if let Some(mode) = mode.or_else(of_root) {
        let _ = GIVEN.set(umask(mode.as_umask()));
    }
}

/// Starts a command of the user with the user's umask: what it writes is not part of the record. No other thread may
/// create files meanwhile.
pub fn with_given_umask<T>(start: impl FnOnce() -> T) -> T {
    let own = GIVEN.get().map(|given| umask(*given));
    let started = start();
    own.map(umask);
    started
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_that_of_files_and_folders_can_be_entered() {
        for (text, files, folders) in
            [("600", 0o600, 0o700), ("0640", 0o640, 0o750), ("644", 0o644, 0o755), ("0o600", 0o600, 0o700)]
        {
            let mask = text.parse::<RecordMode>().unwrap().as_umask().as_raw_mode();
            assert_eq!((0o666 & !mask, 0o777 & !mask), (files, folders), "{text}");
        }
        for wrong in ["", "0", "400", "660", "666", "755", "4644", "rw", "6o0"] {
            assert!(wrong.parse::<RecordMode>().is_err(), "{wrong}");
        }
    }
}
