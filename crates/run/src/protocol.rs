//! What a run sends: requests that take turns, or a scenario. The engine is made for each, so that the plain one
//! pays nothing for the other.

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
    /// Drives `plan`; see [`engine::run`].
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
        }
    }

    /// The versions that were spoken, once something was.
    pub fn used_protocols(&self) -> Option<String> {
        match self {
            DriveProtocol::RoundRobin(web) => web.used_protocols(),
            DriveProtocol::Scenario(web) => web.used_protocols(),
        }
    }

    /// The scenario, where it is one.
    pub fn scenario(&self) -> Option<&Scenario> {
        match self {
            DriveProtocol::RoundRobin(_) => None,
            DriveProtocol::Scenario(web) => Some(web.script()),
        }
    }
}
