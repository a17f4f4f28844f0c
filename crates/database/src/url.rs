//! URLs of databases: `mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?socket=PATH][&sslmode=MODE]`, and the same with
//! `postgres://`, where `host` may be the directory of the socket.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use codec::UsedProtocol;

/// Which protocol a database speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// MySQL and MariaDB.
    MySql,
    Postgres,
    Redis,
}

impl DatabaseKind {
    /// The kind of the database that a URL names.
    pub fn of(url: &str) -> Option<DatabaseKind> {
        SCHEMES.iter().find(|(scheme, _)| url.starts_with(scheme)).map(|(_, kind)| *kind)
    }

    /// The name of its protocol in records.
    pub fn name(self) -> &'static str {
        match self {
            DatabaseKind::MySql => "mysql",
            DatabaseKind::Postgres => "postgresql",
            DatabaseKind::Redis => "redis",
        }
    }

    /// What its users call it.
    pub fn product(self) -> &'static str {
        match self {
            DatabaseKind::MySql => "MySQL",
            DatabaseKind::Postgres => "PostgreSQL",
            DatabaseKind::Redis => "Redis",
        }
    }

    /// How its URLs begin.
    pub fn scheme(self) -> &'static str {
        match self {
            DatabaseKind::MySql => "mysql://",
            DatabaseKind::Postgres => "postgres://",
            DatabaseKind::Redis => "redis://",
        }
    }

    /// Whether several statements may be in flight on one connection.
    pub fn has_pipelining(self) -> bool {
        self != DatabaseKind::MySql
    }

    pub(super) fn used(self) -> UsedProtocol {
        match self {
            DatabaseKind::MySql => UsedProtocol::MySql,
            DatabaseKind::Postgres => UsedProtocol::Postgres,
            DatabaseKind::Redis => UsedProtocol::Redis,
        }
    }

    fn default_port(self) -> u16 {
        match self {
            DatabaseKind::MySql => 3_306,
            DatabaseKind::Postgres => 5_432,
            DatabaseKind::Redis => 6_379,
        }
    }
}

/// The server of a database, and who logs in.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    pub kind: DatabaseKind,
    pub user: Option<String>,
    pub password: Option<String>,
    pub host: String,
    pub port: u16,
    pub database: Option<String>,
    /// The path of a Unix domain socket.
    pub socket: Option<String>,
    pub ssl: Option<SslMode>,
    /// Whether a password is encrypted for whatever public key the server of MySQL sends.
    pub trusts_public_key: bool,
}

/// Whether connections use TLS, by libpq's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    /// If the server offers it.
    Prefer,
    /// Always; the certificate is verified only with `--cacert`, and then as by [`SslMode::VerifyCa`].
    Require,
    /// Always, with a certificate of a trusted authority, for whatever name.
    VerifyCa,
    /// Always, with a certificate of a trusted authority for the name of the host.
    VerifyFull,
}

/// Why a text is not the URL of a database that can be used. One line that states what to do, without the password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DatabaseUrlError(String);

fn wrong<T>(what: impl Into<String>) -> Result<T, DatabaseUrlError> {
    Err(DatabaseUrlError(what.into()))
}

/// The schemes of databases that can be driven.
const SCHEMES: [(&str, DatabaseKind); 6] = [
    ("mysql://", DatabaseKind::MySql),
    ("mariadb://", DatabaseKind::MySql),
    ("postgres://", DatabaseKind::Postgres),
    ("postgresql://", DatabaseKind::Postgres),
    ("redis://", DatabaseKind::Redis),
    (REDIS_OVER_TLS, DatabaseKind::Redis),
];

/// Redis behind TLS from the first byte.
const REDIS_OVER_TLS: &str = "rediss://";

