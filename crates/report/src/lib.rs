//! From records to what people and programs read: summaries, terminal text and JSON.
//!
//! Everything here is a function of a record. Text goes to a writer that the caller gives; nothing here prints,
//! reads a clock, or looks at the environment, the terminal included.

mod advice;
mod chart;
mod distribution;
mod json;
mod rebuild;
mod second;
mod style;
mod summary;
mod table;
mod text;
mod trap;
mod words;

pub use advice::{Advice, advice};
pub use distribution::QUANTILES;
pub use json::json;
pub use rebuild::{Rebuilt, rebuild};
pub use second::second_line;
pub use style::Style;
pub use summary::{RunFacts, summarize};
pub use text::{Report, text};
pub use trap::{Trap, demo_text, trap};
