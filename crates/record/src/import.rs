//! The record of an import: what another tool reported about its own run, and what its output cannot show.
//!
//! It is a separate kind of document, since nearly everything that is known of a run may be absent here. Absent is not
//! zero: a figure that the tool does not report is left out.

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::Nanos;

use crate::commit::RUN;
use crate::compatibility::Ignored;
use crate::document::{CodeCount, Envelope, Threshold, envelope_of};
use crate::error::RecordError;
use crate::folder_reader::{read_record, read_whole};
use crate::record_dir::RecordDir;

/// What another tool measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Import {
    /// Always finished, and always with a verdict. Its time is that of the tool's run, and its host is not known; its
    /// command and options are those of the import, left out in records of version 1.0.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// What was stated with `--fail-if`; left out where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    pub imported: Imported,
    pub results: ImportedResults,
}

envelope_of!(Import);

/// Where the figures come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Imported {
    pub tool: String,
    /// Absent where the output does not name it.
    pub tool_version: Option<String>,
    /// Which of the tool's outputs.
    pub form: String,
    pub file: String,
    /// What this output cannot tell, one sentence each.
    pub cannot_know: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ImportedResults {
    pub url: Option<String>,
    /// RFC 3339, UTC.
    pub started: Option<String>,
    pub elapsed_ns: Option<u64>,
    pub connections: Option<u64>,
    /// Requests a second that the tool was asked for.
    pub rate_per_s: Option<f64>,
    /// Requests that ended, as far as the tool counts them.
    pub requests: Option<u64>,
    /// Requests that the tool counts as successful.
    pub ok: Option<u64>,
    pub failed: Option<u64>,
    /// Successful responses per second, as for a run; absent if the tool does not report failures separately.
    pub throughput_per_s: Option<f64>,
    /// Requests per second as the tool reports them, failed ones included.
    pub request_rate_per_s: Option<f64>,
    pub bytes_sent: Option<u64>,
    pub bytes_received: Option<u64>,
    pub codes: Vec<CodeCount>,
    pub errors: Vec<ErrorCount>,
    pub times: Vec<ImportedTime>,
    /// What the tool reported of parts of the run, in order; left out if it reported none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<ImportedInterval>,
}

/// One interval of a tool's run. It begins where the one before ends, or with the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ImportedInterval {
    /// Its end, from the beginning of the run.
    pub end_ns: u64,
    /// Requests or transactions per second.
    pub rate_per_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<u64>,
    /// The percentile that the tool prints for the whole run too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantile_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_per_s: Option<f64>,
}

/// Failures, with the tool's own text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ErrorCount {
    #[serde(rename = "said")]
    pub original: String,
    /// Absent where the tool says what it met and not how often.
    pub count: Option<u64>,
}

/// One distribution of durations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ImportedTime {
    /// `response`, `service` or a phase where it means the same as in a run, else `request`.
    pub name: String,
    /// The name that the tool uses.
    #[serde(rename = "said")]
    pub original: String,
    /// From when to when, and of which requests.
    pub meaning: String,
    pub count: Option<u64>,
    pub min_ns: Option<u64>,
    pub mean_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// As stated, and only those that `count` values can carry.
    pub quantiles: Vec<ImportedQuantile>,
    /// The histogram log of this folder that holds the values, where the tool gave each of them.
    pub log: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ImportedQuantile {
    /// Between 0 and 1.
    pub q: f64,
    pub ns: u64,
    /// The 95 % interval, where each value is known.
    pub low_ns: Option<u64>,
    pub high_ns: Option<u64>,
}

/// Whether the directory `path` contains an import.
///
/// # Errors
///
/// If it contains no record, or cannot be read.
pub fn is_import(path: &Path) -> Result<bool, RecordError> {
    let document: Value = read_whole(path)?;
    Ok(document.get("kind").and_then(Value::as_str) == Some("import"))
}

/// The import in the directory `path`.
///
/// # Errors
///
/// As for a run.
pub fn read_import(path: &Path) -> Result<Import, RecordError> {
    let mut ignored = Ignored::default();
    let mut import: Import = read_record(&path.join(RUN), &mut ignored)?;
    ignored.note_in(&mut import);
    Ok(import)
}

/// Writes a new record: the document, and the histogram logs by file name.
///
/// # Errors
///
/// [`RecordError::Occupied`] and [`RecordError::Write`].
pub fn write_import(path: &Path, import: &Import, logs: &[(String, String)]) -> Result<(), RecordError> {
    let write = |source| RecordError::Write { path: path.to_owned(), source };
    let folder = RecordDir::make(path)?;
    let mut text = serde_json::to_vec_pretty(import).expect("a document has no keys but strings");
    text.push(b'\n');
    // The document is written last: a directory without one contains no record.
    if folder.contains(RUN).map_err(write)? {
        return Err(RecordError::Occupied { path: path.to_owned() });
    }
    let logs = logs.iter().map(|(name, text)| (name.as_str(), text.as_bytes()));
    for (name, bytes) in logs.chain([(RUN, text.as_slice())]) {
        let written = folder.create(name).and_then(|mut file| file.write_all(bytes));
        written.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Occupied { path: path.to_owned() },
            _ => RecordError::Write { path: path.join(name), source },
        })?;
    }
    Ok(())
}

/// Nanoseconds since the epoch as RFC 3339; `None` if out of the calendar's range.
pub fn timestamp(unix: Nanos) -> Option<String> {
    jiff::Timestamp::from_nanosecond(i128::from(unix.0)).ok().map(|at| at.to_string())
}

/// RFC 3339 as nanoseconds since the epoch; `None` for a time before it, or an invalid text.
pub fn unix_ns(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<jiff::Timestamp>().ok()?.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::State;

    /// If this fails, an import from before records had an envelope cannot be read any more.
    #[test]
    fn an_import_of_1_0_reads_as_a_finished_one_of_which_less_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{
            "schema_version": 1,
            "kind": "import",
            "verdict": { "word": "degraded", "findings": [] },
            "parallax_version": "0.1.0",
            "imported": { "tool": "wrk2", "tool_version": null, "form": "text", "file": "a", "cannot_know": [] },
            "results": { "url": null, "started": null, "elapsed_ns": 5, "connections": null, "rate_per_s": null,
                "requests": 3, "ok": null, "failed": null, "throughput_per_s": null, "request_rate_per_s": null,
                "bytes_sent": null, "bytes_received": null, "codes": [], "errors": [], "times": [] }
        }"#;
        std::fs::write(folder.path().join(RUN), text).unwrap();
        assert!(is_import(folder.path()).unwrap());
        let import = read_import(folder.path()).unwrap();
        assert_eq!((import.state, import.results.requests), (State::Finished, Some(3)));
        assert!(import.notes.is_empty() && import.command.is_empty() && import.time.started.is_empty());
        let again = serde_json::to_value(&import).unwrap();
        assert!(again["time"].get("started_monotonic_ns").is_none(), "{again}");
    }
}
