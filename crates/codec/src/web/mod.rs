//! HTTP, the client's side, whatever carries it: one protocol type for HTTP/1.1 and HTTP/2, plain and over TLS.
//!
//! A [`Script`] says what is sent; [`Web`] holds it with everything that the connections of a run share;
//! [`WebSession`] is one connection. Requests are prepared, and everything that can be refused is refused, before
//! anything is sent. It does not open connections, resolve names, follow redirects or decompress bodies.

mod answer;
mod checks;
mod cycle;
mod limits;
mod origin;
mod outgoing;
mod protocol;
mod request;
mod script;
mod search;
mod session;
mod spoken;
pub mod targets;
mod url;
mod wire;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Keep};
pub(crate) use answer::{Expect, Facts, Intake, Kept};
pub use checks::{CheckError, Checks, Sha256Digest, StatusSet};
pub use cycle::turns;
pub(crate) use limits::HEADER_LINES;
pub use limits::Limits;
pub use origin::{OriginPlan, origins};
pub(crate) use outgoing::Outgoing;
pub use outgoing::Rendered;
pub use protocol::{Parts, Settings, Web};
pub use request::{Header, Request, RequestError};
pub use script::{Ask, Asked, Script, Turns};
pub use session::WebSession;
pub(crate) use spoken::Tongue;
pub use url::{Scheme, Url, UrlError};
pub(crate) use wire::Plain;
pub use wire::Speaks;
