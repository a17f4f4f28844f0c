//! A statement of a run, with places for its parameters.

use thiserror::Error;

use super::literal::push_number;
use crate::DatabaseKind;

/// A statement, prepared on the server or sent as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The text between the parameters: one more than there are parameters. The protocol marks their places, with `?`
    /// or `$1`, or with the values themselves if the statement is sent as text.
    pub pieces: Vec<String>,
    /// Whether each connection prepares it once and then executes it by number.
    pub prepared: bool,
}

/// Why a statement cannot be sent. The message states what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatementError {
    #[error("an empty statement cannot be sent; write for example SELECT 1")]
    Empty,
    #[error("a statement contains a zero byte; remove it")]
    ZeroByte,
    #[error("a command begins with its name, such as GET; write it out")]
    NoCommand,
    #[error("the quotes of a command do not match; write for example SET key \"a value\"")]
    Quotes,
    #[error("{command} does not have one reply, or is sent by this program itself; leave it out")]
    NoReply { command: String },
    #[error("a statement of {bytes} bytes is over the limit of {limit}; split it")]
    TooLong { bytes: usize, limit: usize },
    #[error("there are {count} statements, over the limit of {limit}; split the run")]
    TooMany { count: usize, limit: usize },
    #[error("a statement has {count} parameters, over the limit of {limit}; split it")]
    TooManyParameters { count: usize, limit: usize },
    #[error("{what} is over the limit of {limit} bytes; use a shorter one")]
    LongLogin { what: &'static str, limit: usize },
    #[error("{what} contains a NUL byte, which cannot be sent; remove it")]
    NulInLogin { what: &'static str },
}

/// The longest text of a statement: with its values it stays below MySQL's largest packet of 16 MiB.
const LONGEST: usize = 8 << 20;

/// MySQL's and PostgreSQL's limit.
const MOST_PARAMETERS: usize = 65_535;

impl Statement {
    /// A statement without parameters, sent as text.
    pub fn text(text: impl Into<String>) -> Statement {
        Statement { pieces: vec![text.into()], prepared: false }
    }

    /// The number of parameters.
    pub fn parameters(&self) -> usize {
        self.pieces.len() - 1
    }

    /// The text with `?` in the place of each parameter, with `$1` and so on for PostgreSQL, with 0 for Redis.
    pub fn with_marks(&self, kind: DatabaseKind) -> String {
        let mut text = Vec::new();
        match kind {
            DatabaseKind::Postgres => self.push_marked(push_position, &mut text),
            DatabaseKind::MySql => self.push_marked(|_, out| out.push(b'?'), &mut text),
            // A digest shows a number in a key as `{}`.
            DatabaseKind::Redis => self.push_marked(|_, out| out.push(b'0'), &mut text),
        }
        String::from_utf8(text).expect("pieces and marks are text")
    }

    /// Refuses what cannot be sent.
    ///
    /// # Errors
    ///
    /// [`StatementError`] with what to do.
    pub fn check(&self) -> Result<(), StatementError> {
        let bytes = self.pieces.iter().map(String::len).sum();
        if self.pieces.iter().all(|piece| piece.trim().is_empty()) {
            return Err(StatementError::Empty);
        }
        if self.pieces.iter().any(|piece| piece.contains('\0')) {
            return Err(StatementError::ZeroByte);
        }
        if bytes > LONGEST {
            return Err(StatementError::TooLong { bytes, limit: LONGEST });
        }
        if self.parameters() > MOST_PARAMETERS {
            return Err(StatementError::TooManyParameters {
                count: self.parameters(),
                limit: MOST_PARAMETERS,
            });
        }
        Ok(())
    }
}

/// Appends PostgreSQL's mark of a parameter: `$1`.
pub(crate) fn push_position(position: usize, out: &mut Vec<u8>) {
    out.push(b'$');
    // At most 65535.
    push_number(position as i64, out);
}
