//! HTTP/1.1, the client's side: requests prepared once, answers read in place.
//!
//! [`Http1`] holds what a run says, [`Http1Session`] reads one connection. Heads are parsed by `httparse`; framing,
//! keep-alive, chunks and the user's checks are ours. It does not open connections, resolve names, follow
//! redirects, decompress bodies or store them: a body is counted, and read only by a check that asks for it.

mod checks;
mod chunked;
mod cycle;
mod head;
mod limits;
mod protocol;
mod request;
mod search;
mod session;
pub mod targets;
mod url;

#[cfg(test)]
mod tests;

pub use checks::{CheckError, Checks, Sha256Digest, StatusSet};
pub use limits::Limits;
pub use protocol::Http1;
pub use request::{Header, Request, RequestError};
pub use session::Http1Session;
pub use url::{Url, UrlError};
