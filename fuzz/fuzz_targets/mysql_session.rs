//! Any bytes of a MySQL server, cut anywhere: no panic, the contract of `Session` holds at every step, and the cuts
//! change nothing.
//!
//! The first byte chooses how statements are sent and how the login goes, the second the cuts; the rest is what the
//! server sends, as packets with their lengths and numbers already right if the first byte says so.

#![no_main]

#[path = "../connections.rs"]
mod connections;

use database::DatabaseKind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [options, seed, input @ ..] = data else { return };
    let run = connections::run(DatabaseKind::MySql, options >> 1 & 1 == 1, options & 1 == 1, 1);
    let framed = if options >> 2 & 1 == 1 { packets(input) } else { input.to_vec() };
    connections::check(&run, &framed, *seed);
});

/// A greeting and an OK, then the input cut into packets: each begins with its length, and has its number in order.
fn packets(input: &[u8]) -> Vec<u8> {
    let greeting = b"\x0a8\0\x01\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
    let mut out = packet(0, greeting);
    out.extend(packet(2, &[0, 0, 0, 2, 0, 0, 0]));
    let (mut rest, mut number) = (input, 1);
    while let [length, after @ ..] = rest {
        let (payload, after) = after.split_at(usize::from(*length).min(after.len()));
        out.extend(packet(number, payload));
        (rest, number) = (after, number.wrapping_add(1));
    }
    out
}

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    [&[payload.len() as u8, 0, 0, number][..], payload].concat()
}
