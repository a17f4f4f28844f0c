//! Header compression (RFC 7541), as far as requests are named by it: method, path and status.
//!
//! The table of one direction holds what the encoder has added, the newest first. An index beyond what was seen being
//! added is of a header that was added before the connection was seen: its value is unknown. The table's size does not
//! matter, since no encoder refers to what it has removed.

use std::collections::VecDeque;

use super::huffman;

/// A header that matters, or any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    Method(Box<[u8]>),
    Path(Box<[u8]>),
    Status(u16),
    Other,
}

/// The headers of one block.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Headers {
    pub method: Option<Box<[u8]>>,
    pub path: Option<Box<[u8]>>,
    pub status: Option<u16>,
    /// A header is one that was added to the table before the connection was seen.
    pub unknown: bool,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    /// The newest first.
    added: VecDeque<Field>,
    /// Bytes of their values.
    bytes: usize,
}

impl Table {
    /// What was added is not known any more.
    pub(super) fn clear(&mut self) {
        self.added.clear();
        self.bytes = 0;
    }

    /// Reads a block. `is_whole`: all of it is here. `None` if it is not in this format; what was added is not known
    /// then, nor if it is not whole.
    pub(super) fn read(&mut self, block: &[u8], is_whole: bool) -> Option<Headers> {
        let mut headers = Headers::default();
        let mut rest = block;
        while !rest.is_empty() {
            let Some(after) = self.field(rest, &mut headers) else {
                self.clear();
                return (!is_whole).then_some(headers);
            };
            rest = after;
        }
        if !is_whole {
            self.clear();
        }
        Some(headers)
    }

    /// Reads one field; returns what follows.
    fn field<'b>(&mut self, bytes: &'b [u8], headers: &mut Headers) -> Option<&'b [u8]> {
        let first = *bytes.first()?;
        if first & 0x80 != 0 {
            let (index, rest) = number(bytes, 7)?;
            match self.known(index)? {
                Some(field) => headers.take(&field),
                None => headers.unknown = true,
            }
            return Some(rest);
        }
        if first & 0xe0 == 0x20 {
            let (size, rest) = number(bytes, 5)?;
            if size == 0 {
                self.clear();
            }
            return Some(rest);
        }
        let is_added = first & 0x40 != 0;
        let (index, rest) = number(bytes, if is_added { 6 } else { 4 })?;
        let mut text = [0; NAME_MOST];
        let (name, rest) = match index {
            0 => {
                let (coded, is_coded, rest) = string(rest)?;
                (name_of(value(coded, is_coded, &mut text)?), rest)
            }
            index => (self.known(index)?, rest),
        };
        let (coded, is_coded, rest) = string(rest)?;
        let mut text = [0; VALUE_MOST];
        let field = match name {
            Some(Field::Method(_)) => Field::Method(value(coded, is_coded, &mut text)?.into()),
            Some(Field::Path(_)) => Field::Path(value(coded, is_coded, &mut text)?.into()),
            Some(Field::Status(_)) => Field::Status(status(value(coded, is_coded, &mut text)?)),
            Some(Field::Other) => Field::Other,
            None => {
                headers.unknown = true;
                Field::Other
            }
        };
        headers.take(&field);
        if is_added {
            self.add(field);
        }
        Some(rest)
    }

    fn add(&mut self, field: Field) {
        self.bytes += field.bytes();
        self.added.push_front(field);
        while self.added.len() > ADDED_MOST || self.bytes > BYTES_MOST {
            self.bytes -= self.added.pop_back().map_or(0, |oldest| oldest.bytes());
        }
    }

    /// The header of an index; `Some(None)` if it was added before the connection was seen.
    fn known(&self, index: u64) -> Option<Option<Field>> {
        let of = |text: &[u8]| Box::<[u8]>::from(text);
        Some(Some(match index {
            0 => return None,
            2 => Field::Method(of(b"GET")),
            3 => Field::Method(of(b"POST")),
            4 => Field::Path(of(b"/")),
            5 => Field::Path(of(b"/index.html")),
            8 => Field::Status(200),
            9 => Field::Status(204),
            10 => Field::Status(206),
            11 => Field::Status(304),
            12 => Field::Status(400),
            13 => Field::Status(404),
            14 => Field::Status(500),
            1..FIRST_ADDED => Field::Other,
            index => {
                let place = usize::try_from(index - FIRST_ADDED).ok()?;
                return Some(self.added.get(place).cloned());
            }
        }))
    }
}

