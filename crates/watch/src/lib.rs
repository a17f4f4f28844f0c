//! What a running server does with its requests, seen from its kernel.
//!
//! The programs in `bpf/` are loaded as they are committed in `objects/`; they tell of every read and write of the
//! server's connections, with an exact account of its threads' time.

pub mod assemble;
mod find;
pub mod kernel;
mod object;
mod session;
mod sums;

pub use find::{FindError, Found, Named, cgroup, comm};
pub use session::{Session, WatchError};
pub use sums::{DigestSums, Sums};
