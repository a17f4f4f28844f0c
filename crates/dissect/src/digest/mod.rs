//! Digests: requests that differ only in their values share one text, which has a number.
//!
//! The table is shared by all connections of a thread. It is bounded: once it is full, new texts count as
//! [`DigestId::OTHER`], so the sum over all digests remains the number of all requests.

mod path;
mod sql;
mod template;

use std::collections::HashMap;

use crate::event::Protocol;
use crate::redis::{Digested, digested};
use crate::sessions::{Session, SessionId, Sessions};
pub use sql::Dialect;
pub use template::RouteTemplate;

/// The number of a digest in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DigestId(pub u32);

impl DigestId {
    /// All requests whose digest had no room in the table.
    pub const OTHER: DigestId = DigestId(0);
}

/// The capacity of a table of digests.
#[derive(Debug, Clone, Copy)]
pub struct DigestLimits {
    /// Digests, not counting [`DigestId::OTHER`].
    pub count: usize,
    /// Bytes of one text; a longer one ends in `…` and represents all that begin alike.
    pub text_bytes: usize,
}

impl Default for DigestLimits {
    /// At most 4 MiB of texts, stored twice; `pg_stat_statements` keeps 5,000 statements.
    fn default() -> DigestLimits {
        DigestLimits { count: 4_096, text_bytes: 1_024 }
    }
}

#[derive(Debug)]
struct Row {
    protocol: Protocol,
    text: Box<str>,
    statements: u32,
}

/// The table of digests.
///
/// Memory: at most `count` × (2 × `text_bytes` + 100) bytes.
#[derive(Debug)]
pub struct Digests {
    limits: DigestLimits,
    /// HTTP routes that have precedence over the rules.
    routes: Vec<RouteTemplate>,
    /// By protocol (one byte) and text.
    ids: HashMap<Box<[u8]>, DigestId>,
    rows: Vec<Row>,
    folded: u64,
    scratch: Vec<u8>,
    sessions: Sessions,
}

impl Digests {
    /// A table that holds [`DigestId::OTHER`] only.
    pub fn new(limits: DigestLimits) -> Digests {
        Digests {
            limits,
            routes: Vec::new(),
            ids: HashMap::new(),
            rows: vec![Row { protocol: Protocol::Unknown, text: "other".into(), statements: u32::MAX }],
            folded: 0,
            scratch: Vec::with_capacity(limits.text_bytes + 64),
            sessions: Sessions::default(),
        }
    }

    /// Uses the texts of these routes for the requests that match them; the first match counts.
    pub fn with_routes(mut self, routes: Vec<RouteTemplate>) -> Digests {
        self.routes = routes;
        self
    }

    /// The number of digests, [`DigestId::OTHER`] included.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Always false: [`DigestId::OTHER`] is always there.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many lookups found no room for their text. A prepared statement is looked up once, when it is prepared.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// The text of a digest; that of [`DigestId::OTHER`] for a number that is not in the table.
    pub fn text(&self, id: DigestId) -> &str {
        &self.row(id).text
    }

    /// The protocol of a digest; [`Protocol::Unknown`] for [`DigestId::OTHER`].
    pub fn protocol(&self, id: DigestId) -> Protocol {
        self.row(id).protocol
    }

    /// The number of SQL statements in the text of a digest; `u32::MAX` if the text ends before the statements do.
    pub(crate) fn statements(&self, id: DigestId) -> u32 {
        self.row(id).statements
    }

    /// The user and schema of this number; those of [`SessionId::UNKNOWN`] for one that is not in the table.
    pub fn session(&self, id: SessionId) -> &Session {
        self.sessions.row(id)
    }

