//! Live views on a terminal: a run of `drive`, with its keys, and the table of `watch`.
//!
//! A view receives its figures once per interval, and is drawn by its own thread, so that a slow terminal delays
//! nothing. It reads no environment variables: the caller states what the terminal supports.

pub mod display;
mod heat;
mod keys;
mod lights;
mod live;
mod model;
pub mod screen;
mod sections;
#[cfg(feature = "ebpf")]
pub mod table;
mod tally;
mod terminal_style;
#[cfg(test)]
mod tests;
mod view;
mod widgets;

pub use self::live::Live;
pub use self::terminal_style::TerminalStyle;
