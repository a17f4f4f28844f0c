//! Fields of a record that a reader does not know, because a newer program or another one wrote them.
//!
//! They are ignored, and named in one line. A field is unknown if it is missing after what was read has been written
//! again. An empty one (`null`, 0, an empty text or list) carries no information that could be missed, and is not
//! named.

use serde::Serialize;
use serde_json::Value;

use crate::document::{Envelope, SCHEMA_VERSION, SchemaVersion};
use crate::tree;
use units::escape_text;

/// The maximum number of fields that are named; the others are counted.
const NAMED: usize = 5;

/// The maximum length of a name in characters, since the file may be from an untrusted source.
const LONGEST_NAME: usize = 60;

/// The ignored fields of one record.
#[derive(Debug, Default)]
pub(crate) struct Ignored {
    /// For example `run.json results.surprise`; each field once.
    places: Vec<String>,
    more: usize,
}

impl Ignored {
    /// Compares the contents of `file` with what was understood of them.
    pub(crate) fn compare(&mut self, file: &str, found: &Value, understood: &impl Serialize) {
        let understood = tree::of(understood);
        self.visit(file, &mut Vec::new(), found, &understood);
    }

    fn visit<'a>(&mut self, file: &str, path: &mut Vec<&'a str>, found: &'a Value, understood: &Value) {
        match (found, understood) {
            (Value::Object(found), Value::Object(understood)) => {
                for (name, value) in found {
                    path.push(name);
                    match understood.get(name) {
                        Some(known) => self.visit(file, path, value, known),
                        None if is_nothing(value) => {}
                        None => self.add(file, path),
                    }
                    path.pop();
                }
            }
            // Elements of one list have the same fields, so an unknown field is named once for the list.
            (Value::Array(found), Value::Array(understood)) => {
                for (found, understood) in found.iter().zip(understood) {
                    self.visit(file, path, found, understood);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, file: &str, path: &[&str]) {
        let place = format!("{file} {}", path.join("."));
        let place: String = escape_text(&place).chars().take(LONGEST_NAME).collect();
        if self.places.contains(&place) {
            return;
        }
        if self.places.len() < NAMED { self.places.push(place) } else { self.more += 1 }
    }

    /// Adds the ignored fields of another file.
    pub(crate) fn extend(&mut self, other: Ignored) {
        self.more += other.more;
        for place in other.places {
            if self.places.len() < NAMED { self.places.push(place) } else { self.more += 1 }
        }
    }

    /// Whether nothing was ignored so far. If a line of a series had unknown fields, its other lines need no
    /// comparison.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds the note about ignored fields to the record's envelope.
    pub(crate) fn note_in(&self, envelope: &mut Envelope) {
        envelope.notes.extend(self.note(envelope.schema_version));
    }

    /// The note in a report about a record of `version`, in one line; `None` if everything in it is known.
    fn note(&self, version: SchemaVersion) -> Option<String> {
        let newer = (version > SCHEMA_VERSION).then(|| {
            format!("this record has schema version {version}, and this program knows {SCHEMA_VERSION}: what is newer is not shown")
        });
        let more = if self.more > 0 { format!(" and {} more", self.more) } else { String::new() };
        let ignored = (!self.is_empty()).then(|| {
            format!("fields that this program does not know were ignored: {}{more}", self.places.join(", "))
        });
        let parts: Vec<String> = [newer, ignored].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(found: &Value, understood: &Value, expected: Option<&str>) {
        let mut ignored = Ignored::default();
        ignored.compare("run.json", found, understood);
        assert_eq!(ignored.note(SCHEMA_VERSION).as_deref(), expected);
    }

    #[test]
    fn only_what_was_not_understood_is_named() {
        let understood = json!({ "a": 1, "list": [{ "b": 1 }, { "b": 2 }] });
        check(&understood, &understood, None);
        check(&json!({ "a": 1, "empty": [], "zero": 0, "null": null, "no": false }), &understood, None);
        check(
            &json!({ "a": 1, "new": 2, "list": [{ "b": 1, "c": 1 }, { "b": 2, "c": 1 }] }),
            &understood,
            Some("fields that this program does not know were ignored: run.json list.c, run.json new"),
        );
    }

    #[test]
    fn a_strangers_names_are_bounded_and_printable() {
        let many: serde_json::Map<String, Value> = (0..100).map(|i| (format!("f{i:02}"), json!(1))).collect();
        let mut ignored = Ignored::default();
        ignored.compare("run.json", &Value::Object(many), &json!({}));
        assert!(ignored.note(SCHEMA_VERSION).unwrap().ends_with("run.json f04 and 95 more"));
        let mut ignored = Ignored::default();
        ignored.compare("run.json", &json!({ ("\u{1b}[2J".repeat(100)): 1 }), &json!({}));
        let note = ignored.note(SCHEMA_VERSION).unwrap();
        assert!(note.len() < 130 && !note.contains('\u{1b}'), "{note}");
    }

    #[test]
    fn a_newer_version_is_named_even_where_every_field_is_known() {
        let newer = SchemaVersion { minor: SCHEMA_VERSION.minor + 1, ..SCHEMA_VERSION };
        assert_eq!(
            Ignored::default().note(newer).unwrap(),
            "this record has schema version 1.2, and this program knows 1.1: what is newer is not shown"
        );
        assert_eq!(Ignored::default().note(SchemaVersion { major: 1, minor: 0 }), None);
    }
}
