//! Messages of PostgreSQL's protocol: a kind, a length of four bytes that includes itself, a payload. Read from input
//! that is cut anywhere.
//!
//! Rows and notices are skipped by their length; others are needed whole and have a limit.

use codec::DecodeError;

pub(super) use crate::reading::Reader;

/// The kinds of messages from a server that are handled here. The names are PostgreSQL's.
pub(super) mod kind {
    pub const AUTHENTICATION: u8 = b'R';
    pub const BACKEND_KEY_DATA: u8 = b'K';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_BOTH: u8 = b'W';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_IN: u8 = b'G';
    pub const COPY_OUT: u8 = b'H';
    pub const DATA_ROW: u8 = b'D';
    pub const EMPTY_QUERY: u8 = b'I';
    pub const ERROR: u8 = b'E';
    pub const NEGOTIATE_VERSION: u8 = b'v';
    pub const NO_DATA: u8 = b'n';
    pub const NOTICE: u8 = b'N';
    pub const NOTIFICATION: u8 = b'A';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const READY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// The longest message that is held in memory: the description of 1600 columns, a row that a check needs.
const LONGEST_HELD: usize = 256 << 10;

/// How much of an error is held: its code and the beginning of its text come first.
const HELD_OF_ERROR: usize = 8 << 10;

/// The longest parameter that is of interest, such as the server's version.
const LONGEST_PARAMETER: usize = 1 << 10;

/// The kind and the length of a message.
const HEADER: usize = 5;

/// A message, or what is needed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// The payload is in [`MessageReader::take_held`].
    Held,
    /// A payload of the input: this many bytes, which end where the bytes taken end.
    InPlace(usize),
    /// A row, a notice or a long parameter, that was skipped.
    Skipped,
}

/// What is known of the rows that may come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    /// The next row is needed, if it is short enough to be held.
    pub keeps_next: bool,
    /// The bytes that the result has had.
    pub bytes: u64,
    /// The most bytes that a result may have.
    pub limit: u64,
}

/// Reads messages.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    header: [u8; HEADER],
    header_bytes: usize,
    /// Bytes of the payload in progress that are still to come.
    left: usize,
    /// How many of them are held; the others are skipped.
    wanted: usize,
    held: Vec<u8>,
}

impl MessageReader {
    /// The kind of the message in progress, or of the last one.
    pub(super) fn kind(&self) -> u8 {
        self.header[0]
    }

    /// The length of its payload.
    pub(super) fn length(&self) -> usize {
        let [_, length @ ..] = self.header;
        (u32::from_be_bytes(length) as usize).saturating_sub(4)
    }

    /// Whether a message has begun and not ended.
    pub(super) fn is_within(&self) -> bool {
        self.header_bytes > 0
    }

    /// The payload of the last message, if it was [`Message::Held`]. The memory is returned with
    /// [`MessageReader::put_back`].
    pub(super) fn take_held(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    pub(super) fn put_back(&mut self, mut held: Vec<u8>) {
        held.clear();
        self.held = held;
    }

    /// Reads up to the end of a message.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for a length that none can have, and for one over its limit.
    pub(super) fn read(&mut self, input: &[u8], rows: Rows) -> Result<(usize, Option<Message>), DecodeError> {
        let mut taken = 0;
        if self.header_bytes < HEADER {
            let count = (HEADER - self.header_bytes).min(input.len());
            self.header[self.header_bytes..self.header_bytes + count].copy_from_slice(&input[..count]);
            self.header_bytes += count;
            taken = count;
            if self.header_bytes < HEADER {
                return Ok((taken, None));
            }
            self.begin(rows)?;
        }
        let piece = &input[taken..taken + self.left.min(input.len() - taken)];
        taken += piece.len();
        self.left -= piece.len();
        let is_whole = self.held.is_empty() && self.left == 0 && self.wanted == self.length();
        if !is_whole {
            let room = self.wanted - self.held.len();
            self.held.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        if self.left > 0 {
            return Ok((taken, None));
        }
        self.header_bytes = 0;
        Ok((
            taken,
            Some(match self.wanted {
                _ if is_whole => Message::InPlace(piece.len()),
                0 => Message::Skipped,
                _ => Message::Held,
            }),
        ))
    }

    /// The header is complete.
    fn begin(&mut self, rows: Rows) -> Result<(), DecodeError> {
        let [kind, length @ ..] = self.header;
        let length = u32::from_be_bytes(length);
        // The longest is 1 GiB, by the server's own limit.
        if length < 4 || length > i32::MAX as u32 {
            return Err(DecodeError::Malformed { what: "length of a message" });
        }
        self.left = length as usize - 4;
        self.wanted = match kind {
            kind::DATA_ROW | kind::COPY_DATA => {
                if rows.bytes + (self.left + HEADER) as u64 > rows.limit {
                    return Err(DecodeError::TooLong { what: "bytes of result", limit: rows.limit });
                }
                let is_kept = kind == kind::DATA_ROW && rows.keeps_next && self.left <= LONGEST_HELD;
                if is_kept { self.left } else { 0 }
            }
            kind::NOTICE | kind::NOTIFICATION => 0,
            kind::PARAMETER_STATUS if self.left > LONGEST_PARAMETER => 0,
            kind::ERROR => self.left.min(HELD_OF_ERROR),
            _ if self.left > LONGEST_HELD => {
                return Err(DecodeError::TooLong { what: "bytes of a message", limit: LONGEST_HELD as u64 });
            }
            _ => self.left,
        };
        Ok(())
    }

    /// The bytes of the last message, with its header.
    pub(super) fn bytes(&self) -> u64 {
        (self.length() + HEADER) as u64
    }
}

impl<'a> Reader<'a> {
    pub(super) fn u16_be(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(super) fn u32_be(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A value of a row: `None` is NULL.
    pub(super) fn value(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.u32_be()? {
            u32::MAX => Ok(None),
            length => self.take(length as usize).map(Some),
        }
    }
}

/// Begins a message of this kind at the end of `out`; [`end_message`] ends it.
pub(super) fn begin_message(kind: u8, out: &mut Vec<u8>) -> usize {
    out.push(kind);
    begin_length(out)
}

/// Begins what has its length before it, which includes those four bytes.
pub(super) fn begin_length(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

/// Writes the length of what begins at `at`.
pub(super) fn end_message(at: usize, out: &mut [u8]) {
    // Statements and values have limits far below 2 GiB.
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}
