//! Observes what a running server does with its requests, from its kernel.
//!
//! The programs in `bpf/` are loaded as they are committed in `objects/`; they report every read and write of the
//! server's connections, with an exact account of its threads' time.

pub mod assemble;
mod bounded;
mod class;
pub mod cpu;
mod duty;
mod filter;
mod find;
pub mod kernel;
mod object;
pub mod profile;
mod received;
mod session;
mod spending;
mod sums;
mod symbol;
mod tls;
mod windows;

pub use assemble::KnownRequests;
pub use bounded::{Bounded, Summed};
pub use class::{ClassError, RequestClass};
pub use duty::Budget;
pub use filter::{PeerPattern, RequestFilter, StatementPattern};
pub use find::{FindError, Found, Named, cgroup, comm, find};
pub use received::ReadBytes;
pub use session::{Session, WatchError};
pub use sums::{NOT_CLASSIFIED, OTHER_CLASSES, Sums};
pub use symbol::{Function, SymbolError, function};
pub use tls::TlsLibrary;
pub use windows::{Seeing, Seen, TAIL};
