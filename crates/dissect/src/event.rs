//! What a connection tells: for each request, which bytes were it and which were its answer.
//!
//! Positions count the bytes of one direction from the first that the dissector was given; a range is half-open,
//! so a request that is complete at 18 was complete with byte 17. The caller looks its stamps up by them.

use crate::digest::DigestId;

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    Http1,
    Postgres,
    MySql,
    Redis,
    /// Encrypted: timed as turns.
    Tls,
    /// HTTP/2 in the clear: timed as turns.
    Http2,
    /// What HTTP/1.1 was switched to (101, CONNECT): timed as turns.
    Upgraded,
    /// Not recognised, or a form that is not read (compression): timed as turns.
    Unknown,
}

impl Protocol {
    /// The name in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "http1",
            Protocol::Postgres => "postgres",
            Protocol::MySql => "mysql",
            Protocol::Redis => "redis",
            Protocol::Tls => "tls",
            Protocol::Http2 => "http2",
            Protocol::Upgraded => "upgraded",
            Protocol::Unknown => "unknown",
        }
    }

    /// Whether its requests are framed by the protocol itself, and not only by who speaks in turn.
    pub fn is_framed(self) -> bool {
        matches!(self, Protocol::Http1 | Protocol::Postgres | Protocol::MySql | Protocol::Redis)
    }
}

/// One edge, or the news that none will follow.
///
/// For every connection: asked = answered + asked without an answer to come + dropped + under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The protocol is known, or has changed. Before the first request of that protocol.
    Spoken(Protocol),
    Asked(Asked),
    Answered(Answered),
    /// Request `n` was asked; where its answer lies is not known, and will not be.
    Dropped {
        n: u64,
    },
}

/// A request is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Which request of its connection, from 0.
    pub n: u64,
    /// Where it begins in the client's bytes.
    pub began: u64,
    /// Behind its last byte in the client's bytes.
    pub complete: u64,
    pub digest: DigestId,
    pub kind: Kind,
    pub sight: Sight,
    /// No answer will come: the protocol has none for it.
    pub unanswered: bool,
}

/// What kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Http,
    /// PostgreSQL's simple query.
    Query,
    /// One `Execute` of PostgreSQL's extended protocol, with the `Parse`, `Bind`, `Describe` before it and the
    /// `Sync` behind.
    Execute,
    /// Messages of PostgreSQL's extended protocol up to a `Sync` or `Flush`, none of them `Execute`.
    Prepare,
    /// PostgreSQL's function call.
    Function,
    /// A command of MySQL, by its number; see [`MySqlCommand`](crate::MySqlCommand).
    MySql(u8),
    Redis,
    /// All that the server read until it wrote.
    Turn,
}

/// How much of a request was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sight {
    /// Its framing.
    Framed,
    /// Its beginning: its end lies in bytes that were not captured, so `complete` is the last byte that the server
    /// read before it wrote, or before the next request began.
    Cut,
    /// Nothing: an answer came for it. It lies somewhere in `began..complete`.
    Unseen,
}

/// A request has its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    pub n: u64,
    /// Where the answer begins in the server's bytes. Interim answers (1xx) are none.
    pub began: u64,
    /// Behind its last byte.
    pub end: u64,
    pub status: Status,
    pub end_by: EndBy,
}

/// What the end of an answer was known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndBy {
    /// The protocol's framing: exact.
    Framing,
    /// The last write before the next read. Bytes that the framing needs were not captured, or the protocol is not
    /// read. Too late by what else was written meanwhile, and too early for a server that reads on while it writes.
    Turn,
    /// The connection ended with it.
    Close,
}

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not seen, or the protocol is not read.
    Unknown,
    Ok,
    Http(u16),
    /// PostgreSQL's SQLSTATE.
    SqlState([u8; 5]),
    /// MySQL's error number.
    MySqlError(u16),
    RedisError,
    /// Not executed, because a statement before it failed.
    Skipped,
}

impl Status {
    /// Whether it is an error; `None` where that is not known. HTTP: 400 and above.
    pub fn is_error(self) -> Option<bool> {
        match self {
            Status::Unknown => None,
            Status::Ok => Some(false),
            Status::Http(status) => Some(status >= 400),
            Status::SqlState(_) | Status::MySqlError(_) | Status::RedisError | Status::Skipped => Some(true),
        }
    }

    /// The number that HTTP and MySQL give.
    pub fn number(self) -> Option<u16> {
        match self {
            Status::Http(number) | Status::MySqlError(number) => Some(number),
            _ => None,
        }
    }

    /// The class of an SQL error: the first two characters of its SQLSTATE.
    pub fn sql_class(&self) -> Option<&str> {
        match self {
            Status::SqlState(state) => std::str::from_utf8(&state[..2]).ok(),
            _ => None,
        }
    }
}

/// What could not be told, by its cause. Sums over the life of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pieces before the first certain boundary of a connection that was joined, or found again after a loss.
    pub mid_connection: u64,
    /// Requests in them that were seen, and not told: what answered them was not certain.
    pub mid_connection_requests: u64,
    /// Losses of unknown length that the caller reported.
    pub missed: u64,
    /// Times that framing broke on bytes that are not of the protocol.
    pub unparsed: u64,
    /// Times that a header lay in bytes that were not captured.
    pub cut: u64,
    /// Pieces whose framing was not known, until a boundary was found again.
    pub unframed: u64,
    /// Requests that were dropped: as many as there were [`Event::Dropped`].
    pub dropped: u64,
    /// Messages of the server that answer nothing: publications, notifications, interim answers.
    pub unsolicited: u64,
}

impl Counts {
    /// Adds those of another connection.
    pub fn add(&mut self, other: &Counts) {
        self.mid_connection += other.mid_connection;
        self.mid_connection_requests += other.mid_connection_requests;
        self.missed += other.missed;
        self.unparsed += other.unparsed;
        self.cut += other.cut;
        self.unframed += other.unframed;
        self.dropped += other.dropped;
        self.unsolicited += other.unsolicited;
    }
}
