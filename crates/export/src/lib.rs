//! Records in other tools' formats, and other tools' outputs as records. Pure: values in, text or bytes out.
//!
//! The same functions serve exports during a run and conversions after it. Nothing here opens a socket or a file,
//! reads a clock, or looks at the environment: the caller does that.

mod columns;
mod figures;
pub mod flame;
pub mod hlog;
pub mod import;
pub mod k6;
pub mod otlp;
mod pages;
pub mod pictures;
pub mod prometheus;
pub mod recording;
pub mod requests;
pub mod rows;
pub mod served;
mod served_waits;
mod snapshot;
pub mod table;

pub use columns::RowsError;
pub use snapshot::{Facts, Snapshot};
