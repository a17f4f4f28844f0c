//! MySQL's protocol, the client's side, as MariaDB and MySQL speak it: login, TLS within the protocol, statements as
//! text and prepared, results counted row by row and never stored.
//!
//! `mysql_common` implements the login methods; framing, results and their limits are here, because rows are skipped
//! and not parsed. What a run sends is in [`Database`](crate::Database).

mod commands;
mod connection;
mod greeting;
mod login;
mod packets;
mod public_key;
mod reading;
mod response;
mod row;

#[cfg(test)]
mod tests;

pub(crate) use connection::MySqlWire;
