//! What `doctor --json` prints: what a host can do and cannot.

use serde::{Deserialize, Serialize};

use crate::document::SchemaVersion;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Diagnosis {
    pub schema_version: SchemaVersion,
    pub checks: Vec<Check>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Check {
    /// What was looked at, in one word.
    pub check: String,
    pub status: CheckStatus,
    /// What was found, in a few words.
    pub found: String,
    /// What that means, and for which verbs.
    pub means: String,
    /// What would make it better; `null` where it is ok.
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Ok,
    /// It works, and something is less than it could be.
    Limited,
    Missing,
}
