//! Reads the response to one statement: its rows, counted and drained, or its error.

use units::Code;

use super::messages::{Reader, Rows as ExpectedRows, kind};
use crate::sql::{Column, Keep, Rows};
use codec::{DecodeError, Judgement};

/// The response to the oldest statement.
#[derive(Debug)]
pub(super) struct Response {
    keep: Keep,
    /// Whether any message of it has come.
    pub has_begun: bool,
    /// Whether what was asked for is done: a command, an empty statement, or an error.
    is_complete: bool,
    /// Bytes of rows, with their headers.
    pub row_bytes: u64,
    limit: u64,
    pub rows: Rows,
    pub refused: Option<Refused>,
}

/// What a message led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    /// The statement is prepared.
    Prepared,
    /// The response is complete; whether a transaction is open.
    Done {
        in_transaction: bool,
    },
    /// The server ends the connection with an error.
    Fatal,
}

/// The server's error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    /// SQLSTATE.
    pub code: Option<Code>,
    pub judgement: Judgement,
    /// `42601: syntax error at or near "SELEC"`
    pub words: String,
    /// The server ends the connection with it.
    pub is_fatal: bool,
    /// The server does not know the prepared statement.
    pub is_unprepared: bool,
}

impl Response {
    pub(super) fn new(limit: u64) -> Response {
        Response {
            keep: Keep::Nothing,
            has_begun: false,
            is_complete: false,
            row_bytes: 0,
            limit,
            rows: Rows::default(),
            refused: None,
        }
    }

    /// A message of a new response has come.
    pub(super) fn begin(&mut self, keep: Keep) {
        self.keep = keep;
        (self.has_begun, self.is_complete, self.refused) = (true, false, None);
        self.rows.clear();
    }

    /// The response has ended; what was kept of it remains until the next one begins.
    pub(super) fn end(&mut self) {
        (self.keep, self.has_begun, self.row_bytes) = (Keep::Nothing, false, 0);
    }

    /// What the reader of messages must know.
    pub(super) fn expected_rows(&self) -> ExpectedRows {
        let keeps_next = self.keep == Keep::FirstRow && self.rows.count == 0;
        ExpectedRows { keeps_next, bytes: self.row_bytes, limit: self.limit }
    }

    /// A row was counted, of this many bytes with its header.
    pub(super) fn count_row(&mut self, bytes: u64) {
        self.row_bytes += bytes;
        self.rows.count += 1;
    }

    /// Takes a message that was needed whole.
    pub(super) fn handle(&mut self, kind: u8, payload: &[u8]) -> Result<Progress, DecodeError> {
        match kind {
            kind::PARSE_COMPLETE => return Ok(Progress::Prepared),
            kind::BIND_COMPLETE | kind::CLOSE_COMPLETE | kind::NO_DATA => {}
            kind::COPY_OUT | kind::COPY_DONE => {}
            kind::ROW_DESCRIPTION => self.columns(payload)?,
            kind::DATA_ROW => self.first_row(payload)?,
            kind::COMMAND_COMPLETE => self.complete(payload)?,
            kind::EMPTY_QUERY => self.is_complete = true,
            kind::COPY_IN | kind::COPY_BOTH => {
                return Err(DecodeError::Unsupported { what: "COPY FROM STDIN" });
            }
            kind::ERROR => {
                let refused = Refused::read(payload);
                self.is_complete = true;
                let is_fatal = refused.is_fatal;
                self.refused = Some(refused);
                return Ok(if is_fatal { Progress::Fatal } else { Progress::More });
            }
            kind::READY => {
                let mut reader = Reader::new(payload, "end of a response");
                let in_transaction = match reader.u8()? {
                    b'I' => false,
                    b'T' | b'E' => true,
                    _ => return Err(reader.malformed()),
                };
                if !self.is_complete {
                    return Err(reader.malformed());
                }
                return Ok(Progress::Done { in_transaction });
            }
            _ => return Err(DecodeError::Malformed { what: "kind of a message" }),
        }
        Ok(Progress::More)
    }

