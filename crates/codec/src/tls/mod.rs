//! TLS, the client's side: the handshake, and HTTP within it; other protocols use the channel alone.
//!
//! `rustls` implements TLS, converting bytes to bytes. Implemented here are the settings of a run, the messages for
//! failures, and the choice of the HTTP version that the handshake agreed on. It reads no file and no clock:
//! certificates and the time of day are passed in.

mod channel;
mod config;
mod messages;
mod session;
mod verify;

#[cfg(test)]
mod tests;

pub use channel::TlsChannel;
pub use config::{Identity, Resumption, TlsConfig, TlsError, TlsOptions, TlsPlan, Trust, Versions};
pub(crate) use session::TlsSession;
