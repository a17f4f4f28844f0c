//! What a connection is told: who moved how many bytes, and the first of them.
//!
//! It holds no stamps: the caller keeps those beside the byte positions that events name.

/// Who the bytes come from. It is known from the listening socket, never guessed from the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The server has read them.
    FromClient,
    /// The server has written them.
    FromServer,
}

/// What one call moved between the server and its socket.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    pub direction: Direction,
    /// Bytes that the kernel moved. A piece of length 0 (the end of a stream) is ignored.
    pub length: u64,
    /// The first of them, as many as were captured; what exceeds `length` is ignored.
    ///
    /// A gap of known length is such a piece with nothing captured.
    pub captured: &'a [u8],
    /// Pieces of this connection, of unknown number and length, were lost before this one.
    pub missed: bool,
}

impl<'a> Piece<'a> {
    /// A piece that was captured whole.
    pub fn whole(direction: Direction, bytes: &'a [u8]) -> Piece<'a> {
        Piece { direction, length: bytes.len() as u64, captured: bytes, missed: false }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        &self.captured[..self.captured.len().min(length)]
    }
}
