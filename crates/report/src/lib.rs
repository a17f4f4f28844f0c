//! From views to what people and programs read: text for a terminal, and JSON.
//!
//! What a report says is a [`findings::view::View`]; here it is laid out, and nothing is worked out. Text goes to a
//! writer that the caller gives; nothing here prints, reads a clock, or looks at the environment, the terminal included.

mod json;
mod layout;
mod style;

pub use json::json;
pub use layout::{section, table, text};
pub use style::{Style, wrap};
