//! Explains where the time of requests went and what caused it, from the joined records of one period.
//!
//! A client's record has how long its requests waited for a response; a record of `watch` has what the server did in
//! the meantime; those of `hiccup`, `cpu`, `disturb` and of a JVM have what else happened on the host. Joined, each
//! request has a ledger that sums to its response time to the nanosecond, and a table of rules makes sentences of it.
//! Everything is a function of records: nothing here opens a file, reads a clock or prints. `cli` drives it.

mod chain;
mod clocks;
mod evidence;
mod explanation;
mod facts;
#[cfg(test)]
mod fixture;
mod groups;
mod host;
mod inputs;
mod join;
mod ledger;
mod place;
mod queued_behind;
mod rule_table;
mod rules;
mod runtime;
mod seconds;
mod stalls;
mod view;

pub use explanation::{Explanation, explain};
pub use host::{HostRecord, Planted, Surroundings};
pub use inputs::{Client, MOST_REQUESTS, Server};
pub use place::{Place, Segment};
pub use runtime::Runtime;
pub use view::view;
