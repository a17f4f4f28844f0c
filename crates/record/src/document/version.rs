//! The version of the record's format, `major.minor`.
//!
//! Within a major version, fields and files are only added: a reader accepts any minor version of its major version,
//! ignores what it does not know, and notes that. Records from before minor versions have the number 1, which means
//! 1.0.

#[cfg(any(test, feature = "schema"))]
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

#[cfg(any(test, feature = "schema"))]
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version that this program writes.
pub const SCHEMA_VERSION: SchemaVersion = SchemaVersion { major: 1, minor: 1 };

/// A version of the record's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaVersion {
    pub major: u32,
    pub minor: u32,
}

impl SchemaVersion {
    /// Whether this program can read records of this version.
    pub fn is_readable(self) -> bool {
        self.major == SCHEMA_VERSION.major
    }
}

impl fmt::Display for SchemaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for SchemaVersion {
    type Err = ();

    /// Two plain numbers, as in `1.1`: no sign and no leading zero, so that each version has one spelling.
    fn from_str(text: &str) -> Result<SchemaVersion, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        let number =
            |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text).ok_or(());
        Ok(SchemaVersion { major: number(major)?, minor: number(minor)? })
    }
}

impl Serialize for SchemaVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SchemaVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SchemaVersion, D::Error> {
        struct Version;

        impl Visitor<'_> for Version {
            type Value = SchemaVersion;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a schema version like \"1.1\", or the number 1")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SchemaVersion, E> {
                text.parse().map_err(|()| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<SchemaVersion, E> {
                let major = u32::try_from(number);
                let major = major.map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))?;
                Ok(SchemaVersion { major, minor: 0 })
            }
        }

        deserializer.deserialize_any(Version)
    }
}

#[cfg(any(test, feature = "schema"))]
impl schemars::JsonSchema for SchemaVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SchemaVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`major.minor`. The number 1 is version 1.0.",
            "oneOf": [{ "type": "string", "pattern": "^[0-9]+\\.[0-9]+$" }, { "const": 1 }]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<(u32, u32)>) {
        let expected = expected.map(|(major, minor)| SchemaVersion { major, minor });
        assert_eq!(serde_json::from_str::<SchemaVersion>(json).ok(), expected, "{json}");
    }

    #[test]
    fn a_version_is_text_and_the_number_of_old_is_a_major_one() {
        check("\"1.1\"", Some((1, 1)));
        check("\"12.34\"", Some((12, 34)));
        check("1", Some((1, 0)));
        check("2", Some((2, 0)));
        for bad in ["\"1\"", "\"1.\"", "\"01.1\"", "\"1.+1\"", "\"1.1.1\"", "1.1", "-1", "null", "4294967296"]
        {
            check(bad, None);
        }
        assert_eq!(serde_json::to_string(&SchemaVersion { major: 1, minor: 1 }).unwrap(), "\"1.1\"");
    }
}
