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
    /// Samples of its sessions during the run; absent for Redis, and for a run of less than a second.
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
    /// The server's own text for them, or the beginning of it; for PostgreSQL the digest that `watch` has, because some of
    /// its texts have values.
    pub text: String,
    /// How often they were executed.
    pub calls: u64,
    /// The server's time for all of these.
    pub total_ns: u64,
    /// Rows that were sent or changed; absent if the server does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

/// Samples of a server's sessions, one per period: what is shorter than a period is seen only by chance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct SampledSessions {
    pub period_ns: u64,
    pub samples: u64,
    /// Sessions that were executing something, by the server's name for what they did or waited for: the sum over all
    /// samples.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<String, u64>,
    /// Who waited for whose lock, the longest wait first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockWait>,
    /// Waits in samples that are not in `locks`, which has at most 50 rows.
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
    /// The digest of the statement that it executed, or executed last; absent if the server does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it was idle in its transaction in the last sample.
    pub owner_is_idle: bool,
    /// How many samples have it, and the most sessions in one of them.
    pub samples: u64,
    pub sessions: u64,
    /// The longest wait in a sample, and the longest time that the owner's transaction had lasted.
    pub longest_ns: u64,
    pub transaction_ns: u64,
    /// The times of the first and the last of these samples, since the run's zero.
    pub first_ns: u64,
    pub last_ns: u64,
    /// The table, as the server names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}
