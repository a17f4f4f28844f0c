//! Any bytes of a PostgreSQL server, cut anywhere: no panic, the contract of `Session` holds at every step, and the cuts
//! change nothing.
//!
//! The first byte chooses how statements are sent and how many at once, the second the cuts; the rest is what the server
//! sends, as messages with their lengths already right and after a login if the first byte says so.

#![no_main]

#[path = "../connections.rs"]
mod connections;

use database::DatabaseKind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [options, seed, input @ ..] = data else { return };
    let pipeline = usize::from(options >> 3 & 3) + 1;
    let run = connections::run(DatabaseKind::Postgres, options >> 1 & 1 == 1, options & 1 == 1, pipeline);
    let framed = if options >> 2 & 1 == 1 { messages(input) } else { input.to_vec() };
    connections::check(&run, &framed, *seed);
});

/// The end of a login, then the input cut into messages: each begins with its kind and its length.
fn messages(input: &[u8]) -> Vec<u8> {
    let mut out = [message(b'R', &[0; 4]), message(b'Z', b"I")].concat();
    let mut rest = input;
    while let [kind, length, after @ ..] = rest {
        let (payload, after) = after.split_at(usize::from(*length).min(after.len()));
        out.extend(message(*kind, payload));
        rest = after;
    }
    out
}

fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
    // At most 255 bytes.
    [&[kind, 0, 0][..], &(payload.len() as u16 + 4).to_be_bytes(), payload].concat()
}
