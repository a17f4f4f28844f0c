//! Any file as the requests of a record, which `explain` reads: no panic, and memory that does not depend on what the
//! file promises.

#![no_main]

use std::io::Write;
use std::{panic, process};

use libfuzzer_sys::fuzz_target;
use units::Nanos;

/// As many rows as `explain` reads of a small record.
const MOST: u64 = 10_000;

// libFuzzer ends the process at any panic. Those of the library that decodes Parquet are expected, and caught where it is
// called; one that is not caught there still ends the process, as it leaves the target.
fuzz_target!(init: panic::set_hook(Box::new(|panic| {
    if !panic.location().is_some_and(|place| place.file().contains("/parquet-")) {
        eprintln!("{panic}");
        process::abort();
    }
})), |data: &[u8]| {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(data).expect("it can be written");
    let again = || file.try_clone().expect("there are descriptors left");
    let _ = export::served::read(again(), MOST, Nanos::ZERO, |_| {});
    let _ = export::requests::read(again(), MOST, |_| {});
});
