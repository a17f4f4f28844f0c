//! The fields that every record has, whichever verb made it: runs, observations, searches and imports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Host, SchemaVersion, Verdict};

/// The fields that all kinds of records share. In the file they are next to the fields of the kind, not in an object of
/// their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Envelope {
    pub schema_version: SchemaVersion,
    /// The kind of the record.
    // Searches of version 1.0 have none; they are recognised by the name of their file.
    #[serde(default = "search")]
    pub kind: RecordKind,
    // Imports of version 1.0 have none.
    #[serde(default = "finished")]
    pub state: State,
    /// Whether to trust it. Absent while it is being made, and in records that are not audited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The version of the program that made the record.
    pub parallax_version: String,
    /// The exact command line; empty if the record was not made by a command.
    #[serde(default)]
    pub command: Vec<String>,
    /// The effective value of every option, defaults included, by the option's long name.
    #[serde(default)]
    pub options: BTreeMap<String, EffectiveOption>,
    /// Records of one host and boot join by `started_monotonic_ns`.
    #[serde(default)]
    pub time: Time,
    /// The host on which the record was made; for an observation, the observed host.
    #[serde(default)]
    pub host: Host,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingFact>,
    /// Notes of the reader, one line each: unknown fields, a newer version. Not part of the file.
    #[serde(skip)]
    pub notes: Vec<String>,
}

fn search() -> RecordKind {
    RecordKind::Search
}

fn finished() -> State {
    State::Finished
}

impl Envelope {
    /// The envelope of a record that this program begins now: running, with nothing missing yet.
    pub fn new(kind: RecordKind, parallax_version: &str) -> Envelope {
        Envelope {
            schema_version: super::SCHEMA_VERSION,
            kind,
            state: State::Running,
            verdict: None,
            parallax_version: parallax_version.to_owned(),
            command: Vec::new(),
            options: BTreeMap::new(),
            time: Time::default(),
            host: Host::default(),
            missing: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Lets the fields of a record's envelope be accessed as if they were its own, as they are in the file.
macro_rules! envelope_of {
    ($Record:ty) => {
        impl std::ops::Deref for $Record {
            type Target = $crate::document::Envelope;

            fn deref(&self) -> &Self::Target {
                &self.envelope
            }
        }

        impl std::ops::DerefMut for $Record {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.envelope
            }
        }
    };
}

pub(crate) use envelope_of;

units::named_enum! {
    /// The kind of a record.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum RecordKind {
        /// A run: [`Document`](super::Document).
        Drive = "drive",
        /// Observations: [`Observation`](crate::Observation).
        Watch = "watch",
        Cpu = "cpu",
        Hiccup = "hiccup",
        Disturb = "disturb",
        Profile = "profile",
        Jvm = "jvm",
        /// A search over several runs: [`SearchDocument`](crate::search::SearchDocument).
        Search = "search",
        /// Another tool's output: [`Import`](crate::import::Import).
        Import = "import",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// In progress; or, if its process is gone, cut off: the record has everything except at most the last second.
    Running,
    Finished,
    /// Ended early by the user; what was measured is complete.
    Interrupted,
    /// Ended by an error in Parallax or in the host's event facility; what was measured until then is complete.
    Broken,
    /// Rebuilt from the record of a process that was killed.
    Recovered,
}

/// The effective value of one option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct EffectiveOption {
    /// The value in command-line syntax; empty for a flag that is off.
    pub value: String,
    pub source: OptionSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OptionSource {
    Given,
    /// Set by `--set`, which overrides a scenario file.
    Set,
    /// Set by a scenario file.
    File,
    Default,
    /// Derived from other options or from the host.
    Derived,
}

/// When the record was made. For an import: when the other tool's run was, if it says so.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Time {
    /// The record's zero, RFC 3339, UTC. Left out (empty here) in an import whose tool does not report it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started: String,
    /// The record's zero on the monotonic clock of its host's boot. Left out (0 here) in an import: it is on no such
    /// clock.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub started_monotonic_ns: u64,
    /// From the zero to the end of the last interval; absent while the record is being made.
    pub elapsed_ns: Option<u64>,
    /// From the zero to the end of the schedule: the time by which throughput is divided.
    pub window_ns: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(nanos: &u64) -> bool {
    *nanos == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct MissingFact {
    /// The name of the missing field.
    pub what: String,
    pub why: String,
}
