//! What a running server does with its requests, seen from its kernel.
//!
//! The programs in `bpf/` are loaded as they are committed in `objects/`; they tell of every read and write of the
//! server's connections, with an exact account of its threads' time.

pub mod kernel;
pub mod object;
