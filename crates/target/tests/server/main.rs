//! The server as its clients see it, over real sockets on the loopback.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the test failing, in its helpers too")]

mod capacity;
mod client;
mod faults;
mod freezes;
mod hostile;
mod limits;
mod routes;
mod truth;
