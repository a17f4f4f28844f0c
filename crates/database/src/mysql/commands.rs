//! Statements as bytes: as text with the values in it, prepared, and executed with the values apart.

use super::packets::{begin_message, end_message};
use super::reading::push_length;
use crate::sql::{Parameters, Statement, Value};

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// Appends `statement` as text, with the values in the places of its parameters. `backslash`: whether the server takes
/// a backslash for an escape.
pub(super) fn push_query(statement: &Statement, values: &Parameters, backslash: bool, out: &mut Vec<u8>) {
    let at = begin_message(out);
    out.push(QUERY);
    statement.push_text(values, backslash, out);
    end_message(at, 0, out);
}

/// Appends the request to prepare `statement`.
pub(super) fn push_prepare(statement: &Statement, out: &mut Vec<u8>) {
    let at = begin_message(out);
    out.push(PREPARE);
    statement.push_marked(|_, out| out.push(b'?'), out);
    end_message(at, 0, out);
}

/// Appends the execution of the prepared statement that the server numbered `id`.
///
/// The types are sent each time: they may differ between executions, and take two bytes each.
pub(super) fn push_execute(id: u32, values: &Parameters, out: &mut Vec<u8>) {
    const INTEGER: [u8; 2] = [0x08, 0];
    const TEXT: [u8; 2] = [0xfd, 0];
    const NULL: [u8; 2] = [0x06, 0];
    let at = begin_message(out);
    out.push(EXECUTE);
    out.extend_from_slice(&id.to_le_bytes());
    // No cursor, one iteration.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if !values.is_empty() {
        let nulls = out.len();
        out.resize(nulls + values.len().div_ceil(8), 0);
        // New types follow.
        out.push(1);
        for (index, value) in values.values().enumerate() {
            if value == Value::Null {
                out[nulls + index / 8] |= 1 << (index % 8);
            }
            out.extend_from_slice(match value {
                Value::Null => &NULL,
                Value::Integer(_) => &INTEGER,
                Value::Text(_) => &TEXT,
            });
        }
        for value in values.values() {
            match value {
                Value::Null => {}
                Value::Integer(number) => out.extend_from_slice(&number.to_le_bytes()),
                Value::Text(text) => {
                    push_length(text.len() as u64, out);
                    out.extend_from_slice(text.as_bytes());
                }
            }
        }
    }
    end_message(at, 0, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_execution_have_their_types() {
        let mut values = Parameters::default();
        values.null();
        values.integer(-2);
        values.text(|text| text.push_str("ab"));
        let mut out = Vec::new();
        push_execute(7, &values, &mut out);
        let body = [
            &[EXECUTE, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0b001, 1, 6, 0, 8, 0, 0xfd, 0][..],
            &(-2i64).to_le_bytes(),
            &[2, b'a', b'b'],
        ]
        .concat();
        assert_eq!(out, [&[body.len() as u8, 0, 0, 0][..], &body].concat());
        out.clear();
        push_execute(7, &Parameters::default(), &mut out);
        assert_eq!(out[4..], [EXECUTE, 7, 0, 0, 0, 0, 1, 0, 0, 0]);
    }
}
