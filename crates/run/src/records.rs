//! The records of earlier runs: finding the latest, and removing old ones.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use findings::RecordSummary;
use record::document::State;

use crate::record_lock::is_running;

/// The directory in which records are created without `-o`.
pub const RECORDS: &str = "parallax-runs";

/// The latest record in the directory `parent`.
///
/// # Errors
///
/// When there is none.
pub fn latest(parent: &Path) -> anyhow::Result<PathBuf> {
    let shown = parent.display();
    let (records, _) = findings::summaries(parent).with_context(|| format!("cannot read `{shown}`"))?;
    let latest = records.into_iter().next_back().map(|record| record.folder);
    latest.with_context(|| format!("`{shown}` has no records; name the directory of one"))
}

/// Removes all records in the directory `parent` except the `keep` latest and those of runs in progress; returns the
/// directories that were removed.
///
/// # Errors
///
/// When a directory cannot be read or removed; earlier directories have been removed then.
pub fn prune(parent: &Path, keep: usize) -> anyhow::Result<Vec<PathBuf>> {
    let (records, _) =
        findings::summaries(parent).with_context(|| format!("cannot read `{}`", parent.display()))?;
    let end = records.len().saturating_sub(keep);
    let in_progress = |record: &&RecordSummary| record.state == State::Running && is_running(&record.folder);
    let old: Vec<&RecordSummary> = records[..end].iter().filter(|record| !in_progress(record)).collect();
    let mut removed = Vec::new();
    for RecordSummary { folder, .. } in old {
        let is_directory = fs::symlink_metadata(folder).is_ok_and(|entry| entry.is_dir());
        ensure!(is_directory, "`{}` is not a directory any more", folder.display());
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove `{}`", folder.display()))?;
        removed.push(folder.clone());
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, pruning removes other directories, or records that were to be kept.
    #[test]
    fn only_the_oldest_records_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../../formats/golden/run/run.json")).unwrap();
        for (name, started) in
            [("b", "2026-01-02T00:00:00Z"), ("c", "2026-01-03T00:00:00Z"), ("a", "2026-01-01T00:00:00Z")]
        {
            let mut document = golden.clone();
            document["time"]["started"] = started.into();
            fs::create_dir(root.path().join(name)).unwrap();
            fs::write(root.path().join(name).join("run.json"), document.to_string()).unwrap();
        }
        fs::create_dir(root.path().join("notes")).unwrap();
        assert_eq!(latest(root.path()).unwrap(), root.path().join("c"));
        assert_eq!(prune(root.path(), 1).unwrap(), [root.path().join("a"), root.path().join("b")]);
        assert_eq!(prune(root.path(), 1).unwrap(), Vec::<PathBuf>::new());
        assert!(root.path().join("notes").exists() && root.path().join("c").exists());
        let none = latest(&root.path().join("notes")).unwrap_err().to_string();
        assert!(none.contains("has no records"), "{none}");
    }
}
