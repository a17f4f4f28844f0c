//! What a sample can tell about a quantile, and the search for the highest rate that meets an objective.
//!
//! Works with counts and ranks only: it sees no values and assumes no distribution. The owner of the values (a
//! histogram, a sorted list) converts the ranks to an interval.

mod binomial;
mod quantile;
pub mod search;

pub use quantile::{Ranks, needed_samples, quantile_ranks};
