//! Sessions of a database server, sampled once per second during a run: who waits for whose lock, and what sessions wait
//! for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;
use codec::StatementIndex;
use database::{Database, DatabaseKind};
use engine::Place;
use record::document::{LockWait, MissingFact, SampledSessions};
use serde_json::{Map, Value};
use units::Nanos;

use crate::client::Client;
use crate::script::Tasks;

/// From one sample to the next.
const PERIOD: Nanos = Nanos::from_secs(1);

/// How long a server may take for one statement of a sample.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bounds of what is kept: rows with different statements or owners, and states.
const MOST_LOCKS: usize = 50;
const MOST_STATES: usize = 100;

/// The text of a statement as the record has it: without its values.
pub type DigestOf = fn(DatabaseKind, &str) -> String;

/// Statements that read the waits of MariaDB, those of MySQL 8, and the states of either. In each row: the waiting
/// statement, for how long it has waited in microseconds, the connection that has the lock, its current or last
/// statement, whether it is idle, for how long its transaction has lasted, and what is locked. A session that
/// waits for a lock is no owner.
pub(crate) const MYSQL: [&str; 3] = [
    "SELECT JSON_ARRAYAGG(JSON_ARRAY(waiter, us, owner, text, idle, age, object)) FROM (SELECT LEFT(r.trx_query, 1000) \
     AS waiter, w.TIME_MS * 1000 AS us, b.trx_mysql_thread_id AS owner, LEFT(COALESCE(b.trx_query, o.INFO, (SELECT \
     SQL_TEXT FROM performance_schema.events_statements_current AS e JOIN performance_schema.threads AS t USING \
     (THREAD_ID) WHERE t.PROCESSLIST_ID = b.trx_mysql_thread_id LIMIT 1)), 1000) AS text, o.COMMAND = 'Sleep' AS idle, \
     TIMESTAMPDIFF(MICROSECOND, b.trx_started, NOW(6)) AS age, l.lock_table AS object FROM \
     information_schema.INNODB_LOCK_WAITS AS x JOIN information_schema.INNODB_TRX AS r ON r.trx_id = \
     x.requesting_trx_id JOIN information_schema.INNODB_TRX AS b ON b.trx_id = x.blocking_trx_id LEFT JOIN \
     information_schema.INNODB_LOCKS AS l ON l.lock_id = x.requested_lock_id LEFT JOIN information_schema.PROCESSLIST \
     AS w ON w.ID = r.trx_mysql_thread_id LEFT JOIN information_schema.PROCESSLIST AS o ON o.ID = \
     b.trx_mysql_thread_id WHERE b.trx_state <> 'LOCK WAIT' LIMIT 200) AS waits",
    "SELECT JSON_ARRAYAGG(JSON_ARRAY(waiter, us, owner, text, idle, age, object)) FROM (SELECT LEFT(r.trx_query, 1000) \
     AS waiter, TIMESTAMPDIFF(MICROSECOND, r.trx_wait_started, NOW(6)) AS us, b.trx_mysql_thread_id AS owner, \
     LEFT(COALESCE(b.trx_query, e.SQL_TEXT), 1000) AS text, t.PROCESSLIST_COMMAND = 'Sleep' AS idle, \
     TIMESTAMPDIFF(MICROSECOND, b.trx_started, NOW(6)) AS age, l.OBJECT_NAME AS object FROM \
     performance_schema.data_lock_waits AS x JOIN information_schema.INNODB_TRX AS r ON r.trx_id = \
     x.REQUESTING_ENGINE_TRANSACTION_ID JOIN information_schema.INNODB_TRX AS b ON b.trx_id = \
     x.BLOCKING_ENGINE_TRANSACTION_ID LEFT JOIN performance_schema.data_locks AS l ON l.ENGINE_LOCK_ID = \
     x.REQUESTING_ENGINE_LOCK_ID LEFT JOIN performance_schema.threads AS t ON t.PROCESSLIST_ID = b.trx_mysql_thread_id \
     LEFT JOIN performance_schema.events_statements_current AS e ON e.THREAD_ID = t.THREAD_ID WHERE b.trx_state <> \
     'LOCK WAIT' LIMIT 200) AS waits",
    "SELECT JSON_OBJECTAGG(state, sessions) FROM (SELECT COALESCE(NULLIF(STATE, ''), COMMAND) AS state, COUNT(*) AS \
     sessions FROM information_schema.PROCESSLIST WHERE COMMAND NOT IN ('Sleep', 'Daemon') AND ID <> CONNECTION_ID() \
     GROUP BY 1) AS states",
];

