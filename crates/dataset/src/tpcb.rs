//! The tables of the workload `tpcb-like`, as `pgbench -i` makes them: branches, tellers, accounts and an empty history.
//!
//! The server itself makes the rows, a range of numbers at a time, so that what is missing after an interruption follows
//! from what is there.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{bail, ensure};
use codec::{Protocol, StatementIndex};
use database::DatabaseKind;
use database::sql::Statement;

use crate::client::Client;
use crate::load::{Loaded, Progress, each};
use crate::script::{Row, Task};

/// Accounts of one branch.
pub const ACCOUNTS: u64 = 100_000;

/// Rows of one statement. On MySQL they are made of four digits.
const BATCH: u64 = 10_000;

/// A table, and how many rows it has per branch.
struct Filled {
    name: &'static str,
    /// Its number, and the other columns of a new table.
    key: &'static str,
    columns: &'static str,
    per_branch: u64,
    /// The columns of a row, and their values from its number `n`. A quotient is written as `n DIV 10`.
    row: (&'static str, &'static str),
}

/// In the order in which they are filled; `pgbench_history` has no rows.
const TABLES: [Filled; 4] = [
    Filled {
        name: "pgbench_branches",
        key: "bid",
        columns: "bid INTEGER NOT NULL, bbalance INTEGER, filler CHAR(88), PRIMARY KEY (bid)",
        per_branch: 1,
        row: ("bid, bbalance", "n, 0"),
    },
    Filled {
        name: "pgbench_tellers",
        key: "tid",
        columns: "tid INTEGER NOT NULL, bid INTEGER, tbalance INTEGER, filler CHAR(84), PRIMARY KEY (tid)",
        per_branch: 10,
        row: ("tid, bid, tbalance", "n, (n - 1) DIV 10 + 1, 0"),
    },
    Filled {
        name: "pgbench_accounts",
        key: "aid",
        columns: "aid INTEGER NOT NULL, bid INTEGER, abalance INTEGER, filler CHAR(84), PRIMARY KEY (aid)",
        per_branch: ACCOUNTS,
        row: ("aid, bid, abalance, filler", "n, (n - 1) DIV 100000 + 1, 0, ''"),
    },
    Filled {
        name: "pgbench_history",
        key: "tid",
        columns: "tid INTEGER, bid INTEGER, aid INTEGER, delta INTEGER, mtime TIMESTAMP, filler CHAR(22)",
        per_branch: 0,
        row: ("tid", "n"),
    },
];

/// The statements of one table, in the order of [`parts`].
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The comment of the table; no row if there is no such table.
    Comment,
    Create,
    /// How many rows of a range there are, and the number of the last one.
    Last,
    /// Makes the rows of a range.
    Fill,
    Drop,
}

const PER_TABLE: u16 = 5;

impl Part {
    fn of(self, table: usize) -> StatementIndex {
        table as u16 * PER_TABLE + self as u16
    }
}

/// The statements of all tables at `scale`, which is the number of branches.
pub fn parts(kind: DatabaseKind, scale: u64) -> Vec<Statement> {
    TABLES.iter().flat_map(|table| of_table(kind, table, scale)).collect()
}

fn mark(table: &Filled) -> String {
    format!("made by parallax prepare: {},", table.name)
}

fn comment(table: &Filled, scale: u64) -> String {
    format!("{} tpcb-like, scale {scale}", mark(table))
}

fn of_table(kind: DatabaseKind, table: &Filled, scale: u64) -> [Statement; PER_TABLE as usize] {
    let Filled { name, key, columns, row: (into, values), .. } = table;
    let comment = comment(table, scale);
    let ranged = |pieces: [String; 3]| Statement { pieces: pieces.to_vec(), prepared: false };
    let (found, create, fill) = if kind == DatabaseKind::Postgres {
        (
            format!(
                "SELECT COALESCE(obj_description(oid, 'pg_class'), '') FROM pg_class WHERE oid = to_regclass('{name}')"
            ),
            // One message is one transaction: there is never a table without its comment.
            format!("CREATE TABLE {name} ({columns}); COMMENT ON TABLE {name} IS '{comment}'"),
            [
                format!(
                    "INSERT INTO {name} ({into}) SELECT {} FROM generate_series(",
                    values.replace("DIV", "/")
                ),
                ", ".to_owned(),
                ") AS n".to_owned(),
            ],
        )
    } else {
        let digit = |place: u32| {
            let rows = (0..10).map(|n| format!("SELECT {} AS d", n * 10_u64.pow(place)));
            format!("({}) AS d{place}", rows.collect::<Vec<_>>().join(" UNION ALL "))
        };
        let digits = (0..4).map(digit).collect::<Vec<_>>().join(", ");
        (
            format!(
                "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{name}'"
            ),
            format!("CREATE TABLE {name} ({columns}) ENGINE = InnoDB COMMENT = '{comment}'"),
            [
                format!("INSERT INTO {name} ({into}) SELECT {values} FROM (SELECT "),
                format!(" + d0.d + d1.d + d2.d + d3.d AS n FROM {digits}) AS numbers WHERE n <= "),
                String::new(),
            ],
        )
    };
    [
        Statement::text(found),
        Statement::text(create),
        ranged([
            format!("SELECT COUNT(*), MAX({key}) FROM {name} WHERE {key} BETWEEN "),
            " AND ".to_owned(),
            String::new(),
        ]),
        ranged(fill),
        Statement::text(format!("DROP TABLE {name}")),
    ]
}

