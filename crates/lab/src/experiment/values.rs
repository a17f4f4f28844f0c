//! Values of an experiment file that may be written in more than one way.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

/// Values by name, each with its place.
pub(crate) type Named<T> = BTreeMap<String, Spanned<T>>;

/// A text, a number or a boolean, as the text it was written as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar(pub String);

/// A factor: its values alone, or a table.
#[derive(Debug, Clone)]
pub(crate) enum Factor {
    List(Vec<Scalar>),
    Table(FactorTable),
}

/// A factor with more than its values.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FactorTable {
    /// A list, or a table of labels and values.
    pub values: Option<Values>,
    /// Powers of two from the first number to the second.
    #[cfg_attr(test, schemars(with = "Option<[u64; 2]>"))]
    pub pow2: Option<Spanned<[u64; 2]>>,
    /// `compare`: the values of this factor are compared with each other; of one factor at most.
    pub role: Option<Role>,
    /// Label of the value with which the others are compared. The first one unless given.
    #[cfg_attr(test, schemars(with = "Option<Scalar>"))]
    pub base: Option<Spanned<Scalar>>,
    /// `rarely`: runs with the same value stay together within a block, because a change takes long.
    pub change: Option<Change>,
}

/// The values of a factor.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    List(Vec<Scalar>),
    Labelled(Named<Scalar>),
}

/// What a factor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    Compare,
}

/// How often a factor changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Change {
    Rarely,
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Factor, D::Error> {
        deserializer.deserialize_any(FactorVisitor)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        deserializer.deserialize_any(ValuesVisitor)
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

struct FactorVisitor;

impl<'de> Visitor<'de> for FactorVisitor {
    type Value = Factor;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values, or { values | pow2 = ... }")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Factor, A::Error> {
        all(list).map(Factor::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Factor, A::Error> {
        FactorTable::deserialize(MapAccessDeserializer::new(map)).map(Factor::Table)
    }
}

struct ValuesVisitor;

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values, or a table of labels and values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Values, A::Error> {
        all(list).map(Values::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Values, A::Error> {
        Named::deserialize(MapAccessDeserializer::new(map)).map(Values::Labelled)
    }
}

fn all<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Vec<Scalar>, A::Error> {
    let mut values = Vec::new();
    while let Some(value) = list.next_element()? {
        values.push(value);
    }
    Ok(values)
}
