//! What a run can send, and where the engine is compiled for it.
//!
//! The engine is generic over the protocol, so that each pays only for itself. Its code is generated where the type is
//! known: here, in a crate that is fully optimised. The crate that carries out runs is not, because it compiles faster
//! and its own code runs once per run.

use codec::web::{Turns, Web};
use database::sql::StatementTurns;
use database::{Database, DatabaseKind, ServerPlan};
use engine::{Controls, Finished, Listener, RunError, RunPlan};
use scenario::Scenario;

/// What a run sends: requests that take turns, or a scenario; over HTTP, or to a database.
#[derive(Debug)]
pub enum DriveProtocol {
    RoundRobin(Web<Turns>),
    Scenario(Web<Scenario>),
    Statements(Database<StatementTurns>),
    Transactions(Database<Scenario>),
}

impl DriveProtocol {
    /// Drives `plan` until it ends; see [`engine::run`].
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn run(
        &self,
        plan: &RunPlan,
        controls: &Controls,
        listener: &mut dyn Listener,
    ) -> Result<Finished, RunError> {
        match self {
            DriveProtocol::RoundRobin(web) => engine::run(plan, web, controls, listener),
            DriveProtocol::Scenario(web) => engine::run(plan, web, controls, listener),
            DriveProtocol::Statements(database) => engine::run(plan, database, controls, listener),
            DriveProtocol::Transactions(database) => engine::run(plan, database, controls, listener),
        }
    }

    /// The protocol before its versions are known.
    pub fn name(&self) -> &'static str {
        match self {
            DriveProtocol::RoundRobin(_) | DriveProtocol::Scenario(_) => "http",
            DriveProtocol::Statements(database) => database.kind().name(),
            DriveProtocol::Transactions(database) => database.kind().name(),
        }
    }

    /// The protocol versions that were negotiated; `None` before the first response.
    pub fn used_protocols(&self) -> Option<String> {
        match self {
            DriveProtocol::RoundRobin(web) => web.used_protocols(),
            DriveProtocol::Scenario(web) => web.used_protocols(),
            DriveProtocol::Statements(database) => database.used_protocols(),
            DriveProtocol::Transactions(database) => database.used_protocols(),
        }
    }

    /// The kind of database and the first server's login; `None` if it is no database.
    pub fn database(&self) -> Option<(DatabaseKind, &ServerPlan)> {
        match self {
            DriveProtocol::RoundRobin(_) | DriveProtocol::Scenario(_) => None,
            DriveProtocol::Statements(database) => Some((database.kind(), database.first_server()?)),
            DriveProtocol::Transactions(database) => Some((database.kind(), database.first_server()?)),
        }
    }

    /// The scenario, if it is one.
    pub fn scenario(&self) -> Option<&Scenario> {
        match self {
            DriveProtocol::RoundRobin(_) | DriveProtocol::Statements(_) => None,
            DriveProtocol::Scenario(web) => Some(web.script()),
            DriveProtocol::Transactions(database) => Some(database.script()),
        }
    }
}
