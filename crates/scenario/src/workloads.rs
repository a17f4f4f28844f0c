//! Built-in scenarios for databases: the tables, statements and mixes that users of sysbench and pgbench know.
//!
//! Each is the text of a scenario file, so that it can be shown, copied and changed. Sysbench 1.0's `oltp_common.lua` is
//! the source of the statements, their numbers per transaction, and the range of 100 rows; `tpcb-like` is pgbench's.

use std::fmt::Write;

use database::DatabaseKind;
use thiserror::Error;

use crate::distribution::{Distribution, Shape};
use crate::random::{between, draw};

/// The names of all workloads.
pub const NAMES: [&str; 6] = [
    "oltp-point-select",
    "oltp-read-only",
    "oltp-read-write",
    "oltp-write-only",
    "tpcb-like",
    "redis-get-set",
];

/// Rows of a range, as sysbench's `--range-size`.
const RANGE: u64 = 100;

/// Point selects per transaction, as sysbench's `--point-selects`.
const POINT_SELECTS: u64 = 10;

/// The most tables: each has its own statements, which each connection prepares.
pub const MOST_TABLES: u64 = 1_000;

/// Accounts of one branch in `pgbench -i`, which are its scale of 1.
const ACCOUNTS: u64 = 100_000;

impl Size {
    /// What the tool that makes the tables of the workload `name` makes by default.
    pub fn default_of(name: &str) -> Size {
        Size { tables: 1, rows: if name == "tpcb-like" { ACCOUNTS } else { 10_000 } }
    }
}

/// Why there is no such workload. One line that states what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkloadError {
    #[error("`{name}` is not a workload; they are {}", NAMES.join(", "))]
    Unknown { name: String },
    #[error("--tables {0}: a workload has 1 to {MOST_TABLES} tables")]
    Tables(u64),
    #[error("--rows {0}: a table has 1 to {MOST_ROWS} rows")]
    Rows(u64),
    #[error("--rows {0}: pgbench makes accounts by {ACCOUNTS}; give a multiple of that")]
    Accounts(u64),
    #[error(
        "tpcb-like has one table of accounts, and uses what `parallax prepare` or `pgbench -i` has made; leave --tables out"
    )]
    OneTable,
    #[error("{name} is not for {}; use another workload", kind.product())]
    Kind { name: String, kind: DatabaseKind },
}

/// How many tables there are, and rows in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub tables: u64,
    pub rows: u64,
}

impl Size {
    /// Refuses what a workload cannot have.
    ///
    /// # Errors
    ///
    /// [`WorkloadError`] for no tables or rows, or too many.
    pub fn check(self) -> Result<(), WorkloadError> {
        if !(1..=MOST_TABLES).contains(&self.tables) {
            return Err(WorkloadError::Tables(self.tables));
        }
        if !(1..=MOST_ROWS).contains(&self.rows) {
            return Err(WorkloadError::Rows(self.rows));
        }
        Ok(())
    }
}

/// The largest number of an INTEGER column.
const MOST_ROWS: u64 = 2_147_483_647;

/// The text of the workload `name` for the database at `url`.
///
/// # Errors
///
/// [`WorkloadError`] for a name that is not known, and for numbers that cannot be used.
pub fn workload(name: &str, url: &str, size: Size) -> Result<String, WorkloadError> {
    let Size { rows, .. } = size;
    size.check()?;
    let kind = DatabaseKind::of(url);
    let (reads, writes) = match name {
        "oltp-point-select" => (false, false),
        "oltp-read-only" => (true, false),
        "oltp-read-write" => (true, true),
        "oltp-write-only" => (false, true),
        "redis-get-set" => {
            return match kind.filter(|kind| *kind != DatabaseKind::Redis) {
                Some(kind) => Err(WorkloadError::Kind { name: name.to_owned(), kind }),
                None => Ok(get_set(url, rows)),
            };
        }
        "tpcb-like" => {
            return match kind {
                Some(DatabaseKind::Redis) => {
                    Err(WorkloadError::Kind { name: name.to_owned(), kind: DatabaseKind::Redis })
                }
                _ => tpcb_like(url, size),
            };
        }
        _ => return Err(WorkloadError::Unknown { name: name.to_owned() }),
    };
    if let Some(kind) = kind.filter(|kind| *kind == DatabaseKind::Redis) {
        return Err(WorkloadError::Kind { name: name.to_owned(), kind });
    }
    Ok(oltp(name, url, size, (reads, writes)))
}

