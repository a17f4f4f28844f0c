//! A server's own short code in a response: an HTTP status, an SQLSTATE with its number, the first word of a RESP
//! error.

use std::fmt;
use std::num::NonZeroU8;

/// A code of 1 to [`Code::LONGEST`] printable ASCII characters, stored inline: copying and comparing cost as much as
/// for a 16-byte number, and it never allocates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    // First, so that statuses sort by number.
    length: NonZeroU8,
    bytes: [u8; Code::LONGEST],
}

impl Code {
    /// `40001/1213`, the longest code in common use, has 10 characters; RESP's longest words have 11.
    pub const LONGEST: usize = 15;

    /// The code `text`, truncated to [`Code::LONGEST`] bytes; bytes other than printable ASCII become `?`, since a
    /// server may send anything. `None` for an empty text.
    pub fn new(text: &[u8]) -> Option<Code> {
        let text = &text[..text.len().min(Code::LONGEST)];
        let mut bytes = [0; Code::LONGEST];
        for (own, &byte) in bytes.iter_mut().zip(text) {
            *own = if byte.is_ascii_graphic() { byte } else { b'?' };
        }
        // At most 15, so the conversion is lossless.
        Some(Code { length: NonZeroU8::new(text.len() as u8)?, bytes })
    }

    /// A numeric code, such as an HTTP status.
    #[inline]
    pub const fn status(number: u16) -> Code {
        let mut length: u8 = 1;
        let mut limit: u32 = 10;
        while (number as u32) >= limit {
            limit *= 10;
            length += 1;
        }
        let mut bytes = [0; Code::LONGEST];
        let (mut rest, mut at) = (number, length as usize);
        while at > 0 {
            at -= 1;
            bytes[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let Some(length) = NonZeroU8::new(length) else { unreachable!() };
        Code { length, bytes }
    }

    /// The number of a three-digit status from 100 on; `None` for any other code, for example `23505`: an SQLSTATE is a
    /// text even if it has only digits.
    pub fn as_status(&self) -> Option<u16> {
        match self.as_bytes() {
            [first @ b'1'..=b'9', rest @ ..] if rest.len() == 2 && rest.iter().all(u8::is_ascii_digit) => {
                let digit = |byte: u8| u16::from(byte - b'0');
                Some(digit(*first) * 100 + digit(rest[0]) * 10 + digit(rest[1]))
            }
            _ => None,
        }
    }

    /// The code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("a code has only printable ASCII characters")
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length.get())]
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_texts_and_numbers() {
        for number in [100, 200, 404, 999] {
            let code = Code::status(number);
            assert_eq!((code.as_str(), code.as_status()), (number.to_string().as_str(), Some(number)));
        }
        for number in [0, 7, 99, 1_000, u16::MAX] {
            let code = Code::status(number);
            assert_eq!((code.as_str(), code.as_status()), (number.to_string().as_str(), None));
        }
        assert!(Code::status(99) < Code::status(100) && Code::status(200) < Code::status(404));
    }

    /// If this fails, a server decides how long a label is, or puts control characters into a record.
    #[test]
    fn a_code_is_bounded_and_printable() {
        let code = |text: &[u8]| Code::new(text).unwrap();
        assert_eq!(code(b"40001/1213").as_str(), "40001/1213");
        assert_eq!(code(b"23505").as_status(), None);
        assert_eq!(code(b"a\x1b[\xffb").as_str(), "a?[?b");
        assert_eq!(code(&[b'x'; 400]).as_str().len(), Code::LONGEST);
        assert_eq!(Code::new(b""), None);
        assert_eq!(std::mem::size_of::<Option<Code>>(), 16);
    }
}
