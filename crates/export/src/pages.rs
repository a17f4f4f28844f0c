//! The headers of the pages of a Parquet column: how much memory a reader takes for each is checked here before it is
//! taken, because the library (parquet 60) takes whatever a header announces.
//!
//! A header is a struct in Thrift's compact protocol, of which only its length and two sizes matter here: fields 2 and 3
//! of `PageHeader` in parquet.thrift.

/// The deepest nesting that is read; page headers have three levels.
const DEEPEST: u32 = 8;

/// Whether the pages in `column`, the bytes of a column chunk, follow one another to its end and unpack to at most
/// `most` bytes together.
pub(crate) fn are_bounded(column: &[u8], most: u64) -> bool {
    let (mut rest, mut unpacked) = (column, 0_u64);
    while !rest.is_empty() {
        let Some(page) = header(&mut rest) else { return false };
        unpacked = unpacked.saturating_add(page.unpacked);
        let Some(after) = rest.get(page.packed..) else { return false };
        if unpacked > most {
            return false;
        }
        rest = after;
    }
    true
}

struct Header {
    unpacked: u64,
    packed: usize,
}

/// Reads a header from the beginning of `bytes`, which are the page itself after it.
fn header(bytes: &mut &[u8]) -> Option<Header> {
    let (mut unpacked, mut packed, mut id) = (None, None, 0_i64);
    while let Some(kind) = field(bytes, &mut id)? {
        match (id, kind) {
            (2, I32) => unpacked = Some(signed(bytes)?),
            (3, I32) => packed = Some(signed(bytes)?),
            _ => skip(bytes, kind, DEEPEST)?,
        }
    }
    Some(Header { unpacked: unpacked?.try_into().ok()?, packed: packed?.try_into().ok()? })
}

// Types of the compact protocol.
const BOOLEANS: [u8; 2] = [1, 2];
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// The type of the next field of a struct, whose number becomes `id`; the inner `None` is the struct's end.
fn field(bytes: &mut &[u8], id: &mut i64) -> Option<Option<u8>> {
    let first = byte(bytes)?;
    if first == 0 {
        return Some(None);
    }
    *id = match first >> 4 {
        0 => signed(bytes)?,
        step => id.checked_add(i64::from(step))?,
    };
    Some(Some(first & 15))
}

fn skip(bytes: &mut &[u8], kind: u8, depth: u32) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match kind {
        kind if BOOLEANS.contains(&kind) => {}
        BYTE => take(bytes, 1)?,
        I16 | I32 | I64 => {
            varint(bytes)?;
        }
        DOUBLE => take(bytes, 8)?,
        BINARY => {
            let length = varint(bytes)?;
            take(bytes, usize::try_from(length).ok()?)?;
        }
        LIST | SET => {
            let first = byte(bytes)?;
            let count = if first >> 4 == 15 { varint(bytes)? } else { u64::from(first >> 4) };
            (0..count).try_for_each(|_| element(bytes, first & 15, depth))?;
        }
        MAP => {
            let count = varint(bytes)?;
            let kinds = if count == 0 { 0 } else { byte(bytes)? };
            (0..count).try_for_each(|_| {
                element(bytes, kinds >> 4, depth)?;
                element(bytes, kinds & 15, depth)
            })?;
        }
        STRUCT => {
            let mut id = 0;
            while let Some(kind) = field(bytes, &mut id)? {
                skip(bytes, kind, depth)?;
            }
        }
        _ => return None,
    }
    Some(())
}

/// An element of a list, set or map: a boolean takes a byte there.
fn element(bytes: &mut &[u8], kind: u8, depth: u32) -> Option<()> {
    if BOOLEANS.contains(&kind) { take(bytes, 1) } else { skip(bytes, kind, depth) }
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

fn take(bytes: &mut &[u8], count: usize) -> Option<()> {
    *bytes = bytes.get(count..)?;
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(bytes)?;
        value |= u64::from(next & 127) << shift;
        if next < 128 {
            return Some(value);
        }
    }
    None
}

/// A signed number, in zigzag form.
fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let value = varint(bytes)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page of 3 packed bytes that announces `unpacked` ones, in zigzag form.
    fn page(unpacked: &[u8]) -> Vec<u8> {
        // type 0; both sizes; field 5, a struct with two numbers, a boolean, a list and a text in it.
        let head = [&[0x15, 0, 0x15], unpacked, &[0x15, 6, 0x2c, 0x15, 2, 0x16, 4, 0x11]].concat();
        let rest = [0x19, 0x25, 2, 4, 0x18, 2, b'a', b'b', 0, 0, 7, 7, 7];
        [&head[..], &rest].concat()
    }

    #[test]
    fn pages_are_added_up() {
        let small = page(&[20]);
        assert!(are_bounded(&small, 10));
        assert!(!are_bounded(&small, 9));
        assert!(are_bounded(&[small.clone(), small.clone()].concat(), 20));
        assert!(!are_bounded(&[small.clone(), small.clone()].concat(), 19));
        for length in 1..small.len() {
            assert!(!are_bounded(&small[..length], 100), "cut at {length}");
        }
    }

    /// If this fails, a file of some kilobytes takes gigabytes of memory from `explain`.
    #[test]
    fn a_page_that_announces_gigabytes_is_refused() {
        assert!(!are_bounded(&page(&[0xfe, 0xff, 0xff, 0xff, 0x0f]), 1 << 23));
        // A size below zero, and a struct within itself without end.
        assert!(!are_bounded(&page(&[1]), 1 << 23));
        assert!(!are_bounded(&[0x1c; 10_000], 1 << 23));
    }
}
