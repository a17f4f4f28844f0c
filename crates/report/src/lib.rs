//! Lays out views for people and programs: text for a terminal, Markdown, JUnit XML and JSON.
//!
//! The contents of a report are a [`findings::view::View`]; here it is laid out, and nothing is computed. Text goes to
//! a writer that the caller gives; nothing here prints, reads a clock, or looks at the environment, the terminal
//! included.

mod json;
mod junit;
mod layout;
mod markdown;
mod style;

pub use json::json;
pub use junit::junit;
pub use layout::{section, table, text};
pub use markdown::markdown;
pub use style::{Style, wrap};
