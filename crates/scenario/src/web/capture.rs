//! Values taken from a response for later steps, and other places that checks look at.
//!
//! Everything here is bounded: the response by how much of it was kept, a value by [`VALUE_BYTES`], the time by regular
//! expressions without backtracking.

use std::fmt;

use codec::FailedCheck;
use codec::web::ReceivedResponse;
use regex::bytes::Regex;
use serde_json::Value;
use serde_json::value::RawValue;

use super::cookies::SetCookie;
use crate::pointer::{NoJson, Pointer, as_text};
use crate::scope::Needs;

/// How one value is taken.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    pub slot: u16,
    pub from: From,
    pub regex: Option<Regex>,
    /// The value if there is none.
    pub default: Option<String>,
    /// What the texts that use the value require of it.
    pub needs: Needs,
}

#[derive(Debug, Clone)]
pub(crate) enum From {
    Json(Pointer),
    Header(String),
    Cookie(String),
    Body,
}

/// A condition on a response.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub at: From,
    pub wanted: Wanted,
}

#[derive(Debug, Clone)]
pub(crate) enum Wanted {
    Equals(Value),
    Matches(Regex),
    Contains(String),
    Exists(bool),
}

impl Capture {
    /// The value, if there is one that is valid where it is used.
    pub(crate) fn take(&self, response: &ReceivedResponse) -> Option<String> {
        let found = match (&self.from, &self.regex) {
            (From::Body, Some(regex)) => group(regex, &response.body, response.cut),
            (from, None) => from.text(response),
            (from, Some(regex)) => from.text(response).and_then(|text| group(regex, text.as_bytes(), false)),
        };
        let fits = |value: &String| value.len() <= VALUE_BYTES && self.needs.hold(value);
        found.filter(fits).or_else(|| self.default.clone())
    }

    pub(crate) fn reads_body(&self) -> bool {
        self.from.reads_body()
    }

    /// The failed check: there was no value, or none that is valid.
    #[cold]
    pub(crate) fn failed(&self, response: &ReceivedResponse) -> FailedCheck {
        let pattern = self.regex.as_ref().map(|regex| format!(" that matches `{regex}`")).unwrap_or_default();
        self.from.failed(&format!("a value to capture{pattern}"), response)
    }
}

impl From {
    /// A failed check of this place, with what was expected there, and what was found.
    #[cold]
    fn failed(&self, expected: &str, response: &ReceivedResponse) -> FailedCheck {
        let place = match self {
            From::Json(pointer) => format!("json {pointer}"),
            From::Header(name) => format!("header {name}"),
            From::Cookie(name) => format!("cookie {name}"),
            From::Body => "body".to_owned(),
        };
        let found = match self {
            // The value of a cookie is usually a session ID.
            From::Cookie(_) => self.text(response).map(|_| "a value".to_owned()),
            From::Body => Some(String::from_utf8_lossy(&response.body).into_owned()),
            _ => self.text(response).map(|text| format!("{}: {text}", self.last_name())),
        };
        let found = found.unwrap_or_else(|| match self {
            From::Json(_) => format!("nothing there in {}", String::from_utf8_lossy(&response.body)),
            _ => "nothing there".to_owned(),
        });
        FailedCheck::new(format!("{place}: expected {expected}"), found.as_bytes())
    }

    /// The name that decides whether the value is a secret.
    fn last_name(&self) -> &str {
        match self {
            From::Json(pointer) => pointer.last_name(),
            From::Header(name) | From::Cookie(name) => name,
            From::Body => "body",
        }
    }

    pub(crate) fn reads_body(&self) -> bool {
        matches!(self, From::Json(_) | From::Body)
    }

    fn text(&self, response: &ReceivedResponse) -> Option<String> {
        match self {
            From::Json(pointer) => as_text(&in_json(pointer, response).ok()??),
            From::Header(name) => String::from_utf8(response.header(name)?.to_vec()).ok(),
            From::Cookie(name) => {
                let lines = response.headers_named("set-cookie").filter_map(SetCookie::parse);
                lines.filter(|set| set.name == name).last().map(|set| set.value.to_owned())
            }
            From::Body => String::from_utf8(response.body.clone()).ok(),
        }
    }
}

