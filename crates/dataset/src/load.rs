//! Makes tables, fills what is missing of them, and removes them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure};
use codec::Protocol;
use scenario::workloads::Size;

use crate::client::Client;
use crate::oltp::{BATCH, Part, comment, mark};
use crate::script::Task;

/// Rows that one connection adds in order, before it takes others: what is there of them is their beginning.
const STRIPE: u64 = 50 * BATCH;

/// How far the loading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows that were there before.
    pub found: u64,
    pub added: u64,
    /// Rows of all tables together.
    pub all: u64,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    pub tables_made: u64,
    pub rows: Progress,
    pub indexes_made: u64,
}

/// Rows of a table that one connection adds.
#[derive(Debug, Clone, Copy)]
struct Stripe {
    table: u64,
    first: u64,
    last: u64,
}

/// Makes the tables of `size` that are missing, adds the rows that are missing, and makes the indexes. `connect` opens
/// a connection whose statements are [`parts`](crate::parts) of the same size; `connections` of them add rows at the
/// same time. `tell` is called about once a second.
///
/// # Errors
///
/// One line: for a table that was not made by this function, or with another number of rows, before anything is
/// changed; when the server refuses something. What was added stays.
pub fn prepare<P: Protocol<Journey = Task>>(
    connect: &(impl Fn() -> anyhow::Result<Client<P>> + Sync),
    size: Size,
    connections: usize,
    tell: &mut dyn FnMut(Progress),
) -> anyhow::Result<Loaded> {
    let mut client = connect()?;
    let mut missing = Vec::new();
    for table in 1..=size.tables {
        match owned(&mut client, table)? {
            None => missing.push(table),
            Some(found) => ensure!(
                found == comment(table, size.rows),
                "table sbtest{table} is `{found}`, not of {} rows; use --rows with its number, or remove it with \
                 `parallax clean`",
                size.rows
            ),
        }
    }
    for table in &missing {
        client.run(Task::Plain(Part::Create.of(*table)))?;
    }
    let firsts = |table| (0..size.rows.div_ceil(STRIPE)).map(move |n| (table, 1 + n * STRIPE));
    let stripes: Vec<Stripe> = (1..=size.tables)
        .flat_map(firsts)
        .map(|(table, first)| Stripe { table, first, last: (first + STRIPE - 1).min(size.rows) })
        .collect();
    let sums = Sums { found: AtomicU64::new(0), added: AtomicU64::new(0), all: size.tables * size.rows };
    each(&stripes, connections, connect, &|client, stripe| sums.fill(client, stripe), &mut || {
        tell(sums.progress());
    })?;
    let indexes = AtomicU64::new(0);
    let tables: Vec<u64> = (1..=size.tables).collect();
    let index = |client: &mut Client<P>, table: u64| {
        let there = client.run(Task::Plain(Part::Indexed.of(table)))?;
        if there.first() == Some(&Some("0".to_owned())) {
            client.run(Task::Plain(Part::Index.of(table)))?;
            indexes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    each(&tables, connections, connect, &index, &mut || tell(sums.progress()))?;
    Ok(Loaded {
        tables_made: missing.len() as u64,
        rows: sums.progress(),
        indexes_made: indexes.into_inner(),
    })
}

/// Removes the tables that [`prepare`] made, whatever their number of rows; returns their names. A table that it did
/// not make stays. `client` has the [`parts`](crate::parts) of `tables` tables.
///
/// # Errors
///
/// When the server refuses it.
pub fn clean<P: Protocol<Journey = Task>>(
    client: &mut Client<P>,
    tables: u64,
) -> anyhow::Result<Vec<String>> {
    let mut removed = Vec::new();
    for table in 1..=tables {
        if comment_of(client, table)?.is_some_and(|found| found.starts_with(&mark(table))) {
            client.run(Task::Plain(Part::Drop.of(table)))?;
            removed.push(format!("sbtest{table}"));
        }
    }
    Ok(removed)
}

fn comment_of<P: Protocol<Journey = Task>>(
    client: &mut Client<P>,
    table: u64,
) -> anyhow::Result<Option<String>> {
    let row = client.run(Task::Plain(Part::Comment.of(table)))?;
    Ok(row.into_iter().next().map(Option::unwrap_or_default))
}

/// The comment of a table; `None` if there is no such table.
fn owned<P: Protocol<Journey = Task>>(client: &mut Client<P>, table: u64) -> anyhow::Result<Option<String>> {
    let comment = comment_of(client, table)?;
    if comment.as_ref().is_some_and(|comment| !comment.starts_with(&mark(table))) {
        bail!(
            "table sbtest{table} was not made by `parallax prepare`, and is left as it is; use another database"
        );
    }
    Ok(comment)
}

struct Sums {
    found: AtomicU64,
    added: AtomicU64,
    all: u64,
}

impl Sums {
    fn progress(&self) -> Progress {
        Progress {
            found: self.found.load(Ordering::Relaxed),
            added: self.added.load(Ordering::Relaxed),
            all: self.all,
        }
    }

    /// Adds the rows of a stripe that are missing.
    fn fill<P: Protocol<Journey = Task>>(
        &self,
        client: &mut Client<P>,
        stripe: Stripe,
    ) -> anyhow::Result<()> {
        let Stripe { table, first, last } = stripe;
        let there = client.run(Task::Last { statement: Part::Last.of(table), first, last })?;
        let number =
            |place: usize| there.get(place).cloned().flatten().and_then(|text| text.parse::<u64>().ok());
        let mut next = match (number(0), number(1)) {
            (Some(0), _) => first,
            (Some(count), Some(found)) if (first..=last).contains(&found) => {
                ensure!(
                    count == found - first + 1,
                    "table sbtest{table} lacks {} rows between {first} and {found}; remove it with `parallax clean`, and prepare again",
                    found - first + 1 - count.min(found - first + 1)
                );
                found + 1
            }
            _ => bail!("the server does not say which rows sbtest{table} has"),
        };
        self.found.fetch_add(next - first, Ordering::Relaxed);
        while next <= last {
            let (part, count) = match last - next + 1 {
                // Somebody removed some of the rows of a statement.
                _ if !(next - 1).is_multiple_of(BATCH) => (Part::InsertOne, 1),
                rest if rest < BATCH => (Part::InsertRest, rest),
                _ => (Part::Insert, BATCH),
            };
            client.run(Task::Insert { statement: part.of(table), table, first: next, count })?;
            next += count;
            self.added.fetch_add(count, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Does `work` for each of `items` over several connections; `tell` is called about once a second.
pub(crate) fn each<T: Copy + Sync, P: Protocol<Journey = Task>>(
    items: &[T],
    connections: usize,
    connect: &(impl Fn() -> anyhow::Result<Client<P>> + Sync),
    work: &(impl Fn(&mut Client<P>, T) -> anyhow::Result<()> + Sync),
    tell: &mut dyn FnMut(),
) -> anyhow::Result<()> {
    let next = Mutex::new(items.iter());
    let failed = AtomicBool::new(false);
    let (done, ends) = mpsc::sync_channel(1);
    let work_all = || {
        let mut client = connect()?;
        while !failed.load(Ordering::Relaxed) {
            let item = next.lock().expect("nobody panics with it").next().copied();
            let Some(item) = item else { break };
            work(&mut client, item)?;
        }
        Ok(())
    };
    let worker = |done: mpsc::SyncSender<anyhow::Result<()>>| {
        let result = work_all();
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        let _ = done.send(result);
    };
    thread::scope(|scope| {
        for _ in 0..connections.clamp(1, items.len().max(1)) {
            let done = done.clone();
            scope.spawn(|| worker(done));
        }
        drop(done);
        let mut first_error = Ok(());
        loop {
            match ends.recv_timeout(Duration::from_secs(1)) {
                Ok(result) => first_error = first_error.and(result),
                Err(RecvTimeoutError::Timeout) => tell(),
                Err(RecvTimeoutError::Disconnected) => return first_error,
            }
        }
    })
}
