//! What the tests drive: the planted server, hogs, control groups, the binary, and real servers.

pub mod client;
pub mod cores;
pub mod group;
pub mod hog;
pub mod planted;
pub mod quiet;
pub mod tolerance;
