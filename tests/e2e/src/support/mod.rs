//! What the tests need to run the binary and other projects' servers. Checks only what must hold for every run.

pub mod certificates;
pub mod http2;
pub mod laws;
pub mod nginx;
pub mod numbers;
pub mod python;
pub mod run;
pub mod turn;

pub use testkit::{binary, leash, port, wait};
