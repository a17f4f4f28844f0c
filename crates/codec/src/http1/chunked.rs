//! Decodes the chunked transfer coding (RFC 9112, section 7.1) in pieces of any size, storing nothing.
//!
//! Extensions and trailers are skipped, not interpreted. A bare LF ends a line, as it does in heads. Driven by the
//! session.
//!
//! ```text
//!  ┌────────────────────────────────────────────────────┐
//!  ▼                                                    │ LF
//! Size ─► Padding ─► Extension ─► LF ─► Data ─► DataEnd ┘
//!                                  └─ size 0 ─► TrailerStart ⇄ Trailer
//!                                                    └─ empty line ─► End
//! ```

use memchr::memchr;

use crate::DecodeError;
use crate::web::Limits;

/// The position within a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkDecoder {
    state: State,
    /// Size of the current chunk; within its data, the bytes of it that are left.
    size: u64,
    /// Bytes of the current size line, or of all trailers so far.
    line_bytes: usize,
    /// Total size of all chunks announced so far.
    announced_bytes: u64,
}

/// The result of one decoding step, with at most one run of data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub consumed: usize,
    pub data: &'a [u8],
    pub end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size { digits: bool },
    Padding,
    Extension,
    SizeLf,
    Data,
    DataEnd,
    DataLf,
    TrailerStart,
    Trailer { colon: bool },
    EndLf,
    End,
}

impl ChunkDecoder {
    pub(crate) fn new() -> ChunkDecoder {
        ChunkDecoder { state: State::Size { digits: false }, size: 0, line_bytes: 0, announced_bytes: 0 }
    }

