//! What a database server reports about itself: its counters and its statements, read over a separate connection.
//!
//! Each query has one row with one value, a JSON object where there are several, because a session keeps the first row
//! of a result.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use codec::StatementIndex;
use database::sql::Statement;
use database::{Database, DatabaseKind, DatabaseParts, ServerPlan};
use engine::Place;
use record::document::{CounterChange, MissingFact, ServerAccount, StatementAccount};
use serde_json::{Map, Value};
use units::Nanos;

use crate::client::Client;
use crate::sampling::{self, DigestOf, Queries, Sampler, Sampling};
use crate::script::Tasks;

/// The most statements that are read, and the most that are kept.
const MOST_READ: usize = 1_000;
const MOST_KEPT: usize = 50;

/// Reads the account of one server.
#[derive(Debug)]
pub struct Accountant {
    kind: DatabaseKind,
    protocol: Arc<Database<Tasks>>,
    place: Place,
    digest: DigestOf,
}

/// What a server had counted at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    counters: BTreeMap<String, u64>,
    /// By an ID that is unique.
    statements: BTreeMap<String, StatementAccount>,
    missing: Vec<MissingFact>,
    /// Between when it was read, and how long the server had counted by then.
    read: (Nanos, Nanos),
    counted_for: Option<Nanos>,
    /// Sessions of this account, for a server that counts what a session did only when that ends.
    sessions: Option<u64>,
}

impl Accountant {
    /// For the server at `place`, with the login of `plan`. Texts with values are replaced by their `digest`.
    ///
    /// # Errors
    ///
    /// For a login that cannot be sent.
    pub fn new(
        kind: DatabaseKind,
        plan: ServerPlan,
        place: Place,
        digest: DigestOf,
    ) -> anyhow::Result<Accountant> {
        let texts = match kind {
            DatabaseKind::MySql => [&MYSQL[..], &sampling::MYSQL].concat(),
            DatabaseKind::Postgres => [&POSTGRES[..], &sampling::POSTGRES].concat(),
            DatabaseKind::Redis => vec!["INFO all"],
        };
        let parts = DatabaseParts {
            kind,
            statements: texts.into_iter().map(Statement::text).collect(),
            servers: vec![plan],
            setup: Vec::new(),
            result_bytes: 16 << 20,
            pipeline: 1,
        };
        Ok(Accountant { kind, protocol: Arc::new(Database::new(Tasks { rows: 1 }, parts)?), place, digest })
    }

    /// Reads what the server has counted. With `before`, waits for sessions that were opened since then to end.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached or refuses the login or the counters; one line.
    pub fn read(&self, before: Option<&Snapshot>) -> anyhow::Result<Snapshot> {
        let began = clock::now();
        let mut reading = Reading { client: Client::connect(&self.protocol, &self.place)? };
        reading.client.limit_waits(PATIENCE)?;
        let mut snapshot = match self.kind {
            DatabaseKind::MySql => reading.mysql(),
            DatabaseKind::Postgres => {
                reading.postgres(before.and_then(|before| before.sessions), self.digest)
            }
            DatabaseKind::Redis => reading.redis(),
        }?;
        snapshot.read = (began, clock::now());
        snapshot.counted_for =
            UPTIMES.iter().filter_map(|name| snapshot.counters.remove(*name)).min().map(Nanos::from_secs);
        Ok(snapshot)
    }

    /// Samples the sessions of the server once per second from `zero` on, over another connection. `None` for a server
    /// without sessions that wait for each other.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn sample(&self, zero: Nanos) -> io::Result<Option<Sampling>> {
        let (first, locks) = match self.kind {
            DatabaseKind::MySql => (MYSQL.len(), [0, 1]),
            // One text for all versions.
            DatabaseKind::Postgres => (POSTGRES.len(), [0, 0]),
            DatabaseKind::Redis => return Ok(None),
        };
        let index = |at: usize| (first + at) as StatementIndex;
        let queries = Queries { locks: locks.map(index), states: index(locks[1] + 1) };
        let (protocol, place) = (Arc::clone(&self.protocol), self.place.clone());
        let sampler = Sampler { kind: self.kind, protocol, place, queries, digest: self.digest };
        Sampling::start(sampler, zero).map(Some)
    }
}

