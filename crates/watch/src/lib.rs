//! Observes what a running server does with its requests, from its kernel.
//!
//! The programs in `bpf/` are loaded as they are committed in `objects/`; they report every read and write of the
//! server's connections, with an exact account of its threads' time.

pub mod assemble;
pub mod cpu;
mod find;
pub mod kernel;
mod object;
pub mod profile;
mod session;
mod sums;
mod symbol;

pub use assemble::{KnownRequests, comm as comm_text};
pub use find::{FindError, Found, Named, cgroup, comm, find};
pub use session::{Session, WatchError};
pub use sums::{DigestSums, NOT_CLASSIFIED, OTHER_CLASSES, Sums};
pub use symbol::{SymbolError, function};
