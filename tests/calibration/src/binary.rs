//! Where the binary under test is, and the CPU it runs on.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The release binary: `PARALLAX_BIN`, or the one next to this test, which is built if it is missing.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(given) = env::var_os("PARALLAX_BIN") {
            return PathBuf::from(given);
        }
        // This test is TARGET/debug/deps/calibration-HASH.
        let test = env::current_exe().unwrap();
        let target = test.ancestors().nth(3).unwrap();
        let binary = target.join("release/parallax");
        if !binary.exists() {
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let build = ["build", "--release", "--locked", "-p", "parallax", "--target-dir"];
            let status = Command::new(cargo).args(build).arg(target).status().unwrap();
            assert!(status.success(), "the release binary cannot be built: {status}");
        }
        binary
    })
}

/// The CPUs that this test may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Core {
    /// For the client.
    First,
    /// For the server; the first one if there is only one.
    Last,
}

/// Runs at a higher priority than other work on this host, if that is permitted.
const NICENESS: i32 = -15;

/// Starts the binary with its output in pipes, on a separate core, so that the cost of one side is not part of the
/// other side's figures.
pub fn start(arguments: &[&str], core: Core) -> Child {
    let mut command = Command::new(path());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A lookup without a reply must fail soon.
    command.env("RES_OPTIONS", "attempts:1 timeout:1").env("NO_COLOR", "1");
    // A ceiling that was measured on this host must not influence a test.
    command.env("XDG_CACHE_HOME", "/dev/null");
    // A child starts with the affinity and the priority of the thread that started it.
    let before = sched_getaffinity(None).unwrap();
    sched_setaffinity(None, &only(core, &before)).unwrap();
    let usual = getpriority_process(None).unwrap();
    // Needs a privilege; without it the tests are still valid, with more noise around them.
    let _ = setpriority_process(None, NICENESS);
    let child = command.spawn();
    let _ = setpriority_process(None, usual);
    sched_setaffinity(None, &before).unwrap();
    child.unwrap_or_else(|error| panic!("cannot start {}: {error}", path().display()))
}

fn only(core: Core, allowed: &CpuSet) -> CpuSet {
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let chosen = match core {
        Core::First => cpus.next(),
        Core::Last => cpus.next_back(),
    };
    let mut set = CpuSet::new();
    set.set(chosen.unwrap());
    set
}
