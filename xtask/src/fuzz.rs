//! `cargo xtask fuzz`: builds the fuzz targets and runs each for some seconds, from its committed seeds.
//!
//! libFuzzer with the coverage of LLVM, which a stable compiler has too; the address sanitizer needs a nightly compiler
//! and is left to `cargo fuzz`. The libraries under test have no unsafe code.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// The flags of cargo-fuzz, without the sanitizer.
const FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Limits per input, in seconds and in MiB: a hang and a memory bomb are findings.
const LIMITS: [&str; 2] = ["-timeout=20", "-rss_limit_mb=2048"];

#[derive(Debug, Deserialize)]
struct Manifest {
    bin: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

/// How long each target runs and where it begins.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    pub seconds: u32,
    /// libFuzzer's: the same one tries the same inputs in the same order, 0 draws another one each time.
    pub seed: u32,
}

/// As a step that must pass: what passed once must not fail on the next run of the same code.
pub const CHECK: Effort = Effort { seconds: 20, seed: 1 };

/// Builds and runs all targets; false if one found something, which is then in `fuzz/artifacts`.
pub fn run(root: &Path, effort: Effort, out: &mut impl Write) -> anyhow::Result<bool> {
    let folder = root.join("fuzz");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).context("fuzz/Cargo.toml")?;
    let manifest: Manifest = toml::from_str(&manifest).context("fuzz/Cargo.toml")?;
    let host = host()?;
    if !build(&folder, &host)? {
        return Ok(false);
    }
    let at_once = thread::available_parallelism().map_or(1, NonZero::get);
    for targets in manifest.bin.chunks(at_once) {
        let results = thread::scope(|scope| {
            let running: Vec<_> = targets
                .iter()
                .map(|target| scope.spawn(|| fuzz(&folder, &host, &target.name, effort)))
                .collect();
            running
                .into_iter()
                .map(|thread| thread.join().expect("a target's errors are returned"))
                .collect::<Vec<_>>()
        });
        for (Target { name }, result) in targets.iter().zip(results) {
            match result? {
                Found::Nothing { inputs } => writeln!(out, "fuzz: {name}: {inputs} inputs")?,
                Found::Something { log, artifacts } => {
                    io::stderr().write_all(&log)?;
                    writeln!(out, "fuzz: {name} found something: {}", artifacts.display())?;
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// What the run of one target ended with.
enum Found {
    Nothing { inputs: String },
    Something { log: Vec<u8>, artifacts: PathBuf },
}

/// Runs the built target `name` from its seeds and from what earlier runs found.
fn fuzz(folder: &Path, host: &str, name: &str, effort: Effort) -> anyhow::Result<Found> {
    let [found, artifacts, seeds] =
        ["corpus-found", "artifacts", "corpus"].map(|kind| folder.join(kind).join(name));
    for made in [&found, &artifacts, &seeds] {
        fs::create_dir_all(made).with_context(|| made.display().to_string())?;
    }
    let mut command = Command::new(folder.join("target").join(host).join("release").join(name));
    let Effort { seconds, seed } = effort;
    command.args(LIMITS).arg(format!("-max_total_time={seconds}")).arg(format!("-seed={seed}"));
    command.arg("-print_final_stats=1");
    command.arg(format!("-artifact_prefix={}/", artifacts.display())).args([&found, &seeds]);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("fuzz target {name}"))?;
    if !output.status.success() {
        return Ok(Found::Something { log: output.stderr, artifacts });
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let count = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    Ok(Found::Nothing { inputs: count.unwrap_or("an unknown number of").trim().to_owned() })
}

fn build(folder: &Path, host: &str) -> anyhow::Result<bool> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // With an explicit target, so that the flags do not apply to build scripts.
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--locked", "--target", host]).current_dir(folder);
    command.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", folder.join("target"));
    Ok(command.status().context("cargo cannot be started")?.success())
}

fn host() -> anyhow::Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().context("rustc cannot be started")?;
    ensure!(output.status.success(), "rustc -vV failed");
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a fuzz target is written and never run.
    #[test]
    fn every_target_is_in_the_manifest_and_has_seeds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("fuzz");
        let manifest: Manifest =
            toml::from_str(&fs::read_to_string(folder.join("Cargo.toml")).unwrap()).unwrap();
        let mut named: Vec<String> = manifest.bin.into_iter().map(|target| target.name).collect();
        let files = fs::read_dir(folder.join("fuzz_targets")).unwrap();
        let mut written: Vec<String> = files
            .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        named.sort();
        written.sort();
        assert_eq!(named, written);
        for name in named {
            assert!(
                fs::read_dir(folder.join("corpus").join(&name)).is_ok_and(|mut seeds| seeds.next().is_some()),
                "{name}"
            );
        }
    }
}
