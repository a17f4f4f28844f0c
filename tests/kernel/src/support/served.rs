//! The requests that a record of `watch` keeps.

use std::path::Path;

use record::Served;

pub fn read(_folder: &Path) -> Vec<Served> {
    Vec::new()
}
