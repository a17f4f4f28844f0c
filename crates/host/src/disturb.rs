//! Known disturbances on a known schedule, so that instruments can be tested against a known truth.
//!
//! [`conduct`] applies a [`Disturbance`] in each episode of a schedule and undoes it at the end of the episode.
//! Nothing is done before the [`Guard`], a second process, knows how to undo it. Only the verb `disturb` uses this.

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

pub use conduct::{Began, Disturbance, Done, Ended, EpisodeReport, Fact, Moment, Over, Run, conduct};
pub use error::DisturbError;
pub use freezer::Scope;
pub use guard::{Guard, Program, guard, protect};
pub use pause::{Pause, PauseMethod};
pub use relay::{Cut, Direction, Effects, Relay};
pub use undo::Version;
pub use victim::{Force, Victim};
pub use work::{Work, work};
pub use workers::Workers;
