//! Checks the output against `formats/explain.schema.json`.

use explain::{Explanation, explain};
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::world::{Plant, US, World};

fn schema() -> Value {
    // The schema for output, not for input: a field that may be null is always present.
    let mut schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Explanation>();
    schema.insert("title".to_owned(), "what `explain --json` prints".into());
    schema.to_value()
}

#[test]
fn the_schema_is_that_of_the_types() {
    testkit::check_format("explain.schema.json", &format!("{:#}\n", schema()));
}

/// If this fails, a tool that validates with the schema rejects the output.
#[test]
fn the_schema_accepts_what_is_printed_and_nothing_else() {
    let schema = jsonschema::validator_for(&schema()).unwrap();
    let far = World::of(200, Plant::Back).on_another_host(400 * US);
    let mut stalled = World::of(200, Plant::Unread);
    stalled.hiccup = Some("stolen");
    for world in [World::of(3, Plant::Queue), far, stalled] {
        let read = world.write();
        for servers in [read.servers, Vec::new()] {
            let found = serde_json::to_value(explain(&read.client, servers, &read.hosts)).unwrap();
            let errors: Vec<_> = schema.iter_errors(&found).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?}");
            for place in ["", "/blame", "/groups/0", "/slowest/0", "/join", "/surroundings", "/seconds/0"] {
                let mut more = found.clone();
                more.pointer_mut(place).unwrap()["surprise"] = 1.into();
                assert!(!schema.is_valid(&more), "a surprise at `{place}`");
            }
        }
    }
}
