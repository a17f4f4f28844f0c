//! What can be concluded from measured values: quantiles of one run, comparisons of several, the course of a series,
//! sampled shares and shares of failures, and the search for the highest rate that meets an objective.
//!
//! Quantiles and the search work with counts and ranks only; the owner of the values (a histogram, a sorted list)
//! converts the ranks to an interval. Everything is pure: random numbers come from a seed.

mod binomial;
mod clustered;
pub mod comparison;
mod quantile;
mod resample;
pub mod search;
pub mod series;
mod share;
mod windows;

pub use clustered::{Attempts, ClusteredShare, Side, clustered_share};
pub use quantile::{Ranks, needed_samples, quantile_ranks};
pub use resample::{rank_intervals, resampled_interval};
pub use share::{Bounds, Sampled};
pub use windows::{Estimate, SeenTime, WINDOWS, WindowSample};
