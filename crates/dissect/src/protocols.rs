//! The protocol of a connection: one enum, so that a piece costs no virtual call.

use crate::digest::{DigestId, Digests};
use crate::event::{Protocol, RequestKind};
use crate::exchanges::{Events, Exchanges, Unseen, Until};
use crate::http1::Http1;
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::redis::Redis;
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
            Protocol::Tls | Protocol::Http2 | Protocol::Upgraded | Protocol::Unknown => {
                ProtocolReader::Turns(Turns::new(protocol, true))
            }
        }
    }

    /// A reader that joins a connection at the begin of a request.
    pub(crate) fn joined(protocol: Protocol) -> ProtocolReader {
        match protocol {
            Protocol::Postgres => ProtocolReader::Postgres(Postgres::joined()),
            Protocol::MySql => ProtocolReader::MySql(MySql::joined()),
            Protocol::Tls | Protocol::Http2 | Protocol::Upgraded | Protocol::Unknown => {
                ProtocolReader::Turns(Turns::new(protocol, false))
            }
            _ => ProtocolReader::fresh(protocol),
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            ProtocolReader::Http1(_) => Protocol::Http1,
            ProtocolReader::Postgres(_) => Protocol::Postgres,
            ProtocolReader::MySql(_) => Protocol::MySql,
            ProtocolReader::Redis(_) => Protocol::Redis,
            ProtocolReader::Turns(turns) => turns.protocol(),
        }
    }

    #[inline]
    pub(crate) fn client_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        context.exchanges.settle_client(view.at, context.events);
        match self {
            ProtocolReader::Http1(http1) => http1.client_frame(view, context),
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
            ProtocolReader::Postgres(postgres) => postgres.client_cut(context),
            _ => {}
        }
        context.exchanges.open_end();
    }

    /// Where the request begins that is being read and not yet in flight.
    pub(crate) fn began(&self) -> Option<u64> {
        match self {
            ProtocolReader::Redis(redis) => redis.began(),
            _ => None,
        }
    }

    /// The client's next byte begins a request.
    pub(crate) fn restart_client(&mut self) {
        match self {
            ProtocolReader::Http1(http1) => http1.restart_client(),
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
            ProtocolReader::MySql(mysql) => mysql.restart_server(),
            ProtocolReader::Redis(redis) => redis.restart_server(),
            ProtocolReader::Postgres(_) | ProtocolReader::Turns(_) => {}
        }
    }

    /// What is reported about a request of which only the response is seen.
    pub(crate) fn unseen(&self, digests: &mut Digests) -> Unseen {
        let digest = digests.named(self.protocol(), UNSEEN);
        let (kind, until) = match self {
            ProtocolReader::Http1(_) => (RequestKind::Http, Until::Response),
            ProtocolReader::Postgres(_) => (RequestKind::Execute, Until::Replies(0)),
            ProtocolReader::MySql(_) => (RequestKind::MySql(3), Until::Response),
            ProtocolReader::Redis(_) => (RequestKind::Redis, Until::Response),
            ProtocolReader::Turns(_) => (RequestKind::Turn, Until::Response),
        };
        Unseen { kind, digest, until }
    }
}

impl Context<'_> {
    /// The digest of a statement whose text was not seen.
    pub(crate) fn unseen_statement(&mut self, protocol: Protocol) -> DigestId {
        self.digests.named(protocol, crate::names::UNSEEN_STATEMENT)
    }
}

/// The digest text of a request of which only the response was seen.
const UNSEEN: &str = "(request not captured)";
