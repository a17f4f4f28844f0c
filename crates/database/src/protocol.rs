//! What a run sends to databases: its script, its statements, its logins. Built once, before anything is sent; invalid
//! input is refused here.

use std::sync::{Arc, OnceLock};

use super::server::{Server, ServerPlan, Shared};
use super::session::DatabaseSession;
use super::url::DatabaseKind;
use crate::postgres::ScramCache;
use crate::redis::Command;
use crate::sql::{After, Script, Statement, StatementError};
use codec::UsedProtocols;
use codec::{Ended, Judgement, Next, Origin, Protocol, Route, StatementIndex};

/// What one run sends to databases of one kind. Cheap to share: workers hold a reference.
#[derive(Debug)]
pub struct Database<S> {
    run: Arc<Run<S>>,
}

/// What a run consists of, in addition to its script.
#[derive(Debug, Clone)]
pub struct DatabaseParts {
    pub kind: DatabaseKind,
    /// The statements; a script refers to them by index.
    pub statements: Vec<Statement>,
    /// The servers; a script refers to them by index.
    pub servers: Vec<ServerPlan>,
    /// Statements without parameters that each connection executes at the end of its login, in order.
    pub setup: Vec<Statement>,
    /// The most bytes of rows of one response.
    pub result_bytes: u64,
    /// Statements in flight per connection; 1 if the protocol has no pipelining.
    pub pipeline: usize,
}

/// What all workers and connections share.
#[derive(Debug)]
pub(super) struct Run<S> {
    pub script: S,
    pub shared: Shared,
}

impl<S: Script> Database<S> {
    /// Prepares a run of `script`.
    ///
    /// # Errors
    ///
    /// [`StatementError`] for anything that cannot be sent as given; its message states what to do.
    pub fn new(script: S, parts: DatabaseParts) -> Result<Database<S>, StatementError> {
        let DatabaseParts { kind, statements, servers, setup, result_bytes, pipeline } = parts;
        let limit = usize::from(StatementIndex::MAX);
        if statements.len() > limit {
            return Err(StatementError::TooMany { count: statements.len(), limit });
        }
        statements.iter().chain(&setup).try_for_each(Statement::check)?;
        servers.iter().try_for_each(|server| server.login.check())?;
        let servers = servers.into_iter().map(|plan| Server { plan, scram: ScramCache::default() }).collect();
        let commands = match kind {
            DatabaseKind::Redis => statements.iter().map(Command::new).collect::<Result<_, _>>()?,
            DatabaseKind::MySql | DatabaseKind::Postgres => Vec::new(),
        };
        let shared = Shared {
            kind,
            statements,
            commands,
            servers,
            setup,
            result_bytes,
            depth: if kind.has_pipelining() { pipeline.max(1) } else { 1 },
            used_protocols: UsedProtocols::default(),
            server_version: OnceLock::new(),
        };
        Ok(Database { run: Arc::new(Run { script, shared }) })
    }

    /// The script that decides what is sent.
    pub fn script(&self) -> &S {
        &self.run.script
    }

    /// The kind of the databases.
    pub fn kind(&self) -> DatabaseKind {
        self.run.shared.kind
    }

    /// How the first server is logged in to; `None` if there is no server.
    pub fn first_server(&self) -> Option<&ServerPlan> {
        self.run.shared.servers.first().map(|server| &server.plan)
    }

    /// What the connections of the run have used, such as `mysql over TLS 1.3, server 10.11.19-MariaDB`. `None` before
    /// the first login.
    pub fn used_protocols(&self) -> Option<String> {
        let words = self.run.shared.used_protocols.words()?;
        Some(match self.run.shared.server_version.get() {
            Some(version) => format!("{words}, server {version}"),
            None => words,
        })
    }
}

impl<S: Script> Protocol for Database<S> {
    type Journey = S::Journey;
    type Session = DatabaseSession<S>;

    fn session(&self, origin: Origin) -> DatabaseSession<S> {
        DatabaseSession::new(Arc::clone(&self.run), origin)
    }

    #[inline]
    fn begin(&self, n: u64) -> S::Journey {
        self.run.script.begin(n)
    }

    #[inline]
    fn route(&self, journey: &S::Journey) -> Route {
        self.run.script.route(journey)
    }

    fn kinds(&self) -> usize {
        self.run.script.kinds()
    }

    fn journeys(&self) -> usize {
        self.run.script.journeys()
    }

    #[inline]
    fn advance(&self, journey: S::Journey, ended: Ended<'_, DatabaseSession<S>>) -> Next<S::Journey> {
        let after = match ended {
            Ended::Answered { session, judgement: Judgement::Good } => After::Good(session.hand_over()),
            Ended::Answered { session, judgement: Judgement::Retryable } => {
                After::Retryable { has_ended: !session.is_in_transaction() }
            }
            Ended::Answered { .. } => After::Failed,
            Ended::Unanswered => After::Unanswered,
        };
        self.run.script.advance(journey, after)
    }
}
