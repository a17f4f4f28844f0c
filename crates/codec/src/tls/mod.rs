//! TLS, the client's side: the handshake, and what is spoken within it.
//!
//! `rustls` does the work, with bytes in and bytes out. Ours are the settings of a run, the words for what went
//! wrong, and the choice of the version of HTTP by what the handshake agreed on. It reads no file and no clock:
//! certificates and the time of day are given to it.

mod config;
mod messages;
mod session;
mod verify;

#[cfg(test)]
mod tests;

pub use config::{Identity, Resumption, TlsConfig, TlsError, TlsOptions, TlsPlan, Trust, Versions};
pub(crate) use session::TlsSession;
