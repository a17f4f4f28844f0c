//! Values that know their unit, with one way to parse and one way to print each, and enums that know their names.
//!
//! It also reads inputs of unknown length up to a limit. Nothing here opens a file, or reads a clock or the environment.
//! Every other crate may use these types; this crate uses none of theirs.

mod bounded;
mod bytes;
mod code;
mod named;
mod nanos;
mod number;
mod print;
mod printable;
mod rate;

pub use bounded::{LONGEST_LINE, bounded_lines, read_at_most, read_text_at_most};
pub use bytes::Bytes;
pub use code::Code;
pub use nanos::Nanos;
pub use number::{ParseError, parse_count};
pub use print::{count, percent, plural, rate};
pub use printable::{escape_text, is_harmful};
pub use rate::Rate;
