//! JSON pointers (RFC 6901), followed while the text is parsed: values off the path are skipped, not stored, so a
//! hostile response takes no more memory than its text.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The path to one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer(Vec<String>);

/// The text is not JSON, or nested too deep: nothing is known about its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoJson;

/// The pointer as text.
impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|name| write!(f, "/{}", name.replace('~', "~0").replace('/', "~1")))
    }
}

impl Pointer {
    /// The last name in the pointer; empty for the whole document.
    pub(crate) fn last_name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// `None` if `text` is neither empty nor begins with a slash, or has an invalid escape.
    pub(crate) fn parse(text: &str) -> Option<Pointer> {
        if text.is_empty() {
            return Some(Pointer(Vec::new()));
        }
        let tokens = text.strip_prefix('/')?.split('/').map(unescape);
        tokens.collect::<Option<Vec<_>>>().map(Pointer)
    }

    /// The value's own JSON text; `None` if there is none.
    ///
    /// Nesting is limited to 128 by the JSON parser.
    ///
    /// # Errors
    ///
    /// [`NoJson`], which differs from absence: an HTML page that reports an outage has no `/error` either.
    pub(crate) fn find(&self, json: &[u8]) -> Result<Option<Box<RawValue>>, NoJson> {
        let mut reader = serde_json::Deserializer::from_slice(json);
        let found = Way(&self.0).deserialize(&mut reader).map_err(|_| NoJson)?;
        reader.end().map_err(|_| NoJson)?;
        Ok(found)
    }
}

/// A value as text: a string's contents, any other value's JSON. `None` for null.
pub(crate) fn as_text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'n' => None,
        _ => Some(value.get().to_owned()),
    }
}

fn unescape(token: &str) -> Option<String> {
    let mut text = String::with_capacity(token.len());
    let mut rest = token.chars();
    while let Some(c) = rest.next() {
        match (c, if c == '~' { rest.next() } else { None }) {
            ('~', Some('0')) => text.push('~'),
            ('~', Some('1')) => text.push('/'),
            ('~', _) => return None,
            (c, _) => text.push(c),
        }
    }
    Some(text)
}

/// The rest of the path.
struct Way<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for Way<'_> {
    type Value = Option<Box<RawValue>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.0 {
            [] => <Box<RawValue> as serde::Deserialize>::deserialize(deserializer).map(Some),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Way<'_> {
    type Value = Option<Box<RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.0[0] {
                // If a key occurs twice, the last one counts.
                found = map.next_value_seed(Way(&self.0[1..]))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let wanted = index(&self.0[0]);
        let mut found = None;
        let mut at = 0;
        loop {
            if Some(at) == wanted {
                match list.next_element_seed(Way(&self.0[1..]))? {
                    Some(value) => found = value,
                    None => return Ok(found),
                }
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            at += 1;
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    if digits && (token == "0" || !token.starts_with('0')) { token.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, pointer: &str, found: Option<&str>) {
        let pointer = Pointer::parse(pointer).unwrap();
        let value = pointer.find(json.as_bytes()).expect(json).and_then(|value| as_text(&value));
        assert_eq!(value.as_deref(), found, "{json}");
    }

    #[test]
    fn pointers_find_what_rfc_6901_says() {
        let json = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"k\"l":6," ":7,"m~n":8}"#;
        for (pointer, found) in [
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", "bar"),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
            ("", json),
        ] {
            check(json, pointer, Some(found));
        }
        for pointer in ["/foo/2", "/foo/00", "/foo/-", "/bar", "/foo/0/x", "//"] {
            check(json, pointer, None);
        }
        assert_eq!(Pointer::parse("foo"), None);
        assert_eq!(Pointer::parse("/~2"), None);
    }

    #[test]
    fn values_keep_their_own_text() {
        check(r#"{"a": 12345678901234567890123}"#, "/a", Some("12345678901234567890123"));
        check(r#"{"a": 1.10}"#, "/a", Some("1.10"));
        check(r#"{"a": "\u00e9\n"}"#, "/a", Some("é\n"));
        check(r#"{"a": true}"#, "/a", Some("true"));
        check(r#"{"a": null}"#, "/a", None);
        check(r#"{"a": 1, "a": 2}"#, "/a", Some("2"));
    }

    /// If this fails, the nesting of a hostile response crashes the process.
    #[test]
    fn what_is_no_json_or_nested_too_deep_holds_nothing() {
        let find = |json: &str, pointer: &str| Pointer::parse(pointer).unwrap().find(json.as_bytes()).err();
        for json in ["", "{", r#"{"a": 1"#, r#"{"a": 1} x"#, "<html>"] {
            assert_eq!(find(json, "/a"), Some(NoJson), "{json}");
        }
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(find(&deep, &"/0".repeat(100_000)), Some(NoJson));
        check(&deep, "/1", None);
        check(&format!(r#"{{"b": {deep}, "a": 1}}"#), "/a", Some("1"));
    }
}
