//! The protocols of databases without I/O, on the traits of `codec`: MySQL, PostgreSQL, Redis.
//!
//! Here is what they share: how a server is named, reached and logged in to, TLS within a protocol, and the session that
//! lets a script choose statements. What is spoken is in the modules `mysql`, `postgres` and `redis`; what is sent is in
//! [`sql`].

mod channel;
mod mysql;
mod pgpass;
mod postgres;
mod protocol;
mod reading;
mod redis;
mod server;
mod session;
pub mod sql;
#[cfg(test)]
pub(crate) mod testing;
mod url;
mod wire;

pub use pgpass::password_in_pgpass;
pub use protocol::{Database, DatabaseParts};
pub(crate) use server::{Context, printable, refused_login};
pub use server::{Login, ServerPlan, TlsUse};
pub use session::DatabaseSession;
pub use url::{
    DatabaseKind, DatabaseUrl, DatabaseUrlError, SslMode, is_database, password_ranges, without_password,
};
pub(crate) use wire::{Answer, Sending, Wire, WireEvent};
