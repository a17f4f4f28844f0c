//! How many trials a test took, printed where the log of a whole run shows it.

use std::io::{self, Write};
use std::panic::Location;
use std::thread;

/// Prints `trials: 2 of at most 8: MODULE::TEST` to standard error, even if the test passes: the test runner captures
/// only the output of `print!` and `eprint!`. `.ci/run` collects these lines.
///
/// A test that needs its later trials more often than before is about to fail, or its host is too busy.
#[track_caller]
pub fn report(taken: usize, most: usize) {
    let place = Location::caller();
    let thread = thread::current();
    // With one thread for all tests, the runner calls them on its own thread.
    let test = match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{}:{}", place.file(), place.line()),
    };
    // One write, so that lines of concurrent tests do not mix. Without standard error, nobody reads this.
    let _ = io::stderr().write_all(format!("trials: {taken} of at most {most}: {test}\n").as_bytes());
}
