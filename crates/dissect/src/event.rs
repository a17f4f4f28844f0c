//! Events of a connection: for each request, which bytes were the request and which were its response.
//!
//! Positions count the bytes of one direction from the first that the dissector was given; ranges are half-open, so a
//! request that is complete at 18 ended with byte 17. The user of this crate looks its timestamps up by position.

use crate::digest::DigestId;

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    Http1,
    Postgres,
    MySql,
    Redis,
    /// Encrypted: timed by turns.
    Tls,
    Http2,
    /// What HTTP/1.1 was switched to (101, CONNECT): timed by turns.
    Upgraded,
    /// MySQL with compression: timed by turns.
    Compressed,
    /// Not recognised: timed by turns.
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
            Protocol::Compressed => "compressed",
            Protocol::Unknown => "unknown",
        }
    }

    /// Whether the protocol itself frames its requests; otherwise only the change of direction does.
    pub fn is_framed(self) -> bool {
        matches!(
            self,
            Protocol::Http1 | Protocol::Http2 | Protocol::Postgres | Protocol::MySql | Protocol::Redis
        )
    }
}

/// One edge of a request, or the notice that none will follow.
///
/// For every connection: complete requests = complete responses + requests without a response + dropped + in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The protocol is known, or has changed. Comes before the first request in that protocol.
    ProtocolKnown(Protocol),
    /// All of a request has been read.
    RequestComplete(RequestComplete),
    /// The last byte of a response has been written.
    ResponseComplete(ResponseComplete),
    /// Request `n` was complete, but where its response is remains unknown.
    Dropped { n: u64 },
}

/// A complete request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestComplete {
    /// Its number in the connection, from 0.
    pub n: u64,
    /// Where it begins in the client's bytes.
    pub began: u64,
    /// The position after its last byte in the client's bytes.
    pub complete: u64,
    /// The digest of its text.
    pub digest: DigestId,
    /// The kind of request.
    pub kind: RequestKind,
    /// How much of it was captured.
    pub sight: Sight,
    /// No response will come: the protocol has none for it.
    pub no_response: bool,
}

/// The kind of a request, by protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// An HTTP request.
    Http,
    /// PostgreSQL's simple query.
    Query,
    /// One `Execute` of PostgreSQL's extended protocol, with the `Parse`, `Bind`, `Describe` before it and the `Sync`
    /// after it.
    Execute,
    /// Messages of PostgreSQL's extended protocol up to a `Sync` or `Flush`, without `Execute`.
    Prepare,
    /// PostgreSQL's function call.
    Function,
    /// A MySQL command, by number; see [`MySqlCommand`](crate::MySqlCommand).
    MySql(u8),
    /// A Redis command.
    Redis,
    /// Everything that the server read until it wrote.
    Turn,
}

/// How much of a request was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sight {
    /// All that its framing needs.
    Framed,
    /// Its beginning: its end was not captured, so `complete` is the last byte that the server read before it wrote,
    /// or before the next request began.
    Cut,
    /// Nothing: only its response was seen. It is somewhere in `began..complete`.
    Unseen,
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseComplete {
    /// The number of its request.
    pub n: u64,
    /// Where it begins in the server's bytes. Interim responses (1xx) do not count.
    pub began: u64,
    /// The position after its last byte.
    pub end: u64,
    /// Its status.
    pub status: Status,
    /// How its end is known.
    pub end_by: EndBy,
    /// The rows of a statement; `None` if the protocol has none, or not all of the response was captured.
    pub rows: Option<Rows>,
    /// Statements or commands that the request executed, one that failed included: of SQL, those of its text; of Redis,
    /// none for a command that was queued, and those of the transaction for `EXEC`. 0 for one that only prepares a
    /// statement, 1 for other protocols.
    pub statements: u32,
    /// Bytes of the client that belong to the request and came after it was complete: the file of `LOAD DATA LOCAL
    /// INFILE`, the data of `COPY FROM STDIN`, each with its framing.
    pub data_bytes: u64,
}

/// The rows of a statement, as its response says. Neither protocol says how many rows were examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rows {
    /// Rows of result sets. PostgreSQL: those of `SELECT`, `FETCH` and `COPY … TO`.
    pub sent: u64,
    /// Rows inserted, updated or deleted.
    pub affected: u64,
}

/// How the end of a response is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndBy {
    /// By the protocol's framing: exact.
    Framing,
    /// As the last write before the next read, because bytes that the framing needs were not captured, or the protocol
    /// is not parsed. Too late by other writes in between, and too early for a server that continues to read while it
    /// writes.
    Turn,
    /// The connection ended with it.
    Close,
}

/// The status of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not captured, or the protocol is not parsed.
    Unknown,
    /// Success.
    Ok,
    /// The HTTP status code.
    Http(u16),
    /// PostgreSQL's SQLSTATE of an error.
    SqlState([u8; 5]),
    /// MySQL's error number.
    MySqlError(u16),
    /// A Redis error.
    RedisError,
    /// Not executed, because a statement before it failed.
    Skipped,
}

impl Status {
    /// Whether it is an error; `None` if unknown. HTTP: 400 and above.
    pub fn is_error(self) -> Option<bool> {
        match self {
            Status::Unknown => None,
            Status::Ok => Some(false),
            Status::Http(status) => Some(status >= 400),
            Status::SqlState(_) | Status::MySqlError(_) | Status::RedisError | Status::Skipped => Some(true),
        }
    }

    /// The number that HTTP and MySQL use.
    pub fn number(self) -> Option<u16> {
        match self {
            Status::Http(number) | Status::MySqlError(number) => Some(number),
            _ => None,
        }
    }
}

/// What could not be reported, by cause. Sums over the life of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pieces before the first certain boundary of a connection that was joined, or found again after a loss.
    pub mid_connection: u64,
    /// Requests in these pieces that were seen but not reported, because their responses were uncertain; without those
    /// after a loss.
    pub mid_connection_requests: u64,
    /// Losses of unknown length that the user of this crate reported.
    pub missed: u64,
    /// How often framing failed because of bytes that do not belong to the protocol.
    pub unparsed: u64,
    /// How often a header was in bytes that were not captured.
    pub cut: u64,
    /// Pieces without known framing, until a boundary was found again.
    pub unframed: u64,
    /// Requests that were dropped: the number of [`Event::Dropped`].
    pub dropped: u64,
    /// Messages of the server that are not responses: publications, notifications, interim responses.
    pub unsolicited: u64,
}

impl Counts {
    /// Adds the counts of another connection.
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
