//! How servers are reached and logged in to, and what all connections of a run share. Invalid input is refused before
//! anything is sent.

use std::fmt;
use std::sync::OnceLock;

use super::url::DatabaseKind;
use crate::postgres::ScramCache;
use crate::redis::Command;
use crate::sql::{Statement, StatementError};
use codec::DecodeError;
use codec::tls::TlsPlan;
use codec::{UsedProtocol, UsedProtocols};

/// Who logs in.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
    pub database: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("has_password", &!self.password.is_empty())
            .field("database", &self.database)
            .finish()
    }
}

/// The longest password. MySQL's oldest form of a login has room for a proof of 255 bytes.
const LONGEST_PASSWORD: usize = 240;

/// The longest name of a user or database: PostgreSQL allows 63 bytes, MySQL 64 characters and MariaDB 128.
const LONGEST_NAME: usize = 512;

impl Login {
    /// Refuses what cannot be sent.
    ///
    /// # Errors
    ///
    /// [`StatementError::LongLogin`] and [`StatementError::NulInLogin`], which do not contain the password.
    pub fn check(&self) -> Result<(), StatementError> {
        let database = self.database.as_deref().unwrap_or_default();
        for (what, text, limit) in [
            ("the name of the user", self.user.as_str(), LONGEST_NAME),
            ("the name of the database", database, LONGEST_NAME),
            ("the password", &self.password, LONGEST_PASSWORD),
        ] {
            if text.contains('\0') {
                return Err(StatementError::NulInLogin { what });
            }
            if text.len() > limit {
                return Err(StatementError::LongLogin { what, limit });
            }
        }
        Ok(())
    }
}

/// How one server is logged in to.
#[derive(Debug, Clone)]
pub struct ServerPlan {
    pub login: Login,
    pub tls: TlsUse,
    /// Whether it is reached over a Unix domain socket, where nobody else reads a password.
    pub is_local_socket: bool,
    /// Whether MySQL's whole password is encrypted for whatever public key the server sends, which an attacker between
    /// the two could replace.
    pub trusts_public_key: bool,
}

/// Whether connections use TLS.
#[derive(Debug, Clone)]
pub enum TlsUse {
    Never,
    /// If the server offers it.
    Preferred(TlsPlan),
    /// Always: a server that does not offer it is not logged in to.
    Required(TlsPlan),
}

/// A server of a run, and what the logins to it share.
#[derive(Debug)]
pub(crate) struct Server {
    pub plan: ServerPlan,
    pub scram: ScramCache,
}

/// What all workers and connections of a run share, besides the script.
#[derive(Debug)]
pub(crate) struct Shared {
    pub kind: DatabaseKind,
    pub statements: Vec<Statement>,
    /// The same for Redis; for others empty.
    pub commands: Vec<Command>,
    pub servers: Vec<Server>,
    /// Executed on each connection at the end of its login, in order.
    pub setup: Vec<Statement>,
    pub result_bytes: u64,
    pub depth: usize,
    pub used_protocols: UsedProtocols,
    /// The version that the first server stated.
    pub server_version: OnceLock<String>,
}

impl Shared {
    /// A connection has logged in, over `tls` if that is given.
    pub(super) fn note_used(&self, tls: Option<UsedProtocol>, version: &str) {
        self.used_protocols.note(self.kind.used());
        if let Some(tls) = tls {
            self.used_protocols.note(tls);
        }
        self.server_version.get_or_init(|| version.to_owned());
    }
}

/// What a protocol needs to know of its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub shared: &'a Shared,
    pub server: &'a Server,
}

impl Context<'_> {
    /// The login and the rest of the plan of the connection's server.
    pub(crate) fn plan(&self) -> &ServerPlan {
        &self.server.plan
    }
}

/// The end of a login that the server refused.
pub(crate) fn refused_login() -> DecodeError {
    DecodeError::Login { what: "login refused" }
}

/// The beginning of a server's text, fit for a record.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let shown = |&byte: &u8| if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '?' };
    bytes.iter().take(LONGEST_VERSION).map(shown).collect()
}

/// `10.11.19-MariaDB-0+deb12u1-log` has 30.
const LONGEST_VERSION: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_named() {
        for (password, what) in [("a\0b", "the password contains a NUL"), (&"x".repeat(241), "limit of 240")]
        {
            let login = Login { user: "app".into(), password: password.into(), database: None };
            assert!(login.check().unwrap_err().to_string().contains(what));
        }
    }
}
