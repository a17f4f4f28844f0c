//! The SQL part of a scenario: statements with parameters, checks of rows and columns, and the script of transactions.

mod compile;
mod preview;
mod script;
mod step;

pub(crate) use compile::{compile, refuse, rollback};
pub use script::Transaction;
pub(crate) use step::SqlStep;
