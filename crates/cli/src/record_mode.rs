//! `--record-mode`: who else may read a record. A record holds routes, statements and names of this host, so that of
//! root is root's alone unless this option says otherwise.
//!
//! It is applied as this process's umask, before anything is written: so it holds for every file of the record, and for
//! the observers that a run starts.

use std::str::FromStr;

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
    /// Sets the umask. To be called before anything is written and any thread is started.
    pub fn apply(&self) {
        let of_root = geteuid().is_root().then_some(RecordMode(0o600));
        if let Some(mode) = self.record_mode.or(of_root) {
            umask(mode.as_umask());
        }
    }
}

/// Permissions of a file that its owner writes and nobody executes.
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
    /// Takes from new files what the mode does not give, and from new folders the same with the right to enter.
    fn as_umask(self) -> Mode {
        Mode::from_raw_mode(!(self.0 | (self.0 & 0o444) >> 2) & 0o777)
    }
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
