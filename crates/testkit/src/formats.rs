//! Checks the files of `formats/` against the code that they describe.

use std::fs;
use std::path::{Path, PathBuf};

/// The directory `formats/` of the workspace.
pub fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats")
}

/// Whether the files are to be written again: `UPDATE_FORMATS=1`.
pub fn is_update() -> bool {
    std::env::var_os("UPDATE_FORMATS").is_some()
}

/// Fails if `formats/<name>` is not `text`; with `UPDATE_FORMATS=1`, writes it.
///
/// # Panics
///
/// If the file differs or cannot be written.
pub fn check_format(name: &str, text: &str) {
    let path = formats().join(name);
    if is_update() {
        let written =
            fs::create_dir_all(path.parent().unwrap_or(&path)).and_then(|()| fs::write(&path, text));
        assert!(written.is_ok(), "formats/{name} cannot be written: {written:?}");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "formats/{name} is stale: run UPDATE_FORMATS=1 cargo test formats, and read the difference"
    );
}
