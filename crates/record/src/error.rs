//! What can go wrong with a results directory. Each variant is one line: what, where, what to do.

use std::io;
use std::path::PathBuf;

use intervals::LogDamage;
use thiserror::Error;

use crate::document::{SCHEMA_VERSION, SchemaVersion};
use units::escape_text;

/// Why a results directory could not be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The directory already contains a record, or part of one.
    #[error("{} already contains a record; use another directory, or remove this one", path.display())]
    Occupied { path: PathBuf },
    /// The directory belongs to another user, who could replace what is written there.
    #[error("{} belongs to another user; give a new directory", path.display())]
    Foreign { path: PathBuf },
    /// The directory has no `run.json`.
    #[error("{} has no run.json; give a results directory", path.display())]
    NoRun { path: PathBuf },
    /// The directory contains an import, which has no timelines, but a run is needed.
    #[error("{} is an import of another tool's results, but a record of `drive` is needed", path.display())]
    NotARun { path: PathBuf },
    /// The directory contains a record of another verb.
    #[error("{} is a record of `{found}`, but a record of `{needed}` is needed", path.display())]
    OtherKind { path: PathBuf, found: String, needed: &'static str },
    /// A histogram log's name becomes the name of a file.
    #[error(
        "`{}` cannot name a histogram log; use 1 to 100 of a-z, A-Z, 0-9, `_`, `-` and `.`, beginning with a letter",
        escape_text(name)
    )]
    LogName { name: String },
    /// Its schema has another major version.
    #[error(
        "{} has schema version {found}, but this parallax reads {}.x; use a parallax of that version",
        path.display(),
        SCHEMA_VERSION.major
    )]
    OtherMajor { path: PathBuf, found: SchemaVersion },
    /// `time.started` of the document cannot be read, and the histogram logs need it.
    #[error("time.started `{started}` is not an RFC 3339 time, such as 2026-01-31T12:00:00Z")]
    StartTime { started: String },
    /// Intervals must follow one another: their starts are the keys by which lines are matched.
    #[error("interval begins at {start_ns} ns, not after the one at {last_ns} ns; append intervals in order")]
    OutOfOrder { start_ns: u64, last_ns: u64 },
    /// The system refused a write: the disk is full, or the directory is not writable.
    #[error("cannot write {}: {source}; {}", path.display(), write_advice(source))]
    Write { path: PathBuf, source: io::Error },
    /// The system refused a read.
    #[error("cannot read {}: {source}; check that it exists and is readable", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A link, a pipe or a device instead of a file.
    #[error("{} is not a regular file; copy the results directory again, with its files instead of links", path.display())]
    NotAFile { path: PathBuf },
    /// Longer than any file that Parallax writes, so it is not read into memory.
    #[error("{} is longer than {limit} bytes, so it is not a file of a record", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    /// A committed interval has values in a file that does not exist.
    #[error("{} is missing, but interval {index} has values in it; copy the whole results directory again", path.display())]
    NoLog { path: PathBuf, index: u64 },
    /// A complete line that Parallax did not write like this. An incomplete last line is not damage.
    #[error("{} line {line}: {damage}; the results directory is corrupted: copy it again from the machine that produced it", path.display())]
    Damaged { path: PathBuf, line: u64, damage: Damage },
}

/// What to do about a write that the system refused.
fn write_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or use another directory"
        }
        _ => "use another directory",
    }
}

/// What is wrong with a line.
#[derive(Debug, Error)]
pub enum Damage {
    // The message quotes names from the file, which is untrusted.
    #[error("{}", escape_text(&.0.to_string()))]
    Json(#[from] serde_json::Error),
    #[error("longer than {limit} bytes")]
    LongLine { limit: u64 },
    #[error("`{}` is not a known {what}", escape_text(name))]
    UnknownName { what: &'static str, name: String },
    #[error("{what}")]
    DoesNotAddUp { what: String },
    #[error(transparent)]
    Log(#[from] LogDamage),
}

impl Damage {
    pub(crate) fn sum(what: impl Into<String>) -> Damage {
        Damage::DoesNotAddUp { what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, someone frees space on a disk that is not full.
    #[test]
    fn only_a_full_disk_is_to_be_freed() {
        let message = |source: io::Error| RecordError::Write { path: "run.json".into(), source }.to_string();
        for full in [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT] {
            assert!(message(full.into()).ends_with("; free some space, or use another directory"));
        }
        assert_eq!(
            message(rustix::io::Errno::ACCESS.into()),
            "cannot write run.json: Permission denied (os error 13); use another directory"
        );
    }
}
