//! The server's greeting, and this client's replies to it: the request for TLS, and the login.

use super::packets::{begin_message, end_message};
use super::reading::{Reader, push_length};
use crate::printable;
use codec::DecodeError;

/// What a server or a client can do, as bits (the names are MySQL's).
pub(super) mod can {
    pub const LONG_PASSWORD: u32 = 1;
    pub const LONG_FLAG: u32 = 1 << 2;
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    pub const PROTOCOL_41: u32 = 1 << 9;
    pub const SSL: u32 = 1 << 11;
    pub const TRANSACTIONS: u32 = 1 << 13;
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    pub const MULTI_STATEMENTS: u32 = 1 << 16;
    pub const MULTI_RESULTS: u32 = 1 << 17;
    pub const PS_MULTI_RESULTS: u32 = 1 << 18;
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    pub const CONNECT_ATTRS: u32 = 1 << 20;
    pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    pub const DEPRECATE_EOF: u32 = 1 << 24;
}

/// What this client uses if the server can. `LOCAL_FILES` is not among them: no server may ask for a file.
const WANTED: u32 = can::LONG_PASSWORD
    | can::LONG_FLAG
    | can::PROTOCOL_41
    | can::TRANSACTIONS
    | can::SECURE_CONNECTION
    | can::MULTI_STATEMENTS
    | can::MULTI_RESULTS
    | can::PS_MULTI_RESULTS
    | can::PLUGIN_AUTH
    | can::CONNECT_ATTRS
    | can::PLUGIN_AUTH_LENENC
    | can::DEPRECATE_EOF;

/// Without these a login is one of MySQL 4.0 or older.
const NEEDED: u32 = can::PROTOCOL_41 | can::SECURE_CONNECTION;

/// What a server says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    /// Its version, printable and short.
    pub version: String,
    pub capabilities: u32,
    /// The random bytes of its login method.
    pub nonce: Vec<u8>,
    /// Its login method; empty if it names none.
    pub method: Vec<u8>,
}

impl Greeting {
    /// Reads a greeting of protocol 10, the only one since 1998.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Malformed`], and [`DecodeError::Login`] for a server that is too old.
    pub(super) fn read(payload: &[u8]) -> Result<Greeting, DecodeError> {
        let mut reader = Reader::new(payload, "greeting");
        if reader.u8()? != 10 {
            return Err(DecodeError::Malformed { what: "greeting" });
        }
        let version = printable(reader.until_zero()?);
        // MariaDB says that it is 5.5.5 first, for replicas of that age.
        let version = version.strip_prefix("5.5.5-").map(str::to_owned).unwrap_or(version);
        reader.u32()?;
        let mut nonce = reader.take(8)?.to_vec();
        reader.u8()?;
        let low = reader.u16()?;
        if reader.rest().is_empty() {
            return Err(TOO_OLD);
        }
        // The default character set, and the status.
        reader.take(3)?;
        let high = reader.u16()?;
        let capabilities = u32::from(low) | u32::from(high) << 16;
        let nonce_bytes = usize::from(reader.u8()?);
        reader.take(10)?;
        if capabilities & NEEDED != NEEDED {
            return Err(TOO_OLD);
        }
        // At least 13 bytes, the last of which is a zero.
        let more = reader.take(nonce_bytes.saturating_sub(8).max(13))?;
        nonce.extend_from_slice(more.strip_suffix(&[0]).unwrap_or(more));
        let method = if capabilities & can::PLUGIN_AUTH == 0 {
            &[]
        } else {
            let rest = reader.rest();
            // Without its zero in some versions (MySQL's bug 59453).
            &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
        };
        Ok(Greeting { version, capabilities, nonce, method: method.to_vec() })
    }

    /// What both sides use, TLS apart, in a login with or without a database.
    pub(super) fn used(&self, has_database: bool) -> u32 {
        let with_database = if has_database { can::CONNECT_WITH_DB } else { 0 };
        self.capabilities & WANTED | with_database
    }

    /// Whether the server offers TLS.
    pub(super) fn offers_tls(&self) -> bool {
        self.capabilities & can::SSL != 0
    }
}

const TOO_OLD: DecodeError =
    DecodeError::Login { what: "the server is too old: it has no login of MySQL 4.1" };

/// What this client replies.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoginRequest<'a> {
    pub capabilities: u32,
    pub user: &'a str,
    pub database: Option<&'a str>,
    pub method: &'a [u8],
    pub proof: &'a [u8],
}

/// The beginning that the request for TLS and the login have in common.
fn push_beginning(capabilities: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&capabilities.to_le_bytes());
    out.extend_from_slice(&LARGEST_MESSAGE.to_le_bytes());
    out.push(UTF8MB4);
    out.extend_from_slice(&[0; 23]);
}

/// Appends the request to begin TLS, which must have the same capabilities as the login that follows.
pub(super) fn push_tls_request(used: u32, sequence: u8, out: &mut Vec<u8>) {
    let at = begin_message(out);
    push_beginning(used | can::SSL, out);
    end_message(at, sequence, out);
}

impl LoginRequest<'_> {
    /// Appends the login.
    pub(super) fn push(&self, sequence: u8, out: &mut Vec<u8>) {
        let at = begin_message(out);
        push_beginning(self.capabilities, out);
        out.extend_from_slice(self.user.as_bytes());
        out.push(0);
        if self.capabilities & can::PLUGIN_AUTH_LENENC != 0 {
            push_length(self.proof.len() as u64, out);
        } else {
            // No proof is longer than 255 bytes: the longest is a password, whose length is limited.
            out.push(self.proof.len() as u8);
        }
        out.extend_from_slice(self.proof);
        if let Some(database) = self.database {
            out.extend_from_slice(database.as_bytes());
            out.push(0);
        }
        if self.capabilities & can::PLUGIN_AUTH != 0 {
            out.extend_from_slice(self.method);
            out.push(0);
        }
        if self.capabilities & can::CONNECT_ATTRS != 0 {
            // What a DBA sees in performance_schema.session_connect_attrs.
            let attributes = ["program_name", "parallax"];
            let length: usize = attributes.iter().map(|text| text.len() + 1).sum();
            push_length(length as u64, out);
            for text in attributes {
                push_length(text.len() as u64, out);
                out.extend_from_slice(text.as_bytes());
            }
        }
        end_message(at, sequence, out);
    }
}

/// The longest message this client announces to take: MySQL's own largest.
const LARGEST_MESSAGE: u32 = 1 << 30;

/// `utf8mb4_general_ci`, which every server since 5.5.3 knows.
const UTF8MB4: u8 = 45;
