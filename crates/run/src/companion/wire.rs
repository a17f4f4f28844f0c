//! The lines between a run and an observer on another host, over its standard input and output.

use std::io::{self, BufRead, Read};

/// The last line of an observer: its record is closed.
pub const CLOSED: &str = "closed";

/// Longer than any line that is sent or received.
pub const LONGEST_LINE: u64 = 64;

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
