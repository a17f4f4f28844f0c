//! Checks `formats/view.schema.json` against the type.

use crate::view::{VIEW_VERSION, View};

#[test]
fn the_schema_is_that_of_the_type() {
    let mut schema = schemars::schema_for!(View);
    schema.insert("title".to_owned(), format!("a report as data, version {VIEW_VERSION}").into());
    testkit::check_format("view.schema.json", &format!("{:#}\n", schema.to_value()));
}