/// How long the server may take for its counters.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a server has counted, in seconds: `FLUSH STATUS` begins again, without a restart.
const UPTIMES: [&str; 4] = ["Uptime", "Uptime_since_flush_status", "uptime", "uptime_in_seconds"];

/// Of the difference of two uptimes, which are whole seconds.
const UPTIME_ERROR: Nanos = Nanos::from_secs(2);

/// Counters that only a reset makes smaller (`pg_stat_reset`, `CONFIG RESETSTAT`).
const NEVER_FALL: [&str; 3] = ["Questions", "xact_commit", "total_commands_processed"];

/// Names of `SHOW GLOBAL STATUS`, without those that are no counters of a load.
const MYSQL: [&str; 4] = [
    "SELECT JSON_OBJECTAGG(VARIABLE_NAME, VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME \
     IN ('QUESTIONS', 'QUERIES', 'CONNECTIONS', 'ABORTED_CLIENTS', 'ABORTED_CONNECTS', 'BYTES_RECEIVED', 'BYTES_SENT', \
     'UPTIME', 'UPTIME_SINCE_FLUSH_STATUS', 'SLOW_QUERIES', 'CREATED_TMP_TABLES', 'CREATED_TMP_DISK_TABLES', 'THREADS_CREATED', 'THREADPOOL_THREADS') OR \
     VARIABLE_NAME LIKE 'COM\\_%' OR VARIABLE_NAME LIKE 'QCACHE\\_%' OR VARIABLE_NAME LIKE 'INNODB\\_%' OR \
     VARIABLE_NAME LIKE 'HANDLER\\_%'",
    "SELECT JSON_OBJECTAGG(VARIABLE_NAME, VARIABLE_VALUE) FROM performance_schema.global_status WHERE VARIABLE_NAME \
     IN ('Questions', 'Queries', 'Connections', 'Aborted_clients', 'Aborted_connects', 'Bytes_received', 'Bytes_sent', \
     'Uptime', 'Uptime_since_flush_status', 'Slow_queries', 'Created_tmp_tables', 'Created_tmp_disk_tables', 'Threads_created') OR \
     VARIABLE_NAME LIKE 'Com\\_%' OR VARIABLE_NAME LIKE 'Innodb\\_%' OR VARIABLE_NAME LIKE 'Handler\\_%'",
    "SELECT @@performance_schema",
    "SELECT JSON_OBJECTAGG(id, JSON_ARRAY(text, calls, ps / 1000, sent)) FROM (SELECT \
     CONCAT(COALESCE(SCHEMA_NAME, ''), ':', DIGEST) AS id, LEFT(DIGEST_TEXT, 300) AS text, COUNT_STAR AS calls, \
     SUM_TIMER_WAIT AS ps, SUM_ROWS_SENT AS sent FROM performance_schema.events_statements_summary_by_digest WHERE \
     DIGEST IS NOT NULL ORDER BY LAST_SEEN DESC LIMIT 1000) AS digests",
];

/// The sessions of this account, its database, and its statements: those of others have no number unless it may read them.
const POSTGRES: [&str; 3] = [
    "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND backend_type = 'client backend'",
    "SELECT row_to_json(d) FROM (SELECT *, extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) AS \
     uptime FROM pg_stat_database WHERE datname = current_database()) AS d",
    "SELECT json_object_agg(id, json_build_array(text, calls, ms * 1000000, rows)) FROM (SELECT queryid || ':' || \
     userid || ':' || toplevel::text AS id, left(query, 300) AS text, calls, total_exec_time AS ms, rows FROM \
     pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND queryid IS \
     NOT NULL ORDER BY calls DESC LIMIT 1000) AS statements",
];

/// How often, and how long in all, sessions are waited for.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
const LOOKS: usize = 250;

struct Reading {
    client: Client<Database<Tasks>>,
}

impl Reading {
    /// The one value of a query; empty if it is NULL.
    fn value(&mut self, statement: StatementIndex) -> anyhow::Result<String> {
        Ok(self.client.value(statement)?.unwrap_or_default())
    }

