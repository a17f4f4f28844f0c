//! Names the build in `parallax --version`: the commit, and the features.
//!
//! Only a release build names its commit: any other would be compiled again after each commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PARALLAX_COMMIT");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let given = std::env::var("PARALLAX_COMMIT").ok();
    let commit =
        given.or_else(|| if is_release { checked_out() } else { Some("development build".to_owned()) });
    let commit = commit.unwrap_or_else(|| "unknown commit".to_owned());
    let ebpf = if std::env::var_os("CARGO_FEATURE_EBPF").is_some() { "with ebpf" } else { "without ebpf" };
    println!("cargo::rustc-env=PARALLAX_BUILD={commit}, {ebpf}");
}

/// The short name of the commit that is checked out; `None` outside a git checkout.
fn checked_out() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
    };
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short", "HEAD"])
}
