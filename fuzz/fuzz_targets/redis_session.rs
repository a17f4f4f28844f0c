//! Any bytes of a Redis server, cut anywhere: no panic, the contract of `Session` holds at every step, and the cuts change
//! nothing.
//!
//! The first byte chooses how many commands are in flight, and whether a login comes first, the second the cuts; the rest
//! is what the server sends.

#![no_main]

#[path = "../connections.rs"]
mod connections;

use database::DatabaseKind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [options, seed, input @ ..] = data else { return };
    let pipeline = usize::from(options >> 1 & 3) + 1;
    let run = connections::run(DatabaseKind::Redis, false, false, pipeline);
    let login: &[u8] = if options & 1 == 1 { b"%0\r\n" } else { b"" };
    connections::check(&run, &[login, input].concat(), *seed);
});