/// Whether the text is the URL of a database.
pub fn is_database(text: &str) -> bool {
    DatabaseKind::of(text).is_some()
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Without the password.
impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_tls = self.ssl.is_some_and(|mode| mode != SslMode::Disable);
        let is_over_tls = self.kind == DatabaseKind::Redis && has_tls;
        f.write_str(if is_over_tls { REDIS_OVER_TLS } else { self.kind.scheme() })?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match &self.socket {
            Some(_) => {}
            None if self.host.contains(':') => write!(f, "[{}]:{}", self.host, self.port)?,
            None => write!(f, "{}:{}", self.host, self.port)?,
        }
        write!(f, "/{}", self.database.as_deref().unwrap_or_default())?;
        match &self.socket {
            Some(socket) => write!(f, "?socket={socket}"),
            None => Ok(()),
        }
    }
}

impl DatabaseUrl {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// [`DatabaseUrlError`].
    pub fn parse(text: &str) -> Result<DatabaseUrl, DatabaseUrlError> {
        let found = SCHEMES.iter().find_map(|(scheme, kind)| Some((*kind, text.strip_prefix(scheme)?)));
        let Some((kind, rest)) = found else {
            return wrong(
                "a database is written mysql://USER@HOST[:PORT]/DATABASE, postgres://… or redis://HOST[:PORT]",
            );
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may contain a slash that was not escaped; a host and a database contain no at sign.
        let (account, rest) = match rest.rsplit_once('@') {
            Some((account, rest)) => (Some(account), rest),
            None => (None, rest),
        };
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, password) = match account.map(|account| account.split_once(':').unwrap_or((account, ""))) {
            Some((user, password)) => (Some(decoded(user)?), Some(decoded(password)?)),
            None => (None, None),
        };
        let (host, port) = host_and_port(place)?;
        let mut url = DatabaseUrl {
            kind,
            user: user.filter(|user| !user.is_empty()),
            password: password.filter(|password| !password.is_empty()),
            host: Some(decoded(host)?)
                .filter(|host| !host.is_empty())
                .unwrap_or_else(|| "localhost".to_owned()),
            port: port.unwrap_or_else(|| kind.default_port()),
            database: Some(decoded(database)?).filter(|name| !name.is_empty()),
            socket: None,
            ssl: text.starts_with(REDIS_OVER_TLS).then_some(SslMode::VerifyFull),
            trusts_public_key: false,
        };
        let has_path = |pair: &str| pair.starts_with("socket=") || pair.starts_with("host=");
        if query.split('&').any(|pair| pair.contains('@') && !has_path(pair)) {
            return wrong(IN_A_PASSWORD);
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (key, kind) {
                ("socket", _) => url.socket = Some(decoded(value)?).filter(|path| !path.is_empty()),
                ("sslmode" | "ssl-mode", _) => url.ssl = Some(ssl(value)?),
                ("host", DatabaseKind::Postgres) => url.host = decoded(value)?,
                ("port", DatabaseKind::Postgres) => url.port = port_number(value)?,
                (_, DatabaseKind::Postgres) => return wrong(unknown(key, "host, port, socket and sslmode")),
                ("get-server-public-key", DatabaseKind::MySql) => url.trusts_public_key = is_on(value)?,
                (_, DatabaseKind::MySql) => {
                    return wrong(unknown(key, "socket, sslmode and get-server-public-key"));
                }
                (_, DatabaseKind::Redis) => return wrong(unknown(key, "socket and sslmode")),
            }
        }
        if text.starts_with(REDIS_OVER_TLS) && url.ssl == Some(SslMode::Disable) {
            return wrong("rediss:// is Redis over TLS; write redis://, or leave out sslmode=disable");
        }
        // As libpq: the directory of a Unix domain socket, whose name follows from the port.
        if kind == DatabaseKind::Postgres && url.host.starts_with('/') {
            let socket = format!("{}/.s.PGSQL.{}", url.host.trim_end_matches('/'), url.port);
            (url.host, url.socket) = ("localhost".to_owned(), Some(socket));
        }
        Ok(url)
    }
}

const IN_A_PASSWORD: &str = "in a password, write ? as %3F, : as %3A, / as %2F and @ as %40";

fn unknown(key: &str, known: &str) -> String {
    format!("`{key}` is not a parameter of such a database's URL; they are {known}")
}

fn host_and_port(place: &str) -> Result<(&str, Option<u16>), DatabaseUrlError> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = port.filter(|port| !port.is_empty());
    Ok((host, port.map(port_number).transpose()?))
}