impl Look {
    /// The failed check: the condition does not hold for `response`.
    #[cold]
    pub(crate) fn failed(&self, response: &ReceivedResponse) -> FailedCheck {
        self.at.failed(&self.wanted.to_string(), response)
    }

    pub(crate) fn holds(&self, response: &ReceivedResponse) -> bool {
        match (&self.wanted, &self.at) {
            (Wanted::Exists(wanted), From::Json(pointer)) => {
                in_json(pointer, response).is_ok_and(|found| found.is_some() == *wanted)
            }
            (Wanted::Matches(regex), From::Body) => regex.is_match(&response.body),
            (Wanted::Equals(wanted), From::Json(pointer)) => {
                let found = in_json(pointer, response).ok().flatten();
                found
                    .and_then(|found| serde_json::from_str(found.get()).ok())
                    .is_some_and(|found| same(&found, wanted))
            }
            (wanted, at) => wanted.holds_for(at.text(response).as_deref()),
        }
    }
}

impl Wanted {
    /// Whether it holds for a text, or for its absence.
    pub(crate) fn holds_for(&self, found: Option<&str>) -> bool {
        match self {
            Wanted::Exists(wanted) => found.is_some() == *wanted,
            Wanted::Matches(regex) => found.is_some_and(|text| regex.is_match(text.as_bytes())),
            Wanted::Contains(part) => found.is_some_and(|text| text.contains(part)),
            Wanted::Equals(wanted) => {
                let wanted = wanted.as_str().map_or_else(|| wanted.to_string(), str::to_owned);
                found.is_some_and(|text| text == wanted)
            }
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Equals(value) => write!(f, "{value}"),
            Wanted::Matches(regex) => write!(f, "to match `{regex}`"),
            Wanted::Contains(part) => write!(f, "to contain `{part}`"),
            Wanted::Exists(true) => f.write_str("to exist"),
            Wanted::Exists(false) => f.write_str("not to exist"),
        }
    }
}

/// The value at `pointer`. Nothing is known about a response that was cut: the rest may contain the same key again.
fn in_json(pointer: &Pointer, response: &ReceivedResponse) -> Result<Option<Box<RawValue>>, NoJson> {
    if response.cut { Err(NoJson) } else { pointer.find(&response.body) }
}

/// Whether two JSON values are equal: 1 and 1.0 are.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The first group, or the whole match if there is none. A match that ends where the text was cut may be incomplete.
fn group(regex: &Regex, text: &[u8], cut: bool) -> Option<String> {
    let found = regex.captures(text)?;
    let part = found.get(1).or_else(|| found.get(0)).filter(|part| !cut || part.end() < text.len())?;
    String::from_utf8(part.as_bytes().to_vec()).ok()
}

