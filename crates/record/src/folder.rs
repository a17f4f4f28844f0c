//! Writes a results directory during a run, so that a crash at any byte loses at most the last interval.
//!
//! This module defines what an interval consists of; `commit` defines how it is committed. Driven by the engine's
//! collector, once per second, from one thread.

use std::path::Path;

use intervals::{Interval, Series};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::commit::{Commits, EVENTS, SERIES};
use crate::document::Document;
use crate::error::RecordError;
use crate::observation::disturb::Episode;
use crate::observation::jvm::{Hiccup, Pause};
use crate::series::Second;

/// One line of `events.ndjson`: something to show next to the curves of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Event {
    /// Offset from the run's zero.
    pub at_ns: u64,
    /// A short name by which programs can select events, such as `warning`.
    pub kind: String,
    /// A description in one line.
    pub text: String,
    /// If it is a disturbance: what was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Episode>,
    /// If it is a pause of a JVM: when it was, and its cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// If it is a hiccup of a JVM: its length and its causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hiccup: Option<Hiccup>,
}

impl Event {
    /// An event that has only a description.
    pub fn new(at_ns: u64, kind: &str, text: String) -> Event {
        Event { at_ns, kind: kind.to_owned(), text, disturbance: None, pause: None, hiccup: None }
    }
}

/// A results directory that is being written.
pub struct FolderWriter {
    commits: Commits,
}

impl FolderWriter {
    /// Creates the directory, with its parents, and writes `run.json`.
    ///
    /// # Errors
    ///
    /// [`RecordError::Occupied`] if the directory already contains a run, [`RecordError::StartTime`] and
    /// [`RecordError::Write`].
    pub fn create(path: &Path, document: &Document) -> Result<FolderWriter, RecordError> {
        FolderWriter::with(Commits::create(path, &document.time.started)?, document)
    }

    fn with(commits: Commits, document: &Document) -> Result<FolderWriter, RecordError> {
        let mut writer = FolderWriter { commits };
        writer.finish(document)?;
        Ok(writer)
    }

    /// The path of the results directory.
    pub fn path(&self) -> &Path {
        self.commits.path()
    }

    /// Appends one interval. `process_cpu` is the CPU time of the whole process within it.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`], for example if the disk is full. The interval is then not in the record, as far as the
    /// files could be truncated to their previous lengths; a later call truncates the rest before it writes. The caller
    /// may retry the same interval, or continue with the next and leave a gap.
    pub fn append(&mut self, interval: &Interval, process_cpu: Option<Nanos>) -> Result<(), RecordError> {
        self.commits.interval(interval.start, |commits| {
            for series in Series::of(interval) {
                let Some(durations) = interval.series(series) else { continue };
                let when = (interval.start, interval.length);
                commits.write_durations(&series.name(), when, durations)?;
            }
            commits.write_json_line(SERIES, &Second::of(interval, process_cpu))
        })
    }

    /// Appends one event.
    ///
    /// # Errors
    ///
    /// Like [`FolderWriter::append`], and [`RecordError::TooLarge`] for a text of megabytes.
    pub fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.commits.line(EVENTS, event)
    }

    /// Replaces `run.json` with `document`, atomically.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`]; the old document is then kept.
    pub fn finish(&mut self, document: &Document) -> Result<(), RecordError> {
        self.commits.replace_document(document)
    }
}

#[cfg(test)]
mod tests;
