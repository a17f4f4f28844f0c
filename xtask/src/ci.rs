//! `cargo xtask ci`: the steps that must pass, in order, up to the first stage in which one fails.
//!
//! The list here is the only one: `make test` and continuous integration call it. Installs nothing.

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Context;

use crate::jvm;

/// Runs every step and prints how long each took; false, with the first step named that failed.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let mut times = Vec::new();
    let passed = run_all(root, &mut times);
    print_times(&times)?;
    match passed? {
        None => writeln!(io::stderr(), "ci: {} steps passed", times.len())?,
        Some(step) => {
            writeln!(io::stderr(), "ci: step `{step}` failed")?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// The name of the step that failed, if one did. `times` receives the name and the wall-clock time of each step that
/// ran.
fn run_all(root: &Path, times: &mut Vec<(&'static str, Duration)>) -> anyhow::Result<Option<&'static str>> {
    for stage in STAGES {
        // Maven's compiler uses the core that cargo leaves idle while it links.
        let meanwhile = stage.meanwhile.map(|step| {
            let root = root.to_owned();
            thread::spawn(move || timed(&root, step))
        });
        let mut failed = None;
        for step in stage.steps {
            let (passed, time) = timed(root, step)?;
            times.push((step.name, time));
            if !passed {
                failed = failed.or(Some(step.name));
                if !stage.to_the_end {
                    break;
                }
            }
        }
        if let (Some(step), Some(thread)) = (stage.meanwhile, meanwhile) {
            let (passed, time) = thread.join().expect("a step returns its errors")?;
            times.push((step.name, time));
            if !passed {
                failed = failed.or(Some(step.name));
            }
        }
        if failed.is_some() {
            return Ok(failed);
        }
    }
    Ok(None)
}

fn timed(root: &Path, step: &Step) -> anyhow::Result<(bool, Duration)> {
    let began = crate::now();
    let passed = match step.work {
        Work::Cargo(arguments) => cargo(root, step.name, arguments, &[])?,
        Work::Linted(arguments) => cargo(root, step.name, arguments, LINTED)?,
        Work::BuildJvm => jvm::build_quietly(root)?,
    };
    Ok((passed, began.elapsed()))
}

/// Clippy's compiler instead of Rust's: lints and code in one compilation, while `cargo clippy` would compile all
/// dependencies and the workspace once more.
const LINTED: &[(&str, &str)] = &[("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")];

/// Warnings are errors; cargo leaves out those of dependencies. The same for every step: with other flags, cargo would
/// compile dependencies again.
const FLAGS: (&str, &str) = ("RUSTFLAGS", "-D warnings");

/// What passed once must not fail on the next run of the same code, so that a failure here has its cause in the change.
/// Without this variable, property tests draw other cases each time.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

fn cargo(root: &Path, name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<bool> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    writeln!(io::stderr(), "ci: {name}: cargo {}", arguments.join(" "))?;
    let environment = environment.iter().copied().chain([FLAGS, SEED]);
    let status = Command::new(&cargo).args(arguments).envs(environment).current_dir(root).status();
    let status =
        status.with_context(|| format!("step {name}: {} cannot be started", cargo.to_string_lossy()))?;
    Ok(status.success())
}

fn print_times(times: &[(&str, Duration)]) -> io::Result<()> {
    let mut err = io::stderr().lock();
    for (name, time) in times {
        writeln!(err, "ci: {:6.1} s  {name}", time.as_secs_f64())?;
    }
    Ok(())
}

/// Steps that follow one another, and one that runs in the meantime.
struct Stage {
    steps: &'static [Step],
    /// Only compiles, so that no step that measures time runs at the same time.
    meanwhile: Option<&'static Step>,
    /// Whether the steps after a failed one run too, because they find other faults.
    to_the_end: bool,
}

struct Step {
    name: &'static str,
    work: Work,
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Cargo(&'static [&'static str]),
    /// As `Cargo`; a lint of the workspace's code fails it.
    Linted(&'static [&'static str]),
    BuildJvm,
}

const fn step(name: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { name, work: Work::Cargo(arguments) }
}

const fn linted(name: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { name, work: Work::Linted(arguments) }
}

/// Quick ones first. Everything is compiled before the first test runs: tests measure time, and need the machine to
/// themselves. Fuzzing measures nothing, so it may run while Maven compiles.
const STAGES: &[Stage] = &[
    Stage {
        steps: &[
            step("tidy", &["xtask", "tidy"]),
            step("supply", &["xtask", "supply"]),
            step("kernel's side", &["xtask", "bpf", "--check"]),
            step("format", &["fmt", "--all", "--check"]),
        ],
        meanwhile: None,
        to_the_end: false,
    },
    Stage {
        steps: &[
            linted("lint, build tests", &["test", "--workspace", "--all-targets", "--locked", "--no-run"]),
            step("build", &["build", "--release", "--locked", "-p", "parallax"]),
            step("fuzz", &["xtask", "fuzz"]),
        ],
        meanwhile: Some(&Step { name: "build jvm", work: Work::BuildJvm }),
        to_the_end: false,
    },
    Stage {
        steps: &[
            step("jvm", &["xtask", "jvm", "test"]),
            linted("test", &["test", "--workspace", "--locked", "--no-fail-fast"]),
        ],
        meanwhile: None,
        to_the_end: true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn stage_of(name: &str) -> usize {
        let has = |stage: &Stage| stage.steps.iter().chain(stage.meanwhile).any(|step| step.name == name);
        STAGES.iter().position(has).unwrap()
    }

    /// If this fails, the end-to-end tests run an outdated binary.
    #[test]
    fn everything_is_compiled_before_the_first_test_runs() {
        for built in ["build", "lint, build tests", "build jvm"] {
            for tested in ["jvm", "test"] {
                assert!(stage_of(built) < stage_of(tested), "{built}, {tested}");
            }
        }
    }

    /// If this fails, a test that measures time shares its cores with a compiler.
    #[test]
    fn nothing_runs_during_a_test() {
        assert!(STAGES[stage_of("jvm")].meanwhile.is_none());
        assert!(STAGES[stage_of("test")].meanwhile.is_none());
    }
}
