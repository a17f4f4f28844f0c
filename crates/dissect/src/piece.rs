//! The input of a dissector: the direction and number of bytes moved, and the first of them.
//!
//! It has no timestamps: the user of this crate keeps those, indexed by the byte positions in events.

/// Where the bytes come from. Known from the listening socket, never guessed from the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The server has read them.
    FromClient,
    /// The server has written them.
    FromServer,
}

/// What one system call moved between the server and its socket.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// Which side wrote the bytes.
    pub direction: Direction,
    /// The bytes that the kernel moved. A piece of length 0 (the end of a stream) is ignored.
    pub length: u64,
    /// The first of them, as many as were captured; anything beyond `length` is ignored.
    ///
    /// A gap of known length is a piece without captured bytes.
    pub captured: &'a [u8],
    /// Pieces of this connection were lost before this one: how many bytes of the client were in them, as far as that is
    /// known.
    pub missed: Option<u64>,
}

impl<'a> Piece<'a> {
    /// A piece that was captured completely.
    pub fn whole(direction: Direction, bytes: &'a [u8]) -> Piece<'a> {
        Piece { direction, length: bytes.len() as u64, captured: bytes, missed: None }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        &self.captured[..self.captured.len().min(length)]
    }
}
