//! Statements as text, with their values in it.

use std::fmt::Write;

use super::parameters::{Parameters, Value};
use super::statement::Statement;

impl Statement {
    /// Appends the text, with the values in the places of its parameters. `backslash`: whether the server takes a
    /// backslash in a text for an escape.
    pub(crate) fn push_text(&self, values: &Parameters, backslash: bool, out: &mut Vec<u8>) {
        let mut values = values.values();
        self.push_marked(|_, out| push_literal(values.next().unwrap_or(Value::Null), backslash, out), out);
    }

    /// Appends the text, with what `mark` appends in the place of each parameter, which are counted from 1.
    pub(crate) fn push_marked(&self, mut mark: impl FnMut(usize, &mut Vec<u8>), out: &mut Vec<u8>) {
        for (index, piece) in self.pieces.iter().enumerate() {
            if index > 0 {
                mark(index, out);
            }
            out.extend_from_slice(piece.as_bytes());
        }
    }
}

fn push_literal(value: Value<'_>, backslash: bool, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Integer(number) => {
            // Two dashes in a row would begin a comment.
            if number < 0 {
                out.push(b' ');
            }
            push_number(number, out);
        }
        Value::Text(text) => {
            out.push(b'\'');
            for &byte in text.as_bytes() {
                match byte {
                    b'\'' => out.push(b'\''),
                    b'\\' if backslash => out.push(b'\\'),
                    _ => {}
                }
                out.push(byte);
            }
            out.push(b'\'');
        }
    }
}

/// Appends a number as text, without an allocation.
pub(crate) fn push_number(number: i64, out: &mut Vec<u8>) {
    let mut text = Digits::default();
    // It has room for the longest number.
    let _ = write!(text, "{number}");
    out.extend_from_slice(&text.bytes[..text.length]);
}

/// The text of a number.
#[derive(Default)]
struct Digits {
    /// A sign and 19 digits.
    bytes: [u8; 20],
    length: usize,
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(backslash: bool) -> String {
        let pieces = ["a=", " b=", " c=", " d-", " e=", ""].map(str::to_owned).to_vec();
        let mut values = Parameters::default();
        values.integer(5);
        values.text(|text| text.push_str(r"it's \"));
        values.null();
        values.integer(-5);
        values.integer(i64::MIN);
        let mut out = Vec::new();
        Statement { pieces, prepared: false }.push_text(&values, backslash, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// If this fails, a value ends its own text, and the rest of it is run as SQL.
    #[test]
    fn values_stay_values() {
        assert_eq!(text(true), r"a=5 b='it''s \\' c=NULL d- -5 e= -9223372036854775808");
        assert_eq!(text(false), r"a=5 b='it''s \' c=NULL d- -5 e= -9223372036854775808");
    }
}
