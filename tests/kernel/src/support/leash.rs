//! Servers that end with the test, on the CPU for servers.

use std::path::Path;

use testkit::leash::Leash;

use super::cores::{self, Core};

/// Starts `command`, with its output in the file `log`.
pub fn start(command: &[&str], log: &Path) -> Leash {
    Leash::start_by(command, log, |shell| cores::start(shell, Core::Last, 0))
}
