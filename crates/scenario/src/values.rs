//! Values of a scenario file that may be written in more than one way, each parsed without losing its place.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

/// A text, a number or a boolean, as the text it was written as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar(pub String);

/// One scalar, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalars(pub Vec<String>);

/// What a value of a response is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Matcher {
    Equals(serde_json::Value),
    Table(MatcherTable),
}

/// A comparison by name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct MatcherTable {
    /// The value itself; for objects and lists of JSON.
    pub equals: Option<serde_json::Value>,
    /// A regular expression that must be found in the value.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub matches: Option<Spanned<String>>,
    /// Text that the value must contain.
    pub contains: Option<String>,
    /// Whether there is such a value at all.
    pub exists: Option<bool>,
}

/// How a value is taken from a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CaptureSpec {
    /// Shorthand: a JSON pointer; for a statement, the name of a column.
    Json(String),
    Table(CaptureTable),
}

/// How a value is taken from a response, in full.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct CaptureTable {
    /// A JSON pointer into the body: `/data/token`, `/items/0/id`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub json: Option<Spanned<String>>,
    /// The name of a header; its first line counts.
    pub header: Option<String>,
    /// The name of a cookie that the response sets.
    pub cookie: Option<String>,
    /// The name of a column; its value in the first row.
    pub column: Option<String>,
    /// A regular expression: its first group, or all it found. Alone it is looked for in the body; next to one of the
    /// others, in what that gave.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub regex: Option<Spanned<String>>,
    /// The value when there is none; without it the request fails its check.
    pub default: Option<String>,
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

impl<'de> Deserialize<'de> for Scalars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalars, D::Error> {
        deserializer.deserialize_any(ScalarsVisitor)
    }
}

impl<'de> Deserialize<'de> for Matcher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Matcher, D::Error> {
        deserializer.deserialize_any(MatcherVisitor)
    }
}

impl<'de> Deserialize<'de> for CaptureSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CaptureSpec, D::Error> {
        deserializer.deserialize_any(CaptureVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Scalar, E> {
        Ok(Scalar(truth.to_string()))
    }
}

struct ScalarsVisitor;

impl<'de> Visitor<'de> for ScalarsVisitor {
    type Value = Scalars;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, or a list of them")
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalars, E> {
        Ok(Scalars(vec![text.to_owned()]))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalars, E> {
        Ok(Scalars(vec![number.to_string()]))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalars, E> {
        Ok(Scalars(vec![number.to_string()]))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalars, E> {
        Ok(Scalars(vec![number.to_string()]))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Scalars, E> {
        Ok(Scalars(vec![truth.to_string()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalars, A::Error> {
        let mut values = Vec::new();
        while let Some(Scalar(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Scalars(values))
    }
}

struct MatcherVisitor;

impl<'de> Visitor<'de> for MatcherVisitor {
    type Value = Matcher;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value wanted, or { equals | matches | contains | exists = ... }")
    }

    fn visit_str<E>(self, text: &str) -> Result<Matcher, E> {
        Ok(Matcher::Equals(text.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Matcher, E> {
        Ok(Matcher::Equals(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Matcher, E> {
        Ok(Matcher::Equals(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Matcher, E> {
        let number = serde_json::Number::from_f64(number);
        number
            .map(|number| Matcher::Equals(number.into()))
            .ok_or_else(|| E::custom("this number cannot be written in JSON"))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Matcher, E> {
        Ok(Matcher::Equals(truth.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Matcher, A::Error> {
        serde_json::Value::deserialize(SeqAccessDeserializer::new(list)).map(Matcher::Equals)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Matcher, A::Error> {
        MatcherTable::deserialize(MapAccessDeserializer::new(map)).map(Matcher::Table)
    }
}

struct CaptureVisitor;

impl<'de> Visitor<'de> for CaptureVisitor {
    type Value = CaptureSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON pointer such as \"/data/token\", or { json | header | cookie | regex = ... }")
    }

    fn visit_str<E>(self, text: &str) -> Result<CaptureSpec, E> {
        Ok(CaptureSpec::Json(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CaptureSpec, A::Error> {
        CaptureTable::deserialize(MapAccessDeserializer::new(map)).map(CaptureSpec::Table)
    }
}

/// Values by name, each with its place.
pub(crate) type Named<T> = BTreeMap<String, Spanned<T>>;
