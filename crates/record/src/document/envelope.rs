//! What every record says of itself, whichever verb made it: one set of fields for runs, observations, searches and
//! imports.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Host, SchemaVersion, Verdict};

/// The fields that all kinds of records share. In the file they are next to the fields of the kind, not in an object of
/// their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    pub schema_version: SchemaVersion,
    /// What the record is of.
    // Searches of version 1.0 have none, and are known by the name of their file.
    #[serde(default = "search")]
    pub kind: RecordKind,
    // Imports of version 1.0 have none.
    #[serde(default = "finished")]
    pub state: State,
    /// Whether to believe it. Absent while it is being made, and in records that are not audited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The version of the program that made the record.
    pub parallax_version: String,
    /// The exact command line; empty where no command made the record.
    #[serde(default)]
    pub command: Vec<String>,
    /// The effective value of every option, defaults included, by the option's long name.
    #[serde(default)]
    pub options: BTreeMap<String, EffectiveOption>,
    /// Records of one host and boot join by `started_monotonic_ns`.
    #[serde(default)]
    pub time: Time,
    /// The host on which the record was made; of an observation, the one that was observed.
    #[serde(default)]
    pub host: Host,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingFact>,
    /// What a reader of the folder has to say about it, one line each: fields that it did not know, a newer version.
    /// No part of the file.
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

/// Gives a record the fields of its envelope as if they were its own, as they are in the file.
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
    /// What a record is of.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Under way; or, when its process is gone, cut off: the folder holds all but at most the last second.
    Running,
    Finished,
    /// Ended early by the user; what was measured is whole.
    Interrupted,
    /// Broke off by a fault of Parallax or of this host's event facility; what was measured until then is there.
    Broken,
    /// Rebuilt from a folder whose process was cut off.
    Recovered,
}

/// One option as it took effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EffectiveOption {
    /// As one would write it on the command line; empty for a flag that is off.
    pub value: String,
    pub source: OptionSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionSource {
    Given,
    /// By `--set`, over a scenario file.
    Set,
    /// By a scenario file.
    File,
    Default,
    /// Worked out from other options or from the host.
    Derived,
}

/// When the record was made. Of an import: when the other tool's run was, as far as it says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Time {
    /// The record's zero, RFC 3339, UTC. Left out (empty here) in an import whose tool does not state it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started: String,
    /// The record's zero on the monotonic clock of its host's boot. Left out (0 here) in an import: it is on no such
    /// clock.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub started_monotonic_ns: u64,
    /// From the zero to the end of the last interval; absent while it goes on.
    pub elapsed_ns: Option<u64>,
    /// From the zero until nothing more was scheduled: what throughput is divided by.
    pub window_ns: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(nanos: &u64) -> bool {
    *nanos == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingFact {
    /// What it is, by the name of the field that lacks it.
    pub what: String,
    pub why: String,
}
