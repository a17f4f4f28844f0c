//! Whether a run's process is still at work on its folder: it holds a lock there, which the kernel lets go of with it.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The series is there from a run's first moment to its last.
const LOCKED: &str = "series.ndjson";

/// A run's mark on its folder, for as long as it is kept.
#[derive(Debug)]
pub struct RecordLock {
    _locked: File,
}

impl RecordLock {
    /// Marks a folder whose record has begun. `None` where the file system has no locks: a report of the run then
    /// takes it for one that was cut off until it has ended.
    pub fn acquire(folder: &Path) -> Option<RecordLock> {
        let locked = record::open_file(&folder.join(LOCKED)).ok()??;
        flock(&locked, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(RecordLock { _locked: locked })
    }
}

/// Whether another process, or another part of this one, has marked the folder.
pub fn is_running(folder: &Path) -> bool {
    let Ok(Some(series)) = record::open_file(&folder.join(LOCKED)) else { return false };
    flock(&series, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, the report of a run that goes on says that it was cut off.
    #[test]
    fn a_mark_lasts_as_long_as_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_running(folder.path()), "nothing is there");
        std::fs::write(folder.path().join(LOCKED), "").unwrap();
        assert!(!is_running(folder.path()));
        let mark = RecordLock::acquire(folder.path());
        assert!(mark.is_some() && is_running(folder.path()));
        drop(mark);
        assert!(!is_running(folder.path()));
    }
}
