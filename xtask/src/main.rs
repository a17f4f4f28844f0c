//! `cargo xtask`: the development commands.
//!
//! Uses no crate of the workspace, so it works when the rest does not build. Only `bpf` and `supply --update` change files.

mod bpf;
mod ci;
mod fuzz;
mod jvm;
mod rust;
mod supply;
mod tidy;
mod tree;

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::Context;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Standard error is closed: the exit code is still set.
            let _ = writeln!(io::stderr(), "xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Dispatches; `Ok(false)` if the command ran and found something wrong.
fn run(arguments: &[String]) -> anyhow::Result<bool> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = io::stdout().lock();
    match words.as_slice() {
        ["tidy"] => tidy::run(&root()?, tidy::Detail::Findings, &mut out),
        ["tidy", "--verbose" | "-v"] => tidy::run(&root()?, tidy::Detail::Aims, &mut out),
        ["bpf"] => bpf::run(&root()?, bpf::Mode::Write, &mut out),
        ["bpf", "--check"] => bpf::run(&root()?, bpf::Mode::Check, &mut out),
        ["jvm"] => jvm::run(&root()?, &mut out),
        ["jvm", "test"] => jvm::test(&root()?, &mut out),
        ["supply"] => supply::run(&root()?, &mut out),
        ["supply", "--update", clone] => update_advisories(Path::new(clone), &mut out),
        ["fuzz"] => fuzz::run(&root()?, fuzz::CHECK, &mut out),
        ["fuzz", seconds] => {
            let seconds = seconds.parse().context("SECONDS is a whole number")?;
            fuzz::run(&root()?, fuzz::Effort { seconds, seed: 0 }, &mut out)
        }
        ["notices"] => supply::write_notices(&root()?, &mut out).map(|()| true),
        ["ci"] => ci::run(&root()?),
        [] | ["help" | "--help" | "-h"] => {
            out.write_all(HELP.as_bytes())?;
            Ok(true)
        }
        other => anyhow::bail!("no command `{}`; `cargo xtask help` lists them", other.join(" ")),
    }
}

fn update_advisories(clone: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let head = Command::new("git").arg("-C").arg(clone).args(["log", "-1", "--format=%H of %cs"]).output();
    let head = head.context("git cannot be started")?;
    anyhow::ensure!(head.status.success(), "{} is no clone: {}", clone.display(), HOW_TO_CLONE);
    let count = supply::update(&root()?, clone, String::from_utf8_lossy(&head.stdout).trim())?;
    writeln!(out, "supply: {count} advisories")?;
    Ok(true)
}

const HOW_TO_CLONE: &str = "git clone https://github.com/rustsec/advisory-db";

/// The time of a step begins here.
#[expect(clippy::disallowed_methods, reason = "xtask uses no crate of the workspace, so not `clock` either")]
fn now() -> Instant {
    Instant::now()
}

/// The repository: the directory above this crate's.
fn root() -> anyhow::Result<PathBuf> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").context("start this as `cargo xtask`")?;
    let parent = PathBuf::from(manifest).parent().map(PathBuf::from);
    parent.context("xtask lies in a folder of the repository")
}

const HELP: &str = "\
cargo xtask tidy [--verbose]   check what the compiler cannot: layers, lengths, paths in documents, words
cargo xtask bpf [--check]      compile the kernel's side into the committed objects, or compare them
cargo xtask jvm [test]         build the modules under jvm/ and test them on Java 17 and 25, or only test them
cargo xtask supply             check licences, banned packages, sources and advisories of all dependencies
cargo xtask supply --update CLONE   copy the advisories from a clone of rustsec/advisory-db
cargo xtask fuzz [SECONDS]     build the fuzz targets and run each for 20 s always with the same inputs, or for SECONDS with new ones
cargo xtask notices            print the licences of what the program contains
cargo xtask ci                 all that has to pass: tidy, formatting, lints, builds, tests; prints the time of each step
cargo xtask help               this text
";