    fn object(&mut self, statement: StatementIndex) -> anyhow::Result<Map<String, Value>> {
        let text = self.value(statement)?;
        if text.is_empty() {
            return Ok(Map::new());
        }
        serde_json::from_str(&text).context("the server's counters cannot be read")
    }

    fn mysql(&mut self) -> anyhow::Result<Snapshot> {
        // MySQL has them elsewhere.
        let counters = self.object(0).or_else(|_| self.object(1)).context("SHOW GLOBAL STATUS")?;
        let mut snapshot = Snapshot { counters: numbers(&counters, capitalized), ..Snapshot::default() };
        let why = match self.value(2).as_deref() {
            Ok("1") => self.statements(3).map(|found| snapshot.statements = found).err(),
            Ok(_) => Some(anyhow::anyhow!("performance_schema is off")),
            Err(_) => Some(anyhow::anyhow!("the server has no performance_schema")),
        };
        let how = "set performance_schema = ON in the server's configuration, and restart it";
        snapshot.missing.extend(why.map(|why| missing(&why, how)));
        Ok(snapshot)
    }

    /// The server's texts of statements that are no queries have their values, passwords among them.
    fn postgres(&mut self, sessions: Option<u64>, digest: DigestOf) -> anyhow::Result<Snapshot> {
        let mut found = self.sessions()?;
        for _ in 0..LOOKS {
            if sessions.is_none_or(|before| found <= before) {
                break;
            }
            clock::sleep_until(clock::now() + LOOK_EVERY);
            found = self.sessions()?;
        }
        let counters = self.object(1).context("pg_stat_database")?;
        let mut snapshot = Snapshot {
            counters: numbers(&counters, str::to_owned),
            sessions: Some(found),
            ..Snapshot::default()
        };
        snapshot.counters.remove("datid");
        match self.statements(2) {
            Ok(statements) => {
                snapshot.statements = statements;
                for statement in snapshot.statements.values_mut() {
                    statement.text = digest(DatabaseKind::Postgres, &statement.text);
                }
            }
            Err(why) => {
                let how = "set shared_preload_libraries = 'pg_stat_statements', restart the server, and execute CREATE \
                           EXTENSION pg_stat_statements";
                snapshot.missing.push(missing(&why, how));
            }
        }
        Ok(snapshot)
    }

    fn sessions(&mut self) -> anyhow::Result<u64> {
        self.value(0)?.parse().context("the server does not say how many sessions it has")
    }

    fn redis(&mut self) -> anyhow::Result<Snapshot> {
        Ok(info(&self.value(0).context("INFO")?))
    }

    /// Statements by their ID: the text, how often, nanoseconds, rows.
    fn statements(
        &mut self,
        statement: StatementIndex,
    ) -> anyhow::Result<BTreeMap<String, StatementAccount>> {
        let found = self.object(statement)?;
        let read = |value: &Value| {
            let values = value.as_array()?;
            let number = |at: usize| values.get(at).and_then(whole);
            Some(StatementAccount {
                text: values.first()?.as_str()?.to_owned(),
                calls: number(1)?,
                total_ns: number(2)?,
                rows: number(3),
            })
        };
        Ok(found.iter().filter_map(|(id, value)| Some((id.clone(), read(value)?))).collect())
    }
}

fn missing(why: &anyhow::Error, how: &str) -> MissingFact {
    MissingFact { what: "statements".to_owned(), why: format!("{why:#}; to have them, {how}") }
}

/// `Com_select` for `COM_SELECT`.
fn capitalized(name: &str) -> String {
    let mut text = name.to_lowercase();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

/// The numbers of an object; a fraction is rounded down.
fn numbers(object: &Map<String, Value>, name: impl Fn(&str) -> String) -> BTreeMap<String, u64> {
    object.iter().filter_map(|(key, value)| Some((name(key), whole(value)?))).collect()
}

fn whole(value: &Value) -> Option<u64> {
    let of_float = |number: f64| (0.0..9e15).contains(&number).then_some(number as u64);
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(of_float)),
        Value::String(text) => text.parse().ok().or_else(|| text.parse().ok().and_then(of_float)),
        _ => None,
    }
}

