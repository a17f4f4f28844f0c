//! Makes untrusted text safe for a terminal and for one line: characters that would move the cursor, end a line or
//! change the direction of reading are escaped.
//!
//! A results directory may be from somebody else, and a URL or header may have been pasted. The reader of records and
//! the writer of reports each call this once, where text enters, so that no other code has to consider it. Backslashes
//! are not escaped, so escaping twice changes nothing more.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use units::{escape_text, is_harmful};

use crate::tree;

/// `value` with every string in it escaped, including the keys of maps.
///
/// # Panics
///
/// Never for a wire type of this crate, because it can read what it wrote.
pub fn escaped<T: Serialize + DeserializeOwned>(value: T) -> T {
    let mut tree = tree::of(&value);
    // Usually nothing changes, and then nothing is converted.
    if !escape_tree(&mut tree) {
        return value;
    }
    tree::read(&tree).expect("a wire type reads back what it wrote")
}

/// Escapes strings in place. Returns whether anything was changed.
fn escape_tree(tree: &mut Value) -> bool {
    match tree {
        Value::String(text) => escape_string(text),
        Value::Array(values) => values.iter_mut().fold(false, |changed, value| escape_tree(value) | changed),
        Value::Object(map) => {
            let harmful = map.keys().any(|key| key.contains(is_harmful));
            if harmful {
                *map =
                    std::mem::take(map).into_iter().map(|(key, value)| (escape_text(&key), value)).collect();
            }
            map.values_mut().fold(harmful, |changed, value| escape_tree(value) | changed)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn escape_string(text: &mut String) -> bool {
    let harmful = text.contains(is_harmful);
    if harmful {
        *text = escape_text(text);
    }
    harmful
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        let table = [
            ("plain \\ text, ü 漢 🙂", "plain \\ text, ü 漢 🙂"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("a\r\nb\tc", "a\\u{d}\\u{a}b\\u{9}c"),
            ("\u{7f}\u{9b}1m", "\\u{7f}\\u{9b}1m"),
            ("\u{202e}txt\u{2066}\u{200f}\u{2028}", "\\u{202e}txt\\u{2066}\\u{200f}\\u{2028}"),
        ];
        for (text, expected) in table {
            assert_eq!(escape_text(text), expected);
            assert_eq!(escape_text(expected), expected);
        }
    }

    #[test]
    fn keys_and_nested_strings_are_escaped_too() {
        let hostile = BTreeMap::from([("a\u{1b}".to_owned(), vec!["ok".to_owned(), "\u{7}".to_owned()])]);
        let expected = BTreeMap::from([("a\\u{1b}".to_owned(), vec!["ok".to_owned(), "\\u{7}".to_owned()])]);
        assert_eq!(escaped(hostile), expected);
    }
}
