//! The protocol of a connection: one enum, so that a piece costs no virtual call.

use crate::digest::{DigestId, Digests};
use crate::event::{Protocol, RequestKind};
use crate::exchanges::{Events, Exchanges, Unseen, Until};
use crate::http1::Http1;
use crate::http2::Http2;
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::redis::Redis;
use crate::sessions::SessionId;
use crate::tap::{Step, View};
use crate::turns::Turns;

/// What a protocol may change while it reads.
pub(crate) struct Context<'a> {
    pub exchanges: &'a mut Exchanges,
    pub digests: &'a mut Digests,
    pub events: &'a mut Events,
    /// Set by a protocol that hands over to another.
    pub switch: &'a mut Option<Protocol>,
}

#[derive(Debug)]
pub(crate) enum ProtocolReader {
    Http1(Http1),
    Http2(Box<Http2>),
    Postgres(Postgres),
    MySql(MySql),
    Redis(Redis),
    Turns(Turns),
}

impl ProtocolReader {
    /// A reader that sees its connection from the first byte on.
    pub(crate) fn fresh(protocol: Protocol) -> ProtocolReader {
        match protocol {
            Protocol::Http1 => ProtocolReader::Http1(Http1::default()),
            Protocol::Postgres => ProtocolReader::Postgres(Postgres::fresh()),
            Protocol::MySql => ProtocolReader::MySql(MySql::fresh()),
            Protocol::Redis => ProtocolReader::Redis(Redis::default()),
            Protocol::Http2 => ProtocolReader::Http2(Box::new(Http2::fresh())),
            Protocol::Tls | Protocol::Upgraded | Protocol::Compressed | Protocol::Unknown => {
                ProtocolReader::Turns(Turns::new(protocol, true))
            }
        }
    }

    /// A reader that joins a connection at the begin of a request.
    pub(crate) fn joined(protocol: Protocol) -> ProtocolReader {
        match protocol {
            Protocol::Postgres => ProtocolReader::Postgres(Postgres::joined()),
            Protocol::MySql => ProtocolReader::MySql(MySql::joined()),
            Protocol::Http2 => ProtocolReader::Http2(Box::default()),
            Protocol::Tls | Protocol::Upgraded | Protocol::Compressed | Protocol::Unknown => {
                ProtocolReader::Turns(Turns::new(protocol, false))
            }
            _ => ProtocolReader::fresh(protocol),
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            ProtocolReader::Http1(_) => Protocol::Http1,
            ProtocolReader::Http2(_) => Protocol::Http2,
            ProtocolReader::Postgres(_) => Protocol::Postgres,
            ProtocolReader::MySql(_) => Protocol::MySql,
            ProtocolReader::Redis(_) => Protocol::Redis,
            ProtocolReader::Turns(turns) => turns.protocol(),
        }
    }

    /// The user and schema of the next request.
    pub(crate) fn session(&self) -> SessionId {
        match self {
            ProtocolReader::Postgres(postgres) => postgres.session(),
            ProtocolReader::MySql(mysql) => mysql.session(),
            ProtocolReader::Http1(_)
            | ProtocolReader::Http2(_)
            | ProtocolReader::Redis(_)
            | ProtocolReader::Turns(_) => SessionId::UNKNOWN,
        }
    }