    fn columns(&mut self, payload: &[u8]) -> Result<(), DecodeError> {
        if self.keep != Keep::FirstRow || !self.rows.columns.is_empty() {
            return Ok(());
        }
        let mut reader = Reader::new(payload, "columns");
        for _ in 0..reader.u16_be()? {
            let name = String::from_utf8_lossy(reader.until_zero()?).into_owned();
            // Its table and its place there.
            reader.take(4 + 2)?;
            let is_integer = matches!(reader.u32_be()?, INT2 | INT4 | INT8);
            // Size, modifier, format.
            reader.take(2 + 4 + 2)?;
            self.rows.columns.push(Column { name, is_integer });
        }
        Ok(())
    }

    fn first_row(&mut self, payload: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(payload, "row");
        if usize::from(reader.u16_be()?) != self.rows.columns.len() {
            return Err(reader.malformed());
        }
        for _ in 0..self.rows.columns.len() {
            let value = reader.value()?.map(|value| String::from_utf8_lossy(value).into_owned());
            self.rows.first.push(value);
        }
        Ok(())
    }

    /// A command has ended: `UPDATE 3`, `INSERT 0 1`, `SELECT 5`, `BEGIN`.
    fn complete(&mut self, payload: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(payload, "end of a command");
        let tag = String::from_utf8_lossy(reader.until_zero()?);
        let mut words = tag.split(' ');
        let changes = matches!(words.next(), Some("INSERT" | "UPDATE" | "DELETE" | "MERGE" | "COPY"));
        let count: u64 = words.next_back().and_then(|count| count.parse().ok()).unwrap_or(0);
        self.rows.affected = self.rows.affected.saturating_add(if changes { count } else { 0 });
        self.is_complete = true;
        // The first result's row alone is kept.
        if self.keep == Keep::FirstRow {
            self.keep = Keep::Counts;
        }
        Ok(())
    }
}

/// Types of whole numbers, by PostgreSQL's numbers of types.
const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;

/// How much of an error's text is kept.
const LONGEST_WORDS: usize = 300;

impl Refused {
    /// Reads an error, of which the end may be missing.
    pub(super) fn read(payload: &[u8]) -> Refused {
        let (mut severity, mut state, mut text) = (&b""[..], &b""[..], &b""[..]);
        let mut rest = payload;
        while let Some((&field, after)) = rest.split_first().filter(|(field, _)| **field != 0) {
            let end = memchr::memchr(0, after).unwrap_or(after.len());
            let value = &after[..end];
            match field {
                // Not translated, since 9.6.
                b'V' => severity = value,
                b'S' if severity.is_empty() => severity = value,
                b'C' => state = value,
                b'M' => text = value,
                _ => {}
            }
            rest = after.get(end + 1..).unwrap_or_default();
        }
        let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST_WORDS)]);
        let shown = String::from_utf8_lossy(&state[..state.len().min(STATE_BYTES)]);
        Refused {
            code: Code::new(state),
            judgement: judge(state),
            words: format!("{shown}: {}", text.trim()),
            is_fatal: matches!(severity, b"FATAL" | b"PANIC"),
            is_unprepared: state == UNKNOWN_STATEMENT,
        }
    }
}

/// The length of an SQLSTATE.
const STATE_BYTES: usize = 5;

/// `invalid_sql_statement_name`: there is no such prepared statement.
const UNKNOWN_STATEMENT: &[u8] = b"26000";

/// Whose fault an error is, and whether a retry may help. The classes of SQLSTATE are those of the SQL standard.
fn judge(state: &[u8]) -> Judgement {
    match (state, state.first_chunk::<2>()) {
        // Serialization failure, deadlock: what pgbench's --max-tries tries again.
        (b"40001" | b"40P01", _) => Judgement::Retryable,
        // Cardinality, data, constraint, catalog, schema, syntax or access rule.
        (_, Some(b"21" | b"22" | b"23" | b"3D" | b"3F" | b"42")) => Judgement::RequestError,
        _ => Judgement::ServerError,
    }
}
