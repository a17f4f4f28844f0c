//! The tables of built-in workloads: made, filled, resumed and removed, over blocking connections.
//!
//! A table belongs to `parallax prepare` if its comment says so: others are never filled and never removed. Rows are a
//! function of their number, and a connection adds them in order and in whole statements: what is missing after an
//! interruption follows from what is there.

pub mod account;
mod client;
pub mod keys;
mod load;
mod oltp;
mod sampling;
mod script;
pub mod tpcb;

pub use client::Client;
pub use load::{Loaded, Progress, clean, prepare};
pub use oltp::{Part, parts};
pub use sampling::{DigestOf, Sampling};
pub use script::Tasks;
