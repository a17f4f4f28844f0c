//! What can go wrong with a run folder. One cause and one cure a variant, each one line: what, where, what to do.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::document::{SCHEMA_VERSION, SchemaVersion};
use crate::escape::escape_text;

/// Why a run folder could not be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The folder already holds a run, or what is left of one.
    #[error("{} already holds a run; name another folder, or remove this one", path.display())]
    Occupied { path: PathBuf },
    /// The folder has no `run.json`.
    #[error("{} holds no run.json; name the folder of a run", path.display())]
    NoRun { path: PathBuf },
    /// The folder holds an import, which has no timelines, and a run was asked for.
    #[error("{} is an import of another tool's output, and this needs a run; import keeps what there is in run.json", path.display())]
    NotARun { path: PathBuf },
    /// The folder holds a record of another verb.
    #[error("{} is a record of `{found}`, and this needs one of `{needed}`; name the folder of such a run", path.display())]
    OtherKind { path: PathBuf, found: String, needed: &'static str },
    /// A histogram log's name becomes the name of a file.
    #[error(
        "`{}` cannot name a histogram log; use 1 to 100 of a-z, A-Z, 0-9, `_`, `-` and `.`, beginning with a letter",
        escape_text(name)
    )]
    LogName { name: String },
    /// Its format is of another major version.
    #[error(
        "{} has schema version {found}, and this program reads {}.x; read it with a parallax of that version",
        path.display(),
        SCHEMA_VERSION.major
    )]
    OtherMajor { path: PathBuf, found: SchemaVersion },
    /// `time.started` of the document cannot be read, and the histogram logs need it.
    #[error("`{started}` is not a time in RFC 3339; give time.started like 2026-01-31T12:00:00Z")]
    StartTime { started: String },
    /// Intervals must follow one another: their starts are the keys by which lines are matched.
    #[error("interval begins at {start_ns} ns, not after the one at {last_ns} ns; append intervals in order")]
    OutOfOrder { start_ns: u64, last_ns: u64 },
    /// The system refused a write: the disk is full, or the folder is not ours.
    #[error("cannot write {}: {source}; free space there, or name another folder", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The system refused a read.
    #[error("cannot read {}: {source}; check that it is there and may be read", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A link, a pipe or a device stands where a file belongs.
    #[error("{} is not a regular file; copy the run folder with its files, not links", path.display())]
    NotAFile { path: PathBuf },
    /// Longer than anything this program writes, so it is not read into memory.
    #[error("{} is longer than {limit} bytes; it is not a file of a run", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    /// A committed interval has values that lie in a file which is not there.
    #[error("{} is missing, though interval {index} has values in it; copy the whole run folder", path.display())]
    NoLog { path: PathBuf, index: u64 },
    /// A complete line that this program did not write so. A torn last line is not damage.
    #[error("{} line {line}: {damage}; copy the run folder anew from where it was made", path.display())]
    Damaged { path: PathBuf, line: u64, damage: Damage },
}

/// What is wrong with a line.
#[derive(Debug, Error)]
pub enum Damage {
    // It quotes names as they stand in the file, and the file is a stranger's.
    #[error("{}", escape_text(&.0.to_string()))]
    Json(#[from] serde_json::Error),
    #[error("longer than {limit} bytes")]
    LongLine { limit: u64 },
    #[error("`{}` is not known as {what}", escape_text(name))]
    UnknownName { what: &'static str, name: String },
    #[error("{what}")]
    DoesNotAddUp { what: String },
    #[error("not a line of a histogram log: {what}")]
    Hlog { what: &'static str },
    #[error("the histogram cannot be decoded: {what}")]
    Histogram { what: String },
}

impl Damage {
    pub(crate) fn sum(what: impl Into<String>) -> Damage {
        Damage::DoesNotAddUp { what: what.into() }
    }
}
