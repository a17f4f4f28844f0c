//! Records in other tools' formats, and other tools' outputs as records. Pure: values in, text or bytes out.
//!
//! What goes out while a run goes on and what is converted afterwards is made by the same functions. Nothing here
//! opens a socket or a file, reads a clock, or looks at the environment: `cli` drives it.

mod columns;
mod figures;
pub mod flame;
pub mod hlog;
pub mod import;
pub mod k6;
pub mod otlp;
pub mod prometheus;
pub mod requests;
pub mod rows;
pub mod served;
mod snapshot;

pub use columns::RowsError;
pub use snapshot::{Facts, Snapshot};
