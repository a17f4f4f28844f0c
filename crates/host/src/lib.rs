//! What this host is, and what this process has used of it.
//!
//! Every fact may be missing: a fact that cannot be read is `None`, never a guess. Nothing here changes the host.

mod cpu;
mod facts;

pub use cpu::process_cpu;
pub use facts::Facts;
