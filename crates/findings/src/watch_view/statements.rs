//! Statements and routes: how often, how long, how many rows, whose, and where their time went.

use record::Protocol;
use record::document::QuantileValue;
use record::observation::watch::{Digest, PartsNs, SessionUse, Times, WatchResults};
use units::Nanos;

use super::usage::who;
use crate::arithmetic::per_s;
use crate::view::{Block, Cell, Phrase, Role, Row, Table, Value, phrase};
use crate::watch_query::{WatchQuery, Whole, rows_each, sort};
use crate::words::quantile_cell;

/// The tables of statements and routes; empty if none was seen.
pub(super) fn statements(results: &WatchResults, elapsed: Nanos, query: &WatchQuery) -> Vec<Block> {
    let all: Vec<&Digest> = results.digests.iter().filter(|digest| digest.count > 0).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let whole = Whole { sum_ns: all.iter().map(|digest| digest.sum_ns).sum(), elapsed };
    let is_met = |digest: &&Digest| query.condition.as_ref().is_none_or(|only| only.is_met(digest, &whole));
    let mut listed: Vec<&Digest> = all.iter().copied().filter(is_met).collect();
    sort(&mut listed, query.sort);
    let (count, hidden) = (listed.len(), all.len() - listed.len());
    listed.truncate(query.top());
    let title = phrase!("statements and routes by {order}", order = query.sort.words());
    let mut blocks = vec![Block::line(Role::Title, title)];
    if !listed.is_empty() {
        blocks.push(Block::Table(figures(&listed, &whole)));
        blocks.push(Block::Table(texts(&listed, &results.sessions)));
    }
    let is_unknown = |digest: &&Digest| {
        matches!(digest.protocol, Protocol::Mysql | Protocol::Postgres) && digest.rows.is_none()
    };
    if listed.iter().any(is_unknown) {
        let note =
            "rows: known where the whole response was captured; --capture 16384 captures more of each write";
        blocks.push(Block::line(Role::Note, Phrase::new(note)));
    }
    if let Some(condition) = query.condition.as_ref().filter(|_| hidden > 0) {
        let text = phrase!(
            "{hidden} of {all} do not meet `{condition}`, or have too few requests for it",
            hidden = Value::Id(hidden as u64),
            all = Value::Id(all.len() as u64),
            condition = condition.to_string()
        );
        blocks.push(Block::line(Role::Note, text));
    }
    if count > listed.len() {
        let more = Value::Id((count - listed.len()) as u64);
        blocks.push(Block::line(Role::Note, phrase!("and {more} more: --top shows them", more = more)));
    }
    blocks
}

fn figures(listed: &[&Digest], whole: &Whole) -> Table {
    let row = |(n, digest): (usize, &&Digest)| {
        let quantile = |of: fn(&Times) -> QuantileValue| {
            digest.times.map_or_else(Cell::absent, |times| quantile_cell(of(&times)))
        };
        Row::new(vec![
            Value::Id(n as u64 + 1).into(),
            Value::Share(digest.sum_ns as f64 / whole.sum_ns.max(1) as f64).into(),
            Value::Count(digest.count).into(),
            Value::PerSecond(per_s(digest.count, whole.elapsed.0)).into(),
            Value::Ns(digest.sum_ns / digest.count.max(1)).into(),
            quantile(|times| times.p50),
            quantile(|times| times.p99),
            Cell::ns(digest.times.map(|times| times.max_ns)),
            Cell::maybe(digest.rows.and_then(|rows| rows_each(&rows, rows.sent)).map(Value::Number)),
            Cell::maybe(digest.rows.and_then(|rows| rows_each(&rows, rows.affected)).map(Value::Number)),
            Cell::maybe(digest.rows.map(|rows| Value::Count(rows.requests))),
        ])
    };
    let columns = [
        ("n", "#", "id", "its place in the order"),
        ("share", "share", "share", "of the time of all requests"),
        ("count", "count", "count", "requests"),
        ("rate", "rate", "per_second", "requests per second"),
        ("mean", "mean", "ns", "mean time at the server"),
        ("p50", "p50", "ns", "median of the time at the server"),
        ("p99", "p99", "ns", "99th percentile of the time at the server"),
        ("max", "max", "ns", "longest"),
        ("rows", "rows", "number", "rows sent per request, of the requests whose rows are known"),
        ("affected", "affected", "number", "rows changed per request, of the requests whose rows are known"),
        ("rows_of", "", "count", "requests whose rows are known"),
    ];
    Table::new("digests", &columns, listed.iter().enumerate().map(row).collect())
}

fn texts(listed: &[&Digest], sessions: &[SessionUse]) -> Table {
    let row = |(n, digest): (usize, &&Digest)| {
        let mut cells = vec![Cell::from(Value::Id(n as u64 + 1))];
        let share = |part: u64| Value::Share(part as f64 / digest.sum_ns.max(1) as f64).into();
        cells.extend(groups(&digest.parts_ns).map(share));
        cells.push(users(digest, sessions).map_or_else(Cell::absent, Cell::from));
        cells.push(match digest.statements {
            Some(statements) => format!("{} ({statements} statements)", digest.text).as_str().into(),
            None => digest.text.as_str().into(),
        });
        Row::new(cells)
    };
    let columns = [
        ("n", "#", "id", "its place in the order"),
        ("cpu", "CPU", "share", "of its time, on a CPU"),
        ("queue", "queue", "share", "of its time, waiting for a CPU"),
        ("block", "block", "share", "of its time, blocked"),
        ("loop", "loop", "share", "of its time, waiting for the event loop"),
        ("user", "user@schema", "text", "who sent it"),
        ("text", "statement or route", "text", "the statement or route"),
    ];
    Table::new("digest_texts", &columns, listed.iter().enumerate().map(row).collect())
}

/// Who sent a statement, as far as it is known.
fn users(digest: &Digest, sessions: &[SessionUse]) -> Option<String> {
    let all = digest.sessions.iter().filter_map(|&id| sessions.get(id as usize)).filter_map(who);
    let all: Vec<String> = all.collect();
    let (first, rest) = all.split_first()?;
    Some(match rest.len() {
        0 if !digest.more_sessions => first.clone(),
        more => format!("{first} +{more}{}", if digest.more_sessions { "…" } else { "" }),
    })
}

/// The shares on CPU, in the run queue, blocked, and in loop wait.
fn groups(parts: &PartsNs) -> [u64; 4] {
    [
        parts.on_cpu + parts.stolen,
        parts.run_queue + parts.yielded + parts.throttled,
        parts.disk + parts.lock + parts.network + parts.other,
        parts.loop_wait,
    ]
}
