//! What the tests use: the planted server, hogs, control groups, the binary, and real servers.

pub mod accounted;
pub mod client;
pub mod cores;
pub mod far;
pub mod group;
pub mod hog;
pub mod leash;
pub mod planted;
pub mod quiet;
pub mod served;
pub mod tolerance;
pub mod watched;

pub use testkit::{binary, port, wait};