/// A script of sysbench that reads, writes, or both; with neither it only selects by keys.
fn oltp(name: &str, url: &str, Size { tables, rows }: Size, (reads, writes): (bool, bool)) -> String {
    let mut text = format!(
        "description = \"{name}: {tables} tables of {rows} rows, as sysbench's script of this name\"\n\n[targets.db]\nurl = \"{url}\"\n\n"
    );
    text.push_str("[defaults]\nprepared = true\n\n");
    if !reads && !writes {
        let sql = "SELECT c FROM sbtest{{table|name}} WHERE id={{id}}";
        let _ = write!(
            text,
            "[vars]\ntable = \"{{{{random 1 {tables}}}}}\"\nid = \"{{{{special 1 {rows}}}}}\"\n\n[[request]]\nname = \"point select\"\nsql = \"{sql}\"\n"
        );
        return text;
    }
    // Drawn once per transaction; what a repeated statement draws is written in it.
    text.push_str("[vars]\n");
    let mut steps = if reads { ranges() } else { Vec::new() };
    if writes {
        steps.extend(changes());
    }
    if reads {
        let _ = writeln!(text, "point_table = \"{{{{random 1 {tables}}}}}\"");
    }
    for step in &steps {
        if let Some(key) = step.draws {
            let _ = writeln!(text, "{key}_table = \"{{{{random 1 {tables}}}}}\"");
            let _ = writeln!(text, "{key}_id = \"{{{{special 1 {rows}}}}}\"");
        }
    }
    if writes {
        let digits = |groups: usize| vec!["{{random 10000000000 99999999999}}"; groups].join("-");
        let _ = writeln!(text, "new_c = \"{}\"\ninsert_c = \"{}\"", digits(10), digits(10));
        let _ = writeln!(text, "insert_pad = \"{}\"\ninsert_k = \"{{{{special 1 {rows}}}}}\"", digits(5));
    }
    let retries = if writes { "retries = 10\n" } else { "" };
    let _ = write!(text, "\n[[journey]]\nname = \"{name}\"\n{retries}");
    let mut step = |name: &str, sql: &str, more: &str| {
        let _ = write!(text, "\n[[journey.step]]\nname = \"{name}\"\nsql = \"{sql}\"\n{more}");
    };
    step("begin", "BEGIN", "prepared = false\n");
    if reads {
        let point = format!("SELECT c FROM sbtest{{{{point_table|name}}}} WHERE id={{{{special 1 {rows}}}}}");
        step("point select", &point, &format!("repeat = {POINT_SELECTS}\n"));
    }
    for one in &steps {
        step(one.name, &one.sql, "");
    }
    step("commit", "COMMIT", "prepared = false\n");
    text
}

/// A row of a table of the `oltp-*` workloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OltpRow {
    /// As often as the rows that the workloads ask for.
    pub k: u64,
    /// Ten groups of eleven digits.
    pub c: String,
    /// Five groups.
    pub pad: String,
}

/// Row `id` of table number `table` of `rows` rows: always the same.
pub fn oltp_row(table: u64, id: u64, rows: u64) -> OltpRow {
    let k = Distribution { low: 1, high: rows, shape: Shape::Special };
    let digits = |first: u64, groups: u64| {
        let group = |nth| between(draw(table, id, first + nth), 10_000_000_000, 99_999_999_999).to_string();
        (0..groups).map(group).collect::<Vec<_>>().join("-")
    };
    OltpRow { k: k.value(table, id, 0), c: digits(1, 10), pad: digits(11, 5) }
}

/// As many reads as writes of values of 3 bytes, as `redis-benchmark -t get,set -r` sends them.
fn get_set(url: &str, keys: u64) -> String {
    let key = format!("key:{{{{random 1 {keys}}}}}");
    let described = format!("description = \"redis-get-set: {keys} keys, as many reads as writes\"\n");
    let target = format!("\n[targets.db]\nurl = \"{url}\"\n");
    let request = |name: &str, command: &str| {
        format!("\n[[request]]\nname = \"{name}\"\nweight = 1\ncommand = \"{command}\"\n")
    };
    described + &target + &request("get", &format!("GET {key}")) + &request("set", &format!("SET {key} xxx"))
}

