//! The record of every verb except `drive`, and of a JVM that records itself: what was observed, what was measured, and
//! what could not be measured.
//!
//! The files are as in the record of a run: `run.json`, one line per interval in `series.ndjson` that commits the
//! interval, histogram logs, events. There is a module for the fields of each verb's document and lines. Verbs call the
//! writer once per interval; `explain` and `report` read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use intervals::{DIGITS, Durations};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::Nanos;

use crate::commit::{Commits, EVENTS, RUN, SERIES};
use crate::document::{Envelope, RecordKind, State, envelope_of};
use crate::error::{Damage, RecordError};
use crate::folder::Event;

pub mod cpu;
pub mod disturb;
pub mod hiccup;
pub mod jvm;
pub mod profile;
mod reader;
pub mod watch;

pub use cpu::CpuResults;
pub use disturb::DisturbResults;
pub use hiccup::HiccupResults;
pub use jvm::JvmResults;
pub use profile::ProfileResults;
pub use reader::{Observed, ObservedLine, read_observation};
pub use watch::WatchResults;

/// `run.json` of every verb but `drive`: written at the start, and replaced at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Observation {
    /// Its `kind` must be that of the body.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Written under the name of the kind. While the record is being made, it contains what is known so far.
    #[serde(flatten)]
    pub body: ObservationBody,
}

envelope_of!(Observation);

impl Observation {
    /// An observation that begins now.
    pub fn new(parallax_version: &str, body: ObservationBody) -> Observation {
        Observation { envelope: Envelope::new(body.kind().into(), parallax_version), body }
    }
}

units::named_enum! {
    /// What made an observation: a verb, or `jvm` if an application recorded itself.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ObservationKind {
        Watch = "watch",
        Cpu = "cpu",
        Hiccup = "hiccup",
        Disturb = "disturb",
        Profile = "profile",
        Jvm = "jvm",
    }
}

impl ObservationKind {
    /// The number of significant digits in its histograms: a JVM keeps one set of histograms per thread, where three
    /// digits would take eight times the memory.
    pub(crate) const fn digits(self) -> u8 {
        match self {
            ObservationKind::Jvm => 2,
            _ => DIGITS,
        }
    }
}

impl From<ObservationKind> for RecordKind {
    fn from(kind: ObservationKind) -> RecordKind {
        match kind {
            ObservationKind::Watch => RecordKind::Watch,
            ObservationKind::Cpu => RecordKind::Cpu,
            ObservationKind::Hiccup => RecordKind::Hiccup,
            ObservationKind::Disturb => RecordKind::Disturb,
            ObservationKind::Profile => RecordKind::Profile,
            ObservationKind::Jvm => RecordKind::Jvm,
        }
    }
}

/// What a verb saw, over the whole record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ObservationBody {
    Watch(Box<WatchResults>),
    Cpu(CpuResults),
    Hiccup(Box<HiccupResults>),
    Disturb(DisturbResults),
    Profile(Box<ProfileResults>),
    Jvm(JvmResults),
}

impl ObservationBody {
    /// The verb or source that made the record.
    pub fn kind(&self) -> ObservationKind {
        match self {
            ObservationBody::Watch(_) => ObservationKind::Watch,
            ObservationBody::Cpu(_) => ObservationKind::Cpu,
            ObservationBody::Hiccup(_) => ObservationKind::Hiccup,
            ObservationBody::Disturb(_) => ObservationKind::Disturb,
            ObservationBody::Profile(_) => ObservationKind::Profile,
            ObservationBody::Jvm(_) => ObservationKind::Jvm,
        }
    }
}

/// What frames a line of an observation's series: the verb's own fields stand next to these.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct LineFrame {
    /// Offset of its begin from the record's zero.
    pub start_ns: u64,
    pub length_ns: u64,
    /// The histograms of this interval, by their file's name without `.hlog`. Each has a line in its log, and no
    /// other has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logs: BTreeMap<String, LogSums>,
}

/// What a histogram alone would lose, and what it is checked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct LogSums {
    pub count: u64,
    /// Exact; a sum above 2^64 - 1 is written as that.
    pub sum_ns: u64,
    /// How many values passed an hour and were kept as an hour.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub out_of_range: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The maximum number of histogram logs in a record: each takes 270 KiB when it is read.
pub const LOGS_MAX: usize = 256;

