//! Where the release binary is, and where the build puts things.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The binary under test: `PARALLAX_BIN`, or the release build, which is made once if it is not there.
///
/// # Panics
///
/// When it cannot be built.
pub fn parallax() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match env::var_os("PARALLAX_BIN") {
        Some(path) => PathBuf::from(path),
        None => built(),
    })
}

/// Puts a copy there, for users that cannot read the build directory. A process of its own writes it: one that another test forks
/// in the meantime would hold it open for writing, and nobody can run such a file.
///
/// # Panics
///
/// When it cannot be written.
pub fn copy_to(path: &Path) {
    let status = Command::new("cp").arg(parallax()).arg(path).status().expect("cp is everywhere");
    assert!(status.success(), "cannot copy the binary to {}", path.display());
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies two folders below")
}

/// Where cargo builds.
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
