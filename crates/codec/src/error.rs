//! Why bytes could not be read as a response.

use thiserror::Error;

/// Why bytes could not be read as a response. Each ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not in the protocol's form.
    #[error("malformed {what}")]
    Malformed { what: &'static str },
    /// Exceeds one of our limits; checked before memory is allocated. `what` names the unit that `limit` counts.
    #[error("{what} over the limit of {limit}")]
    TooLong { what: &'static str, limit: u64 },
    /// Well-formed, but something that was not requested and is not supported.
    #[error("unsupported {what}")]
    Unsupported { what: &'static str },
    /// Bytes arrived while no request was outstanding.
    #[error("bytes that belong to no request")]
    Unsolicited,
    /// Bytes followed a complete response and begin no other one, whether or not a request was outstanding by then.
    #[error("bytes after the response")]
    AfterResponse,
    /// The TLS handshake failed: the requests of the connection end as `tls_failed`.
    #[error("handshake: {what}")]
    Handshake { what: &'static str },
    /// The server refused the connection or the login: the requests of the connection end as `auth_failed`. The
    /// server's message is in [`Session::server_message`](crate::Session::server_message).
    #[error("login: {what}")]
    Login { what: &'static str },
}

impl DecodeError {
    /// What was malformed, or which rule was violated. The text is the same for every connection that fails in the same
    /// way, so that failures can be counted.
    pub fn what(self) -> &'static str {
        match self {
            DecodeError::Malformed { what }
            | DecodeError::TooLong { what, .. }
            | DecodeError::Unsupported { what }
            | DecodeError::Handshake { what }
            | DecodeError::Login { what } => what,
            DecodeError::Unsolicited => "bytes that belong to no request",
            DecodeError::AfterResponse => "bytes after the response",
        }
    }
}
