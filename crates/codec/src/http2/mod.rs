//! HTTP/2, the client's side of one connection.
//!
//! The crate `h2` implements frames, header compression and flow control. It is written for sockets and a runtime; here
//! it is connected to a pipe in memory and polled by hand, so that this codec converts bytes like any other.
//! Implemented here are limits on the work that a peer can cause, how a stream ends, and the user's checks.

mod frames;
mod pipe;
mod session;
mod stream;

#[cfg(test)]
mod tests;

pub(crate) use session::Http2Session;
