//! PostgreSQL's protocol (version 3.0), the client's side: TLS within the protocol, login, statements as text and
//! prepared, several in flight, results counted row by row and never stored.
//!
//! `postgres-protocol` is not used: its SCRAM derives the key of the password for every connection, and its messages
//! are read whole, while rows are skipped here. What a run sends is in [`Database`](crate::Database).

mod commands;
mod connection;
mod login;
mod messages;
mod response;
mod scram;

#[cfg(test)]
mod tests;

pub(crate) use connection::PostgresWire;
pub(crate) use scram::ScramCache;
