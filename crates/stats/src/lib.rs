//! How much a sample can say about a quantile.
//!
//! Works on counts and ranks only: it sees no value, knows no distribution, and assumes none. Whoever keeps
//! the values (a histogram, a sorted list) turns the ranks into an interval.

mod binomial;
mod quantile;
pub mod search;

pub use quantile::{Ranks, needed_samples, quantile_ranks};
