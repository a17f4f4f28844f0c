//! HTTP, the client's side, over any transport: one protocol type for HTTP/1.1 and HTTP/2, in plaintext and over TLS.
//!
//! A [`Script`] defines what is sent; [`Web`] holds it together with everything that the connections of a run share;
//! [`WebSession`] is one connection. Requests are prepared, and invalid input is refused, before anything is sent. It
//! does not open connections, resolve names, follow redirects or decompress bodies.

mod checks;
mod cycle;
mod limits;
mod origin;
mod outgoing;
mod protocol;
mod request;
mod response;
mod script;
mod search;
mod session;
pub mod targets;
mod url;
mod wire;

#[cfg(test)]
mod tests;

pub use checks::{CheckError, Checks, Sha256Digest, StatusSet};
pub use cycle::turns;
pub(crate) use limits::HEADER_LINES;
pub use limits::Limits;
pub use origin::{OriginPlan, origins};
pub(crate) use outgoing::Outgoing;
pub use outgoing::Rendered;
pub use protocol::{Parts, Web, WebSettings};
pub use request::{Header, Request, RequestError};
pub(crate) use response::{Expect, Facts, Intake, Kept};
pub use response::{Keep, ReceivedResponse};
pub use script::{Ask, Asked, Script, Turns};
pub use session::WebSession;
pub use url::{Scheme, Url, UrlError};
pub use wire::HttpVersion;
pub(crate) use wire::Plain;
