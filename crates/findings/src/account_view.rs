//! What a database server counted during a run, by its own account.

use record::document::{LockWait, SampledSessions, ServerAccount};
use units::Nanos;

use crate::view::{Block, Cell, Phrase, Role, Row, Section, Table, Value, phrase};

/// The most counters, statements, waits and states that are shown; the record has all.
const COUNTERS_SHOWN: usize = 24;
const STATEMENTS_SHOWN: usize = 10;
const LOCKS_SHOWN: usize = 5;
const STATES_SHOWN: usize = 8;

/// The counters that changed, the most interesting first, and the statements.
pub(crate) fn section(account: &ServerAccount) -> Section {
    let mut blocks = Vec::new();
    let mut names: Vec<&String> = account.counters.keys().collect();
    names.sort_by_key(|name| (rank(name), *name));
    let counters = names.iter().take(COUNTERS_SHOWN).map(|name| {
        let change = account.counters[*name].change;
        let sign = if change < 0 { "-" } else { "+" };
        let size = Value::Count(change.unsigned_abs());
        phrase!("{name} {sign}{change}", name = name.as_str(), sign = sign, change = size)
    });
    let mut text = Phrase::join(counters, ", ");
    if names.len() > COUNTERS_SHOWN {
        let more = Value::Count((names.len() - COUNTERS_SHOWN) as u64);
        text = text.then(", ", phrase!("{more} more in run.json", more = more));
    }
    if !names.is_empty() {
        blocks.push(Block::labelled(Role::Text, "counted", text));
    }
    if !account.statements.is_empty() {
        blocks.push(Block::Table(statements(account)));
    }
    blocks.extend(account.sessions.iter().flat_map(sessions));
    for fact in &account.missing {
        let text = phrase!("{what} ({why})", what = fact.what.as_str(), why = fact.why.as_str());
        blocks.push(Block::labelled(Role::Text, "not reported by the server:", text));
    }
    Section::new("server_account", blocks)
}

/// Who held the locks that others waited for, and the states of sessions.
fn sessions(sampled: &SampledSessions) -> Vec<Block> {
    let mut blocks: Vec<Block> = sampled.locks.iter().take(LOCKS_SHOWN).map(lock_wait).collect();
    if !sampled.locks.is_empty() {
        let period = phrase!(
            "{samples}, one every {period}: shorter waits are seen only by chance; `parallax watch` measures the blocked \
             time of every request",
            samples = Value::items(sampled.samples, "sample"),
            period = Nanos(sampled.period_ns)
        );
        let more = (sampled.locks.len().saturating_sub(LOCKS_SHOWN) as u64).saturating_add(sampled.left_out);
        let text = match more {
            0 => period,
            more => period.then("; ", phrase!("{more} more waits", more = Value::Count(more))),
        };
        blocks.push(Block::labelled(Role::Text, "locks", text));
    }
    let mut states: Vec<(&String, &u64)> = sampled.states.iter().collect();
    states.sort_by_key(|(state, count)| (std::cmp::Reverse(**count), *state));
    let states = states.into_iter().take(STATES_SHOWN).map(|(state, count)| {
        let average = *count as f64 / sampled.samples.max(1) as f64;
        phrase!("{state} {sessions}", state = state.as_str(), sessions = Value::Number(average))
    });
    let text = Phrase::join(states, ", ");
    if !sampled.states.is_empty() {
        blocks.push(Block::labelled(
            Role::Text,
            "sessions",
            Phrase::new("on average, by state").then(": ", text),
        ));
    }
    blocks
}

/// `update … waited at least 2.90 s for a lock of connection 12, which was idle in its transaction …`.
fn lock_wait(wait: &LockWait) -> Block {
    let mut text = phrase!(
        "{waiter} waited at least {longest} for a lock of connection {owner}",
        waiter = wait.waiter.as_str(),
        longest = Nanos(wait.longest_ns),
        owner = Value::Id(wait.owner_connection)
    );
    if let Some(object) = &wait.object {
        text = text.then(" on ", phrase!("{object}", object = object.as_str()));
    }
    text = text.then(", ", match (&wait.owner, wait.owner_is_idle) {
        (Some(owner), true) => phrase!(
            "which was idle in its transaction of {age} after {owner}",
            age = Nanos(wait.transaction_ns),
            owner = owner.as_str()
        ),
        (Some(owner), false) => phrase!(
            "which executed {owner} in its transaction of {age}",
            owner = owner.as_str(),
            age = Nanos(wait.transaction_ns)
        ),
        (None, _) => phrase!(
            "whose transaction lasted {age} and whose statement the server does not report (MySQL, MariaDB: \
             performance_schema with events_statements_current)",
            age = Nanos(wait.transaction_ns)
        ),
    });
    if wait.sessions > 1 {
        text =
            text.then("; ", phrase!("{sessions} at once", sessions = Value::items(wait.sessions, "session")));
    }
    Block::labelled(Role::Warning, "lock", text)
}

/// What a user looks for first comes first: statements, then the storage engine, then the rest.
fn rank(name: &str) -> usize {
    const FIRST: [&str; 12] = [
        "Questions",
        "Connections",
        "Com_",
        "Qcache_",
        "xact_",
        "total_commands",
        "total_connections",
        "keyspace_",
        "used_cpu_",
        "tup_",
        "Innodb_rows",
        "blks_",
    ];
    FIRST.iter().position(|first| name.starts_with(first)).unwrap_or(FIRST.len())
}

fn statements(account: &ServerAccount) -> Table {
    let rows = account.statements.iter().take(STATEMENTS_SHOWN).map(|row| {
        let mean = row.total_ns / row.calls.max(1);
        Row::new(vec![
            Value::Count(row.calls).into(),
            Cell::from(Nanos(mean)),
            Cell::from(Nanos(row.total_ns)),
            row.rows.map_or_else(Cell::absent, |rows| Value::Count(rows).into()),
            row.text.as_str().into(),
        ])
    });
    let columns = [
        ("calls", "calls", "count", "executions"),
        ("mean", "mean", "ns", "the server's time for one"),
        ("total", "total", "ns", "the server's time for all"),
        ("rows", "rows", "count", "rows sent or changed"),
        (
            "statement",
            "statement",
            "text",
            "the server's text for these statements; for PostgreSQL without its values",
        ),
    ];
    Table::new("server_statements", &columns, rows.collect())
}
