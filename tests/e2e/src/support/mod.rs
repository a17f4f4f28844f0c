//! What the tests need to run the binary and other projects' servers. Checks only what must hold for every run.

pub mod certificates;
pub mod databases;
pub mod http2;
pub mod laws;
pub mod mariadb;
pub mod nginx;
pub mod numbers;
pub mod postgres;
pub mod python;
pub mod redis;
pub mod run;
pub mod turn;

pub use testkit::{binary, leash, port, wait};
