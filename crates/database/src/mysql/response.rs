//! Reads the response to one statement: its result sets, counted and drained, or its error.

use units::Code;

use super::packets::{END, ERROR, Interest};
use super::reading::Reader;
use super::row;
use crate::sql::{Column, Keep, Rows};
use codec::{DecodeError, Judgement};

/// MySQL's own limit of columns of a result.
const MOST_COLUMNS: u64 = 4_096;

/// How much of a column's name is kept: MySQL's aliases have at most 256 characters.
const LONGEST_COLUMN: usize = 1_024;

/// Bits of the server's status.
mod status {
    pub const IN_TRANSACTION: u16 = 1;
    pub const MORE_RESULTS: u16 = 1 << 3;
    pub const NO_BACKSLASH: u16 = 1 << 9;
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaiting {
    Nothing,
    Prepared,
    /// Definitions of a prepared statement's parameters, then of its columns; with an end each, unless that is left
    /// out.
    PreparedDefinitions {
        parameters: u16,
        columns: u16,
        id: u32,
    },
    /// The beginning of a result.
    Result,
    Columns {
        left: u64,
    },
    ColumnsEnd,
    Rows,
}

/// The response to one statement.
#[derive(Debug)]
pub(super) struct Response {
    awaiting: Awaiting,
    /// Whether the ends of definitions are left out, and rows end with an OK.
    no_ends: bool,
    is_binary: bool,
    keep: Keep,
    /// Whether a packet of the result, and not of the preparation, has come.
    pub has_begun: bool,
    /// Bytes of rows, with their packets' headers.
    pub row_bytes: u64,
    limit: u64,
    /// Types of the columns whose first row is kept.
    types: Vec<row::ColumnType>,
    pub rows: Rows,
    /// The server's status after the last result.
    pub in_transaction: bool,
    pub backslash: bool,
}

/// What a packet led to.
#[derive(Debug)]
pub(super) enum Progress {
    More,
    /// The statement is prepared, and has this many parameters.
    Prepared {
        id: u32,
        parameters: u16,
    },
    Done,
    Refused(Refused),
}

/// The server's error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub number: u16,
    /// SQLSTATE and number: `42000/1064`.
    pub code: Option<Code>,
    pub judgement: Judgement,
    /// `1064 (42000): You have an error …`
    pub words: String,
}

impl Response {
    pub(super) fn new(limit: u64) -> Response {
        Response {
            awaiting: Awaiting::Nothing,
            no_ends: false,
            is_binary: false,
            keep: Keep::Nothing,
            has_begun: false,
            row_bytes: 0,
            limit,
            types: Vec::new(),
            rows: Rows::default(),
            in_transaction: false,
            backslash: true,
        }
    }

    /// The server leaves out the ends of definitions.
    pub(super) fn set_no_ends(&mut self, no_ends: bool) {
        self.no_ends = no_ends;
    }

    /// A statement was sent to be prepared.
    pub(super) fn expect_prepared(&mut self) {
        self.begin(Awaiting::Prepared, true, Keep::Nothing);
    }

    /// A statement was sent to be executed.
    pub(super) fn expect_result(&mut self, is_binary: bool, keep: Keep) {
        self.begin(Awaiting::Result, is_binary, keep);
    }

    fn begin(&mut self, awaiting: Awaiting, is_binary: bool, keep: Keep) {
        self.awaiting = awaiting;
        (self.is_binary, self.keep) = (is_binary, keep);
        (self.has_begun, self.row_bytes) = (false, 0);
        self.rows.clear();
        self.types.clear();
    }

    /// Whether the response to an execution is awaited, not that to a preparation.
    pub(super) fn is_of_result(&self) -> bool {
        matches!(
            self.awaiting,
            Awaiting::Result | Awaiting::Columns { .. } | Awaiting::ColumnsEnd | Awaiting::Rows
        )
    }

    pub(super) fn interest(&self) -> Interest {
        match self.awaiting {
            Awaiting::Rows if self.wants_row() => Interest::Row,
            Awaiting::Rows => Interest::RowLength,
            _ => Interest::Whole,
        }
    }

    /// Whether the next row is the one that is kept.
    fn wants_row(&self) -> bool {
        self.keep == Keep::FirstRow && self.rows.count == 0
    }

