//! Hostile input, drawn at random: record folders, the lines of an observer on another host, and the archive that it
//! sends. Each of 20,000 cases (`-- --long`: a million) must end in a value or an error: no panic, no hang, no growth
//! of memory, and no file outside the folder.
//!
//! Each fuzzer runs in a process with limits on memory and time. A case depends on its number only: a failing case is
//! repeated with `-- NAME --case NUMBER`.

mod archives;
mod mutation;
mod protocol;
mod records;

use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::process::{Resource, Rlimit, setrlimit};
use units::Nanos;

use mutation::Draw;

/// Runs case after case in a folder of its own.
type Fuzzer = fn(&Path) -> Box<dyn FnMut(&mut Draw)>;

const FUZZERS: [(&str, Fuzzer); 3] =
    [("records", records::fuzzer), ("protocol", protocol::fuzzer), ("archives", archives::fuzzer)];

const CASES: u64 = 20_000;
const LONG: u64 = 1_000_000;

/// Memory limit of the process: its code, the stacks of its threads, and the largest document that is read.
const MEMORY: u64 = 768 << 20;

/// How much memory in use may grow after [`WARM_UP`] cases: a document of 16 MiB may be read, and parsed.
const GROWTH_KIB: u64 = 128 << 10;
const WARM_UP: u64 = 1_000;

/// A case takes milliseconds; a shared host may be slow.
const PATIENCE: Nanos = Nanos::from_secs(30);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| arguments.iter().skip_while(|text| *text != name).nth(1);
    if let Some(name) = after("--within-limits") {
        let cases = after("--cases").and_then(|text| text.parse().ok());
        let first = after("--case").and_then(|text| text.parse().ok());
        let cases = first.map_or(0..cases.unwrap_or(CASES), |case| case..case + 1);
        return within_limits(name, cases);
    }
    let is_long = arguments.iter().any(|text| text == "--long");
    let mut named = arguments.iter().filter(|text| !text.starts_with('-') && text.parse::<u64>().is_err());
    let named = named.next();
    let mut passed = true;
    for (name, _) in FUZZERS.iter().filter(|(name, _)| named.is_none_or(|part| name.contains(part.as_str())))
    {
        let mut command = Command::new(std::env::current_exe().expect("this test is a file"));
        command.args(["--within-limits", name, "--cases", &if is_long { LONG } else { CASES }.to_string()]);
        if let Some(case) = after("--case") {
            command.args(["--case", case]);
        }
        let status = command.status().expect("this test can be started again");
        passed &= status.success();
        say(format_args!("{name}: {status}"));
    }
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn within_limits(name: &str, cases: std::ops::Range<u64>) -> ExitCode {
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    setrlimit(Resource::As, limit).expect("a limit can be lowered");
    let (_, fuzzer) = FUZZERS.iter().find(|(known, _)| *known == name).expect("a fuzzer is named");
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let mut run = fuzzer(folder.path());
    let at = Arc::new(AtomicU64::new(u64::MAX));
    watch(Arc::clone(&at));
    // The readers catch panics of libraries; the default hook would print each of them.
    std::panic::set_hook(Box::new(|_| {}));
    let mut warm = u64::MAX;
    for case in cases {
        at.store(case, Ordering::Relaxed);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&mut Draw::new(case)))) {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            say(format_args!("{name}: case {case} panicked: {}", text.unwrap_or_default()));
            return ExitCode::FAILURE;
        }
        if case == WARM_UP {
            warm = peak_kib();
        }
    }
    let grown = peak_kib().saturating_sub(warm);
    say(format_args!("{name}: {grown} KiB more memory than after {WARM_UP} cases"));
    if grown > GROWTH_KIB { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Ends the process with the number of a case that hangs.
fn watch(at: Arc<AtomicU64>) {
    thread::spawn(move || {
        loop {
            let before = at.load(Ordering::Relaxed);
            clock::sleep_until(clock::now() + PATIENCE);
            if before != u64::MAX && at.load(Ordering::Relaxed) == before {
                say(format_args!("case {before} did not end within {PATIENCE}"));
                std::process::abort();
            }
        }
    });
}

/// Prints a line for the person who runs the test; ignores a closed output.
fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("the kernel counts memory")
}
