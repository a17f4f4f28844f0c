//! Commands: a text as redis-cli reads it, cut into arguments once, and sent with the values in their places.

use crate::sql::{Parameters, Statement, StatementError, Value, push_number};

/// A command, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// The name, in capitals.
    pub name: String,
    /// The number of arguments, encoded.
    head: Vec<u8>,
    arguments: Vec<Argument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Argument {
    /// Encoded.
    Fixed(Vec<u8>),
    Mixed(Vec<Part>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Value,
}

/// Commands that have no reply, several, or another one each time, and those that this client sends by itself.
const REFUSED: [&str; 12] = [
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "MONITOR",
    "SYNC",
    "PSYNC",
    "HELLO",
    "RESET",
    "QUIT",
];

impl Command {
    /// Cuts the text of a statement at its spaces. An argument may be quoted, with `\n`, `\xHH` and the like between
    /// double quotes.
    ///
    /// # Errors
    ///
    /// [`StatementError`] for quotes that do not match, and for commands without exactly one reply.
    pub(crate) fn new(statement: &Statement) -> Result<Command, StatementError> {
        let arguments = cut(&statement.pieces)?;
        let name = match arguments.first().map(Vec::as_slice) {
            Some([Part::Text(name)]) => String::from_utf8_lossy(name).to_ascii_uppercase(),
            _ => return Err(StatementError::NoCommand),
        };
        let second = match arguments.get(1).map(Vec::as_slice) {
            Some([Part::Text(text)]) => text.to_ascii_uppercase(),
            _ => Vec::new(),
        };
        if REFUSED.contains(&name.as_str()) || (name == "CLIENT" && second == b"REPLY") {
            return Err(StatementError::NoReply { command: name });
        }
        let head = format!("*{}\r\n", arguments.len()).into_bytes();
        let encoded = |parts: Vec<Part>| match parts.as_slice() {
            [Part::Text(text)] => {
                let mut out = Vec::new();
                push_bulk(text, &mut out);
                Argument::Fixed(out)
            }
            _ => Argument::Mixed(parts),
        };
        Ok(Command { name, head, arguments: arguments.into_iter().map(encoded).collect() })
    }

    /// Appends the command with its values. `scratch` is memory for an argument.
    pub(super) fn push(&self, values: &Parameters, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        let mut values = values.values();
        for argument in &self.arguments {
            match argument {
                Argument::Fixed(encoded) => out.extend_from_slice(encoded),
                Argument::Mixed(parts) => {
                    scratch.clear();
                    for part in parts {
                        match part {
                            Part::Text(text) => scratch.extend_from_slice(text),
                            Part::Value => push_value(values.next().unwrap_or(Value::Null), scratch),
                        }
                    }
                    push_bulk(scratch, out);
                }
            }
        }
    }
}

fn push_value(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Integer(number) => push_number(number, out),
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
    }
}

/// Appends an argument.
pub(super) fn push_bulk(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'$');
    // The length of a slice fits.
    push_number(text.len() as i64, out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Appends a command of these arguments.
pub(super) fn push_words(words: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    words.iter().for_each(|word| push_bulk(word.as_bytes(), out));
}

/// The arguments of a text whose pieces have values between them.
fn cut(pieces: &[String]) -> Result<Vec<Vec<Part>>, StatementError> {
    let mut cutter = Cutter { arguments: Vec::new(), is_within: false, quote: None };
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 {
            cutter.argument().push(Part::Value);
        }
        let mut bytes = piece.bytes();
        while let Some(byte) = bytes.next() {
            match (cutter.quote, byte) {
                (None, b' ' | b'\t' | b'\n' | b'\r') => cutter.is_within = false,
                (None, b'"' | b'\'') => {
                    cutter.quote = Some(byte);
                    cutter.push(&[]);
                }
                (Some(quote), _) if quote == byte => cutter.quote = None,
                (Some(b'"'), b'\\') => cutter.push(&[escaped(&mut bytes)?]),
                _ => cutter.push(&[byte]),
            }
        }
    }
    if cutter.quote.is_some() {
        return Err(StatementError::Quotes);
    }
    Ok(cutter.arguments)
}

struct Cutter {
    arguments: Vec<Vec<Part>>,
    /// The last argument goes on.
    is_within: bool,
    quote: Option<u8>,
}

impl Cutter {
    /// The argument in progress.
    fn argument(&mut self) -> &mut Vec<Part> {
        if !std::mem::replace(&mut self.is_within, true) {
            self.arguments.push(Vec::new());
        }
        self.arguments.last_mut().expect("one was just added, or is in progress")
    }

    fn push(&mut self, bytes: &[u8]) {
        let argument = self.argument();
        match argument.last_mut() {
            Some(Part::Text(text)) => text.extend_from_slice(bytes),
            _ => argument.push(Part::Text(bytes.to_vec())),
        }
    }
}

/// The byte that follows a backslash between double quotes.
fn escaped(bytes: &mut std::str::Bytes<'_>) -> Result<u8, StatementError> {
    let next = bytes.next().ok_or(StatementError::Quotes)?;
    Ok(match next {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => {
            let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
            match (digit(bytes.next()), digit(bytes.next())) {
                // Below 256, because each digit is below 16.
                (Some(high), Some(low)) => (high * 16 + low) as u8,
                _ => return Err(StatementError::Quotes),
            }
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(pieces: &[&str]) -> String {
        let pieces = pieces.iter().map(|&piece| piece.to_owned()).collect();
        let command = Command::new(&Statement { pieces, prepared: false }).unwrap();
        let mut values = Parameters::default();
        values.integer(-12);
        values.text(|text| text.push_str("a b\"\r\n"));
        let (mut scratch, mut out) = (Vec::new(), Vec::new());
        command.push(&values, &mut scratch, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// If this fails, a value becomes another argument or command.
    #[test]
    fn values_stay_in_their_arguments() {
        assert_eq!(sent(&["GET key"]), "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
        assert_eq!(
            sent(&["set  key:", ":x ", ""]),
            "*3\r\n$3\r\nset\r\n$9\r\nkey:-12:x\r\n$6\r\na b\"\r\n\r\n"
        );
        assert_eq!(sent(&[r#"ECHO "a b\x41\n" "#]), "*2\r\n$4\r\nECHO\r\n$5\r\na bA\n\r\n");
        assert_eq!(sent(&["SET k ''"]), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
    }

    #[test]
    fn what_has_no_single_reply_is_refused() {
        for (text, what) in [
            ("SUBSCRIBE news", "SUBSCRIBE"),
            ("monitor", "MONITOR"),
            ("client reply off", "CLIENT"),
            ("GET 'key", "quote"),
            (r#"GET "\x4""#, "quote"),
        ] {
            let error = Command::new(&Statement::text(text)).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
