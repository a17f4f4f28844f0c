//! Who uses the server: users and schemas, clients' addresses, connections; and what requests slept for.

use record::observation::watch::{SessionUse, Usage, WaitUse, WatchResults};
use units::Nanos;

use crate::arithmetic::per_s;
use crate::view::{Block, Cell, Phrase, Role, Row, Section, Table, Value, phrase};
use crate::watch_query::rows_each;
use crate::words::quantile_cell;

/// `user@schema`, as far as they are known; `None` if neither is.
pub(super) fn who(session: &SessionUse) -> Option<String> {
    match (&session.user, &session.schema) {
        (None, None) => None,
        (user, None) => user.clone(),
        (user, Some(schema)) => Some(format!("{}@{schema}", user.as_deref().unwrap_or("?"))),
    }
}

/// The tables of users, clients, connections and waits, each with at most `top` rows.
pub(super) fn usages(results: &WatchResults, elapsed: Nanos, top: usize) -> Vec<Section> {
    let listing = Listing { elapsed, top, whole: results.response.as_ref().map_or(0, |whole| whole.sum_ns) };
    let sessions = listing.sessions(&results.sessions);
    let peers: Vec<Named<'_>> =
        results.peers.iter().map(|peer| (peer.address.clone(), None, &peer.usage)).collect();
    let connections = results.busiest_connections.iter().map(|connection| {
        let of = connection.peer.clone().or_else(|| connection.number.map(|_| "unix".to_owned()));
        let session = results.sessions.get(connection.session as usize);
        (of, session.and_then(who).filter(|_| connection.number.is_some()), &connection.usage)
    });
    [
        sessions,
        listing.table("peers", "clients by their time", &peers),
        listing.table("connections", "connections by their time", &connections.collect::<Vec<_>>()),
        waits(&results.waits, top),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A name, a user, and what they took.
type Named<'a> = (Option<String>, Option<String>, &'a Usage);

struct Listing {
    elapsed: Nanos,
    top: usize,
    /// The time of all requests.
    whole: u64,
}

impl Listing {
    fn sessions(&self, sessions: &[SessionUse]) -> Option<Section> {
        // Where no login was seen, there is nothing to tell apart.
        sessions.iter().find(|session| session.usage.is_some() && who(session).is_some())?;
        let row = |session: &'_ SessionUse| who(session).unwrap_or_else(|| "login not seen".to_owned());
        let mut rows: Vec<Named<'_>> = sessions
            .iter()
            .filter_map(|session| Some((Some(row(session)), None, session.usage.as_ref()?)))
            .collect();
        rows.sort_by_key(|(.., usage)| std::cmp::Reverse(usage.sum_ns));
        self.table("sessions", "users and schemas by their time", &rows)
    }

    fn table(&self, id: &str, title: &str, rows: &[Named<'_>]) -> Option<Section> {
        if rows.is_empty() {
            return None;
        }
        let shown = rows.iter().take(self.top).map(|row| self.row(row)).collect();
        let columns = [
            ("share", "share", "share", "of the time of all requests"),
            ("requests", "requests", "count", "how many"),
            ("rate", "rate", "per_second", "requests per second"),
            ("mean", "mean", "ns", "mean time at the server"),
            ("p99", "p99", "ns", "99th percentile of the time at the server"),
            ("max", "max", "ns", "longest"),
            ("in", "in", "bytes", "bytes of the requests"),
            ("out", "out", "bytes", "bytes of the responses"),
            ("rows", "rows", "number", "rows sent per request, of the requests whose rows are known"),
            ("name", "who", "text", "user and schema, or address"),
            ("user", "user@schema", "text", "who is logged in"),
        ];
        let mut blocks =
            vec![Block::line(Role::Title, Phrase::new(title)), Block::Table(Table::new(id, &columns, shown))];
        if rows.len() > self.top {
            let more = Value::Id((rows.len() - self.top) as u64);
            blocks.push(Block::line(Role::Note, phrase!("and {more} more: --top shows them", more = more)));
        }
        Some(Section::new(id, blocks))
    }

    fn row(&self, (name, user, usage): &Named<'_>) -> Row {
        let rows = usage.rows.and_then(|rows| rows_each(&rows, rows.sent));
        Row::new(vec![
            Value::Share(usage.sum_ns as f64 / self.whole.max(1) as f64).into(),
            Value::Count(usage.requests).into(),
            Value::PerSecond(per_s(usage.requests, self.elapsed.0)).into(),
            Value::Ns(usage.sum_ns / usage.requests.max(1)).into(),
            quantile_cell(usage.times.p99),
            Value::Ns(usage.times.max_ns).into(),
            Value::Bytes(usage.request_bytes).into(),
            Value::Bytes(usage.response_bytes).into(),
            Cell::maybe(rows.map(Value::Number)),
            name.as_deref().unwrap_or("all others").into(),
            user.as_deref().map_or_else(Cell::absent, Cell::from),
        ])
    }
}

fn waits(waits: &[WaitUse], top: usize) -> Option<Section> {
    if waits.is_empty() {
        return None;
    }
    let row = |wait: &WaitUse| {
        Row::new(vec![
            Value::Ns(wait.sum_ns).into(),
            Value::Count(wait.requests).into(),
            Value::Ns(wait.max_ns).into(),
            wait.call.as_str().into(),
            wait.target.as_deref().map_or_else(Cell::absent, Cell::from),
        ])
    };
    let columns = [
        ("time", "time", "ns", "the longest sleep of each request, summed"),
        ("requests", "requests", "count", "how many"),
        ("max", "longest", "ns", "the longest sleep"),
        ("call", "system call", "text", "in which the thread slept"),
        ("target", "file or address", "text", "what it slept for"),
    ];
    let rows = waits.iter().take(top).map(row).collect();
    let title = Phrase::new("system calls that requests slept in (the longest sleep of each request)");
    let table = Table::new("sleeps", &columns, rows);
    Some(Section::new("sleeps", vec![Block::line(Role::Title, title), Block::Table(table)]))
}