/// The counters of `INFO`, and its commands.
fn info(text: &str) -> Snapshot {
    const KEPT: [&str; 13] = [
        "uptime_in_seconds",
        "total_connections_received",
        "total_commands_processed",
        "total_net_input_bytes",
        "total_net_output_bytes",
        "total_error_replies",
        "rejected_connections",
        "expired_keys",
        "evicted_keys",
        "keyspace_hits",
        "keyspace_misses",
        "used_memory",
        "connected_clients",
    ];
    let mut snapshot = Snapshot::default();
    for (name, value) in text.lines().filter_map(|line| line.trim().split_once(':')) {
        let fields = || value.split(',').filter_map(|field| field.split_once('='));
        let field =
            |name: &str| fields().find(|(key, _)| *key == name).and_then(|(_, text)| text.parse().ok());
        if let Some(command) = name.strip_prefix("cmdstat_") {
            let (calls, usec) = (field("calls").unwrap_or(0), field("usec").unwrap_or(0_u64));
            let text = command.to_uppercase();
            let account = StatementAccount { text, calls, total_ns: usec.saturating_mul(1_000), rows: None };
            snapshot.statements.insert(command.to_owned(), account);
        } else if name.starts_with("used_cpu_") {
            let us = value.parse::<f64>().ok().map(|seconds| (seconds * 1e6) as u64);
            snapshot.counters.extend(us.map(|us| (format!("{name}_us"), us)));
        } else if name.starts_with("db") && value.starts_with("keys=") {
            snapshot.counters.extend(field("keys").map(|keys| (format!("{name}_keys"), keys)));
        } else if KEPT.contains(&name) {
            snapshot.counters.extend(value.parse().ok().map(|value| (name.to_owned(), value)));
        }
    }
    snapshot
}

/// Whether a server's counters began again between two snapshots.
fn began_again(before: &Snapshot, after: &Snapshot) -> bool {
    let fell = |name: &str| after.counters.get(name) < before.counters.get(name);
    let ran = after.read.0 - before.read.1;
    let was_short = before
        .counted_for
        .zip(after.counted_for)
        .is_some_and(|(begin, end)| end + UPTIME_ERROR < begin + ran);
    was_short || NEVER_FALL.into_iter().any(fell)
}

/// What the server did between two snapshots.
pub fn between(before: &Snapshot, after: &Snapshot) -> ServerAccount {
    if began_again(before, after) {
        let why =
            "the server's counters began again during the run: it was restarted, or somebody reset them"
                .to_owned();
        return unread(why);
    }
    let change = |name: &String| {
        let of = |snapshot: &Snapshot| snapshot.counters.get(name).copied().unwrap_or(0);
        let (before, after) = (of(before), of(after));
        let change = i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(i64::MAX);
        (change != 0).then(|| (name.clone(), CounterChange { before, after, change }))
    };
    // A statement that is not among those read before may be new, or was not read.
    let is_whole = before.statements.len() < MOST_READ;
    let none = |text: &str| StatementAccount { text: text.to_owned(), calls: 0, total_ns: 0, rows: None };
    let mut statements: Vec<StatementAccount> = after
        .statements
        .iter()
        .filter_map(|(id, after)| {
            let known = before.statements.get(id).cloned();
            let before = known.or_else(|| is_whole.then(|| none(&after.text)))?;
            let calls = after.calls.checked_sub(before.calls).filter(|calls| *calls > 0)?;
            let total_ns = after.total_ns.saturating_sub(before.total_ns);
            let rows = after.rows.map(|rows| rows.saturating_sub(before.rows.unwrap_or(0)));
            Some(StatementAccount { text: after.text.clone(), calls, total_ns, rows })
        })
        .collect();
    statements.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then(a.text.cmp(&b.text)));
    let mut missing = after.missing.clone();
    if after.statements.len() >= MOST_READ {
        let why = format!("only {MOST_READ} were read, those that the server lists first");
        missing.push(MissingFact { what: "statements".to_owned(), why });
    }
    if statements.len() > MOST_KEPT {
        let why = format!("{} more were executed, with less time each", statements.len() - MOST_KEPT);
        missing.push(MissingFact { what: "statements".to_owned(), why });
        statements.truncate(MOST_KEPT);
    }
    // Redis does not list a database without keys.
    let names: BTreeSet<&String> = before.counters.keys().chain(after.counters.keys()).collect();
    let counters = names.into_iter().filter_map(change).collect();
    ServerAccount { counters, statements, sessions: None, missing }
}

