//! The protocol of a connection: one value, so that a piece meets no virtual call.

use crate::digest::{DigestId, Digests};
use crate::event::{Kind, Protocol};
use crate::exchanges::{Events, Exchanges, Unseen, Until};
use crate::http1::Http1;
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::redis::Redis;
use crate::tap::{Step, View};
use crate::turns::Turns;

/// What a protocol may touch while it reads.
pub(crate) struct Context<'a> {
    pub exchanges: &'a mut Exchanges,
    pub digests: &'a mut Digests,
    pub events: &'a mut Events,
    /// Set by a protocol that gives way to another.
    pub switch: &'a mut Option<Protocol>,
}

#[derive(Debug)]
pub(crate) enum Speaker {
    Http1(Http1),
    Postgres(Postgres),
    MySql(MySql),
    Redis(Redis),
    Turns(Turns),
}

impl Speaker {
    /// One that sees its connection from the first byte on.
    pub(crate) fn fresh(protocol: Protocol) -> Speaker {
        match protocol {
            Protocol::Http1 => Speaker::Http1(Http1::default()),
            Protocol::Postgres => Speaker::Postgres(Postgres::fresh()),
            Protocol::MySql => Speaker::MySql(MySql::fresh()),
            Protocol::Redis => Speaker::Redis(Redis::default()),
            Protocol::Tls | Protocol::Http2 | Protocol::Upgraded | Protocol::Unknown => {
                Speaker::Turns(Turns::new(protocol, true))
            }
        }
    }

    /// One that joins a connection where a request begins.
    pub(crate) fn joined(protocol: Protocol) -> Speaker {
        match protocol {
            Protocol::Postgres => Speaker::Postgres(Postgres::joined()),
            Protocol::MySql => Speaker::MySql(MySql::joined()),
            Protocol::Tls | Protocol::Http2 | Protocol::Upgraded | Protocol::Unknown => {
                Speaker::Turns(Turns::new(protocol, false))
            }
            _ => Speaker::fresh(protocol),
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Speaker::Http1(_) => Protocol::Http1,
            Speaker::Postgres(_) => Protocol::Postgres,
            Speaker::MySql(_) => Protocol::MySql,
            Speaker::Redis(_) => Protocol::Redis,
            Speaker::Turns(turns) => turns.protocol(),
        }
    }

    #[inline]
    pub(crate) fn client_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        context.exchanges.settle_client(view.at, context.events);
        match self {
            Speaker::Http1(http1) => http1.client_frame(view, context),
            Speaker::Postgres(postgres) => postgres.client_frame(view, context),
            Speaker::MySql(mysql) => mysql.client_frame(view, context),
            Speaker::Redis(redis) => redis.client_frame(view, context),
            Speaker::Turns(turns) => turns.client_frame(view, context),
        }
    }

    #[inline]
    pub(crate) fn server_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        context.exchanges.settle_server(view.at, context.events);
        match self {
            Speaker::Http1(http1) => http1.server_frame(view, context),
            Speaker::Postgres(postgres) => postgres.server_frame(view, context),
            Speaker::MySql(mysql) => mysql.server_frame(view, context),
            Speaker::Redis(redis) => redis.server_frame(view, context),
            Speaker::Turns(_) => Step::Bad,
        }
    }

    /// The header of something lay in bytes of the client that were not captured: what was read of a request
    /// before them is all that will be seen of it.
    pub(crate) fn client_cut(&mut self, context: &mut Context<'_>) {
        match self {
            Speaker::Redis(redis) => redis.client_cut(context),
            Speaker::Postgres(postgres) => postgres.client_cut(context),
            _ => {}
        }
        context.exchanges.open_end();
    }

    /// Where the request begins that is being read and is not under way yet.
    pub(crate) fn began(&self) -> Option<u64> {
        match self {
            Speaker::Redis(redis) => redis.began(),
            _ => None,
        }
    }

    /// The client's next byte begins a request.
    pub(crate) fn restart_client(&mut self) {
        match self {
            Speaker::Http1(http1) => http1.restart_client(),
            Speaker::Postgres(postgres) => postgres.restart_client(),
            Speaker::MySql(mysql) => mysql.restart_client(),
            Speaker::Redis(redis) => redis.restart_client(),
            Speaker::Turns(_) => {}
        }
    }

    /// The server's next byte begins an answer.
    pub(crate) fn restart_server(&mut self) {
        match self {
            Speaker::Http1(http1) => http1.restart_server(),
            Speaker::MySql(mysql) => mysql.restart_server(),
            Speaker::Redis(redis) => redis.restart_server(),
            Speaker::Postgres(_) | Speaker::Turns(_) => {}
        }
    }

    /// What a request is taken for of which only the answer is seen.
    pub(crate) fn unseen(&self, digests: &mut Digests) -> Unseen {
        let digest = digests.named(self.protocol(), UNSEEN);
        let (kind, until) = match self {
            Speaker::Http1(_) => (Kind::Http, Until::Answer),
            Speaker::Postgres(_) => (Kind::Execute, Until::Replies(0)),
            Speaker::MySql(_) => (Kind::MySql(3), Until::Answer),
            Speaker::Redis(_) => (Kind::Redis, Until::Answer),
            Speaker::Turns(_) => (Kind::Turn, Until::Answer),
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

/// The text of the digest of a request of which only the answer was seen.
const UNSEEN: &str = "(request not captured)";
