//! Reads what a user names up to a limit: a device or a pipe has no end, and memory has.

use std::io::{self, BufRead, ErrorKind, Read};

use crate::Bytes;

/// Maximum length of one line of a file.
pub const LONGEST_LINE: u64 = 16 << 20;

/// Maximum number of lines of a file.
const MOST_LINES: u64 = 100_000_000;

/// Everything that `input` has, if it has at most `most` bytes.
///
/// # Errors
///
/// Errors of `input`, and one that names the limit.
pub fn read_at_most(input: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is over {}; use a smaller file", Bytes(most))));
    }
    Ok(bytes)
}

/// As [`read_at_most`], for text.
///
/// # Errors
///
/// As [`read_at_most`], and for bytes that are not UTF-8.
pub fn read_text_at_most(input: impl Read, most: u64) -> io::Result<String> {
    String::from_utf8(read_at_most(input, most)?).map_err(|_| not_text())
}

/// The lines of `input`, without their ends, as [`BufRead::lines`] returns them. The errors for a line that is not UTF-8,
/// or is over 16 MiB, have its number; the last item is an error if there are more than 100 million lines.
pub fn bounded_lines(input: impl BufRead) -> impl Iterator<Item = io::Result<String>> {
    lines_at_most(input, LONGEST_LINE, MOST_LINES)
}

fn lines_at_most(
    mut input: impl BufRead,
    longest: u64,
    most: u64,
) -> impl Iterator<Item = io::Result<String>> {
    let mut number: u64 = 0;
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        // Room for the line's end.
        let read = input.by_ref().take(longest.saturating_add(2)).read_until(b'\n', &mut line);
        match read {
            Err(error) => return Some(Err(error)),
            Ok(0) => return None,
            Ok(_) => number += 1,
        }
        if number > most {
            return Some(Err(io::Error::other(format!("it has more than {most} lines; split it"))));
        }
        if line.ends_with(b"\n") {
            line.pop();
            if line.ends_with(b"\r") {
                line.pop();
            }
        }
        if line.len() as u64 > longest {
            let what = format!("line {number} is over {}; use a file with shorter lines", Bytes(longest));
            return Some(Err(io::Error::other(what)));
        }
        Some(String::from_utf8(line).map_err(|_| {
            io::Error::new(ErrorKind::InvalidData, format!("line {number} is not text in UTF-8"))
        }))
    })
}

fn not_text() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a device or a pipe without an end takes all memory.
    #[test]
    fn an_input_without_end_is_read_to_the_limit() {
        let error = read_at_most(io::repeat(0), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is over 1.0 MiB; use a smaller file");
        assert_eq!(read_at_most(io::repeat(0).take(9), 9).unwrap(), [0; 9]);
        assert_eq!(read_text_at_most(&b"a\xff"[..], 9).unwrap_err().to_string(), "it is not text in UTF-8");
    }

    fn lines(input: impl Read) -> Vec<String> {
        let lines = lines_at_most(io::BufReader::new(input), 4, 5).take(9);
        lines.map(|line| line.unwrap_or_else(|error| error.to_string())).collect()
    }

    #[test]
    fn lines_are_those_of_a_file_without_their_ends() {
        assert_eq!(lines(&b"a\r\n\nabcd\nabc\r\nb"[..]), ["a", "", "abcd", "abc", "b"]);
        assert_eq!(lines(&b"abcd\r\n"[..]), ["abcd"]);
        assert_eq!(lines(&b""[..]), Vec::<String>::new());
    }

    /// If this fails, `--replay /dev/zero` takes all memory.
    #[test]
    fn a_line_without_end_is_an_error_with_its_number() {
        let found = lines(b"a\n".chain(io::repeat(0)));
        assert_eq!(found[1], "line 2 is over 4 B; use a file with shorter lines");
        assert_eq!(lines(&b"a\nabcde\n"[..])[1], found[1]);
        assert_eq!(lines(&b"a\n\xff\n"[..])[1], "line 2 is not text in UTF-8");
        assert_eq!(lines(&b"\n\n\n\n\n\n"[..])[5], "it has more than 5 lines; split it");
        let error = bounded_lines(io::BufReader::new(io::repeat(0))).next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "line 1 is over 16.0 MiB; use a file with shorter lines");
    }
}
