//! The folder of a run's record: where it is, who may read it, and that nothing is left of it when there was no run.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, ensure};
use record::RecordDir;
use rustix::fs::Mode;

use crate::conduct::timestamp;

/// A folder of its own under `parallax-runs/`, named by when it was made.
pub fn new_folder() -> PathBuf {
    let stamp = timestamp(clock::wall()).strftime("%Y%m%d-%H%M%S").to_string();
    Path::new("parallax-runs").join(format!("{stamp}-{}", std::process::id()))
}

/// A folder that takes the record, and the ones that were made for it.
pub struct ClaimedFolder {
    /// The deepest first.
    made: Vec<PathBuf>,
}

impl ClaimedFolder {
    /// Makes sure, before anything is sent, that the record can be kept in `folder`.
    ///
    /// # Errors
    ///
    /// When it cannot be made, belongs to another user, or holds a run.
    pub fn make(folder: &Path) -> anyhow::Result<ClaimedFolder> {
        let shown = folder.display();
        let make = || format!("cannot create the results directory `{shown}`; choose another with -o");
        let missing = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let claim = ClaimedFolder { made: missing.map(Path::to_owned).collect() };
        RecordDir::make(folder).with_context(make)?;
        let occupied = folder.join("run.json").try_exists().with_context(make)?;
        ensure!(
            !occupied,
            "`{shown}` already contains a record; choose another directory with -o, or remove it"
        );
        Ok(claim)
    }

    /// There was no run: takes away the folders that were made for it, as far as they are empty.
    pub fn release(self) {
        for folder in self.made {
            // One that is not empty is somebody else's by now.
            if fs::remove_dir(&folder).is_err() {
                break;
            }
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
    /// For the owner alone.
    pub const OWN: RecordMode = RecordMode(0o600);

    /// Takes from new files what the mode does not give, and from new folders the same with the right to enter.
    pub fn as_umask(self) -> Mode {
        Mode::from_raw_mode(!(self.0 | (self.0 & 0o444) >> 2) & 0o777)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_and_is_empty_is_taken_away() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("runs/one");
        ClaimedFolder::make(&folder).unwrap().release();
        assert!(!root.path().join("runs").exists());

        fs::create_dir(root.path().join("runs")).unwrap();
        ClaimedFolder::make(&folder).unwrap().release();
        assert!(root.path().join("runs").exists() && !folder.exists());

        let claim = ClaimedFolder::make(&folder).unwrap();
        fs::write(folder.join("note"), "").unwrap();
        claim.release();
        assert!(folder.join("note").exists());
    }

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
