//! The JSON Schema of a scenario file, generated from its types for `formats/scenario.schema.json`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::format::File;
use crate::settings::{Form, Key, OUTPUT, OutputSettings, RUN, RunSettings};
use crate::values::{CaptureSpec, CaptureTable, Matcher, MatcherTable, Scalar, Scalars};

/// The schema of the whole file.
pub(crate) fn generated() -> Value {
    let mut schema = schemars::schema_for!(File);
    schema.insert("title".to_owned(), "a scenario of parallax drive".into());
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

impl JsonSchema for Scalars {
    fn schema_name() -> Cow<'static, str> {
        "Scalars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number", "boolean", "array"],
            "items": { "type": ["string", "number", "boolean"] }
        })
    }
}

impl JsonSchema for Matcher {
    fn schema_name() -> Cow<'static, str> {
        "Matcher".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<MatcherTable>();
        json_schema!({ "anyOf": [{ "type": ["string", "number", "boolean", "array"] }, table] })
    }
}

impl JsonSchema for CaptureSpec {
    fn schema_name() -> Cow<'static, str> {
        "Capture".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<CaptureTable>();
        json_schema!({ "anyOf": [{ "type": "string", "pattern": "^/" }, table] })
    }
}

impl JsonSchema for RunSettings {
    fn schema_name() -> Cow<'static, str> {
        "Run".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        table_schema(RUN)
    }
}

impl JsonSchema for OutputSettings {
    fn schema_name() -> Cow<'static, str> {
        "Output".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        table_schema(OUTPUT)
    }
}

fn table_schema(known: &[Key]) -> Schema {
    let properties: BTreeMap<&str, Value> = known
        .iter()
        .map(|key| {
            let mut schema = form_schema(key.form);
            schema["description"] = key.about.into();
            (key.key, schema)
        })
        .collect();
    let table = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    Schema::try_from(table).expect("an object is a schema")
}

/// The schema of a value of this form.
fn form_schema(form: Form) -> Value {
    match form {
        Form::Count => json!({ "type": ["integer", "string"] }),
        Form::Time | Form::Limit | Form::Rate => json!({ "type": "string" }),
        Form::Size | Form::Text => json!({ "type": ["string", "number"] }),
        Form::List => json!({ "type": ["string", "array"], "items": { "type": "string" } }),
        Form::Flag => json!({ "type": "boolean" }),
    }
}
