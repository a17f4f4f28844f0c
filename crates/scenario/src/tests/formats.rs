//! The schema in `formats/` matches the types, and accepts what the parser accepts.

use std::path::Path;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../formats/scenario.schema.json");

/// `UPDATE_FORMATS=1 cargo test -p scenario formats` rewrites it.
#[test]
fn the_schema_is_that_of_the_types() {
    let text = format!("{:#}\n", crate::schema::generated());
    if std::env::var_os("UPDATE_FORMATS").is_some() {
        std::fs::write(PATH, &text).unwrap();
    }
    let found = std::fs::read_to_string(Path::new(PATH)).unwrap_or_default();
    assert!(
        found == text,
        "formats/scenario.schema.json is stale: run UPDATE_FORMATS=1 cargo test -p scenario formats"
    );
}

/// If this fails, editors mark what the program accepts, or let through what it refuses.
#[test]
fn the_schema_takes_the_scenarios_that_are_shipped() {
    let schema = jsonschema::validator_for(&crate::schema::generated()).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let value: serde_json::Value = toml::from_str(&text).unwrap();
            let errors: Vec<_> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", path.display());
            let mut more = value;
            more["request"] = serde_json::json!([{ "path": "/", "surprise": 1 }]);
            assert!(!schema.is_valid(&more));
            seen += 1;
        }
    }
    assert_eq!(seen, 3);
}