    /// A row was skipped: `length` bytes, `continues` if the next packet has more of it.
    pub(super) fn skip_row(&mut self, length: usize, continues: bool) -> Result<(), DecodeError> {
        self.row_bytes += length as u64 + 4;
        self.rows.count += u64::from(!continues);
        if self.row_bytes > self.limit {
            return Err(DecodeError::TooLong { what: "bytes of result", limit: self.limit });
        }
        Ok(())
    }

    /// Takes a packet that was needed whole.
    pub(super) fn handle(&mut self, payload: &[u8]) -> Result<Progress, DecodeError> {
        let first = *payload.first().ok_or(DecodeError::Malformed { what: "empty packet" })?;
        if self.is_of_result() {
            self.has_begun = true;
        }
        if first == ERROR {
            self.awaiting = Awaiting::Nothing;
            return Refused::read(payload).map(Progress::Refused);
        }
        match self.awaiting {
            Awaiting::Nothing => Err(DecodeError::Unsolicited),
            Awaiting::Prepared => self.prepared(payload),
            Awaiting::PreparedDefinitions { parameters, columns, id } => {
                Ok(self.definition(parameters, columns, id))
            }
            Awaiting::Result => self.result(payload),
            Awaiting::Columns { left } => {
                self.column(payload)?;
                self.awaiting = match left - 1 {
                    0 if self.no_ends => Awaiting::Rows,
                    0 => Awaiting::ColumnsEnd,
                    left => Awaiting::Columns { left },
                };
                Ok(Progress::More)
            }
            Awaiting::ColumnsEnd if first == END => {
                self.awaiting = Awaiting::Rows;
                Ok(Progress::More)
            }
            Awaiting::ColumnsEnd => Err(DecodeError::Malformed { what: "end of columns" }),
            Awaiting::Rows if first == END => self.end_of_rows(payload),
            Awaiting::Rows => {
                if self.wants_row() {
                    self.rows.first = row::read(payload, &self.types, self.is_binary)?;
                }
                self.skip_row(payload.len(), false)?;
                Ok(Progress::More)
            }
        }
    }

    fn prepared(&mut self, payload: &[u8]) -> Result<Progress, DecodeError> {
        let mut reader = Reader::new(payload, "prepared statement");
        if reader.u8()? != 0 {
            return Err(reader.malformed());
        }
        let id = reader.u32()?;
        let (columns, parameters) = (reader.u16()?, reader.u16()?);
        // With the end of each list, if that is sent.
        let with_end =
            |count: u16| if count > 0 && !self.no_ends { count.checked_add(1) } else { Some(count) };
        let (Some(list), Some(columns)) = (with_end(parameters), with_end(columns)) else {
            return Err(reader.malformed());
        };
        if list == 0 && columns == 0 {
            self.awaiting = Awaiting::Nothing;
            return Ok(Progress::Prepared { id, parameters });
        }
        self.awaiting = Awaiting::PreparedDefinitions { parameters: list, columns, id };
        self.rows.affected = u64::from(parameters);
        Ok(Progress::More)
    }

    fn definition(&mut self, parameters: u16, columns: u16, id: u32) -> Progress {
        let (parameters, columns) =
            if parameters > 0 { (parameters - 1, columns) } else { (0, columns.saturating_sub(1)) };
        if parameters == 0 && columns == 0 {
            self.awaiting = Awaiting::Nothing;
            // It came from two bytes.
            return Progress::Prepared { id, parameters: self.rows.affected as u16 };
        }
        self.awaiting = Awaiting::PreparedDefinitions { parameters, columns, id };
        Progress::More
    }

    fn result(&mut self, payload: &[u8]) -> Result<Progress, DecodeError> {
        const OK: u8 = 0;
        const LOCAL_FILE: u8 = 0xfb;
        match payload[0] {
            OK => self.ok(payload),
            LOCAL_FILE => {
                Err(DecodeError::Unsupported { what: "request for a file of this host (LOCAL INFILE)" })
            }
            _ => {
                let mut reader = Reader::new(payload, "number of columns");
                let left = reader.length()?;
                if left > MOST_COLUMNS {
                    return Err(DecodeError::TooLong { what: "columns", limit: MOST_COLUMNS });
                }
                if left == 0 || !reader.rest().is_empty() {
                    return Err(reader.malformed());
                }
                self.awaiting = Awaiting::Columns { left };
                Ok(Progress::More)
            }
        }
    }

