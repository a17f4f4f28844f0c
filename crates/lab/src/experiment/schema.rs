//! The JSON Schema of an experiment file, generated from its types for `formats/lab.schema.json`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::Experiment;
use super::format::File;
use super::values::{Factor, FactorTable, Scalar, Values};

/// The schema of the whole file.
fn generated() -> Value {
    let mut schema = schemars::schema_for!(File);
    schema.insert("title".to_owned(), "an experiment of parallax lab".into());
    schema.to_value()
}

impl JsonSchema for Scalar {
    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

impl JsonSchema for Factor {
    fn schema_name() -> Cow<'static, str> {
        "Factor".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (scalar, table) = (generator.subschema_for::<Scalar>(), generator.subschema_for::<FactorTable>());
        json_schema!({ "anyOf": [{ "type": "array", "items": scalar }, table] })
    }
}

impl JsonSchema for Values {
    fn schema_name() -> Cow<'static, str> {
        "Values".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let scalar = generator.subschema_for::<Scalar>();
        json_schema!({ "anyOf": [
            { "type": "array", "items": scalar },
            { "type": "object", "additionalProperties": scalar },
        ] })
    }
}

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../formats/lab.schema.json");

/// `UPDATE_FORMATS=1 cargo test -p lab the_schema` rewrites it.
#[test]
fn the_schema_is_that_of_the_types() {
    let text = format!("{:#}\n", generated());
    if std::env::var_os("UPDATE_FORMATS").is_some() {
        std::fs::write(PATH, &text).unwrap();
    }
    let found = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(
        found == text,
        "formats/lab.schema.json is stale: run UPDATE_FORMATS=1 cargo test -p lab the_schema"
    );
}

/// If this fails, editors mark what the program accepts, or let through what it refuses.
#[test]
fn the_schema_and_the_reader_take_the_experiments_that_are_shipped() {
    let schema = jsonschema::validator_for(&generated()).unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/experiments");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = path.display().to_string();
        let experiment = Experiment::read(&shown, &text).unwrap();
        assert!(!experiment.runs().unwrap().is_empty());
        let mut value: Value = toml::from_str(&text).unwrap();
        let errors: Vec<_> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{shown}: {errors:?}");
        value["load"]["surprise"] = 1.into();
        assert!(!schema.is_valid(&value));
        seen += 1;
    }
    assert_eq!(seen, 6);
}
