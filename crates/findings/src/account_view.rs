//! What a database server counted during a run, by its own account.

use record::document::ServerAccount;
use units::Nanos;

use crate::view::{Block, Cell, Phrase, Role, Row, Section, Table, Value, phrase};

/// The most counters and statements that are shown; the record has all.
const COUNTERS_SHOWN: usize = 24;
const STATEMENTS_SHOWN: usize = 10;

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
    for fact in &account.missing {
        let text = phrase!("{what} ({why})", what = fact.what.as_str(), why = fact.why.as_str());
        blocks.push(Block::labelled(Role::Text, "not reported by the server:", text));
    }
    Section::new("server_account", blocks)
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
            "statement, as the server has it",
            "text",
            "the server's own text for these statements",
        ),
    ];
    Table::new("server_statements", &columns, rows.collect())
}
