//! How much of a peer's response is accepted. Numbers from a peer never decide how much memory is allocated.

/// Limits on one response. Each is checked before memory is allocated or time is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Status line and headers, including the empty line.
    pub head_bytes: usize,
    /// The body after transfer decoding. It is only counted, so this limits time rather than memory.
    pub body_bytes: u64,
    /// One chunk-size line with its extensions.
    pub chunk_line_bytes: usize,
    /// All trailers of one response, including the empty line.
    pub trailer_bytes: usize,
    /// Interim (1xx) responses before the final one.
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

/// The maximum number of header lines in one head. Fixed, because they are parsed into an array on the stack.
pub(crate) const HEADER_LINES: usize = 100;
