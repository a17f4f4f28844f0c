//! The lines between a run and an observer that it controls. Each is JSON.
//!
//! On standard error, among its messages, an observer writes one [`Ready`]. On standard output it replies to each line
//! of its input with its monotonic clock in nanoseconds, and ends with [`CLOSED`]; what follows is the record.

use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

/// Sent once the observer sees what it is to observe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Always true: identifies the line.
    pub ready: bool,
    /// Process ID of the observer itself.
    pub pid: u32,
    /// The version of the observer's program.
    pub version: String,
}

impl Ready {
    /// The message of this process, as of now.
    pub fn now() -> Ready {
        Ready { ready: true, pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }

    /// Parses the line of an observer; `None` for any other line.
    pub fn read(line: &str) -> Option<Ready> {
        serde_json::from_str(line).ok().filter(|ready: &Ready| ready.ready)
    }

    /// The line, without its line end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON")
    }
}

/// The last line of an observer: its record is closed.
pub const CLOSED: &str = r#"{"closed":true}"#;

/// Longer than any line on standard input or output.
pub const LONGEST_LINE: u64 = 64;

/// The next line, of at most [`LONGEST_LINE`] bytes; `None` at the end.
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

    /// If this fails, a run waits for an observer that has begun, or takes a message for a sign that it has.
    #[test]
    fn an_observer_is_ready_by_one_line_of_json() {
        let ready = Ready::now();
        assert_eq!(Ready::read(&ready.line()), Some(ready));
        let later = r#"{"ready":true,"pid":7,"version":"9.0","since_ns":5}"#;
        assert_eq!(Ready::read(later).unwrap().pid, 7);
        for other in
            ["watching nginx", r#"{"ready":false,"pid":7,"version":"1"}"#, r#"{"pid":7}"#, "true", ""]
        {
            assert_eq!(Ready::read(other), None, "{other}");
        }
    }

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
