//! Passively reads both directions of a server's connections: which bytes are which request, and which its response.
//!
//! A [`Dissector`] is given, in time order, what the server read from and wrote to one socket: the true length of
//! each piece and as many of its first bytes as were captured. It produces events with byte positions, to which the
//! user of this crate attaches its own timestamps ([`Marks`] helps). It has no clock, no socket and no errors: it
//! counts what it cannot parse, and continues if it can.
//!
//! # Memory
//!
//! A connection holds at most 4,096 requests in flight (112 bytes each), 4,096 names of prepared statements and as
//! many of portals (24 bytes each), and 16 KiB of a header for each direction; one of HTTP/2, 1,024 streams, and 112 KiB
//! of compressed headers for each direction: below 1 MiB, whatever a peer sends. While the first turn of a resumed
//! connection is followed, at most 8,192 events more are held. An
//! idle one without prepared statements takes less than 3 KiB.

mod connection;
mod digest;
mod event;
mod exchanges;
mod http1;
mod http2;
mod marks;
mod mysql;
mod names;
mod piece;
mod postgres;
mod protocols;
mod redis;
mod sessions;
mod sniff;
mod tap;
mod turns;

pub use connection::{Dissector, DissectorSettings, Start};
pub use digest::{Dialect, DigestId, DigestLimits, Digests, RouteTemplate};
pub use event::{
    Counts, EndBy, Event, Protocol, RequestComplete, RequestKind, ResponseComplete, Rows, Sight, Status,
};
pub use marks::Marks;
pub use mysql::MySqlCommand;
pub use piece::{Direction, Piece};
pub use sessions::{Session, SessionId};
