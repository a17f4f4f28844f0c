//! The document as JSON for machines: the same as `run.json`.

use std::io::{self, Write};

use record::document::Document;

/// Writes `document` indented, with a line end behind it.
///
/// # Errors
///
/// Those of `out`.
pub fn json(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}
