//! From records to what people and programs read: summaries, terminal text and JSON.
//!
//! Everything here is a function of a record. Text goes to a writer that the caller gives; nothing here prints,
//! reads a clock, or looks at the environment, the terminal included.

mod distribution;
mod summary;

pub use distribution::QUANTILES;
pub use summary::{RunFacts, ok_within, summarize};