    /// The number of sessions, [`SessionId::UNKNOWN`] and [`SessionId::OTHER`] included.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn session_id(&mut self, session: Session) -> SessionId {
        self.sessions.id(session)
    }

    fn row(&self, id: DigestId) -> &Row {
        self.rows.get(id.0 as usize).unwrap_or(&self.rows[0])
    }

    /// The digest of an SQL statement; `cut` if more of it was not captured.
    ///
    /// # Cost
    ///
    /// One pass over the text and one lookup; allocates for a new digest only.
    pub fn statement(&mut self, dialect: Dialect, text: &[u8], cut: bool) -> DigestId {
        let protocol = match dialect {
            Dialect::Postgres => Protocol::Postgres,
            Dialect::MySql => Protocol::MySql,
        };
        self.start(protocol);
        sql::normalise(dialect, text, cut, self.limits.text_bytes, &mut self.scratch);
        self.find(protocol)
    }

    /// The digest of an HTTP request: method and route. `target` may be cut.
    pub fn route(&mut self, method: &[u8], target: &[u8]) -> DigestId {
        self.route_of(Protocol::Http1, method, target)
    }

    /// As [`Digests::route`], for a version of HTTP.
    pub(crate) fn route_of(&mut self, protocol: Protocol, method: &[u8], target: &[u8]) -> DigestId {
        self.start(protocol);
        let path = path::path_of(target);
        if let Some(named) = self.routes.iter().find(|route| route.matches(method, path)) {
            self.scratch.extend_from_slice(named.text().as_bytes());
        } else {
            self.scratch.extend_from_slice(method);
            self.scratch.push(b' ');
            path::route(path, self.limits.text_bytes, &mut self.scratch);
        }
        self.find(protocol)
    }

    /// The digest of a Redis command of these words; [`DigestId::OTHER`] if there are none.
    pub fn redis_command(&mut self, words: &[&[u8]]) -> DigestId {
        let Some((name, rest)) = words.split_first() else { return DigestId::OTHER };
        let name = name.to_ascii_uppercase();
        let first = rest.first().copied().unwrap_or_default();
        match digested(&name) {
            Digested::Key if !first.is_empty() => self.command(&name, Some(first)),
            Digested::Key | Digested::Name => self.command(&name, None),
            Digested::Subcommand => self.command(&name, Some(&first.to_ascii_uppercase())),
        }
    }

    /// The digest of a Redis command: its name in capitals, and the pattern of its key or its subcommand.
    pub(crate) fn command(&mut self, name: &[u8], key: Option<&[u8]>) -> DigestId {
        self.start(Protocol::Redis);
        self.scratch.extend_from_slice(name);
        if let Some(key) = key {
            self.scratch.push(b' ');
            path::pattern(key, self.limits.text_bytes, &mut self.scratch);
        }
        self.find(Protocol::Redis)
    }

    /// The digest of a fixed text.
    pub(crate) fn named(&mut self, protocol: Protocol, text: &str) -> DigestId {
        self.start(protocol);
        self.scratch.extend_from_slice(text.as_bytes());
        self.find(protocol)
    }

    fn start(&mut self, protocol: Protocol) {
        self.scratch.clear();
        self.scratch.push(protocol as u8);
    }

    fn find(&mut self, protocol: Protocol) -> DigestId {
        if let Some(id) = self.ids.get(self.scratch.as_slice()) {
            return *id;
        }
        if self.rows.len() > self.limits.count {
            self.folded += 1;
            return DigestId::OTHER;
        }
        let id = DigestId(u32::try_from(self.rows.len()).unwrap_or(0));
        let text = String::from_utf8_lossy(&self.scratch[1..]);
        let ends = u32::try_from(text.matches("; ").count()).unwrap_or(u32::MAX);
        let statements = if text.ends_with(CUT_MARK) { u32::MAX } else { ends.saturating_add(1) };
        self.rows.push(Row { protocol, text: text.into(), statements });
        self.ids.insert(self.scratch.as_slice().into(), id);
        id
    }
}

impl Default for Digests {
    fn default() -> Digests {
        Digests::new(DigestLimits::default())
    }
}

/// The end of a text that was cut.
pub(crate) const CUT_MARK: &str = "…";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_folds_what_is_new_into_the_other_row() {
        let mut digests = Digests::new(DigestLimits { count: 2, text_bytes: 64 });
        let ids: Vec<u32> = ["a", "b", "c", "a", "d"]
            .map(|text| digests.statement(Dialect::MySql, text.as_bytes(), false).0)
            .to_vec();
        assert_eq!(ids, [1, 2, 0, 1, 0]);
        assert_eq!((digests.len(), digests.folded()), (3, 2));
        assert_eq!(digests.text(DigestId(2)), "b");
        assert_eq!(digests.text(DigestId::OTHER), "other");
        assert_eq!(digests.text(DigestId(99)), "other");
    }

    #[test]
    fn a_route_that_the_user_names_goes_before_the_rules() {
        let routes = ["GET /{shop}/items", "GET /literal/qzxkwvbnmtrp"].map(|text| text.parse().unwrap());
        let mut digests = Digests::default().with_routes(routes.to_vec());
        let mut text = |target: &str| {
            let id = digests.route(b"GET", target.as_bytes());
            digests.text(id).to_owned()
        };
        assert_eq!(text("/anna/items?page=2"), "GET /{shop}/items");
        assert_eq!(text("http://host/anna/items"), "GET /{shop}/items");
        assert_eq!(text("/literal/qzxkwvbnmtrp"), "GET /literal/qzxkwvbnmtrp");
        assert_eq!(text("/other/qzxkwvbnmtrp"), "GET /other/{}");
    }

    #[test]
    fn one_text_in_two_protocols_is_two_digests() {
        let mut digests = Digests::default();
        let one = digests.statement(Dialect::MySql, b"select 1", false);
        let other = digests.statement(Dialect::Postgres, b"select 1", false);
        assert_ne!(one, other);
        assert_eq!(digests.protocol(one), Protocol::MySql);
    }
}