/// Whether `name` is allowed for a histogram log, without `.hlog`: it becomes the name of a file.
pub fn is_log_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    name.len() <= 100
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(fits)
        && !name.ends_with(".hlog")
}

/// The record of an observation in progress. A crash at any moment loses at most the last interval.
pub struct ObservationWriter {
    commits: Commits,
    kind: ObservationKind,
    logs: BTreeSet<String>,
}

impl ObservationWriter {
    /// Creates the directory, with its parents, and writes `run.json`.
    ///
    /// # Errors
    ///
    /// [`RecordError::Occupied`] if the directory already contains a record, [`RecordError::StartTime`] and
    /// [`RecordError::Write`].
    pub fn create(path: &Path, observation: &Observation) -> Result<ObservationWriter, RecordError> {
        ObservationWriter::with(Commits::create(path, &observation.time.started)?, observation)
    }

    fn with(commits: Commits, observation: &Observation) -> Result<ObservationWriter, RecordError> {
        let mut writer = ObservationWriter { commits, kind: observation.body.kind(), logs: BTreeSet::new() };
        writer.finish(observation)?;
        Ok(writer)
    }

    /// The path of the results directory.
    pub fn path(&self) -> &Path {
        self.commits.path()
    }

    /// Appends one interval: the verb's fields for it, and its histograms by name. Empty histograms are left out.
    ///
    /// `start` is an offset from the record's zero, and must be later than that of the previous interval.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`], for example if the disk is full: the interval is then not in the record, and the next
    /// one may be appended. [`RecordError::OutOfOrder`], [`RecordError::LogName`] and [`RecordError::TooLarge`].
    ///
    /// # Panics
    ///
    /// If `line` is not a JSON object, or has a field of [`LineFrame`].
    pub fn append(
        &mut self,
        line: &impl Serialize,
        start: Nanos,
        length: Nanos,
        logs: &[(&str, &Durations)],
    ) -> Result<(), RecordError> {
        let logs = || logs.iter().filter(|(_, durations)| !durations.is_empty());
        for (name, _) in logs() {
            self.claim_log(name)?;
        }
        let sums = logs().map(|(name, durations)| ((*name).to_owned(), LogSums::of(durations)));
        let frame = LineFrame { start_ns: start.0, length_ns: length.0, logs: sums.collect() };
        let line = framed(&frame, line);
        self.commits.interval(start, |commits| {
            for (name, durations) in logs() {
                commits.write_durations(name, (start, length), durations)?;
            }
            commits.write_json_line(SERIES, &line)
        })
    }

    /// Appends one event.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`], and [`RecordError::TooLarge`] for a text of megabytes.
    pub fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.commits.line(EVENTS, event)
    }

    /// Replaces `run.json` by `observation`, atomically.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`]; the old document is then kept.
    ///
    /// # Panics
    ///
    /// If its kind is not the one that the record was created with, or its `kind` is not that of its body.
    pub fn finish(&mut self, observation: &Observation) -> Result<(), RecordError> {
        let kinds = (observation.kind, observation.body.kind());
        assert_eq!(
            kinds,
            (self.kind.into(), self.kind),
            "a record keeps its kind, and its body is of that kind"
        );
        self.commits.replace_document(observation)
    }

    fn claim_log(&mut self, name: &str) -> Result<(), RecordError> {
        if self.logs.contains(name) {
            return Ok(());
        }
        if !is_log_name(name) || self.logs.len() == LOGS_MAX {
            return Err(RecordError::LogName { name: name.to_owned() });
        }
        self.logs.insert(name.to_owned());
        Ok(())
    }
}

impl LogSums {
    fn of(durations: &Durations) -> LogSums {
        LogSums {
            count: durations.count(),
            sum_ns: u64::try_from(durations.sum_ns()).unwrap_or(u64::MAX),
            out_of_range: durations.out_of_range(),
        }
    }
}

/// One JSON object with the fields of both.
fn framed(frame: &LineFrame, line: &impl Serialize) -> Value {
    let to_value = |value| match value {
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => panic!("a line of a series is a JSON object with string keys"),
    };
    let mut framed = to_value(serde_json::to_value(frame));
    for (key, value) in to_value(serde_json::to_value(line)) {
        assert!(!matches!(key.as_str(), "start_ns" | "length_ns" | "logs"), "`{key}` is the frame's field");
        framed.insert(key, value);
    }
    Value::Object(framed)
}

#[cfg(test)]
pub(crate) mod tests;
