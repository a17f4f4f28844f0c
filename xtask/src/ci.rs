//! `cargo xtask ci`: the steps that have to pass, in order, up to the first that fails.
//!
//! The list here is the only one: `make test` and continuous integration call it. Installs nothing.

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// Runs every step; false, with the step named, at the first that fails.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for step in STEPS {
        writeln!(io::stderr(), "ci: {}: cargo {}", step.name, step.arguments.join(" "))?;
        let status =
            Command::new(&cargo).args(step.arguments).current_dir(root).status().with_context(|| {
                format!("step {}: {} cannot be started", step.name, cargo.to_string_lossy())
            })?;
        if !status.success() {
            writeln!(io::stderr(), "ci: step `{}` failed ({status})", step.name)?;
            return Ok(false);
        }
    }
    writeln!(io::stderr(), "ci: {} steps passed", STEPS.len())?;
    Ok(true)
}

struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
}

/// The quick ones first. The release binary comes before the tests because the end-to-end tests drive it.
const STEPS: &[Step] = &[
    Step { name: "tidy", arguments: &["xtask", "tidy"] },
    Step { name: "kernel's side", arguments: &["xtask", "bpf", "--check"] },
    Step { name: "format", arguments: &["fmt", "--all", "--check"] },
    Step {
        name: "lint",
        arguments: &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
    },
    Step { name: "build", arguments: &["build", "--release", "--locked", "-p", "parallax"] },
    Step { name: "jvm", arguments: &["xtask", "jvm"] },
    Step { name: "test", arguments: &["test", "--workspace", "--locked", "--no-fail-fast"] },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, the end-to-end tests judge a binary of yesterday.
    #[test]
    fn the_release_binary_is_built_before_the_tests() {
        let at = |name| STEPS.iter().position(|step| step.name == name).unwrap();
        assert!(at("build") < at("test"));
    }
}
