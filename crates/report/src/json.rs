//! The document as JSON for machines: the same as `run.json`.

use std::io::{self, Write};

use serde::Serialize;

/// Writes `document` as indented JSON with a line end.
///
/// # Errors
///
/// The errors of `out`.
pub fn json(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}