/// The text of a scenario of these commands to Redis, which take turns.
pub fn commands(url: &str, commands: &[String]) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let requests = commands.iter().map(|command| format!("\n[[request]]\ncommand = {}\n", quoted(command)));
    format!("[targets.db]\nurl = {}\n", quoted(url)) + &requests.collect::<String>()
}

/// The transaction of pgbench's built-in script `tpcb-like`, on the tables of `pgbench -i`.
fn tpcb_like(url: &str, size: Size) -> Result<String, WorkloadError> {
    if size.tables != 1 {
        return Err(WorkloadError::OneTable);
    }
    if !size.rows.is_multiple_of(ACCOUNTS) {
        return Err(WorkloadError::Accounts(size.rows));
    }
    let scale = size.rows / ACCOUNTS;
    let is_mysql = DatabaseKind::of(url) == Some(DatabaseKind::MySql);
    let mut text = format!(
        "description = \"tpcb-like: as pgbench's script of this name, at scale {scale}\"\n\n[targets.db]\nurl = \"{url}\"\n\n"
    );
    text.push_str("[defaults]\nprepared = true\n\n[vars]\n");
    let drawn = [("aid", size.rows), ("bid", scale), ("tid", 10 * scale), ("delta", 10_001)];
    for (name, high) in drawn {
        let _ = writeln!(text, "{name} = \"{{{{random 1 {high}}}}}\"");
    }
    text.push_str("\n[[journey]]\nname = \"tpcb-like\"\nretries = 10\n");
    // From -5000 to 5000.
    let delta = "{{delta|plus -5001}}";
    for (name, sql, more) in [
        ("begin", "BEGIN", "prepared = false\n"),
        (
            "update account",
            "UPDATE pgbench_accounts SET abalance = abalance + DELTA WHERE aid = {{aid}}",
            "expect.affected = 1\n",
        ),
        ("select balance", "SELECT abalance FROM pgbench_accounts WHERE aid = {{aid}}", ""),
        ("update teller", "UPDATE pgbench_tellers SET tbalance = tbalance + DELTA WHERE tid = {{tid}}", ""),
        ("update branch", "UPDATE pgbench_branches SET bbalance = bbalance + DELTA WHERE bid = {{bid}}", ""),
        (
            "insert history",
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ({{tid}}, {{bid}}, {{aid}}, DELTA, CURRENT_TIMESTAMP)",
            "",
        ),
        ("end", if is_mysql { "COMMIT" } else { "END" }, "prepared = false\n"),
    ] {
        let sql = sql.replace("DELTA", delta);
        let _ = write!(text, "\n[[journey.step]]\nname = \"{name}\"\nsql = \"{sql}\"\n{more}");
    }
    Ok(text)
}

/// A statement of a transaction.
struct WorkloadStep {
    name: &'static str,
    /// The beginning of the names of the variables that are drawn for it.
    draws: Option<&'static str>,
    sql: String,
}

fn ranges() -> Vec<WorkloadStep> {
    let range = |name, key: &'static str, what: &str, order: &str| WorkloadStep {
        name,
        draws: Some(key),
        sql: format!(
            "SELECT {what} FROM sbtest{{{{{key}_table|name}}}} WHERE id BETWEEN {{{{{key}_id}}}} AND {{{{{key}_id|plus {}}}}}{order}",
            RANGE - 1
        ),
    };
    vec![
        range("simple range", "simple", "c", ""),
        range("sum range", "sum", "SUM(k)", ""),
        range("order range", "order", "c", " ORDER BY c"),
        range("distinct range", "distinct", "DISTINCT c", " ORDER BY c"),
    ]
}

fn changes() -> Vec<WorkloadStep> {
    let step = |name, draws, sql: &str| WorkloadStep { name, draws, sql: sql.to_owned() };
    vec![
        step(
            "index update",
            Some("index"),
            "UPDATE sbtest{{index_table|name}} SET k=k+1 WHERE id={{index_id}}",
        ),
        step(
            "non-index update",
            Some("non_index"),
            "UPDATE sbtest{{non_index_table|name}} SET c={{new_c}} WHERE id={{non_index_id}}",
        ),
        step("delete", Some("delete"), "DELETE FROM sbtest{{delete_table|name}} WHERE id={{delete_id}}"),
        step(
            "insert",
            None,
            "INSERT INTO sbtest{{delete_table|name}} (id, k, c, pad) VALUES ({{delete_id}}, {{insert_k}}, {{insert_c}}, {{insert_pad}})",
        ),
    ]
}
