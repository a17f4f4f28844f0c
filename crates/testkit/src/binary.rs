//! The path of the release binary, and of the build directory.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The binary under test: `PARALLAX_BIN`, or the release build, which is built once if it does not exist.
///
/// # Panics
///
/// If it cannot be built.
pub fn parallax() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match env::var_os("PARALLAX_BIN") {
        Some(path) => PathBuf::from(path),
        None => built(),
    })
}

/// Copies the binary to `path`, for users that cannot read the build directory. A separate process writes the copy: a
/// child that another test forks in the meantime would otherwise keep it open for writing, and such a file cannot be
/// run.
///
/// # Panics
///
/// If it cannot be written.
pub fn copy_to(path: &Path) {
    let status = Command::new("cp").arg(parallax()).arg(path).status().expect("cp is everywhere");
    assert!(status.success(), "cannot copy the binary to {}", path.display());
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies two folders below")
}

/// The build directory of cargo.
pub fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

fn built() -> PathBuf {
    let path = target().join("release/parallax");
    if !path.exists() {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let arguments = ["build", "--release", "--locked", "-p", "parallax"];
        let status =
            Command::new(cargo).args(arguments).current_dir(root()).status().expect("cargo runs this test");
        assert!(status.success(), "cargo {} failed", arguments.join(" "));
    }
    path
}
