//! What a database server counted during a run, by its own account.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::MissingFact;

/// The server's counters before and after a run. Everything that the server did in the meantime is in them, also for
/// others, and the queries that read them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ServerAccount {
    /// The counters that changed, under the server's names.
    pub counters: BTreeMap<String, CounterChange>,
    /// The statements that were executed in the meantime, those with the longest total time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementAccount>,
    /// What the server did not report, and why or how to turn it on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingFact>,
}

/// One counter of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CounterChange {
    pub before: u64,
    pub after: u64,
    /// `after` minus `before`.
    pub change: i64,
}

/// Statements that differ in their values alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct StatementAccount {
    /// The server's own text for them, or the beginning of it.
    pub text: String,
    /// How often they were executed.
    pub calls: u64,
    /// The server's time for all of these.
    pub total_ns: u64,
    /// Rows that were sent or changed; absent if the server does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}
