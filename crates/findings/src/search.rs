//! A search for the highest rate: the objective, what each probe shows about its rate, and the result of all probes.
//! Which rate is probed next is in `stats::search`.

mod first_probe;
mod objective;
mod probe;
mod result;

pub use first_probe::nearly_all_failed;
pub use objective::{Objective, ObjectiveError};
pub use probe::{ProbeJudge, ProbeMeasurement, WARMUP};
pub use result::result;
