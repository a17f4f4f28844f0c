//! The requests that a record of `watch` keeps.

use std::fs::File;
use std::path::Path;

use record::Served;
use units::Nanos;

/// # Panics
///
/// There are no requests, or the file is damaged.
pub fn read(folder: &Path, zero: Nanos) -> Vec<Served> {
    let path = folder.join("served.parquet");
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut served = Vec::new();
    export::served::read(file, u64::MAX, zero, |one| served.push(one)).unwrap();
    served
}
