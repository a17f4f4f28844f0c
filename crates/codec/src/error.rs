//! Why bytes could not be read as a response.

use thiserror::Error;

/// Why bytes could not be read as a response. Each ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not in the protocol's form.
    #[error("malformed {what}")]
    Malformed { what: &'static str },
    /// Over one of our limits, checked before memory is taken. `what` names the unit that `limit` counts.
    #[error("{what} over the limit of {limit}")]
    TooLong { what: &'static str, limit: u64 },
    /// In the protocol's form, but something we did not ask for and do not speak.
    #[error("unsupported {what}")]
    Unsupported { what: &'static str },
    /// Bytes came while no request was outstanding.
    #[error("bytes that belong to no request")]
    Unsolicited,
    /// The TLS handshake failed: the connection's requests end as `tls_failed`.
    #[error("handshake: {what}")]
    Handshake { what: &'static str },
    /// The server refused the connection or the login: its requests end as `auth_failed`. The server's own words are
    /// in [`Session::server_message`](crate::Session::server_message).
    #[error("login: {what}")]
    Login { what: &'static str },
}

impl DecodeError {
    /// The part of it, or the rule, that it is about: the same for every connection that fails alike, so that
    /// they can be counted.
    pub fn what(self) -> &'static str {
        match self {
            DecodeError::Malformed { what }
            | DecodeError::TooLong { what, .. }
            | DecodeError::Unsupported { what }
            | DecodeError::Handshake { what }
            | DecodeError::Login { what } => what,
            DecodeError::Unsolicited => "bytes that belong to no request",
        }
    }
}
