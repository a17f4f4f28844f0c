//! What a run sends to a database, whichever protocol carries it: statements with parameters, the script that chooses
//! them, and the rows that its checks see. It encodes nothing and knows no server.

mod literal;
mod parameters;
mod rows;
mod script;
mod statement;

pub(crate) use literal::push_number;
pub use parameters::{Parameters, Value};
pub use rows::{Column, Rows};
pub use script::{After, Ask, Keep, Script, StatementTurns};
pub(crate) use statement::push_position;
pub use statement::{Statement, StatementError};
