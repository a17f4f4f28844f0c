//! How much of a peer's answer is accepted. A peer's own numbers never decide how much memory is taken.

/// Bounds on one answer. Each is checked before memory is taken or time is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Status line and headers, to the empty line.
    pub head_bytes: usize,
    /// The body after transfer decoding. Only counted, so it bounds time rather than memory.
    pub body_bytes: u64,
    /// One chunk-size line with its extensions.
    pub chunk_line_bytes: usize,
    /// All trailers of one answer, to the empty line.
    pub trailer_bytes: usize,
    /// Interim (1xx) answers before the final one.
    pub interim_count: u32,
}

impl Default for Limits {
    /// Heads: twice what common servers are willing to send. Lines and trailers: what common clients accept.
    fn default() -> Limits {
        Limits {
            head_bytes: 64 << 10,
            body_bytes: 1 << 30,
            chunk_line_bytes: 4 << 10,
            trailer_bytes: 16 << 10,
            interim_count: 16,
        }
    }
}

/// Header lines in one head. Fixed, because their places stand on the stack.
pub(crate) const HEADER_LINES: usize = 100;
