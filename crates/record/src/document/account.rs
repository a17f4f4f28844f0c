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
    /// Its sessions while the run went on; absent for a server or a run that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SampledSessions>,
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

/// Sessions of a server, looked at once per period: what is shorter than that is seen by chance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct SampledSessions {
    pub period_ns: u64,
    pub looks: u64,
    /// Sessions that were executing something, by the server's name for what they did or waited for, added up over all
    /// looks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<String, u64>,
    /// Who waited for whose lock, the longest wait first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockWait>,
    /// Waits that were seen and are not among `locks`, which have a bound.
    #[serde(default)]
    pub left_out: u64,
}

/// Sessions that waited, all with the same statement, for a lock of one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct LockWait {
    /// The digest of the statement that waited.
    pub waiter: String,
    /// The server's number of the connection that had the lock. It waited for no other lock.
    pub owner_connection: u64,
    /// The digest of the statement that it executed, or executed last; absent if the server does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it was idle within its transaction when it was seen last.
    pub owner_is_idle: bool,
    /// How often this was seen, and the most sessions at one look.
    pub looks: u64,
    pub sessions: u64,
    /// The longest wait so far at one look, and how long the owner's transaction had lasted.
    pub longest_ns: u64,
    pub transaction_ns: u64,
    /// When it was seen first and last, since the run's zero.
    pub first_ns: u64,
    pub last_ns: u64,
    /// The table, as the server names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}
