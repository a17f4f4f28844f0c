//! The built-in reference server: an HTTP/1.1 server that responds, delays, drips and fails in a known way, and
//! records exactly what it did.
//!
//! `parallax serve` runs it, and the calibration tests measure against it. It does not print, read arguments or exit.
//! It is not a web server: it serves no files and has no TLS.
//!
//! Each thread is one loop with its own listener, connections and tally. Loops share nothing while they serve, except a
//! planted capacity; they hand over their tallies only when somebody requests the [`Truth`].
//!
//! | file | holds |
//! |---|---|
//! | `options.rs`, `freeze.rs` | what to do: addresses, limits, the schedule of freezes |
//! | `capacity.rs` | a planted capacity: which requests it serves, holds or refuses; no socket, no clock |
//! | `request.rs`, `body.rs`, `route.rs`, `query.rs` | bytes → request → what it asks for; no socket, no clock |
//! | `responses.rs`, `responses/compose.rs`, `encode.rs`, `stream.rs`, `fault.rs` | requests → responses as bytes, in order, when due; no socket |
//! | `connection.rs`, `slab.rs` | one socket with the two halves above |
//! | `worker.rs`, `context.rs` | the loop of one thread |
//! | `server.rs`, `listen.rs`, `mailbox.rs` | threads, their start and stop, and asking them for the truth |
//! | `truth.rs`, `tally.rs`, `arrivals.rs`, `distribution.rs`, `document.rs` | what was done, and its JSON |

mod arrivals;
mod body;
mod capacity;
mod connection;
mod context;
mod distribution;
mod document;
mod encode;
mod fault;
mod freeze;
mod listen;
mod mailbox;
mod options;
mod query;
mod request;
mod responses;
mod route;
mod server;
mod slab;
mod stream;
mod tally;
mod truth;
mod worker;

pub use capacity::Admissions;
pub use distribution::Distribution;
pub use fault::Fault;
pub use freeze::{Freeze, FreezeRecord};
pub use options::{Limits, Options, StartError};
pub use route::RouteKind;
pub use server::Server;
pub use truth::{Connections, Truth};
