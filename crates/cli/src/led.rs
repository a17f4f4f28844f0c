//! `--led`: an observer that another parallax leads, over its standard input and output.
//!
//! Each line that comes is answered with this host's monotonic clock, so that the other can tell how the two clocks lie
//! to each other. The end of the input ends the observer, as it also comes when the other is killed or the connection
//! between them is gone; a last line says that the record is closed. `drive --watch` and `drive --profile` lead.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;

/// What is said when the record is closed.
pub const CLOSED: &str = "closed";

/// Longer than any line that is sent, and than any that is answered.
pub const LONGEST_LINE: u64 = 64;

/// Answers until the input ends, and then sets `stop`.
///
/// # Errors
///
/// When there can be no thread for it.
pub fn follow(stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let answer = move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(_)) = line(&mut input) {
            let told = writeln!(io::stdout(), "{}", clock::now().0).and_then(|()| io::stdout().flush());
            if told.is_err() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("led".to_owned()).spawn(answer).context("cannot follow who leads")?;
    Ok(())
}

/// Says that the record is closed, and nothing after it. Nobody may be there to hear it.
pub fn closed() {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{CLOSED}").and_then(|()| out.flush());
    // Kept for good: what is asked now gets no answer, which would stand where the record is expected.
    std::mem::forget(out);
}

/// The next line, of so many bytes at most; `None` at the end.
///
/// # Errors
///
/// Those of `input`.
pub fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_end_even_where_it_has_none() {
        let long = "x".repeat(1 << 16);
        let mut input = long.as_bytes();
        assert_eq!(line(&mut input).unwrap().unwrap().len() as u64, LONGEST_LINE);
        let mut input = &b"1\n2"[..];
        assert_eq!(line(&mut input).unwrap().as_deref(), Some("1"));
        assert_eq!(line(&mut input).unwrap().as_deref(), Some("2"));
        assert_eq!(line(&mut input).unwrap(), None);
    }
}
