//! HTTP/1.1, the client's side of one connection: answers read in place, in the order of the requests.
//!
//! Heads are parsed by `httparse`; framing, keep-alive and chunks are ours. It does not open connections, follow
//! redirects, decompress bodies or store them: a body is counted, and read only by a check or a capture that asks
//! for it. What is sent, and over what, is decided in [`web`](crate::web), which drives it.

mod chunked;
mod head;
mod session;

#[cfg(test)]
mod tests;

pub(crate) use session::Http1Session;
