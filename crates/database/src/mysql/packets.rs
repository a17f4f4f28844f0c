//! Packets of MySQL's protocol: a length of three bytes, a number, a payload. Read from input that is cut anywhere.
//!
//! A packet of a row is skipped by its length; others are needed whole and have a limit.

use codec::DecodeError;

/// The longest payload of one packet; a longer message continues in the next one.
pub(super) const LONGEST_PAYLOAD: usize = 0xff_ffff;

/// The longest packet that is held in memory: a column's definition with a long comment, a public key, an error.
const LONGEST_HELD: usize = 256 << 10;

/// What is needed of the packet that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// All of it.
    Whole,
    /// If it is a row: its length.
    RowLength,
    /// If it is a row: all of it, if it is short enough to be held.
    Row,
}

/// A packet, or what is needed of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// The payload is in [`PacketReader::held`].
    Held,
    /// A payload of the input: this many bytes, which end where the bytes taken end.
    InPlace(usize),
    /// A row, or its continuation, that was skipped.
    Skipped,
}

/// Reads packets.
#[derive(Debug, Default)]
pub(super) struct PacketReader {
    header: [u8; 4],
    header_bytes: u8,
    /// How the packet in progress is taken; `None` until its first byte is known.
    taking: Option<Taking>,
    /// Bytes of the payload in progress that are still to come.
    left: usize,
    /// The beginning of a payload whose end has not come.
    held: Vec<u8>,
    /// The number that the next packet must have.
    sequence: u8,
    /// The message continues in the next packet, as a row.
    continues: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taking {
    Hold,
    Skip,
}

/// What was read: bytes taken, and the packet that ended with them.
pub(super) type Read = (usize, Option<Packet>);

impl PacketReader {
    /// A command was sent: its response begins with packet 1.
    pub(super) fn expect_response(&mut self) {
        self.sequence = 1;
        self.continues = false;
    }

    /// The number of the next packet to be sent while both sides count on, in a login. Counts it.
    pub(super) fn take_sequence(&mut self) -> u8 {
        let number = self.sequence;
        self.sequence = number.wrapping_add(1);
        number
    }

    /// Whether a packet has begun and not ended.
    pub(super) fn is_within(&self) -> bool {
        self.header_bytes > 0
    }

