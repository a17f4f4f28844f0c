//! Bodies without a length: chunks, and what ends with the connection.

use crate::tap::{Step, View};

/// The next expected element of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Body {
    /// No body is being read.
    #[default]
    None,
    /// The line before a chunk.
    Line,
    /// A line of the trailer, or the empty one that ends it.
    Trailer,
    UntilClose,
}

impl Body {
    /// Reads a line, with the chunk that it announces. The body is [`Body::None`] once it has ended.
    pub(super) fn frame(&mut self, view: View<'_>) -> Step {
        if *self == Body::UntilClose {
            return Step::Taken(u64::MAX >> 1);
        }
        let Some(end) = memchr::memchr(b'\n', view.bytes) else {
            return if view.bytes.len() > LINE_MOST { Step::Bad } else { Step::Need };
        };
        let line = &view.bytes[..end];
        let length = end as u64 + 1;
        if *self == Body::Trailer {
            if matches!(line, b"" | b"\r") {
                *self = Body::None;
            }
            return Step::Taken(length);
        }
        match chunk_bytes(line) {
            None => Step::Bad,
            Some(0) => {
                *self = Body::Trailer;
                Step::Taken(length)
            }
            // The chunk is followed by the end of a line.
            Some(bytes) => Step::Taken(length + bytes + 2),
        }
    }
}

/// The length in a line before a chunk. `None` if there is none, or if it has too many digits.
fn chunk_bytes(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let after = line.get(digits);
    if !(1..=DIGITS_MOST).contains(&digits) || !matches!(after, None | Some(b'\r' | b';' | b' ' | b'\t')) {
        return None;
    }
    let digits = std::str::from_utf8(&line[..digits]).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

const LINE_MOST: usize = 4_096;
const DIGITS_MOST: usize = 15;
