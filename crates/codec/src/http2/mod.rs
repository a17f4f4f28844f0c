//! HTTP/2, the client's side of one connection.
//!
//! Frames, header compression and flow control are the crate `h2`'s. It is written for sockets and a runtime; here
//! it speaks into a pipe in memory and is polled by hand, so that this codec sees bytes in and bytes out like any
//! other. Ours are what the peer may make us do for nothing, how a stream ends, and the user's checks.

mod frames;
mod pipe;
mod session;
mod stream;

#[cfg(test)]
mod tests;

pub(crate) use session::Http2Session;
