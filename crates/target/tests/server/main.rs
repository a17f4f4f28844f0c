//! The server as its clients see it, over real sockets on the loopback.

mod client;
mod faults;
mod freezes;
mod limits;
mod routes;
mod truth;
