//! Writes a run folder while the run goes on, so that a crash at any byte loses at most the last interval.
//!
//! The histograms of an interval are written first and its line in `series.ndjson` last: that line commits it.
//! Readers ignore what is not committed. Driven by the engine's collector, once a second, from one thread.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::document::Document;
use crate::error::RecordError;
use crate::files::{Disk, Files};
use crate::hlog::{self, Encoder};
use crate::interval::{Interval, Series};
use crate::series::Second;

pub(crate) const RUN: &str = "run.json";
pub(crate) const SERIES: &str = "series.ndjson";
pub(crate) const EVENTS: &str = "events.ndjson";

/// No line of JSON is longer: one that names every 16-bit code is below 4 MiB.
pub(crate) const LONGEST_JSON_LINE: u64 = 4 << 20;

/// One line of `events.ndjson`: something to draw beside the curves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Offset from the run's zero.
    pub at_ns: u64,
    /// A short name that a program can select by, such as `warning`.
    pub kind: String,
    /// For people; one line.
    pub text: String,
}

/// A run folder under way.
pub struct FolderWriter {
    path: PathBuf,
    files: Box<dyn Files>,
    /// The header of every histogram log of this run.
    header: String,
    /// How long each file is that was made so far.
    lengths: BTreeMap<String, u64>,
    /// Files that hold a part of a failed write, and how long they should be.
    torn: BTreeMap<String, u64>,
    last_start: Option<Nanos>,
    encoder: Encoder,
}

impl FolderWriter {
    /// Makes the folder, with its parents, and writes `run.json`.
    ///
    /// # Errors
    ///
    /// [`RecordError::Occupied`] when the folder already holds a run, [`RecordError::StartTime`] and
    /// [`RecordError::Write`].
    pub fn create(path: &Path, document: &Document) -> Result<FolderWriter, RecordError> {
        let write = |source| RecordError::Write { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(write)?;
        if path.join(RUN).try_exists().map_err(write)? {
            return Err(RecordError::Occupied { path: path.to_owned() });
        }
        FolderWriter::on(Box::new(Disk::new(path.to_owned())), path, document)
    }

    pub(crate) fn on(
        mut files: Box<dyn Files>,
        path: &Path,
        document: &Document,
    ) -> Result<FolderWriter, RecordError> {
        let started = &document.time.started;
        let started = started
            .parse::<jiff::Timestamp>()
            .map_err(|_| RecordError::StartTime { started: started.clone() })?;
        // The series comes first: of two processes that chose this folder, only one can make it.
        files.create(SERIES).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Occupied { path: path.to_owned() },
            _ => RecordError::Write { path: path.join(SERIES), source },
        })?;
        let mut writer = FolderWriter {
            path: path.to_owned(),
            files,
            header: hlog::header(started),
            lengths: BTreeMap::from([(SERIES.to_owned(), 0)]),
            torn: BTreeMap::new(),
            last_start: None,
            encoder: Encoder::default(),
        };
        writer.finish(document)?;
        Ok(writer)
    }

    /// Where the run lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds one interval. `process_cpu` is what the whole process used within it.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`], for one when the disk is full: the interval is not in the folder then, as far as
    /// the files could be cut back to where they were; a later call cuts the rest before it writes. The caller
    /// may try the same interval again, or go on with the next and so leave a gap.
    pub fn append(&mut self, interval: &Interval, process_cpu: Option<Nanos>) -> Result<(), RecordError> {
        if let Some(last) = self.last_start.filter(|&last| interval.start <= last) {
            return Err(RecordError::OutOfOrder { start_ns: interval.start.0, last_ns: last.0 });
        }
        self.mend()?;
        let before = self.lengths.clone();
        let written = self.write_interval(interval, process_cpu);
        match written {
            Ok(()) => self.last_start = Some(interval.start),
            Err(_) => self.roll_back(&before),
        }
        written
    }

    /// Adds one event.
    ///
    /// # Errors
    ///
    /// As [`FolderWriter::append`], and [`RecordError::TooLarge`] for a text of megabytes.
    pub fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.mend()?;
        let before = self.lengths.clone();
        let written = self.write_json_line(EVENTS, event);
        if written.is_err() {
            self.roll_back(&before);
        }
        written
    }

    /// Puts `document` in the place of `run.json`, at once.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`]; the old document stands then.
    pub fn finish(&mut self, document: &Document) -> Result<(), RecordError> {
        let mut text = serde_json::to_vec_pretty(document).expect("a document has no keys but strings");
        text.push(b'\n');
        self.files.replace(RUN, &text).map_err(|source| self.write_error(RUN, source))
    }

    fn write_interval(&mut self, interval: &Interval, process_cpu: Option<Nanos>) -> Result<(), RecordError> {
        for series in Series::of(interval.kinds().len()) {
            let Some(durations) = interval.series(series) else { continue };
            let name = format!("{}.hlog", series.name());
            let is_new = self.lengths.get(&name).is_none_or(|&len| len == 0);
            let mut text = if is_new { self.header.clone() } else { String::new() };
            self.encoder.line(&mut text, interval.start, interval.length, durations);
            self.write(&name, text.as_bytes())?;
        }
        self.write_json_line(SERIES, &Second::of(interval, process_cpu))
    }

    fn write_json_line(&mut self, name: &str, value: &impl Serialize) -> Result<(), RecordError> {
        let mut line = serde_json::to_vec(value).expect("a line has no keys but strings");
        line.push(b'\n');
        if line.len() as u64 > LONGEST_JSON_LINE {
            return Err(RecordError::TooLarge { path: self.path.join(name), limit: LONGEST_JSON_LINE });
        }
        self.write(name, &line)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        if !self.lengths.contains_key(name) {
            self.files.create(name).map_err(|source| self.write_error(name, source))?;
            self.lengths.insert(name.to_owned(), 0);
        }
        // Taken as written before it is: where it fails, the file differs from before and is cut.
        *self.lengths.entry(name.to_owned()).or_default() += bytes.len() as u64;
        self.files.append(name, bytes).map_err(|source| self.write_error(name, source))
    }

    /// Takes back what was written since the files were as long as `before` says.
    fn roll_back(&mut self, before: &BTreeMap<String, u64>) {
        for (name, len) in &mut self.lengths {
            let was = before.get(name).copied().unwrap_or(0);
            if *len != was {
                self.torn.insert(name.clone(), was);
                *len = was;
            }
        }
        // Where it fails now, the next call tries again before it writes.
        let _ = self.mend();
    }

    fn mend(&mut self) -> Result<(), RecordError> {
        while let Some((name, len)) = self.torn.pop_first() {
            if let Err(source) = self.files.cut(&name, len) {
                let error = self.write_error(&name, source);
                self.torn.insert(name, len);
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_error(&self, name: &str, source: io::Error) -> RecordError {
        RecordError::Write { path: self.path.join(name), source }
    }
}

#[cfg(test)]
mod tests;