/// Rows of one table that one statement makes.
#[derive(Debug, Clone, Copy)]
struct Batch {
    table: usize,
    first: u64,
    last: u64,
}

/// Makes the tables that are missing and adds the rows that are missing. `connect` opens a connection whose statements
/// are [`parts`] of the same scale.
///
/// # Errors
///
/// One line: for a table that was not made by this function, or at another scale, before anything is changed; when the
/// server refuses something. What was added stays.
pub fn prepare<P: Protocol<Journey = Task>>(
    connect: &(impl Fn() -> anyhow::Result<Client<P>> + Sync),
    scale: u64,
    connections: usize,
    tell: &mut dyn FnMut(Progress),
) -> anyhow::Result<Loaded> {
    let mut client = connect()?;
    let mut missing = Vec::new();
    for (index, table) in TABLES.iter().enumerate() {
        match comment_of(&mut client, index)? {
            None => missing.push(index),
            Some(found) if !found.starts_with(&mark(table)) => bail!(
                "table {} was not made by `parallax prepare`, and is left as it is; use another database",
                table.name
            ),
            Some(found) => ensure!(
                found == comment(table, scale),
                "table {} is `{found}`, not of scale {scale}; use --scale with its number, or remove it with \
                 `parallax clean`",
                table.name
            ),
        }
    }
    for &index in &missing {
        client.run(Task::Plain(Part::Create.of(index)))?;
    }
    let batches: Vec<Batch> = TABLES
        .iter()
        .enumerate()
        .flat_map(|(table, filled)| {
            let rows = filled.per_branch * scale;
            let batch =
                move |n: u64| Batch { table, first: 1 + n * BATCH, last: ((n + 1) * BATCH).min(rows) };
            (0..rows.div_ceil(BATCH)).map(batch)
        })
        .collect();
    let all = batches.iter().map(|batch| batch.last - batch.first + 1).sum();
    let (found, added) = (AtomicU64::new(0), AtomicU64::new(0));
    let progress =
        || Progress { found: found.load(Ordering::Relaxed), added: added.load(Ordering::Relaxed), all };
    let fill = |client: &mut Client<P>, Batch { table, first, last }: Batch| {
        let statement = |part: Part| part.of(table);
        let there = number(&client.run(Task::Last { statement: statement(Part::Last), first, last })?);
        let rows = last - first + 1;
        // A statement adds all of its rows or none.
        if there == Some(0) {
            client.run(Task::Last { statement: statement(Part::Fill), first, last })?;
            added.fetch_add(rows, Ordering::Relaxed);
        } else {
            ensure!(
                there == Some(rows),
                "table {} lacks rows between {first} and {last}; remove it with `parallax clean`, and prepare again",
                TABLES[table].name
            );
            found.fetch_add(rows, Ordering::Relaxed);
        }
        Ok(())
    };
    each(&batches, connections, connect, &fill, &mut || tell(progress()))?;
    Ok(Loaded { tables_made: missing.len() as u64, rows: progress(), indexes_made: 0 })
}

/// Removes the tables that [`prepare`] made, at whatever scale; returns their names.
///
/// # Errors
///
/// When the server refuses it.
pub fn clean<P: Protocol<Journey = Task>>(client: &mut Client<P>) -> anyhow::Result<Vec<String>> {
    let mut removed = Vec::new();
    for (index, table) in TABLES.iter().enumerate() {
        if comment_of(client, index)?.is_some_and(|found| found.starts_with(&mark(table))) {
            client.run(Task::Plain(Part::Drop.of(index)))?;
            removed.push(table.name.to_owned());
        }
    }
    Ok(removed)
}

fn comment_of<P: Protocol<Journey = Task>>(
    client: &mut Client<P>,
    table: usize,
) -> anyhow::Result<Option<String>> {
    let row = client.run(Task::Plain(Part::Comment.of(table)))?;
    Ok(row.into_iter().next().map(Option::unwrap_or_default))
}

fn number(row: &Row) -> Option<u64> {
    row.first()?.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_statement() {
        for kind in [DatabaseKind::MySql, DatabaseKind::Postgres] {
            let all = parts(kind, 3);
            let text = |part: Part, table| all[usize::from(part.of(table))].with_marks(kind);
            assert!(text(Part::Comment, 1).contains("'pgbench_tellers'"));
            assert!(
                text(Part::Create, 2)
                    .contains("'made by parallax prepare: pgbench_accounts, tpcb-like, scale 3'")
            );
            assert!(text(Part::Last, 0).starts_with("SELECT COUNT(*), MAX(bid) FROM pgbench_branches"));
            assert_eq!(all[usize::from(Part::Fill.of(2))].parameters(), 2);
            assert_eq!(text(Part::Drop, 3), "DROP TABLE pgbench_history");
            assert!(all.iter().all(|statement| statement.check().is_ok()));
        }
    }
}
