//! What a run says: requests that take turns, or a scenario. The engine is made for each, so that the plain one
//! pays nothing for the other.

use codec::web::{Turns, Web};
use engine::{Controls, Finished, Listener, Plan, RunError};
use scenario::Scenario;

#[derive(Debug)]
pub enum Said {
    Turns(Web<Turns>),
    Scenario(Web<Scenario>),
}

impl Said {
    /// Drives `plan`; see [`engine::run`].
    pub fn run(
        &self,
        plan: &Plan,
        controls: &Controls,
        listener: &mut dyn Listener,
    ) -> Result<Finished, RunError> {
        match self {
            Said::Turns(web) => engine::run(plan, web, controls, listener),
            Said::Scenario(web) => engine::run(plan, web, controls, listener),
        }
    }

    /// The versions that were spoken, once something was.
    pub fn spoken(&self) -> Option<String> {
        match self {
            Said::Turns(web) => web.spoken(),
            Said::Scenario(web) => web.spoken(),
        }
    }

    pub fn scenario(&self) -> Option<&Scenario> {
        match self {
            Said::Turns(_) => None,
            Said::Scenario(web) => Some(web.script()),
        }
    }
}