/// The same of PostgreSQL: waits, and states. `waitstart` is there since version 14.
pub(crate) const POSTGRES: [&str; 2] = [
    "SELECT json_agg(json_build_array(waiter, us, owner, text, idle, age, object)) FROM (SELECT left(w.query, 1000) AS \
     waiter, (extract(epoch FROM clock_timestamp() - l.waitstart) * 1000000)::bigint AS us, o.pid AS owner, \
     left(o.query, 1000) AS text, o.state LIKE 'idle%' AS idle, (extract(epoch FROM clock_timestamp() - o.xact_start) \
     * 1000000)::bigint AS age, l.relation::regclass::text AS object FROM pg_stat_activity AS w JOIN pg_locks AS l ON \
     l.pid = w.pid AND NOT l.granted CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b(pid) JOIN pg_stat_activity \
     AS o ON o.pid = b.pid WHERE w.wait_event_type = 'Lock' AND o.wait_event_type IS DISTINCT FROM 'Lock' LIMIT 200) AS \
     waits",
    "SELECT json_object_agg(state, sessions) FROM (SELECT coalesce(wait_event_type || ': ' || wait_event, 'no wait') AS \
     state, count(*) AS sessions FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend' AND \
     pid <> pg_backend_pid() GROUP BY 1) AS states",
];

/// Their numbers among the statements of the account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queries {
    /// The first that the server knows is used.
    pub locks: [StatementIndex; 2],
    pub states: StatementIndex,
}

/// A thread that samples until it is stopped.
#[derive(Debug)]
pub struct Sampling {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(SampledSessions, Vec<MissingFact>)>,
}

/// What it needs. The connection is opened for the first sample.
pub(crate) struct Sampler {
    pub kind: DatabaseKind,
    pub protocol: Arc<Database<Tasks>>,
    pub place: Place,
    pub queries: Queries,
    pub digest: DigestOf,
}

impl Sampling {
    /// The first sample is one period after `zero`.
    pub(crate) fn start(sampler: Sampler, zero: Nanos) -> std::io::Result<Sampling> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || sampler.sample_until(zero, &stopped);
        let thread = thread::Builder::new().name("server-account".to_owned()).spawn(run)?;
        Ok(Sampling { stop, thread })
    }

    /// Stops it. What was sampled, and what could not be, with the reason. Waits for a statement that is in progress.
    pub fn finish(self) -> (SampledSessions, Vec<MissingFact>) {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().expect("the sampling thread returns its errors")
    }
}

impl Sampler {
    fn sample_until(&self, zero: Nanos, stop: &AtomicBool) -> (SampledSessions, Vec<MissingFact>) {
        let (mut sums, mut missing) = (Sums::default(), Vec::new());
        let mut due = zero + PERIOD;
        if !wait_until(due, stop) {
            return (sums.finish(), missing);
        }
        let connected = Client::connect(&self.protocol, &self.place).and_then(|client| {
            client.limit_waits(PATIENCE)?;
            Ok(client)
        });
        let mut client = match connected {
            Ok(client) => client,
            Err(error) => return (sums.finish(), vec![fact("sessions", PERIOD, &error)]),
        };
        let Queries { locks, states } = self.queries;
        let (mut locks, mut states) = (locks.to_vec(), Some(states));
        while client.is_usable() && !(locks.is_empty() && states.is_none()) {
            let at = clock::now().saturating_sub(zero);
            let mut miss = |what, error: &anyhow::Error, is_usable| {
                // Without the connection nothing more is sampled.
                missing.push(fact(if is_usable { what } else { "sessions" }, at, error));
            };
            if let Err(error) = self.sample_locks(&mut client, &mut locks, at, &mut sums) {
                miss("lock waits", &error, client.is_usable());
            }
            if let Some(statement) = states.filter(|_| client.is_usable()) {
                match counts(&mut client, statement) {
                    Ok(counts) => sums.add_states(&counts),
                    Err(error) => {
                        miss("states of sessions", &error, client.is_usable());
                        states = None;
                    }
                }
            }
            sums.samples += u64::from(client.is_usable());
            // After a sample that took long, the next one is in time again.
            let late = clock::now().saturating_sub(due).0 / PERIOD.0;
            due += Nanos(PERIOD.0 * (late + 1));
            if !wait_until(due, stop) {
                break;
            }
        }
        (sums.finish(), missing)
    }

