//! Consumes a request body of either framing, whole or in any fragments. Keeps none of it.

use crate::request::Refusal;

/// What is left of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Length { left: u64 },
    Chunked { at: Chunk, total: u64 },
}

/// Where in a chunked body the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk {
    SizeLine,
    Data { left: u64 },
    LineEnd,
    Trailer { seen: usize },
}

/// One step through a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The first `count` bytes belong to the body; of these, those from `data` on are content.
    Part {
        count: usize,
        data: usize,
    },
    /// The first `count` bytes end the body.
    End {
        count: usize,
    },
    NeedMore,
}

impl Body {
    /// Consumes what it can from the front of `input`; refuses content beyond `limit` bytes.
    pub(crate) fn take(&mut self, input: &[u8], limit: u64) -> Result<Taken, Refusal> {
        match self {
            Body::Length { left: 0 } => Ok(Taken::End { count: 0 }),
            Body::Length { left } => {
                let count = at_most(input.len(), *left);
                *left -= count as u64;
                Ok(if count == 0 { Taken::NeedMore } else { Taken::Part { count, data: 0 } })
            }
            Body::Chunked { at, total } => take_chunked(at, total, input, limit),
        }
    }
}

fn take_chunked(at: &mut Chunk, total: &mut u64, input: &[u8], limit: u64) -> Result<Taken, Refusal> {
    match at {
        Chunk::SizeLine => {
            let size = httparse::parse_chunk_size(&input[..input.len().min(LONGEST_SIZE_LINE)]);
            match size.map_err(|_| Refusal::BadRequest)? {
                httparse::Status::Partial if input.len() >= LONGEST_SIZE_LINE => Err(Refusal::BadRequest),
                httparse::Status::Partial => Ok(Taken::NeedMore),
                httparse::Status::Complete((count, size)) => {
                    *total = total.saturating_add(size);
                    if *total > limit {
                        return Err(Refusal::BodyTooLarge);
                    }
                    *at = if size == 0 { Chunk::Trailer { seen: 0 } } else { Chunk::Data { left: size } };
                    Ok(Taken::Part { count, data: count })
                }
            }
        }
        Chunk::Data { left } => {
            let count = at_most(input.len(), *left);
            *left -= count as u64;
            if *left == 0 {
                *at = Chunk::LineEnd;
            }
            Ok(if count == 0 { Taken::NeedMore } else { Taken::Part { count, data: 0 } })
        }
        Chunk::LineEnd => match input {
            [b'\r', b'\n', ..] => {
                *at = Chunk::SizeLine;
                Ok(Taken::Part { count: 2, data: 2 })
            }
            [] | [b'\r'] => Ok(Taken::NeedMore),
            _ => Err(Refusal::BadRequest),
        },
        Chunk::Trailer { seen } => {
            let window = &input[..input.len().min(LONGEST_TRAILERS - *seen)];
            let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
                let full = window.len() == LONGEST_TRAILERS - *seen;
                return if full { Err(Refusal::HeadTooLarge) } else { Ok(Taken::NeedMore) };
            };
            let count = end + 1;
            if matches!(&window[..end], b"" | b"\r") {
                return Ok(Taken::End { count });
            }
            *seen += count;
            Ok(Taken::Part { count, data: count })
        }
    }
}

fn at_most(available: usize, left: u64) -> usize {
    usize::try_from(left).map_or(available, |left| left.min(available))
}

/// Sixteen digits and room for an extension; real ones are shorter.
const LONGEST_SIZE_LINE: usize = 256;
const LONGEST_TRAILERS: usize = 8 << 10;
