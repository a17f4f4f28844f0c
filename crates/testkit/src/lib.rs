//! A simulated network and scripted servers: what the instrument is tested against.
//!
//! [`SimReactor`] plays a [`Script`] in simulated time, so a test can plant a truth to the nanosecond and check that
//! the engine measures it. [`LineProtocol`] is the smallest protocol that pipelines; [`Transactions`] is one that logs
//! in, leases connections and retries. [`ScriptedServer`] misbehaves over real sockets. Tests of the whole program find
//! it with [`binary`], run other programs' servers on a [`leash::Leash`], and live views in a [`terminal::Terminal`].
//! Not part of any release: only tests use it.

pub mod binary;
mod formats;
pub mod leash;
mod line;
pub mod port;
mod script;
mod server;
mod sim;
pub mod terminal;
mod transactions;
pub mod trials;
pub mod wait;

pub use formats::{check_format, formats, is_update};
pub use line::{LineProtocol, LineSession};
pub use script::{Acks, Choke, Dial, Lookup, Piece, Script, Service, Span, Text, Then, Turns, Way};
pub use server::{Action, ScriptedServer};
pub use sim::SimReactor;
pub use transactions::{Transaction, TransactionSession, Transactions};