fn port_number(text: &str) -> Result<u16, DatabaseUrlError> {
    match text.parse::<u16>() {
        Ok(number) if number > 0 => Ok(number),
        // The text may be a part of the password.
        _ => wrong(format!("the port is not a number; {IN_A_PASSWORD}")),
    }
}

fn is_on(value: &str) -> Result<bool, DatabaseUrlError> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => wrong("get-server-public-key is 0 or 1"),
    }
}

fn ssl(text: &str) -> Result<SslMode, DatabaseUrlError> {
    Ok(match text.to_ascii_lowercase().replace('_', "-").as_str() {
        "disable" | "disabled" => SslMode::Disable,
        "prefer" | "preferred" => SslMode::Prefer,
        "require" | "required" => SslMode::Require,
        "verify-ca" => SslMode::VerifyCa,
        "verify-full" | "verify-identity" => SslMode::VerifyFull,
        _ => {
            return wrong(format!(
                "sslmode `{text}` is not known; use disable, prefer, require, verify-ca or verify-full"
            ));
        }
    })
}

/// The text with `%40` and the like replaced.
fn decoded(text: &str) -> Result<String, DatabaseUrlError> {
    const PERCENT: &str =
        "a percent sign in a URL begins two hexadecimal digits; write the sign itself as %25";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else { return wrong(PERCENT) };
        // Below 256, because each digit is below 16.
        bytes.push((high * 16 + low) as u8);
        rest = &rest[2..];
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => wrong("a database's URL contains bytes that are no text (UTF-8)"),
    }
}

/// Any text, such as a URL, a setting or a command, without the passwords in the URLs of databases in it.
pub fn without_password(text: &str) -> String {
    let mut shown = text.to_owned();
    // From the last one on, each with its colon, so that places stay the same.
    for range in password_ranges(text).into_iter().rev() {
        shown.replace_range(range.start - 1..range.end, "");
    }
    shown
}

/// Where the passwords in the URLs of databases are in any text.
pub fn password_ranges(text: &str) -> Vec<Range<usize>> {
    // However the scheme is written; places stay the same.
    let lower = text.to_ascii_lowercase();
    let (mut found, mut from) = (Vec::new(), 0);
    let first = |from: usize| {
        let begins =
            SCHEMES.iter().filter_map(|(scheme, _)| Some((lower[from..].find(scheme)?, scheme.len())));
        begins.min().map(|(at, length)| (from + at, length))
    };
    while let Some((at, length)) = first(from) {
        let begin = at + length;
        let word = text[begin..].find(char::is_whitespace).map_or(text.len(), |at| begin + at);
        // A text that is a URL is one to its end; within a command, it ends with its word.
        from = if at == 0 { text.len() } else { word };
        found.extend(password_range(text, begin..from));
    }
    found
}