/// The account of a server that could not be read.
pub fn unread(why: String) -> ServerAccount {
    let missing = vec![MissingFact { what: "counters".to_owned(), why }];
    ServerAccount { missing, ..ServerAccount::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Stats\r\ntotal_commands_processed:12\r\n# CPU\r\nused_cpu_user:0.250000\r\n\
        # Commandstats\r\ncmdstat_get:calls=10,usec=25,usec_per_call=2.50,rejected_calls=0,failed_calls=0\r\n\
        # Keyspace\r\ndb2:keys=7,expires=0,avg_ttl=0\r\n";

    #[test]
    fn what_changed_is_the_difference_of_two_accounts() {
        let before = info(INFO);
        assert_eq!(before.counters["used_cpu_user_us"], 250_000);
        let after = info(&INFO.replace("calls=10,usec=25", "calls=13,usec=75").replace("keys=7", "keys=5"));
        let account = between(&before, &after);
        assert_eq!(account.counters.len(), 1);
        assert_eq!(account.counters["db2_keys"], CounterChange { before: 7, after: 5, change: -2 });
        let [get] = account.statements.as_slice() else { panic!("{account:?}") };
        assert_eq!((get.text.as_str(), get.calls, get.total_ns), ("GET", 3, 50_000));
    }

    /// If this fails, a server that was restarted during a run has its total since then as the difference, or a negative
    /// one.
    #[test]
    fn counters_that_began_again_have_no_difference() {
        let at = |at: u64, uptime: u64, commands: u64| Snapshot {
            read: (Nanos::from_secs(at), Nanos::from_secs(at)),
            counted_for: Some(Nanos::from_secs(uptime)),
            counters: [("total_commands_processed".to_owned(), commands)].into(),
            ..Snapshot::default()
        };
        let before = at(1_000, 5, 70);
        assert_eq!(between(&before, &at(1_060, 64, 90)).counters["total_commands_processed"].change, 20);
        // Restarted ten seconds into the run; and reset.
        for again in [at(1_060, 50, 90), at(1_060, 65, 10)] {
            let account = between(&before, &again);
            assert!(account.counters.is_empty(), "{account:?}");
            assert!(account.missing[0].why.contains("began again"), "{account:?}");
        }
    }

    /// If this fails, keys that have all expired are not in the differences.
    #[test]
    fn a_counter_that_is_no_longer_listed_is_zero() {
        let account = between(&info(INFO), &info(&INFO.replace("db2:keys=7,expires=0,avg_ttl=0\r\n", "")));
        assert_eq!(account.counters["db2_keys"], CounterChange { before: 7, after: 0, change: -7 });
    }

    /// If this fails, a statement that was not read before is reported with all of its calls since the server began.
    #[test]
    fn a_statement_is_new_only_if_all_were_read_before() {
        let one = StatementAccount { text: "x".to_owned(), calls: 9, total_ns: 9, rows: Some(9) };
        let full = |count: usize| Snapshot {
            statements: (0..count).map(|n| (n.to_string(), one.clone())).collect(),
            ..Snapshot::default()
        };
        let account = between(&full(MOST_READ), &full(MOST_READ + 1));
        assert_eq!(account.statements, []);
        assert!(account.missing[0].why.starts_with("only 1000 were read"), "{account:?}");
        let account = between(&full(0), &full(MOST_KEPT + 9));
        assert_eq!(
            (account.statements.len(), account.missing[0].why.starts_with("9 more")),
            (MOST_KEPT, true)
        );
        assert_eq!(between(&full(3), &full(4)).statements.as_slice(), std::slice::from_ref(&one));
    }
}
