//! The statements that make, fill and remove the tables of the `oltp-*` workloads, as sysbench's `oltp_common.lua` has
//! them.

use codec::StatementIndex;
use database::DatabaseKind;
use database::sql::Statement;
use scenario::workloads::Size;

/// Rows of one statement: 200 KB.
pub(crate) const BATCH: u64 = 1_000;

/// Statements of one table.
const PER_TABLE: u16 = 9;

/// A statement of one table, in the order of [`parts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The comment of the table; no row if there is no such table.
    Comment,
    Create,
    /// How many rows of a range there are, and the number of the last one.
    Last,
    Insert,
    /// As `Insert`, with the rows that are left at the end of a table.
    InsertRest,
    /// As `Insert`, with one row.
    InsertOne,
    /// How many indexes there are on `k`.
    Indexed,
    Index,
    Drop,
}

impl Part {
    /// Its place in the list of statements. `table` counts from 1.
    pub(crate) fn of(self, table: u64) -> StatementIndex {
        // A workload has at most 1,000 tables.
        (table as u16 - 1) * PER_TABLE + self as u16
    }
}

/// The statements of all tables. The dialects differ in what tables and their comments are; Redis has none.
pub fn parts(kind: DatabaseKind, size: Size) -> Vec<Statement> {
    let is_postgres = kind == DatabaseKind::Postgres;
    (1..=size.tables).flat_map(|table| of_table(is_postgres, table, size.rows)).collect()
}

/// What the comment of a table with so many rows says. It has the table's name: a copy of the table has its comment.
pub(crate) fn comment(table: u64, rows: u64) -> String {
    format!("{} oltp, {rows} rows", mark(table))
}

/// What the comment of a table begins with.
pub(crate) fn mark(table: u64) -> String {
    format!("made by parallax prepare: sbtest{table},")
}

fn of_table(is_postgres: bool, table: u64, rows: u64) -> [Statement; PER_TABLE as usize] {
    let name = format!("sbtest{table}");
    let [comment, create, indexed] =
        if is_postgres { postgres(table, rows) } else { mysql(table, rows) }.map(Statement::text);
    [
        comment,
        create,
        Statement {
            pieces: vec![
                format!("SELECT COUNT(*), MAX(id) FROM {name} WHERE id BETWEEN "),
                " AND ".to_owned(),
                String::new(),
            ],
            prepared: false,
        },
        // No longer than the table, because `clean` has those of every table that there may be.
        insert(&name, BATCH.min(rows)),
        insert(&name, (rows % BATCH).max(1)),
        insert(&name, 1),
        indexed,
        Statement::text(format!("CREATE INDEX k_{table} ON {name} (k)")),
        Statement::text(format!("DROP TABLE {name}")),
    ]
}

const COLUMNS: &str = "k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
                       pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)";

/// The comment of a table, its creation, and the number of its indexes on `k`.
fn mysql(table: u64, rows: u64) -> [String; 3] {
    let name = format!("sbtest{table}");
    let of = |what: &str, table: &str, column: &str| {
        format!(
            "SELECT {what} FROM information_schema.{table} WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{name}'{column}"
        )
    };
    [
        of("TABLE_COMMENT", "TABLES", ""),
        format!(
            "CREATE TABLE {name} (id INTEGER NOT NULL AUTO_INCREMENT, {COLUMNS}) ENGINE = InnoDB COMMENT = '{}'",
            comment(table, rows)
        ),
        of("COUNT(*)", "STATISTICS", " AND COLUMN_NAME = 'k'"),
    ]
}

fn postgres(table: u64, rows: u64) -> [String; 3] {
    let name = format!("sbtest{table}");
    [
        format!(
            "SELECT COALESCE(obj_description(oid, 'pg_class'), '') FROM pg_class WHERE oid = to_regclass('{name}')"
        ),
        // One message is one transaction: there is never a table without its comment.
        format!(
            "CREATE TABLE {name} (id SERIAL, {COLUMNS}); COMMENT ON TABLE {name} IS '{}'",
            comment(table, rows)
        ),
        format!(
            "SELECT COUNT(*) FROM pg_index WHERE indrelid = to_regclass('{name}') AND pg_get_indexdef(indexrelid) LIKE '%(k)'"
        ),
    ]
}

/// An insert of `rows` rows of four values.
fn insert(name: &str, rows: u64) -> Statement {
    let mut pieces = vec![format!("INSERT INTO {name} (id, k, c, pad) VALUES (")];
    for row in 1..=rows {
        pieces.extend([", ", ", ", ", "].map(str::to_owned));
        pieces.push(if row < rows { "), (" } else { ")" }.to_owned());
    }
    Statement { pieces, prepared: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_statement() {
        let all = parts(DatabaseKind::MySql, Size { tables: 3, rows: 2_001 });
        let text = |part: Part, table| all[usize::from(part.of(table))].with_marks(DatabaseKind::MySql);
        assert_eq!(all.len(), 27);
        assert!(text(Part::Comment, 2).contains("'sbtest2'"));
        assert!(
            text(Part::Create, 1).contains("COMMENT = 'made by parallax prepare: sbtest1, oltp, 2001 rows'")
        );
        assert_eq!(text(Part::Last, 3), "SELECT COUNT(*), MAX(id) FROM sbtest3 WHERE id BETWEEN ? AND ?");
        assert_eq!(text(Part::Insert, 1).matches("(?, ?, ?, ?)").count(), 1_000);
        assert!(text(Part::InsertRest, 2).ends_with("sbtest2 (id, k, c, pad) VALUES (?, ?, ?, ?)"));
        assert!(text(Part::Indexed, 2).ends_with("AND COLUMN_NAME = 'k'"));
        assert_eq!(text(Part::Index, 3), "CREATE INDEX k_3 ON sbtest3 (k)");
        assert_eq!(text(Part::Drop, 2), "DROP TABLE sbtest2");
        let postgres = parts(DatabaseKind::Postgres, Size { tables: 3, rows: 2_001 });
        assert_eq!(postgres[usize::from(Part::Drop.of(3))], all[usize::from(Part::Drop.of(3))]);
        assert!(all.iter().chain(&postgres).all(|statement| statement.check().is_ok()));
    }
}
