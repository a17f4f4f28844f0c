//! One histogram log of a whole run: one line per histogram, with its name as the tag.
//!
//! The record already has them per second; this is for tools that want one file.

use record::document::Document;
use record::{Interval, LogLine, RecordError, Series, histogram_log};

/// The log. Tags are the names of the record's files: `response`, `service`, `phase-wait`, `outcome-reset`.
///
/// # Errors
///
/// When the document's start is not a valid time.
pub fn log(document: &Document, total: &Interval) -> Result<String, RecordError> {
    let named: Vec<_> =
        Series::all().filter_map(|series| Some((series.name(), total.series(series)?))).collect();
    let lines = named.iter().map(|(name, durations)| LogLine {
        tag: Some(name),
        start: total.start,
        length: total.length,
        durations,
    });
    histogram_log(&document.time.started, lines)
}
