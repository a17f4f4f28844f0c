//! Protocols without I/O: requests to bytes, bytes to responses.
//!
//! A codec sees no socket, reads no clock and starts no thread. The engine drives it through two traits and
//! never names a protocol: [`Protocol`] is what a run sends, shared by all workers; [`Session`] is the client
//! side of one connection. A new protocol is one module here, its golden transcripts and its fuzz target.

mod error;
mod http1;
mod http2;
mod prepared;
mod protocol;
mod session;
pub mod tls;
pub mod web;

pub use error::DecodeError;
pub use prepared::{Preparation, PreparedStatements, StatementIndex};
pub use protocol::{ConnectionUse, Ended, Next, Origin, Protocol, Route};
pub use session::{
    CloseEvent, Encoded, Event, FailedCheck, Judgement, Key, Opening, Reply, SAMPLE_BYTES, Session, Step,
    StreamEnd,
};