impl Field {
    fn bytes(&self) -> usize {
        match self {
            Field::Method(text) | Field::Path(text) => text.len(),
            Field::Status(_) | Field::Other => 0,
        }
    }
}

impl Headers {
    fn take(&mut self, field: &Field) {
        match field {
            Field::Method(text) => self.method = Some(text.clone()),
            Field::Path(text) => self.path = Some(text.clone()),
            Field::Status(status) => self.status = Some(*status),
            Field::Other => {}
        }
    }
}

/// The kind of a header that has its name in full.
fn name_of(name: &[u8]) -> Option<Field> {
    Some(match name {
        b":method" => Field::Method(Box::default()),
        b":path" => Field::Path(Box::default()),
        b":status" => Field::Status(0),
        _ => Field::Other,
    })
}

fn status(text: &[u8]) -> u16 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The beginning of a string.
fn value<'t>(coded: &'t [u8], is_coded: bool, text: &'t mut [u8]) -> Option<&'t [u8]> {
    if is_coded { huffman::decode(coded, text) } else { Some(&coded[..coded.len().min(text.len())]) }
}

/// A number whose first byte has `bits` of it (section 5.1), and what follows.
fn number(bytes: &[u8], bits: u8) -> Option<(u64, &[u8])> {
    let (first, mut rest) = bytes.split_first()?;
    let most = (1 << bits) - 1;
    let mut number = u64::from(first & most);
    if number < u64::from(most) {
        return Some((number, rest));
    }
    for shift in [0, 7, 14, 21, 28] {
        let (byte, after) = rest.split_first()?;
        rest = after;
        number += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((number, rest));
        }
    }
    None
}

/// A string (section 5.2), whether it is in the Huffman code, and what follows.
fn string(bytes: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    let is_coded = bytes.first()? & 0x80 != 0;
    let (length, rest) = number(bytes, 7)?;
    let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((text, is_coded, rest))
}

/// The static table has 61 headers.
const FIRST_ADDED: u64 = 62;
/// A table of 64 KiB, sixteen times the default, has at most so many.
const ADDED_MOST: usize = 2_048;
const BYTES_MOST: usize = 64 << 10;
/// The longest name that matters is `:method`.
const NAME_MOST: usize = 8;
/// How much of a path is read for its route.
const VALUE_MOST: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &[u8], path: &[u8]) -> Option<Headers> {
        Some(Headers { method: Some(method.into()), path: Some(path.into()), ..Headers::default() })
    }

    /// Appendix C.4: three requests of one connection, of which the later ones refer to the table.
    #[test]
    fn the_requests_of_the_standard_are_read() {
        let mut table = Table::default();
        let first = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(table.read(first, true), request(b"GET", b"/"));
        assert_eq!(
            table.read(b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf", true),
            request(b"GET", b"/")
        );
        let third = b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf";
        assert_eq!(table.read(third, true), request(b"GET", b"/index.html"));
        assert_eq!(table.added.len(), 3);
    }

    /// Appendix C.6: 302, 307, 200; the second one refers to what the first one added.
    #[test]
    fn the_status_of_a_response_is_read() {
        let mut table = Table::default();
        let status = |headers: Option<Headers>| headers.unwrap().status;
        assert_eq!(status(table.read(b"\x48\x82\x64\x02", true)), Some(302));
        assert_eq!(status(table.read(b"\x48\x83\x64\x0e\xff\xbf", true)), Some(302));
        assert_eq!(status(table.read(b"\x88", true)), Some(200));
    }

    /// If this fails, a request has the path of another one.
    #[test]
    fn a_header_that_was_added_before_is_unknown() {
        let mut table = Table::default();
        let add = b"\x82\x44\x02/a";
        assert_eq!(table.read(add, true), request(b"GET", b"/a"));
        let get = Some(b"GET"[..].into());
        let unknown = Headers { method: get, unknown: true, ..Headers::default() };
        assert_eq!(table.read(b"\x82\xbf", true), Some(unknown));
        assert_eq!(table.read(b"\x82\xbe", true), request(b"GET", b"/a"));
        // Of a block that was cut, it is not known what it added.
        table.read(add, false);
        assert!(table.read(b"\xbe", true).unwrap().unknown);
    }

    #[test]
    fn a_block_in_another_format_is_refused() {
        for block in
            [&b"\x80"[..], b"\x44", b"\x44\x05/a", b"\xff\xff\xff\xff\xff\xff\xff", b"\x44\x82\xff\xff"]
        {
            assert_eq!(Table::default().read(block, true), None, "{block:?}");
        }
    }
}
