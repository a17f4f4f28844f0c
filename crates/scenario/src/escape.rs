//! Escapes a value for the place where it is inserted: nothing that came from a file or a response may change the
//! structure of the request.

use std::fmt::Write;

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Escape {
    /// Unchanged: in a body of unknown format.
    Raw,
    /// Percent-encoded, slashes included: a segment of a path, a value of a query or a form.
    Percent,
    /// A path with its query, as a server sent it: only what a URL cannot contain is percent-encoded. Scheme and host
    /// of a whole URL are left out.
    Path,
    /// The inside of a JSON string.
    Json,
    /// A JSON number, without quotes.
    Number,
    /// The value of a header: line ends and other control characters are left out. They were refused earlier.
    Header,
}

/// Appends `value` to `out`, escaped as `escape` requires.
pub(crate) fn write(value: &str, escape: Escape, out: &mut String) {
    match escape {
        Escape::Raw => out.push_str(value),
        Escape::Percent => percent(value, is_unreserved, out),
        Escape::Path => percent(without_host(value), is_of_path, out),
        Escape::Json => json(value, out),
        // Values that are not numbers were refused earlier; one that comes through nevertheless becomes a string.
        Escape::Number if is_json_number(value) => out.push_str(value),
        Escape::Number => {
            out.push('"');
            json(value, out);
            out.push('"');
        }
        Escape::Header => out.extend(value.chars().filter(|c| is_of_header(*c))),
    }
}

/// Whether `value` can be put into a header unchanged.
pub(crate) fn fits_header(value: &str) -> bool {
    value.chars().all(is_of_header)
}

pub(crate) fn is_json_number(value: &str) -> bool {
    let begins = value.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    // The JSON parser also accepts white space around the number.
    begins
        && value.ends_with(|c: char| c.is_ascii_digit())
        && serde_json::from_str::<&serde_json::value::RawValue>(value).is_ok()
}

fn is_of_header(c: char) -> bool {
    c == '\t' || !c.is_control()
}

fn percent(value: &str, raw: fn(u8) -> bool, out: &mut String) {
    for byte in value.bytes() {
        if raw(byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// RFC 3986, section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// What may appear unencoded in a path with its query. A fragment is never sent, so `#` is encoded.
fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte)
}

fn without_host(value: &str) -> &str {
    let rest = value.strip_prefix("http://").or_else(|| value.strip_prefix("https://"));
    rest.map_or(value, |rest| rest.find(['/', '?']).map_or("/", |at| &rest[at..]))
}

fn json(value: &str, out: &mut String) {
    let quoted = serde_json::to_string(value).expect("every text can be written as JSON");
    out.push_str(&quoted[1..quoted.len() - 1]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: &str, escape: Escape) -> String {
        let mut out = String::new();
        write(value, escape, &mut out);
        out
    }

    #[test]
    fn values_are_written_for_their_place() {
        for (value, escape, text) in [
            ("a b/c?d=é", Escape::Percent, "a%20b%2Fc%3Fd%3D%C3%A9"),
            ("/items/7?x=1&y", Escape::Path, "/items/7?x=1&y"),
            ("http://h:1/items/7#top", Escape::Path, "/items/7%23top"),
            ("https://h?q", Escape::Path, "?q"),
            ("http://h", Escape::Path, "/"),
            ("a\"b\n", Escape::Json, "a\\\"b\\n"),
            ("-1.5e3", Escape::Number, "-1.5e3"),
            ("1, \"admin\": true", Escape::Number, "\"1, \\\"admin\\\": true\""),
            ("a\r\nX: y\tz", Escape::Header, "aX: y\tz"),
            ("a\r\n", Escape::Raw, "a\r\n"),
        ] {
            assert_eq!(written(value, escape), text);
        }
    }

    proptest! {
        /// If this fails, a server decides which headers and requests are sent.
        #[test]
        fn no_value_ends_a_line_or_a_word_of_a_head(value in "(?s).*") {
            for escape in [Escape::Percent, Escape::Path] {
                prop_assert!(written(&value, escape).bytes().all(|byte| byte.is_ascii_graphic()));
            }
            prop_assert!(!written(&value, Escape::Percent).contains(['/', '?', '#', '&', '=']));
            prop_assert!(fits_header(&written(&value, Escape::Header)));
        }

        /// If this fails, a value ends its JSON string and adds fields.
        #[test]
        fn no_value_leaves_its_place_in_json(value in "(?s).*") {
            let text = format!("{{\"a\":\"{}\",\"b\":{}}}", written(&value, Escape::Json), written(&value, Escape::Number));
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(read.as_object().unwrap().len(), 2);
            prop_assert_eq!(read["a"].as_str(), Some(value.as_str()));
        }
    }
}