    #[inline]
    pub(crate) fn client_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        context.exchanges.settle_client(view.at, context.events);
        match self {
            ProtocolReader::Http1(http1) => http1.client_frame(view, context),
            ProtocolReader::Http2(http2) => http2.client_frame(view, context),
            ProtocolReader::Postgres(postgres) => postgres.client_frame(view, context),
            ProtocolReader::MySql(mysql) => mysql.client_frame(view, context),
            ProtocolReader::Redis(redis) => redis.client_frame(view, context),
            ProtocolReader::Turns(turns) => turns.client_frame(view, context),
        }
    }

    #[inline]
    pub(crate) fn server_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        context.exchanges.settle_server(view.at, context.events);
        match self {
            ProtocolReader::Http1(http1) => http1.server_frame(view, context),
            ProtocolReader::Http2(http2) => http2.server_frame(view, context),
            ProtocolReader::Postgres(postgres) => postgres.server_frame(view, context),
            ProtocolReader::MySql(mysql) => mysql.server_frame(view, context),
            ProtocolReader::Redis(redis) => redis.server_frame(view, context),
            ProtocolReader::Turns(_) => Step::Bad,
        }
    }

    /// A header was in client bytes that were not captured: no more will be seen of a request than what was read before
    /// them.
    pub(crate) fn client_cut(&mut self, context: &mut Context<'_>) {
        match self {
            ProtocolReader::Redis(redis) => redis.client_cut(context),
            ProtocolReader::Http2(http2) => http2.client_cut(),
            ProtocolReader::Postgres(postgres) => postgres.client_cut(context),
            _ => {}
        }
        context.exchanges.open_end();
    }

    /// Whether what the client sends belongs to the oldest request, which was complete before: a file, or rows.
    pub(crate) fn takes_data(&self) -> bool {
        match self {
            ProtocolReader::MySql(mysql) => mysql.takes_data(),
            ProtocolReader::Postgres(postgres) => postgres.takes_data(),
            _ => false,
        }
    }

    /// Bytes of the connection were lost.
    pub(crate) fn lose(&mut self) {
        match self {
            ProtocolReader::MySql(mysql) => mysql.lose(),
            ProtocolReader::Postgres(postgres) => postgres.lose(),
            _ => {}
        }
    }

    /// Where the request begins that is being read and not yet in flight.
    pub(crate) fn began(&self) -> Option<u64> {
        match self {
            ProtocolReader::Redis(redis) => redis.began(),
            _ => None,
        }
    }

    /// The streams of HTTP/2: their requests are in flight here, and not among those of the connection.
    pub(crate) fn streams(&mut self) -> Option<&mut Http2> {
        match self {
            ProtocolReader::Http2(http2) => Some(http2),
            _ => None,
        }
    }

    /// The lowest positions in the client's bytes and in the server's that future events of streams may refer to.
    pub(crate) fn named_from(&self) -> (Option<u64>, Option<u64>) {
        match self {
            ProtocolReader::Http2(http2) => http2.named_from(),
            _ => (None, None),
        }
    }

    /// The client's next byte begins a request.
    pub(crate) fn restart_client(&mut self) {
        match self {
            ProtocolReader::Http1(http1) => http1.restart_client(),
            ProtocolReader::Http2(http2) => http2.restart_client(),
            ProtocolReader::Postgres(postgres) => postgres.restart_client(),
            ProtocolReader::MySql(mysql) => mysql.restart_client(),
            ProtocolReader::Redis(redis) => redis.restart_client(),
            ProtocolReader::Turns(_) => {}
        }
    }

    /// The server's next byte begins a response.
    pub(crate) fn restart_server(&mut self) {
        match self {
            ProtocolReader::Http1(http1) => http1.restart_server(),
            ProtocolReader::Http2(http2) => http2.restart_server(),
            ProtocolReader::MySql(mysql) => mysql.restart_server(),
            ProtocolReader::Redis(redis) => redis.restart_server(),
            ProtocolReader::Postgres(_) | ProtocolReader::Turns(_) => {}
        }
    }

    /// What is reported about a request of which only the response is seen.
    pub(crate) fn unseen(&self, digests: &mut Digests) -> Unseen {
        let digest = digests.named(self.protocol(), UNSEEN);
        let (kind, until) = match self {
            ProtocolReader::Http1(_) | ProtocolReader::Http2(_) => (RequestKind::Http, Until::Response),
            ProtocolReader::Postgres(_) => (RequestKind::Execute, Until::Replies(0)),
            ProtocolReader::MySql(_) => (RequestKind::MySql(3), Until::Response),
            ProtocolReader::Redis(_) => (RequestKind::Redis, Until::Response),
            ProtocolReader::Turns(_) => (RequestKind::Turn, Until::Response),
        };
        Unseen { kind, digest, until }
    }
}

impl Context<'_> {
    /// The digest of the statement `name`, whose text was not seen. `before`: it was prepared before the connection was.
    pub(crate) fn unseen_statement(&mut self, protocol: Protocol, name: &str, before: bool) -> DigestId {
        let when = if before { "prepared before watching began" } else { "prepared unseen" };
        self.digests.named(protocol, &format!("statement {name}, {when}"))
    }
}

/// The digest text of a request of which only the response was seen.
const UNSEEN: &str = "(request not captured)";
