//! What a database's protocol does on one connection, without TLS and without a script.

use units::Code;

use super::server::{Context, ServerPlan};
use super::url::DatabaseKind;
use crate::mysql::MySqlWire;
use crate::postgres::PostgresWire;
use crate::redis::{Command, RedisWire};
use crate::sql::{Ask, Parameters, Rows, Statement};
use codec::{DecodeError, Judgement};

/// Progress of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireEvent {
    /// Both sides have agreed on TLS: the next bytes are its handshake.
    BeginTls,
    /// Both sides go on without the TLS that was possible.
    Plaintext,
    /// The login has ended well.
    Opened,
    /// The response to the oldest statement is complete.
    Answered(Answer),
}

/// How the server answered a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The server's code, if it refused the statement.
    pub code: Option<Code>,
    pub judgement: Judgement,
    /// Bytes of rows, with their headers.
    pub row_bytes: u64,
}

/// A statement to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending<'a> {
    pub ask: Ask,
    pub statement: &'a Statement,
    /// The same for Redis.
    pub command: Option<&'a Command>,
    pub values: &'a Parameters,
    /// No other statement is outstanding.
    pub is_first: bool,
}

/// One connection's protocol: plaintext in, plaintext out.
pub(crate) trait Wire {
    /// The connection is established: appends what this client says first.
    fn open(&mut self, server: &ServerPlan, out: &mut Vec<u8>) -> Option<WireEvent>;

    /// Begins the login after TLS was established.
    fn begin_secured(&mut self, context: Context<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError>;

    /// Takes bytes up to an event, or all of them. `oldest` is the oldest statement that was sent and not answered.
    fn handle(
        &mut self,
        context: Context<'_>,
        oldest: Option<Ask>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<WireEvent>), DecodeError>;

    /// Appends a statement.
    fn send(&mut self, statement: Sending<'_>, out: &mut Vec<u8>);

    /// Whether anything of the response to the oldest statement has come.
    fn has_begun(&self) -> bool;

    /// Whether the connection takes no more statements.
    fn has_ended(&self) -> bool;

    /// What was kept of the last response, as its [`Ask`] wanted.
    fn rows(&self) -> &Rows;

    /// Whether a transaction is open, as far as the server has said.
    fn is_in_transaction(&self) -> bool;

    /// The server's last error.
    fn message(&self) -> Option<&str>;

    /// The server's version, once it is known.
    fn version(&self) -> &str;
}

/// The protocol of a kind of database.
#[derive(Debug)]
pub(super) enum AnyWire {
    MySql(Box<MySqlWire>),
    Postgres(Box<PostgresWire>),
    Redis(Box<RedisWire>),
}

/// Calls a method of the protocol.
macro_rules! of {
    ($wire:expr, $name:ident($($argument:expr),*)) => {
        match $wire {
            AnyWire::MySql(wire) => wire.$name($($argument),*),
            AnyWire::Postgres(wire) => wire.$name($($argument),*),
            AnyWire::Redis(wire) => wire.$name($($argument),*),
        }
    };
}

impl AnyWire {
    /// A connection that is not yet established, in a run of `statements` statements whose results have a limit of
    /// `result_bytes`.
    pub(super) fn new(kind: DatabaseKind, statements: usize, result_bytes: u64) -> AnyWire {
        match kind {
            DatabaseKind::MySql => AnyWire::MySql(Box::new(MySqlWire::new(statements, result_bytes))),
            DatabaseKind::Postgres => {
                AnyWire::Postgres(Box::new(PostgresWire::new(statements, result_bytes)))
            }
            DatabaseKind::Redis => AnyWire::Redis(Box::new(RedisWire::new(result_bytes))),
        }
    }
}

impl Wire for AnyWire {
    fn open(&mut self, server: &ServerPlan, out: &mut Vec<u8>) -> Option<WireEvent> {
        of!(self, open(server, out))
    }

    fn begin_secured(&mut self, context: Context<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        of!(self, begin_secured(context, out))
    }

    #[inline]
    fn handle(
        &mut self,
        context: Context<'_>,
        oldest: Option<Ask>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<WireEvent>), DecodeError> {
        of!(self, handle(context, oldest, input, out))
    }

    #[inline]
    fn send(&mut self, statement: Sending<'_>, out: &mut Vec<u8>) {
        of!(self, send(statement, out));
    }

    #[inline]
    fn has_begun(&self) -> bool {
        of!(self, has_begun())
    }

    #[inline]
    fn has_ended(&self) -> bool {
        of!(self, has_ended())
    }

    fn rows(&self) -> &Rows {
        of!(self, rows())
    }

    #[inline]
    fn is_in_transaction(&self) -> bool {
        of!(self, is_in_transaction())
    }

    fn message(&self) -> Option<&str> {
        of!(self, message())
    }

    fn version(&self) -> &str {
        of!(self, version())
    }
}