/// The password in the URL of a database whose scheme ends where `url` begins: between the first colon and the last at
/// sign.
fn password_range(text: &str, url: Range<usize>) -> Option<Range<usize>> {
    let rest = &text[url.clone()];
    // The query has no account, but a socket's path may have an at sign.
    let queries = ["?socket=", "?host="].iter().filter_map(|query| rest.find(query));
    let at = rest[..queries.min().unwrap_or(rest.len())].rfind('@')?;
    let colon = rest[..at].find(':')?;
    Some(url.start + colon + 1..url.start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_server_and_the_account() {
        let url = DatabaseUrl::parse("mysql://ann:p%40ss@db:3307/shop?sslmode=require").unwrap();
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("ann"), Some("p@ss")));
        assert_eq!((url.host.as_str(), url.port, url.database.as_deref()), ("db", 3307, Some("shop")));
        assert_eq!((url.ssl, url.trusts_public_key), (Some(SslMode::Require), false));
        assert_eq!(url.to_string(), "mysql://ann@db:3307/shop");
        assert!(DatabaseUrl::parse("mysql://db/?get-server-public-key=1").unwrap().trusts_public_key);
        let url = DatabaseUrl::parse("mariadb://ann@/shop?socket=/tmp/a.sock").unwrap();
        assert_eq!((url.socket.as_deref(), url.password), (Some("/tmp/a.sock"), None));
        for text in ["postgres:///shop?host=/run/pg&port=5433", "postgresql://%2Frun%2Fpg:5433/shop"] {
            let url = DatabaseUrl::parse(text).unwrap();
            assert_eq!((url.socket.as_deref(), url.port), (Some("/run/pg/.s.PGSQL.5433"), 5433));
            assert_eq!(url.to_string(), "postgres:///shop?socket=/run/pg/.s.PGSQL.5433");
        }
        assert_eq!(DatabaseUrl::parse("postgres://h/?sslmode=verify-ca").unwrap().port, 5432);
        let url = DatabaseUrl::parse("rediss://:secret@h/3").unwrap();
        assert_eq!((url.user.as_deref(), url.password.as_deref(), url.port), (None, Some("secret"), 6379));
        assert_eq!((url.ssl, url.to_string().as_str()), (Some(SslMode::VerifyFull), "rediss://h:6379/3"));
        for (mode, shown) in [("disable", "redis://h:6379/3"), ("require", "rediss://h:6379/3")] {
            let url = DatabaseUrl::parse(&format!("redis://h/3?sslmode={mode}")).unwrap();
            assert_eq!(url.to_string(), shown);
        }
        let url = DatabaseUrl::parse("mysql://[::1]").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.database), ("::1", 3306, None));
        for (text, what) in [
            ("mysql://a:b:c@h:x/", "%3A"),
            ("mysql://h/?ssl=1", "sslmode"),
            ("mysql://h/?sslmode=yes", "verify-full"),
            ("mysql://h/%zz", "%25"),
            ("postgres://h/?user=x", "sslmode"),
            ("redis://h/?db=1", "sslmode"),
            ("rediss://h/?sslmode=disable", "leave out"),
            ("redis://h/?get-server-public-key=1", "sslmode"),
            ("mysql://h/?get-server-public-key=yes", "0 or 1"),
        ] {
            let error = DatabaseUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    /// If this fails, a password is in a record, an error or the title of a process.
    #[test]
    fn a_password_is_nowhere_shown() {
        for (text, kept) in [
            ("mysql://ann:hunter2@db/shop", "mysql://ann@db/shop"),
            ("mysql://ann:hunter2/x@y@db/shop", "mysql://ann@db/shop"),
            ("mysql://ann:hunter2@/shop?socket=/tmp/a@b", "mysql://ann@/shop?socket=/tmp/a@b"),
            ("mysql://ann@db/shop", "mysql://ann@db/shop"),
            ("mysql://db:3306/shop", "mysql://db:3306/shop"),
            ("http://ann:hunter2@db/", "http://ann:hunter2@db/"),
            ("postgres://ann:hunter2@db/", "postgres://ann@db/"),
            ("postgresql://ann:hunter2@/db?host=/tmp/a@b", "postgresql://ann@/db?host=/tmp/a@b"),
            ("redis://:hunter2@db/0", "redis://@db/0"),
            ("mysql://ann:hunter 2@db/shop", "mysql://ann@db/shop"),
            ("MySQL://ann:hunter2@db/shop", "MySQL://ann@db/shop"),
            ("targets.db.url=mysql://ann:hunter2@db", "targets.db.url=mysql://ann@db"),
            (
                "parallax drive mysql://ann:hunter2@db/ -H a@b; psql 'postgres://bob:hunter2@db'",
                "parallax drive mysql://ann@db/ -H a@b; psql 'postgres://bob@db'",
            ),
            ("curl -u ann:hunter http://db", "curl -u ann:hunter http://db"),
        ] {
            assert_eq!(without_password(text), kept);
        }
        for password in ["?hunter2", "?a=hunter2", "?sslmode=hunter2", "a?b&hunter2"] {
            let error = DatabaseUrl::parse(&format!("mysql://ann:{password}@db/shop")).unwrap_err();
            assert!(error.to_string().contains(IN_A_PASSWORD) && !error.to_string().contains("hunter2"));
        }
        let url = DatabaseUrl::parse("mysql://ann:hunter2@db/shop").unwrap();
        assert!(!format!("{url} {url:?}").contains("hunter2"));
    }
}
