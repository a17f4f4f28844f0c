//! Live views on a terminal: a run of `drive`, with its keys, and the table of `watch`.
//!
//! A view gets what it shows once per interval from its measurer, and is drawn by a thread of its own, so that a
//! slow terminal delays nobody. It reads no environment: the caller says what the terminal can show.

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
