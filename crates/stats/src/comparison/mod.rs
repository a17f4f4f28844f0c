//! Whether one arm of an experiment differs from another, and whether the difference matters.
//!
//! The sample is the run: one value per arm and block, compared as the log of their ratio. Requests and seconds are
//! inside a run and are never counted as repeats (Georges, Buytaert and Eeckhout, OOPSLA 2007). The owner of the
//! records takes the values from them; nothing here reads a record, and the same input gives the same result.

mod evidence;
mod family;
mod paired;
mod power;
mod signed_rank;
mod unpaired;
mod verdict;

pub(crate) use evidence::t_quantile;
pub use evidence::{Evidence, Interval};
pub use family::{benjamini_hochberg, holm};
pub use paired::{Paired, PairedError};
#[cfg(test)]
pub(crate) use power::normal;
pub use power::{Chances, Plan, chances, smallest_detectable};
pub use signed_rank::signed_rank;
pub use unpaired::{Unpaired, UnpairedError};
pub use verdict::{
    Direction, FEWEST_BLOCKS, Family, Judgement, Metric, Sample, Word, fewest_blocks, judge, judge_family,
    judge_family_with,
};

#[cfg(test)]
mod tests;
