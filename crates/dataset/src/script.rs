//! What is sent: one statement after another, and the first row of each response.

use codec::{FailedCheck, Next, Route, StatementIndex};
use database::sql::{After, Ask, Keep, Parameters, Rows, Script};
use scenario::workloads::oltp_row;
use units::Nanos;

/// The first row of a response.
pub(crate) type Row = Vec<Option<String>>;

/// One statement, or its answer.
#[derive(Debug, Clone)]
pub enum Task {
    Plain(StatementIndex),
    /// Which of the rows from `first` to `last` is the last one there.
    Last {
        statement: StatementIndex,
        first: u64,
        last: u64,
    },
    /// Rows of a table from number `first` on, as many as the statement has room for.
    Insert {
        statement: StatementIndex,
        table: u64,
        first: u64,
        count: u64,
    },
    /// As many numbers in order as the command has room for.
    Numbers {
        statement: StatementIndex,
        first: u64,
        count: u64,
    },
    Answer(Row),
}

/// Takes tasks as they are given.
#[derive(Debug)]
pub struct Tasks {
    /// Rows of each table.
    pub rows: u64,
}

impl Script for Tasks {
    type Journey = Task;
    type Taken = Row;

    fn begin(&self, _: u64) -> Task {
        Task::Plain(0)
    }

    fn route(&self, _: &Task) -> Route {
        Route::default()
    }

    fn kinds(&self) -> usize {
        1
    }

    fn ask(&self, task: &Task, parameters: &mut Parameters) -> Ask {
        match *task {
            Task::Plain(statement) => Ask { statement, step: 0, keep: Keep::FirstRow },
            Task::Last { statement, first, last } => {
                parameters.integer(first as i64);
                parameters.integer(last as i64);
                Ask { statement, step: 0, keep: Keep::FirstRow }
            }
            Task::Insert { statement, table, first, count } => {
                for id in first..first + count {
                    let row = oltp_row(table, id, self.rows);
                    // At most the largest INTEGER.
                    parameters.integer(id as i64);
                    parameters.integer(row.k as i64);
                    parameters.text(|text| text.push_str(&row.c));
                    parameters.text(|text| text.push_str(&row.pad));
                }
                Ask { statement, step: 0, keep: Keep::Nothing }
            }
            Task::Numbers { statement, first, count } => {
                (first..first + count).for_each(|number| parameters.integer(number as i64));
                Ask { statement, step: 0, keep: Keep::FirstRow }
            }
            Task::Answer(_) => unreachable!("an answer is not sent"),
        }
    }

    fn take(&self, _: u16, rows: &Rows) -> Result<Row, FailedCheck> {
        Ok(rows.first.clone())
    }

    fn advance(&self, _: Task, after: After<Row>) -> Next<Task> {
        match after {
            After::Good(Some(row)) => Next::Then { journey: Task::Answer(row), think: Nanos(0) },
            _ => Next::End,
        }
    }
}
