//! Any files as a record: no panic, no hang, and what is refused is refused in one line.
//!
//! The input is a list of files: the number of a name, the length in two bytes, the content.

#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use record::{RecordError, TwoClocks};
use units::Nanos;

/// What a record of any kind may contain.
const NAMES: [&str; 10] = [
    "run.json",
    "series.ndjson",
    "events.ndjson",
    "response.hlog",
    "service.hlog",
    "phase-wait.hlog",
    "outcome-app_error.hlog",
    "hiccup.hlog",
    "search.json",
    "clock.json",
];

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rest = data;
    while let [name, high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(after.len());
        let (content, later) = after.split_at(length);
        let name = NAMES[usize::from(*name) % NAMES.len()];
        fs::write(folder.path().join(name), content).expect("a file in it");
        rest = later;
    }
    read(folder.path());
});

fn read(path: &Path) {
    check(record::kind_of(path));
    check(record::read(path));
    check(record::read_part(path, Nanos::ZERO, Nanos::from_secs(1)));
    check(record::read_seconds(path));
    check(record::read_observation(path));
    check(record::search::read_search(path));
    check(record::import::read_import(path));
    check(TwoClocks::read(path));
}

fn check<T>(result: Result<T, RecordError>) {
    if let Err(error) = result {
        assert!(!error.to_string().contains(['\r', '\n']), "one line: {error}");
    }
}
