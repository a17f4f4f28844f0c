//! The files of a results directory with one writer, written so that a crash at any byte loses at most the last
//! interval.
//!
//! The histograms of an interval are written first and its line in `series.ndjson` last: that line commits the
//! interval. A failed write is rolled back. Knows neither documents nor series; the writers of records drive it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use intervals::Durations;
use intervals::hlog::Encoder;
use serde::Serialize;
use units::Nanos;

use crate::error::RecordError;
use crate::files::{Disk, Files};
use crate::log_text;
use crate::record_dir::RecordDir;

pub(crate) const RUN: &str = "run.json";
pub(crate) const SERIES: &str = "series.ndjson";
pub(crate) const EVENTS: &str = "events.ndjson";

/// The maximum length of a line of JSON: one with every 16-bit code is below 4 MiB.
pub(crate) const LONGEST_JSON_LINE: u64 = 4 << 20;

pub(crate) struct Commits {
    path: PathBuf,
    files: Box<dyn Files>,
    /// The header of every histogram log of this run.
    header: String,
    /// The length of each file created so far.
    lengths: BTreeMap<String, u64>,
    /// Files that contain part of a failed write, and the length that they should have.
    torn: BTreeMap<String, u64>,
    last_start: Option<Nanos>,
    encoder: Encoder,
}

impl Commits {
    /// Creates the directory, with its parents. `started` is the run's zero, in RFC 3339.
    pub(crate) fn create(path: &Path, started: &str) -> Result<Commits, RecordError> {
        let write = |source| RecordError::Write { path: path.to_owned(), source };
        let folder = RecordDir::make(path)?;
        if folder.contains(RUN).map_err(write)? {
            return Err(RecordError::Occupied { path: path.to_owned() });
        }
        Commits::on(Box::new(Disk::new(folder)), path, started)
    }

    pub(crate) fn on(mut files: Box<dyn Files>, path: &Path, started: &str) -> Result<Commits, RecordError> {
        let zero = started.parse::<jiff::Timestamp>();
        let zero = zero.map_err(|_| RecordError::StartTime { started: started.to_owned() })?;
        // The series is created first: if two processes choose this directory, only one of them succeeds.
        files.create(SERIES).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Occupied { path: path.to_owned() },
            _ => RecordError::Write { path: path.join(SERIES), source },
        })?;
        Ok(Commits {
            path: path.to_owned(),
            files,
            header: log_text::header(zero),
            lengths: BTreeMap::from([(SERIES.to_owned(), 0)]),
            torn: BTreeMap::new(),
            last_start: None,
            encoder: Encoder::default(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the interval that begins at `start`: `write` must add its histograms first and its line last. If `write`
    /// fails, everything that it wrote is rolled back.
    pub(crate) fn interval(
        &mut self,
        start: Nanos,
        write: impl FnOnce(&mut Commits) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        if let Some(last) = self.last_start.filter(|&last| start <= last) {
            return Err(RecordError::OutOfOrder { start_ns: start.0, last_ns: last.0 });
        }
        self.whole(write)?;
        self.last_start = Some(start);
        Ok(())
    }

    /// Appends one line of JSON to the file `name`, completely or not at all.
    pub(crate) fn line(&mut self, name: &str, value: &impl Serialize) -> Result<(), RecordError> {
        self.whole(|commits| commits.write_json_line(name, value))
    }

    /// Replaces `run.json` by `document`, atomically.
    pub(crate) fn replace_document(&mut self, document: &impl Serialize) -> Result<(), RecordError> {
        let mut text = serde_json::to_vec_pretty(document).expect("a document has no keys but strings");
        text.push(b'\n');
        self.files.replace(RUN, &text).map_err(|source| self.write_error(RUN, source))
    }

    /// For use in `write` of [`Commits::interval`]: appends a line to the log `name`, which is given without `.hlog`.
    pub(crate) fn write_durations(
        &mut self,
        name: &str,
        (start, length): (Nanos, Nanos),
        durations: &Durations,
    ) -> Result<(), RecordError> {
        let name = format!("{name}.hlog");
        let is_new = self.lengths.get(&name).is_none_or(|&len| len == 0);
        let mut text = if is_new { self.header.clone() } else { String::new() };
        self.encoder.line(&mut text, start, length, durations);
        self.write(&name, text.as_bytes())
    }

    /// For use in `write` of [`Commits::interval`]: appends a line of JSON to the file `name`.
    pub(crate) fn write_json_line(&mut self, name: &str, value: &impl Serialize) -> Result<(), RecordError> {
        let mut line = serde_json::to_vec(value).expect("a line has no keys but strings");
        line.push(b'\n');
        if line.len() as u64 > LONGEST_JSON_LINE {
            return Err(RecordError::TooLarge { path: self.path.join(name), limit: LONGEST_JSON_LINE });
        }
        self.write(name, &line)
    }

    fn whole(
        &mut self,
        write: impl FnOnce(&mut Commits) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        self.mend()?;
        let before = self.lengths.clone();
        let written = write(self);
        if written.is_err() {
            self.roll_back(&before);
        }
        written
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        if !self.lengths.contains_key(name) {
            self.files.create(name).map_err(|source| self.write_error(name, source))?;
            self.lengths.insert(name.to_owned(), 0);
        }
        // Counted as written before the write: if it fails, the length differs from before, and the file is truncated.
        *self.lengths.entry(name.to_owned()).or_default() += bytes.len() as u64;
        self.files.append(name, bytes).map_err(|source| self.write_error(name, source))
    }

    /// Undoes what was written since the files had the lengths in `before`.
    fn roll_back(&mut self, before: &BTreeMap<String, u64>) {
        for (name, len) in &mut self.lengths {
            let was = before.get(name).copied().unwrap_or(0);
            if *len != was {
                self.torn.insert(name.clone(), was);
                *len = was;
            }
        }
        // If this fails, the next call tries again before it writes.
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