    /// By the first of the statements `locks` that the server knows: those before it are removed, or all if it knows none.
    fn sample_locks(
        &self,
        client: &mut Client<Database<Tasks>>,
        locks: &mut Vec<StatementIndex>,
        at: Nanos,
        sums: &mut Sums,
    ) -> anyhow::Result<()> {
        while let Some(&statement) = locks.first() {
            match rows(client, statement) {
                Ok(rows) => {
                    sums.add_locks(at, &rows, |text| (self.digest)(self.kind, text));
                    return Ok(());
                }
                Err(_) if client.is_usable() && locks.len() > 1 => drop(locks.remove(0)),
                Err(error) => {
                    locks.clear();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// False if it was stopped.
fn wait_until(due: Nanos, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Acquire) {
            return false;
        }
        let left = due.saturating_sub(clock::now());
        if left == Nanos::ZERO {
            return true;
        }
        thread::park_timeout(Duration::from_nanos(left.0));
    }
}

fn fact(what: &str, at: Nanos, error: &anyhow::Error) -> MissingFact {
    MissingFact { what: what.to_owned(), why: format!("not sampled from {at} on: {error:#}") }
}

fn json(client: &mut Client<Database<Tasks>>, statement: StatementIndex) -> anyhow::Result<Value> {
    let text = client.value(statement)?.unwrap_or_else(|| "null".to_owned());
    serde_json::from_str(&text).context("what the server says of its sessions cannot be read")
}

fn rows(client: &mut Client<Database<Tasks>>, statement: StatementIndex) -> anyhow::Result<Vec<LockSeen>> {
    let found = json(client, statement)?;
    Ok(found.as_array().into_iter().flatten().filter_map(LockSeen::read).collect())
}

fn counts(
    client: &mut Client<Database<Tasks>>,
    statement: StatementIndex,
) -> anyhow::Result<Map<String, Value>> {
    Ok(match json(client, statement)? {
        Value::Object(counts) => counts,
        _ => Map::new(),
    })
}

/// A session that waits for a lock, in one sample.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LockSeen {
    waiter: String,
    waited: Nanos,
    owner: u64,
    statement: Option<String>,
    is_idle: bool,
    transaction: Nanos,
    object: Option<String>,
}

impl LockSeen {
    fn read(row: &Value) -> Option<LockSeen> {
        let row = row.as_array()?;
        let text = |at: usize| row.get(at).and_then(Value::as_str).map(str::to_owned);
        let number =
            |at: usize| row.get(at).and_then(Value::as_f64).map_or(0, |number| number.max(0.0) as u64);
        let is_idle = row.get(4).is_some_and(|idle| idle.as_bool().unwrap_or(idle.as_u64() == Some(1)));
        Some(LockSeen {
            waiter: text(0)?,
            waited: Nanos(number(1).saturating_mul(1_000)),
            owner: number(2),
            statement: text(3).filter(|text| !text.is_empty()),
            is_idle,
            transaction: Nanos(number(5).saturating_mul(1_000)),
            object: text(6),
        })
    }
}

/// The samples so far.
#[derive(Debug, Default)]
struct Sums {
    samples: u64,
    states: BTreeMap<String, u64>,
    /// By the waiting statement, the owner and its statement.
    locks: BTreeMap<(String, u64, Option<String>), LockWait>,
    left_out: u64,
}

impl Sums {
    fn add_locks(&mut self, at: Nanos, rows: &[LockSeen], digest: impl Fn(&str) -> String) {
        let mut together: BTreeMap<(String, u64, Option<String>), Vec<&LockSeen>> = BTreeMap::new();
        for row in rows {
            let owner = row.statement.as_deref().map(&digest);
            together.entry((digest(&row.waiter), row.owner, owner)).or_default().push(row);
        }
        for (key, seen) in together {
            if self.locks.len() >= MOST_LOCKS && !self.locks.contains_key(&key) {
                self.left_out += seen.len() as u64;
                continue;
            }
            let (waiter, owner_connection, owner) = key.clone();
            let wait = self.locks.entry(key).or_insert_with(|| LockWait {
                waiter,
                owner_connection,
                owner,
                first_ns: at.0,
                ..LockWait::default()
            });
            let longest = |of: fn(&LockSeen) -> Nanos| seen.iter().map(|row| of(row).0).max().unwrap_or(0);
            wait.last_ns = at.0;
            wait.samples += 1;
            wait.sessions = wait.sessions.max(seen.len() as u64);
            wait.longest_ns = wait.longest_ns.max(longest(|row| row.waited));
            wait.transaction_ns = wait.transaction_ns.max(longest(|row| row.transaction));
            wait.owner_is_idle = seen.iter().any(|row| row.is_idle);
            wait.object = seen.iter().find_map(|row| row.object.clone()).or(wait.object.take());
        }
    }

    fn add_states(&mut self, counts: &Map<String, Value>) {
        for (state, count) in counts {
            let is_known = self.states.contains_key(state);
            if is_known || self.states.len() < MOST_STATES {
                *self.states.entry(state.clone()).or_default() += count.as_u64().unwrap_or(0);
            }
        }
    }

    /// Those that waited longest first.
    fn finish(self) -> SampledSessions {
        let Sums { samples, states, locks, left_out } = self;
        let mut locks: Vec<LockWait> = locks.into_values().collect();
        locks.sort_by_key(|wait| std::cmp::Reverse(wait.longest_ns));
        SampledSessions { period_ns: PERIOD.0, samples, states, locks, left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(waiter: &str, waited_ms: u64, owner: u64, statement: Option<&str>) -> LockSeen {
        LockSeen {
            waiter: waiter.to_owned(),
            waited: Nanos::from_millis(waited_ms),
            owner,
            statement: statement.map(str::to_owned),
            is_idle: statement.is_some(),
            transaction: Nanos::from_millis(waited_ms + 100),
            object: None,
        }
    }

    /// If this fails, an owner of a lock is reported with the wait for another one, or with values in its statement.
    #[test]
    fn waits_are_summed_by_statement_and_owner() {
        let mut sums = Sums::default();
        let digest = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "?");
        let [one, two] = [Nanos::from_secs(1), Nanos::from_secs(2)];
        sums.add_locks(one, &[seen("U 1", 400, 7, Some("S 1")), seen("U 2", 300, 7, Some("S 1"))], digest);
        sums.add_locks(two, &[seen("U 3", 1_400, 7, Some("S 2")), seen("U 1", 10, 8, None)], digest);
        let found = sums.finish();
        let [first, second] = found.locks.as_slice() else { panic!("{found:?}") };
        let expected = LockWait {
            waiter: "U ?".to_owned(),
            owner_connection: 7,
            owner: Some("S ?".to_owned()),
            owner_is_idle: true,
            samples: 2,
            sessions: 2,
            longest_ns: 1_400_000_000,
            transaction_ns: 1_500_000_000,
            first_ns: one.0,
            last_ns: two.0,
            object: None,
        };
        assert_eq!(*first, expected);
        assert_eq!((second.owner_connection, &second.owner, second.samples), (8, &None, 1));
    }

    #[test]
    fn what_is_kept_is_bounded_and_counted() {
        let mut sums = Sums::default();
        for owner in 0..MOST_LOCKS as u64 + 3 {
            sums.add_locks(Nanos::ZERO, &[seen("U", 1, owner, None)], str::to_owned);
            sums.add_states(
                &[(owner.to_string(), Value::from(2)), ("x".to_owned(), Value::from(1))]
                    .into_iter()
                    .collect(),
            );
        }
        let found = sums.finish();
        assert_eq!((found.locks.len(), found.left_out), (MOST_LOCKS, 3));
        assert_eq!(found.states["x"], MOST_LOCKS as u64 + 3);
    }

    #[test]
    fn rows_of_both_servers_are_read() {
        let [mariadb, postgres] =
            [r#"["U", 5000.2, 9, null, 1, "x", "`app`.`t`"]"#, r#"["U", 5000, 9, "S", true, null, null]"#]
                .map(|text| LockSeen::read(&serde_json::from_str(text).unwrap()).unwrap());
        assert_eq!(
            (mariadb.waited, mariadb.is_idle, mariadb.object.as_deref()),
            (Nanos::from_millis(5), true, Some("`app`.`t`"))
        );
        assert_eq!(
            (postgres.waited, postgres.is_idle, postgres.transaction),
            (Nanos::from_millis(5), true, Nanos::ZERO)
        );
        assert_eq!(LockSeen::read(&Value::from(3)), None);
    }
}
