//! Values that know their unit, with one way to parse and one way to print each, and enums that know their names.
//!
//! Nothing here reads a clock, a file or the environment. Every other crate may use these types;
//! this crate uses none of theirs.

mod bytes;
mod code;
mod named;
mod nanos;
mod number;
mod print;
mod printable;
mod rate;

pub use bytes::Bytes;
pub use code::Code;
pub use nanos::Nanos;
pub use number::{ParseError, parse_count};
pub use print::{count, percent, plural, rate};
pub use printable::{escape_text, is_harmful};
pub use rate::Rate;