    fn column(&mut self, payload: &[u8]) -> Result<(), DecodeError> {
        if self.keep != Keep::FirstRow || self.rows.count > 0 {
            return Ok(());
        }
        let mut reader = Reader::new(payload, "column");
        // Catalog, schema, table, table's own name.
        for _ in 0..4 {
            reader.bytes()?;
        }
        let name = reader.bytes()?;
        let name = String::from_utf8_lossy(&name[..name.len().min(LONGEST_COLUMN)]).into_owned();
        // The column's own name, then the length and the character set of what follows.
        reader.bytes()?;
        reader.take(1 + 2 + 4)?;
        let kind = row::ColumnType { kind: reader.u8()?, is_unsigned: reader.u16()? & 0x20 != 0 };
        self.rows.columns.push(Column { name, is_integer: kind.is_integer() });
        self.types.push(kind);
        Ok(())
    }

    fn end_of_rows(&mut self, payload: &[u8]) -> Result<Progress, DecodeError> {
        if self.no_ends {
            return self.ok(payload);
        }
        let mut reader = Reader::new(payload, "end of rows");
        reader.take(1 + 2)?;
        let status = reader.u16()?;
        Ok(self.end(status))
    }

    fn ok(&mut self, payload: &[u8]) -> Result<Progress, DecodeError> {
        let mut reader = Reader::new(payload, "OK");
        reader.u8()?;
        let affected = reader.length()?;
        reader.length()?;
        let status = reader.u16()?;
        self.rows.affected = self.rows.affected.saturating_add(affected);
        Ok(self.end(status))
    }

    /// Takes the server's status, also that after the login.
    pub(super) fn set_status(&mut self, status: u16) {
        self.in_transaction = status & status::IN_TRANSACTION != 0;
        self.backslash = status & status::NO_BACKSLASH == 0;
    }

    fn end(&mut self, status: u16) -> Progress {
        self.set_status(status);
        if status & status::MORE_RESULTS != 0 {
            // The first result's row alone is kept.
            if self.keep == Keep::FirstRow {
                self.keep = Keep::Counts;
            }
            self.awaiting = Awaiting::Result;
            return Progress::More;
        }
        self.awaiting = Awaiting::Nothing;
        Progress::Done
    }
}

impl Refused {
    /// Reads an error.
    pub(super) fn read(payload: &[u8]) -> Result<Refused, DecodeError> {
        let mut reader = Reader::new(payload, "error");
        reader.u8()?;
        let number = reader.u16()?;
        let rest = reader.rest();
        let (state, text) = match rest.strip_prefix(b"#").and_then(|rest| rest.split_at_checked(5)) {
            Some((state, text)) => (state, text),
            // Before the login, errors have no state.
            None => (&b"HY000"[..], rest),
        };
        let code = [state, b"/", number.to_string().as_bytes()].concat();
        let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST_WORDS)]);
        let words = format!("{number} ({}): {}", String::from_utf8_lossy(state), text.trim());
        Ok(Refused { number, code: Code::new(&code), judgement: judge(number, state), words })
    }

    /// Whether the server has rolled back the whole transaction.
    pub(super) fn ends_transaction(&self) -> bool {
        self.number == DEADLOCK
    }

    /// Whether the server ends the connection with this error.
    pub(super) fn ends_connection(&self) -> bool {
        matches!(self.number, SERVER_SHUTDOWN | CONNECTION_KILLED | IDLE_TIMEOUT)
    }
}

/// How much of an error's text is kept.
const LONGEST_WORDS: usize = 300;

const DEADLOCK: u16 = 1_213;
const LOCK_WAIT_TIMEOUT: u16 = 1_205;
/// MariaDB's `ER_CHECKREAD`: the row has changed since the transaction's snapshot.
const SNAPSHOT_CONFLICT: u16 = 1_020;
const SERVER_SHUTDOWN: u16 = 1_053;
/// MariaDB's.
const CONNECTION_KILLED: u16 = 1_927;
/// MySQL's.
const IDLE_TIMEOUT: u16 = 4_031;

/// Whose fault an error is, and whether a retry may help. The classes of SQLSTATE are those of the SQL standard.
fn judge(number: u16, state: &[u8]) -> Judgement {
    match (number, state.first_chunk::<2>()) {
        (DEADLOCK | LOCK_WAIT_TIMEOUT | SNAPSHOT_CONFLICT, _) => Judgement::Retryable,
        // Cardinality, data, constraint, syntax or access rule, unknown database.
        (_, Some(b"21" | b"22" | b"23" | b"42" | b"3D")) => Judgement::RequestError,
        _ => Judgement::ServerError,
    }
}
