//! What a JVM records about itself: which JVM it is, and what its histograms measure.
//!
//! Wire types only; the recorder under `jvm/` writes them, `report` and `explain` read them. The histograms have two
//! significant digits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Of the whole record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct JvmResults {
    pub java_version: String,
    /// The virtual machine's name.
    pub vm: String,
    /// The names of its garbage collectors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<String>,
    /// What each log is of, for people, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, String>,
}

/// A time in which no thread of the application ran: from the request to stop them until they ran again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Pause {
    /// Offsets from the record's zero.
    pub begin_ns: u64,
    pub end_ns: u64,
    /// The JVM's name for it, such as `G1 Evacuation Pause`; left out if the JVM did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A time in which a thread of the application would not have run: how late the JVM's meter woke up, with the causes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Hiccup {
    /// From when the meter was due, which is the time of the event.
    pub length_ns: u64,
    /// The time of each cause; they add up to the length.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub causes_ns: BTreeMap<String, u64>,
}

/// What a JVM says of one interval, next to the frame of the line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct JvmLine {
    /// How often what was recorded was no duration, by the log's name: below zero, or above 2^50 ns.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unusable: BTreeMap<String, u64>,
}
