//! Known disturbances on a known schedule, so that instruments can be tested against truth.
//!
//! [`conduct`] does a [`Deed`] in each episode of a schedule and undoes it again. Nothing is done that the [`Guard`],
//! a second process, has not learnt to undo before. Driven by the verb `disturb` alone.

mod claim;
mod conduct;
mod error;
mod freezer;
mod guard;
mod pause;
mod relay;
#[cfg(test)]
mod testing;
mod undo;
mod victim;
mod work;
mod workers;

pub use conduct::{Began, Deed, Done, Ended, Fact, Over, Run, Told, conduct};
pub use error::DisturbError;
pub use freezer::Scope;
pub use guard::{Guard, Program, guard};
pub use pause::{Means, Pause};
pub use relay::{Cut, Direction, Effects, Relay};
pub use undo::Version;
pub use victim::{Force, Victim};
pub use work::{Work, work};
pub use workers::Workers;
