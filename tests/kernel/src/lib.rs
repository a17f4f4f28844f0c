//! The planted server: a small server that burns, sleeps, locks, waits and writes to disk by known amounts, and keeps
//! its own account of every request. `parallax watch` is tested against that account.
//!
//! The library has what the server, its hogs and the tests share; the tests are in `kernel.rs` and its modules. Nothing
//! here is part of a release.

pub mod account;
pub mod hands;
pub mod recipe;
pub mod server;
