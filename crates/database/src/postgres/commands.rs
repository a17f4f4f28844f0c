//! What a client sends: the request for TLS, the start-up, statements as text, prepared and executed.

use super::messages::{begin_length, begin_message, end_message};
use crate::Login;
use crate::sql::{Parameters, Statement, Value, push_number, push_position};
use codec::StatementIndex;

const PROTOCOL: u32 = 3 << 16;
const SSL_REQUEST: u32 = 1_234 << 16 | 5_679;

/// Appends the request to begin TLS; the reply is one byte.
pub(super) fn push_tls_request(out: &mut Vec<u8>) {
    let at = begin_length(out);
    out.extend_from_slice(&SSL_REQUEST.to_be_bytes());
    end_message(at, out);
}

/// Appends the start-up, which begins the login.
pub(super) fn push_start_up(login: &Login, out: &mut Vec<u8>) {
    let at = begin_length(out);
    out.extend_from_slice(&PROTOCOL.to_be_bytes());
    let database = login.database.as_deref().map(|database| ("database", database));
    let fixed =
        [("user", login.user.as_str()), ("application_name", "parallax"), ("client_encoding", "UTF8")];
    for (name, value) in fixed.into_iter().chain(database) {
        push_text(name.as_bytes(), out);
        push_text(value.as_bytes(), out);
    }
    out.push(0);
    end_message(at, out);
}

/// Appends the reply to a request for authentication.
pub(super) fn push_proof(proof: &[u8], out: &mut Vec<u8>) {
    let at = begin_message(b'p', out);
    out.extend_from_slice(proof);
    end_message(at, out);
}

/// Appends the choice of a SASL mechanism, with its first message.
pub(super) fn push_sasl_choice(mechanism: &str, first: &str, out: &mut Vec<u8>) {
    let at = begin_message(b'p', out);
    push_text(mechanism.as_bytes(), out);
    // At most some hundred bytes.
    out.extend_from_slice(&(first.len() as u32).to_be_bytes());
    out.extend_from_slice(first.as_bytes());
    end_message(at, out);
}

/// Appends `statement` as text, with the values in the places of its parameters. `backslash`: whether the server takes
/// a backslash for an escape.
pub(super) fn push_query(statement: &Statement, values: &Parameters, backslash: bool, out: &mut Vec<u8>) {
    let at = begin_message(b'Q', out);
    statement.push_text(values, backslash, out);
    out.push(0);
    end_message(at, out);
}

/// Appends the request to prepare `statement`, by the name that follows from its number in the run or without one. The
/// server infers the types of its parameters.
pub(super) fn push_prepare(name: Option<StatementIndex>, statement: &Statement, out: &mut Vec<u8>) {
    let at = begin_message(b'P', out);
    push_name(name, out);
    statement.push_marked(push_position, out);
    out.push(0);
    out.extend_from_slice(&0u16.to_be_bytes());
    end_message(at, out);
}

/// Appends the execution of the prepared statement of this name, up to its Sync. `describes`: the names and types of
/// the columns are needed.
///
/// Values are sent as texts, and so are results: the server knows the types.
pub(super) fn push_execute(
    name: Option<StatementIndex>,
    values: &Parameters,
    describes: bool,
    out: &mut Vec<u8>,
) {
    let at = begin_message(b'B', out);
    // The unnamed portal.
    out.push(0);
    push_name(name, out);
    out.extend_from_slice(&0u16.to_be_bytes());
    // Statements with more are refused before.
    out.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values.values() {
        push_value(value, out);
    }
    out.extend_from_slice(&0u16.to_be_bytes());
    end_message(at, out);
    if describes {
        out.extend_from_slice(b"D\0\0\0\x06P\0");
    }
    // All rows.
    out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0");
    out.extend_from_slice(b"S\0\0\0\x04");
}

fn push_value(value: Value<'_>, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&u32::MAX.to_be_bytes());
    match value {
        // Its length is -1.
        Value::Null => return,
        Value::Integer(number) => push_number(number, out),
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
    }
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// The name of a prepared statement.
fn push_name(name: Option<StatementIndex>, out: &mut Vec<u8>) {
    if let Some(number) = name {
        out.push(b'p');
        push_number(i64::from(number), out);
    }
    out.push(0);
}

fn push_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_has_its_values_as_texts() {
        let mut values = Parameters::default();
        values.null();
        values.integer(-2);
        values.text(|text| text.push_str("ab"));
        let mut out = Vec::new();
        push_execute(Some(7), &values, true, &mut out);
        let bind = b"B\0\0\0\x1e\0p7\0\0\0\0\x03\xff\xff\xff\xff\0\0\0\x02-2\0\0\0\x02ab\0\0";
        let rest = b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
        assert_eq!(out, [&bind[..], rest].concat());
    }

    #[test]
    fn a_statement_is_prepared_with_numbered_places() {
        let statement = Statement { pieces: ["a=", " b=", ""].map(str::to_owned).to_vec(), prepared: true };
        let mut out = Vec::new();
        push_prepare(Some(12), &statement, &mut out);
        assert_eq!(out, b"P\0\0\0\x14p12\0a=$1 b=$2\0\0\0");
    }
}
