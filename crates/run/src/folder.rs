//! The directory of a run's record: its name, and that nothing is left of it if there was no run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use record::RecordDir;

use crate::date::timestamp;
use crate::records::RECORDS;

/// A new directory name under `parallax-runs/`, made from the current time.
pub fn new_folder() -> PathBuf {
    let stamp = timestamp(clock::wall()).strftime("%Y%m%d-%H%M%S").to_string();
    Path::new(RECORDS).join(format!("{stamp}-{}", std::process::id()))
}

/// A directory that receives the record, and the parent directories created for it.
///
/// While it is claimed, its path means this directory, whatever happens to the directories above it.
pub struct ClaimedFolder {
    dir: RecordDir,
    /// Deepest first.
    made: Vec<PathBuf>,
}

impl ClaimedFolder {
    /// Creates `folder`, and checks before anything is sent that the record can be kept in it.
    ///
    /// # Errors
    ///
    /// When it cannot be created, belongs to another user, or already contains a run.
    pub fn make(folder: &Path) -> anyhow::Result<ClaimedFolder> {
        let shown = folder.display();
        let make = || {
            format!(
                "cannot create the results directory `{shown}`; choose another with -o, or keep no record with --no-record"
            )
        };
        let missing = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let made = missing.map(Path::to_owned).collect();
        let claim = ClaimedFolder { dir: RecordDir::make(folder).with_context(make)?, made };
        let occupied = claim.dir.contains("run.json").with_context(make)?;
        ensure!(
            !occupied,
            "`{shown}` already contains a record; choose another directory with -o, or remove it"
        );
        Ok(claim)
    }

    /// There was no run: removes the directories created for it, as far as they are empty.
    pub fn release(self) {
        for folder in self.made {
            // Not empty: somebody else uses it by now.
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
