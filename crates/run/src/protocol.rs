//! What a run sends: requests in turn, or a scenario. The engine is compiled for each, so that plain requests do not
//! pay for scenarios.

use codec::web::{Turns, Web};
use engine::{Controls, Finished, Listener, RunError, RunPlan};
use scenario::Scenario;

/// What a run sends.
#[derive(Debug)]
pub enum DriveProtocol {
    RoundRobin(Web<Turns>),
    Scenario(Web<Scenario>),
}

impl DriveProtocol {
    /// Generates the load of `plan`; see [`engine::run`].
    /// # Errors
    ///
    /// The errors of the engine.
    pub fn run(
        &self,
        plan: &RunPlan,
        controls: &Controls,
        listener: &mut dyn Listener,
    ) -> Result<Finished, RunError> {
        match self {
            DriveProtocol::RoundRobin(web) => engine::run(plan, web, controls, listener),
            DriveProtocol::Scenario(web) => engine::run(plan, web, controls, listener),
        }
    }

    /// The HTTP versions in use, once there is a connection.
    pub fn used_protocols(&self) -> Option<String> {
        match self {
            DriveProtocol::RoundRobin(web) => web.used_protocols(),
            DriveProtocol::Scenario(web) => web.used_protocols(),
        }
    }

    /// The scenario, if it is one.
    pub fn scenario(&self) -> Option<&Scenario> {
        match self {
            DriveProtocol::RoundRobin(_) => None,
            DriveProtocol::Scenario(web) => Some(web.script()),
        }
    }
}