    /// Reads up to and including the next run of data, the end of the body, or the end of the input.
    pub(crate) fn decode<'a>(&mut self, input: &'a [u8], limits: &Limits) -> Result<Piece<'a>, DecodeError> {
        let mut consumed = 0;
        while let Some(&byte) = input.get(consumed) {
            match self.state {
                State::Data => return Ok(self.take_data(input, consumed)),
                State::Trailer { colon } => {
                    consumed += self.skip_trailer(&input[consumed..], colon, limits)?
                }
                _ => {
                    self.handle_byte(byte, limits)?;
                    consumed += 1;
                }
            }
            if self.state == State::End {
                return Ok(Piece { consumed, data: &[], end: true });
            }
        }
        Ok(Piece { consumed, data: &[], end: false })
    }

    fn take_data<'a>(&mut self, input: &'a [u8], start: usize) -> Piece<'a> {
        let rest = &input[start..];
        let taken = usize::try_from(self.size).unwrap_or(usize::MAX).min(rest.len());
        self.size -= taken as u64;
        if self.size == 0 {
            self.state = State::DataEnd;
        }
        Piece { consumed: start + taken, data: &rest[..taken], end: false }
    }

    fn skip_trailer(&mut self, rest: &[u8], colon: bool, limits: &Limits) -> Result<usize, DecodeError> {
        let line_end = memchr(b'\n', rest);
        let taken = line_end.map_or(rest.len(), |at| at + 1);
        self.count_line(taken, "bytes of trailers", limits.trailer_bytes)?;
        let colon = colon || memchr(b':', &rest[..taken]).is_some();
        if line_end.is_some() && !colon {
            // Usually the next response, sent without the empty line that ends this one.
            return Err(DecodeError::Malformed { what: "trailer" });
        }
        self.state = if line_end.is_some() { State::TrailerStart } else { State::Trailer { colon } };
        Ok(taken)
    }

    fn handle_byte(&mut self, byte: u8, limits: &Limits) -> Result<(), DecodeError> {
        match self.state {
            State::Size { .. } | State::Padding | State::Extension | State::SizeLf => {
                self.count_line(1, "bytes of a chunk-size line", limits.chunk_line_bytes)?;
                self.handle_size_line(byte, limits)?;
            }
            State::TrailerStart | State::EndLf => {
                self.count_line(1, "bytes of trailers", limits.trailer_bytes)?;
                self.state = match (self.state, byte) {
                    (_, b'\n') => State::End,
                    (State::TrailerStart, b'\r') => State::EndLf,
                    (State::TrailerStart, b':') => return Err(DecodeError::Malformed { what: "trailer" }),
                    (State::TrailerStart, _) => State::Trailer { colon: false },
                    _ => return Err(DecodeError::Malformed { what: "end of chunks" }),
                };
            }
            State::DataEnd | State::DataLf => {
                self.state = match (self.state, byte) {
                    (_, b'\n') => State::Size { digits: false },
                    (State::DataEnd, b'\r') => State::DataLf,
                    _ => return Err(DecodeError::Malformed { what: "end of a chunk" }),
                };
            }
            // `decode` handles these states; nothing follows the end.
            State::Data | State::Trailer { .. } | State::End => {}
        }
        Ok(())
    }

    fn handle_size_line(&mut self, byte: u8, limits: &Limits) -> Result<(), DecodeError> {
        let malformed = Err(DecodeError::Malformed { what: "chunk size" });
        self.state = match (self.state, byte) {
            (State::Size { digits: false }, b) if !b.is_ascii_hexdigit() => return malformed,
            (State::Size { .. }, b) if b.is_ascii_hexdigit() => {
                let digit = char::from(b).to_digit(16).map_or(0, u64::from);
                // Saturating keeps a number of more than 64 bits above every limit.
                self.size = self.size.saturating_mul(16).saturating_add(digit);
                State::Size { digits: true }
            }
            (_, b'\n') => return self.begin_chunk(limits),
            (State::SizeLf, _) => return malformed,
            (_, b'\r') => State::SizeLf,
            (State::Extension, _) | (_, b';') => State::Extension,
            // Some servers pad the size to a fixed width.
            (_, b' ' | b'\t') => State::Padding,
            _ => return malformed,
        };
        Ok(())
    }

    fn begin_chunk(&mut self, limits: &Limits) -> Result<(), DecodeError> {
        self.line_bytes = 0;
        self.announced_bytes = self.announced_bytes.saturating_add(self.size);
        if self.announced_bytes > limits.body_bytes {
            return Err(DecodeError::TooLong { what: "bytes of body", limit: limits.body_bytes });
        }
        self.state = if self.size == 0 { State::TrailerStart } else { State::Data };
        Ok(())
    }

    fn count_line(&mut self, bytes: usize, what: &'static str, limit: usize) -> Result<(), DecodeError> {
        self.line_bytes = self.line_bytes.saturating_add(bytes);
        if self.line_bytes > limit {
            return Err(DecodeError::TooLong { what, limit: limit as u64 });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_all(input: &[u8], piece_bytes: usize) -> Result<(Vec<u8>, usize, bool), DecodeError> {
        let limits =
            Limits { chunk_line_bytes: 24, trailer_bytes: 24, body_bytes: 1_000, ..Limits::default() };
        let (mut decoder, mut data, mut total) = (ChunkDecoder::new(), Vec::new(), 0);
        for part in input.chunks(piece_bytes) {
            let mut rest = part;
            while !rest.is_empty() {
                let piece = decoder.decode(rest, &limits)?;
                data.extend_from_slice(piece.data);
                total += piece.consumed;
                rest = &rest[piece.consumed..];
                if piece.end {
                    return Ok((data, total, true));
                }
            }
        }
        Ok((data, total, false))
    }

    fn check(input: &str, expected: Result<(&str, bool), DecodeError>) {
        for piece_bytes in [usize::MAX, 1, 2, 3, 7] {
            let decoded = decode_all(input.as_bytes(), piece_bytes.min(input.len().max(1)));
            let decoded = decoded.map(|(data, _, end)| (String::from_utf8(data).unwrap(), end));
            assert_eq!(
                decoded,
                expected.map(|(data, end)| (data.to_owned(), end)),
                "{input:?} in {piece_bytes}"
            );
        }
    }

    #[test]
    fn chunks_are_joined_and_extensions_skipped() {
        check("5\r\nhello\r\n0\r\n\r\n", Ok(("hello", true)));
        check("5;a=b;c=\"d\"\r\nhello\r\n1\r\n!\r\n0;last\r\n\r\n", Ok(("hello!", true)));
        check("00A \r\n0123456789\r\n000\r\n\r\n", Ok(("0123456789", true)));
        check("5\nhello\n0\n\n", Ok(("hello", true)));
        check("5\r\nhel", Ok(("hel", false)));
        check("0\r\n\r", Ok(("", false)));
    }

    #[test]
    fn trailers_are_skipped() {
        check("0\r\nA: b\r\nC: d\r\n\r\n", Ok(("", true)));
        check("0\r\nHTTP/1.1 200 OK\r\n", Err(DecodeError::Malformed { what: "trailer" }));
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        let size = Err(DecodeError::Malformed { what: "chunk size" });
        for input in ["\r\n", "x\r\n", "-1\r\n", "0x5\r\n", "5 5\r\n", ";\r\n", "5\r5", "5;a\rb\r\n"] {
            check(input, size);
        }
        check("1\r\nab", Err(DecodeError::Malformed { what: "end of a chunk" }));
        check("0\r\n\ra", Err(DecodeError::Malformed { what: "end of chunks" }));
    }

    #[test]
    fn lines_and_sizes_are_bounded() {
        let body = Err(DecodeError::TooLong { what: "bytes of body", limit: 1_000 });
        check("8000000000000000\r\n", body);
        check("fffffffffffffffffffff\r\n", body);
        check("3e9\r\n", body);
        let line = Err(DecodeError::TooLong { what: "bytes of a chunk-size line", limit: 24 });
        check("5;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", line);
        check("0000000000000000000000000000001\r\n", line);
        check(
            "0\r\nA: bbbbbbbbbbbb\r\nC: dddddddd\r\n\r\n",
            Err(DecodeError::TooLong { what: "bytes of trailers", limit: 24 }),
        );
    }
}
