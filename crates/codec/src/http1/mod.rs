//! HTTP/1.1, the client's side of one connection: responses are read in place, in the order of the requests.
//!
//! `httparse` parses the heads; framing, keep-alive and chunks are implemented here. It does not open connections,
//! follow redirects, decompress bodies or store them: a body is counted, and read only if a check or a capture needs
//! it. [`web`](crate::web) decides what is sent and over which transport, and drives this.

mod chunked;
mod head;
mod session;

#[cfg(test)]
mod tests;

pub(crate) use session::Http1Session;