/// Maximum length of a value that is kept. Tokens of half this size occur in practice.
pub(crate) const VALUE_BYTES: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn response(headers: &[(&str, &str)], body: &str) -> ReceivedResponse {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        ReceivedResponse {
            status: 200,
            headers: headers.collect(),
            body: body.as_bytes().to_vec(),
            cut: false,
        }
    }

    fn capture(from: From, regex: Option<&str>) -> Capture {
        let regex = regex.map(|text| Regex::new(text).unwrap());
        Capture { slot: 0, from, regex, default: None, needs: Needs::default() }
    }

    #[test]
    fn values_are_taken_from_every_part_of_an_answer() {
        let response = response(
            &[("Location", "/items/42?x"), ("Set-Cookie", "sid=abc; Path=/"), ("set-cookie", "sid=def")],
            r#"{"data":{"token":"t-1","ids":[7,8]}} csrf="xyz""#,
        );
        let json = |text: &str| From::Json(Pointer::parse(text).unwrap());
        let header = || From::Header("location".to_owned());
        let cookie = |name: &str| From::Cookie(name.to_owned());
        for (from, regex, value) in [
            (header(), None, Some("/items/42?x")),
            (header(), Some(r"/items/(\d+)"), Some("42")),
            (header(), Some(r"\d+"), Some("42")),
            (header(), Some(r"nothing"), None),
            (cookie("sid"), None, Some("def")),
            (cookie("other"), None, None),
            (From::Body, Some(r#"csrf="([^"]+)""#), Some("xyz")),
            // Data after the JSON makes it invalid.
            (json("/data/token"), None, None),
        ] {
            assert_eq!(capture(from, regex).take(&response).as_deref(), value);
        }
        let mut response = response;
        response.body = br#"{"data":{"token":"t-1","ids":[7,8]}}"#.to_vec();
        for (pointer, regex, value) in
            [("/data/token", None, "t-1"), ("/data/token", Some(r"\d"), "1"), ("/data/ids", None, "[7,8]")]
        {
            assert_eq!(capture(json(pointer), regex).take(&response).as_deref(), Some(value));
        }
    }

    /// If this fails, a response injects lines into the next request, or uses as much memory as it likes.
    #[test]
    fn a_value_that_does_not_fit_its_place_is_none() {
        let token = From::Json(Pointer::parse("/t").unwrap());
        let needs =
            |header, number| Capture { needs: Needs { header, number }, ..capture(token.clone(), None) };
        let with = |value: &str| response(&[], &serde_json::json!({ "t": value }).to_string());
        assert_eq!(needs(true, false).take(&with("a\r\nX: y")), None);
        assert_eq!(needs(false, false).take(&with("a\nb")).as_deref(), Some("a\nb"));
        assert_eq!(needs(false, true).take(&with("1,2")), None);
        assert_eq!(needs(false, true).take(&with("-1.5")).as_deref(), Some("-1.5"));
        assert_eq!(needs(false, false).take(&with(&"x".repeat(VALUE_BYTES + 1))), None);
        let with_default = Capture { default: Some("d".to_owned()), ..needs(true, false) };
        assert_eq!(with_default.take(&with("a\r\n")).as_deref(), Some("d"));
    }

    /// If this fails, an HTML page that reports an outage passes for a response without an error.
    #[test]
    fn what_is_no_json_or_was_cut_passes_no_check_of_json() {
        let page = response(&[], "<html>down</html>");
        // What was kept is valid JSON, but not all that was sent.
        let cut = ReceivedResponse { cut: true, ..response(&[], "{}") };
        let wanted = [
            Wanted::Exists(false),
            Wanted::Exists(true),
            Wanted::Equals(Value::Null),
            Wanted::Contains(String::new()),
            Wanted::Matches(Regex::new("").unwrap()),
        ];
        for (wanted, pointer) in wanted.into_iter().flat_map(|wanted| [(wanted.clone(), ""), (wanted, "/a")])
        {
            let look = Look { at: From::Json(Pointer::parse(pointer).unwrap()), wanted };
            assert!(!look.holds(&page) && !look.holds(&cut), "{look:?}");
        }
        assert_eq!(capture(From::Json(Pointer::parse("").unwrap()), None).take(&cut), None);
        let cut = ReceivedResponse { cut: true, ..response(&[], "id=12 at=34") };
        let number = |text| capture(From::Body, Some(text)).take(&cut);
        assert_eq!((number(r"id=(\d+)").as_deref(), number(r"at=(\d+)")), (Some("12"), None));
    }

    #[test]
    fn answers_are_looked_at() {
        let response =
            response(&[("X-Kind", "big one")], r#"{"ok":true,"n":1.0,"list":[1,{"a":null}],"none":null}"#);
        let json = |text: &str| From::Json(Pointer::parse(text).unwrap());
        let header = |name: &str| From::Header(name.to_owned());
        let matches = |text: &str| Wanted::Matches(Regex::new(text).unwrap());
        for (at, wanted, holds) in [
            (json("/ok"), Wanted::Equals(true.into()), true),
            (json("/n"), Wanted::Equals(1.into()), true),
            (json("/n"), Wanted::Equals("1".into()), false),
            (json("/list"), Wanted::Equals(serde_json::json!([1, {"a": null}])), true),
            (json("/list"), Wanted::Equals(serde_json::json!([1])), false),
            (json("/none"), Wanted::Exists(true), true),
            (json("/no"), Wanted::Exists(false), true),
            (json("/no"), Wanted::Exists(true), false),
            (json("/ok"), matches("^tr"), true),
            (header("x-kind"), Wanted::Equals("big one".into()), true),
            (header("x-kind"), Wanted::Contains("one".into()), true),
            (header("x-kind"), matches("^one"), false),
            (header("x-other"), Wanted::Exists(false), true),
            (From::Body, matches(r#""n":\s*1"#), true),
        ] {
            let look = Look { at, wanted };
            assert_eq!(look.holds(&response), holds, "{look:?}");
        }
    }
}
