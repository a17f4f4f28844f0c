//! The folder of a run's record: where it is, and that nothing is left of it when there was no run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use record::RecordDir;

use crate::date::timestamp;
use crate::records::RECORDS;

/// A folder of its own under `parallax-runs/`, named by when it was made.
pub fn new_folder() -> PathBuf {
    let stamp = timestamp(clock::wall()).strftime("%Y%m%d-%H%M%S").to_string();
    Path::new(RECORDS).join(format!("{stamp}-{}", std::process::id()))
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
        let make = || {
            format!(
                "cannot create the results directory `{shown}`; choose another with -o, or keep no record with --no-record"
            )
        };
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
}
