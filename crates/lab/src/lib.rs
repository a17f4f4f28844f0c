//! Experiments: which commands run in which order, the processes that run them, and one value of each metric per run.
//!
//! Starts programs and reads the records that they leave; links no engine, prints nothing, judges nothing. The verdict
//! is made by `comparison` from what this crate returns.

mod command;
mod conduct;
pub mod experiment;
mod guard;
mod keep;
mod plan;
mod supervise;
mod tree;

pub use command::{Parameter, TrialCommand};
pub use conduct::{Conducted, Lab, Progress, conduct};
pub use keep::guard;
pub use plan::{Hooks, Plan, Variant, variants};
pub use supervise::{Ended, Trial, Usage};
