//! The planted server: a small server of ours that burns, sleeps, locks, waits and writes to disk by known amounts,
//! and keeps an account of its own of every request. `parallax watch` is tested against that account.
//!
//! The library holds what the server, its hogs and the tests share; the tests are in `kernel.rs` and beside it.
//! Nothing here is part of a release.

pub mod account;
pub mod hands;
pub mod recipe;
pub mod server;