    /// The payload of the last packet, if it was [`Packet::Held`]. The memory is returned with
    /// [`PacketReader::put_back`].
    pub(super) fn take_held(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    pub(super) fn put_back(&mut self, mut held: Vec<u8>) {
        held.clear();
        self.held = held;
    }

    /// Reads up to the end of a packet.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for a packet out of order, an empty one where a whole one is needed, and one that is too long.
    pub(super) fn read(&mut self, input: &[u8], interest: Interest) -> Result<Read, DecodeError> {
        let mut taken = 0;
        while self.header_bytes < 4 {
            let Some(&byte) = input.get(taken) else { return Ok((taken, None)) };
            self.header[usize::from(self.header_bytes)] = byte;
            self.header_bytes += 1;
            taken += 1;
            if self.header_bytes == 4 {
                let [a, b, c, _] = self.header;
                self.left = u32::from_le_bytes([a, b, c, 0]) as usize;
            }
        }
        let taking = match self.taking {
            Some(taking) => taking,
            None => {
                let first = input.get(taken).copied();
                if first.is_none() && self.left > 0 {
                    return Ok((taken, None));
                }
                let taking = self.begin(first, interest)?;
                self.taking = Some(taking);
                taking
            }
        };
        let piece = &input[taken..taken + self.left.min(input.len() - taken)];
        taken += piece.len();
        self.left -= piece.len();
        let ends = self.left == 0;
        let is_whole = self.held.is_empty() && ends;
        if taking == Taking::Hold && !is_whole {
            self.held.extend_from_slice(piece);
        }
        if !ends {
            return Ok((taken, None));
        }
        self.header_bytes = 0;
        self.taking = None;
        Ok(match taking {
            Taking::Skip => (taken, Some(Packet::Skipped)),
            Taking::Hold if is_whole => (taken, Some(Packet::InPlace(piece.len()))),
            Taking::Hold => (taken, Some(Packet::Held)),
        })
    }

    /// The header is complete, and the first byte of the payload is known unless it is empty.
    fn begin(&mut self, first: Option<u8>, interest: Interest) -> Result<Taking, DecodeError> {
        let first = first.filter(|_| self.left > 0);
        let is_error = first == Some(ERROR) && !self.continues;
        if self.header[3] != self.sequence && !(is_error && self.header[3] == 0) {
            return Err(DecodeError::Malformed { what: "packet number" });
        }
        self.sequence = self.header[3].wrapping_add(1);
        let was_continued = std::mem::replace(&mut self.continues, self.left == LONGEST_PAYLOAD);
        // A row begins with the length of its first value, NULL or 0; the end of rows and an error do not.
        let is_row = was_continued
            || (interest != Interest::Whole
                && !is_error
                && (first != Some(END) || self.left == LONGEST_PAYLOAD));
        match (is_row, interest) {
            (true, Interest::Row) if !was_continued && self.left <= LONGEST_HELD => Ok(Taking::Hold),
            (true, _) => Ok(Taking::Skip),
            (false, _) if self.left > LONGEST_HELD => {
                Err(DecodeError::TooLong { what: "bytes of a packet", limit: LONGEST_HELD as u64 })
            }
            (false, _) if first.is_none() => Err(DecodeError::Malformed { what: "empty packet" }),
            (false, _) => Ok(Taking::Hold),
        }
    }

    /// The length of the payload in progress, or of the last one.
    pub(super) fn length(&self) -> usize {
        let [a, b, c, _] = self.header;
        u32::from_le_bytes([a, b, c, 0]) as usize
    }

    /// The number of the last packet.
    pub(super) fn number(&self) -> u8 {
        self.header[3]
    }

    /// Whether the message of the last packet continues in the next one.
    pub(super) fn continues(&self) -> bool {
        self.continues
    }
}

/// The first byte of an error.
pub(super) const ERROR: u8 = 0xff;

/// The first byte of the end of rows.
pub(super) const END: u8 = 0xfe;

/// Begins a message at the end of `out`; [`end_message`] ends it.
pub(super) fn begin_message(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

/// Ends the message that begins at `at`: writes its header, with packet number `sequence`, and cuts it into packets if
/// it is longer than one.
pub(super) fn end_message(at: usize, sequence: u8, out: &mut Vec<u8>) {
    let mut begin = at;
    let mut number = sequence;
    loop {
        let length = (out.len() - begin - 4).min(LONGEST_PAYLOAD);
        // Three bytes, by the limit.
        let [a, b, c, _] = (length as u32).to_le_bytes();
        out[begin..begin + 4].copy_from_slice(&[a, b, c, number]);
        if length < LONGEST_PAYLOAD {
            return;
        }
        begin += 4 + LONGEST_PAYLOAD;
        number = number.wrapping_add(1);
        out.splice(begin..begin, [0; 4]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a value of 16 MiB makes the server wait for more, or read a value as a command.
    #[test]
    fn a_long_message_is_cut_into_packets() {
        for (length, packets) in
            [(0, 1), (5, 1), (LONGEST_PAYLOAD - 1, 1), (LONGEST_PAYLOAD, 2), (2 * LONGEST_PAYLOAD + 7, 3)]
        {
            let mut out = vec![9];
            let at = begin_message(&mut out);
            out.resize(out.len() + length, 7);
            end_message(at, 0, &mut out);
            assert_eq!(out.len(), 1 + length + 4 * packets);
            let mut reader = PacketReader { continues: true, ..PacketReader::default() };
            let (mut rest, mut count) = (&out[1..], 0);
            while !rest.is_empty() {
                let (taken, packet) = reader.read(rest, Interest::RowLength).unwrap();
                assert_eq!(packet, Some(Packet::Skipped));
                rest = &rest[taken..];
                count += 1;
            }
            assert_eq!((count, reader.continues()), (packets, false));
        }
    }
}
