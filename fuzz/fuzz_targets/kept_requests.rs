//! Any file as the requests of a record, which `explain` reads: no panic, and memory that does not depend on what the
//! file promises. What can be read is explained, with the good requests of the other side.

#![no_main]

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{panic, process};

use explain::{Client, Server};
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
    let mut served = Vec::new();
    if export::served::read(again(), MOST, Nanos::ZERO, |request| served.push(request)).is_ok() {
        GOOD.with_borrow(|(client, server)| explained(client, Server { served, ..server.clone() }));
    }
    let mut kept = Vec::new();
    if let Ok(rows) = export::requests::read(again(), MOST, |row| kept.push(row)) {
        GOOD.with_borrow_mut(|(client, server)| {
            let good = client.rows.replace((rows, kept));
            explained(client, server.clone());
            client.rows = good;
        });
    }
});

thread_local! {
    /// The records of one run, of the client and of its server.
    static GOOD: RefCell<(Client, Server)> = RefCell::new(good());
}

fn good() -> (Client, Server) {
    let seed = |name| -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/run/tests/hostile/seeds").join(name)
    };
    let file = |path: PathBuf| Some(File::open(path).expect("the seed has its requests"));
    let recording = record::read(&seed("drive")).expect("the seed is a record");
    let requests = file(seed("drive").join("requests.parquet"));
    let observed = record::read_observation(&seed("watch")).expect("the seed is a record");
    let served = file(seed("watch").join("served.parquet"));
    (
        Client::read(recording, requests, String::new()).expect("the seed can be read"),
        Server::read(observed, served, None, String::new()).expect("the seed can be read"),
    )
}

fn explained(client: &Client, server: Server) {
    let explanation = explain::explain(client, vec![server], &[]);
    assert!(!explain::view(&explanation).sections.is_empty());
}
