//! Whether a run's process is still writing to its folder: it holds a lock there, which the kernel releases with it.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// A file that exists from a run's first moment to its last.
const LOCKED: &str = "series.ndjson";

/// A run's lock on its folder, held until dropped.
#[derive(Debug)]
pub struct RecordLock {
    _locked: File,
}

impl RecordLock {
    /// Locks a folder whose record has begun. `None` if the file system has no locks: reports then describe the run as
    /// cut off until it has ended.
    pub fn acquire(folder: &Path) -> Option<RecordLock> {
        let locked = record::open_file(&folder.join(LOCKED)).ok()??;
        flock(&locked, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(RecordLock { _locked: locked })
    }
}

/// Whether another process, or another part of this one, holds the lock.
pub fn is_running(folder: &Path) -> bool {
    let Ok(Some(series)) = record::open_file(&folder.join(LOCKED)) else { return false };
    flock(&series, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, the report of a run in progress describes it as cut off.
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
