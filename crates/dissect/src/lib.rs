//! Both directions of a server's connection, overheard: which bytes are which request, and which its answer.
//!
//! A [`Dissector`] is given, in time order, what the server read from and wrote to one socket: the true length of
//! each piece and as many of its first bytes as were captured. It tells events with byte positions, to which the
//! caller attaches its own stamps ([`Marks`] helps). It has no clock, no socket and no error: what it cannot read it
//! counts, and it goes on where it can.
//!
//! # Memory
//!
//! A connection holds at most 4,096 requests under way (96 bytes each), 4,096 names of prepared statements and as
//! many of portals (24 bytes each), and 16 KiB of a header for each direction: below 1 MiB, whatever a peer sends. An
//! idle one without prepared statements holds under 3 KiB.

mod connection;
mod digest;
mod event;
mod exchanges;
mod http1;
mod marks;
mod mysql;
mod names;
mod piece;
mod postgres;
mod redis;
mod sniff;
mod speaker;
mod tap;
mod turns;

pub use connection::{Dissector, Settings, Start};
pub use digest::{Dialect, DigestId, DigestLimits, Digests};
pub use event::{Answered, Asked, Counts, EndBy, Event, Kind, Protocol, Sight, Status};
pub use marks::Marks;
pub use mysql::MySqlCommand;
pub use piece::{Direction, Piece};
