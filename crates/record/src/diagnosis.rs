//! What `doctor --json` prints: what a host supports.

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
    /// The name of what was checked.
    pub check: String,
    pub status: CheckStatus,
    /// What was found, in a few words.
    pub found: String,
    /// What that means, and for which verbs.
    pub means: String,
    /// How to fix it; `null` if it is ok.
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Ok,
    /// It works, with restrictions.
    Limited,
    Missing,
}
