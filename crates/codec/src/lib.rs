//! Protocols without I/O: requests are encoded to bytes, bytes are decoded to responses.
//!
//! A codec uses no socket, reads no clock and starts no thread. The engine drives it through two traits and knows no
//! protocol: [`Protocol`] defines what a run sends and is shared by all workers; [`Session`] is the client's side of
//! one connection. A new protocol is one module here, with its golden transcripts and its fuzz target.

mod error;
mod http1;
mod http2;
mod prepared;
mod protocol;
mod session;
pub mod tls;
mod used_protocols;
pub mod web;

pub use error::DecodeError;
pub use prepared::{Preparation, PreparedStatements, StatementIndex};
pub use protocol::{ConnectionUse, Ended, Next, Origin, Protocol, Route};
pub use session::{
    CloseEvent, Encoded, Event, FailedCheck, Judgement, Key, Opening, Reply, SAMPLE_BYTES, Session, Step,
    StreamEnd,
};
pub use used_protocols::{UsedProtocol, UsedProtocols};
