//! Reads a results directory: finished, still running, or cut off at any byte.
//!
//! The directory may be from an untrusted source. Every size is checked before memory is allocated, links are not
//! followed, only files of this format are opened, texts are escaped, and inconsistent numbers are an error.

use std::borrow::Cow;
use std::path::Path;

use intervals::hlog::Decoder;
use intervals::{COARSE_DIGITS, DIGITS, Failure, Interval, Outcome, Phase, Series};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use units::Nanos;

use crate::commit::{EVENTS, LONGEST_JSON_LINE, RUN, SERIES};
use crate::compatibility::Ignored;
use crate::document::{Document, Envelope, SchemaVersion, State};
use crate::error::{Damage, RecordError};
use crate::escape::escaped;
use crate::folder::Event;
use crate::lines::Lines;
use crate::log_reader::{Awaited, read_log};
use crate::record_dir::read_file;
use crate::series::{ADDENDS, Second};
use crate::tree;
use units::escape_text;

/// Documents have tens of kilobytes: every option and a few dozen distributions.
const LONGEST_DOCUMENT: u64 = 16 << 20;

/// Twelve days, at about a kilobyte per second.
const LONGEST_SERIES: u64 = 1 << 30;

pub(crate) const LONGEST_EVENTS: u64 = 64 << 20;

/// A run as read from its record.
#[derive(Debug, Clone)]
pub struct Recording {
    pub document: Document,
    /// Every committed interval, in order.
    pub seconds: Vec<Second>,
    /// All committed intervals, merged. Its length is from the beginning of the first to the end of the last; its
    /// `outstanding` is that of the last.
    pub total: Interval,
    pub events: Vec<Event>,
}

/// Reads the run in the directory `path`.
///
/// # Errors
///
/// [`RecordError::NoRun`], [`RecordError::OtherMajor`], and others for a damaged or hostile directory.
///
/// # Cost
///
/// One pass over every file. Uses memory for the series, about twice the size of its file, and some megabytes.
pub fn read(path: &Path) -> Result<Recording, RecordError> {
    // The document is read first: if it states that the run is over, everything else has been written.
    let mut ignored = Ignored::default();
    let mut document = read_document(path, &mut ignored)?;
    let (seconds, mut total) = read_series(&path.join(SERIES), Some(&mut ignored))?;
    read_logs(path, &seconds, &mut total)?;
    let mut events = Vec::new();
    each_json_line(&path.join(EVENTS), LONGEST_EVENTS, Some(&mut ignored), |event| {
        events.push(escaped::<Event>(event));
        Ok(())
    })?;
    check_results(&document, &total).map_err(|damage| RecordError::Damaged {
        path: path.join(RUN),
        line: 1,
        damage,
    })?;
    ignored.note_in(&mut document);
    Ok(Recording { document, seconds, total, events })
}

/// The committed intervals of the run in `path` that begin at `from` or later and before `to`, one by one and merged.
///
/// # Errors
///
/// Like [`read`].
pub fn read_part(path: &Path, from: Nanos, to: Nanos) -> Result<(Vec<Second>, Interval), RecordError> {
    let (mut seconds, _) = read_series(&path.join(SERIES), None)?;
    seconds.retain(|second| (from.0..to.0).contains(&second.start_ns));
    let (mut total, mut one) = (Interval::default(), Interval::default());
    for (line, second) in (1..).zip(&seconds) {
        let damaged = |damage| RecordError::Damaged { path: path.join(SERIES), line, damage };
        second.restore(&mut one).map_err(damaged)?;
        total.merge(&one);
    }
    read_logs(path, &seconds, &mut total)?;
    Ok((seconds, total))
}

/// Reads the histograms of every series that `total` can have.
fn read_logs(path: &Path, seconds: &[Second], total: &mut Interval) -> Result<(), RecordError> {
    let (mut fine, mut coarse) = (Decoder::new(DIGITS), Decoder::new(COARSE_DIGITS));
    for series in Series::of(total) {
        let file = path.join(format!("{}.hlog", series.name()));
        let decoder = if series.digits() == COARSE_DIGITS { &mut coarse } else { &mut fine };
        read_histograms(&file, series, seconds, decoder, total)?;
    }
    Ok(())
}

impl Recording {
    /// Whether the document was never finished: the run is in progress, or its process is gone. The record alone does
    /// not show which.
    pub fn is_cut_off(&self) -> bool {
        self.document.state == State::Running
    }

    /// Counts the requests of a cut-off run that were scheduled and never ended as `in_flight`, without an age, and
    /// marks the document as recovered. Does nothing to a run that ended by itself.
    pub fn settle(&mut self) {
        if !self.is_cut_off() {
            return;
        }
        let missing = self.total.counts.scheduled.saturating_sub(self.total.ended());
        if missing > 0 {
            self.total.add_failures(Failure::new(Outcome::InFlight, Phase::Wait), missing);
        }
        self.document.state = State::Recovered;
    }
}

fn read_document(folder: &Path, ignored: &mut Ignored) -> Result<Document, RecordError> {
    check_kind(folder, "drive")?;
    let document: Document = read_record(&folder.join(RUN), ignored)?;
    check_zero(folder, &document)?;
    Ok(document)
}

/// Checks that the record has a zero on a clock, which all its offsets count from.
pub(crate) fn check_zero(folder: &Path, envelope: &Envelope) -> Result<(), RecordError> {
    if envelope.time.started_monotonic_ns > 0 && !envelope.time.started.is_empty() {
        return Ok(());
    }
    let damage = Damage::sum("time.started or time.started_monotonic_ns is missing");
    Err(RecordError::Damaged { path: folder.join(RUN), line: 1, damage })
}

/// Which verb made the record in the directory `path`: `drive`, `watch`, `import` and so on, escaped.
///
/// # Errors
///
/// Like [`read`].
pub fn kind_of(path: &Path) -> Result<String, RecordError> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let document: Kind = read_whole(path)?;
    // Our own kinds are one word; a longer text is cut.
    Ok(escape_text(&document.kind.chars().take(40).collect::<String>()))
}

/// Checks that the record in `folder` was made by the verb `needed`.
pub(crate) fn check_kind(folder: &Path, needed: &'static str) -> Result<(), RecordError> {
    let found = kind_of(folder)?;
    if found == needed {
        return Ok(());
    }
    Err(RecordError::OtherKind { path: folder.to_owned(), found, needed })
}

/// The `run.json` of a record, for any kind of document. Its texts are not escaped.
///
/// # Errors
///
/// Like [`read`].
pub fn read_whole<T: DeserializeOwned>(folder: &Path) -> Result<T, RecordError> {
    let path = folder.join(RUN);
    parsed(&path, &read_text(&path)?)
}

/// The record in the file `path`, escaped. Adds its unknown fields to `ignored`.
pub(crate) fn read_record<T>(path: &Path, ignored: &mut Ignored) -> Result<T, RecordError>
where
    T: Serialize + DeserializeOwned,
{
    let text = read_text(path)?;
    let record: T = parsed(path, &text)?;
    ignored.compare(&name_of(path), &parsed(path, &text)?, &record);
    Ok(escaped(record))
}

/// The same, for a record in an older form: `upgrade` converts it to the current form.
pub(crate) fn read_upgraded<T>(
    path: &Path,
    ignored: &mut Ignored,
    upgrade: impl FnOnce(&mut Map<String, Value>),
) -> Result<T, RecordError>
where
    T: Serialize + DeserializeOwned,
{
    let mut found: Map<String, Value> = parsed(path, &read_text(path)?)?;
    upgrade(&mut found);
    let found = Value::Object(found);
    let record: T = tree::read(&found).map_err(|error| damaged(path, error))?;
    ignored.compare(&name_of(path), &found, &record);
    Ok(escaped(record))
}

fn name_of(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, RecordError> {
    serde_json::from_slice(text).map_err(|error| damaged(path, error))
}

fn damaged(path: &Path, error: serde_json::Error) -> RecordError {
    // A field with a wrong type is found after the parser has passed it, and then has no line.
    let line = error.line().max(1) as u64;
    RecordError::Damaged { path: path.to_owned(), line, damage: Damage::Json(error) }
}

/// The text of a document, if this program can read its version.
fn read_text(path: &Path) -> Result<Vec<u8>, RecordError> {
    /// Parsed separately, since the other fields may differ in another major version.
    #[derive(Deserialize)]
    struct Version {
        schema_version: SchemaVersion,
    }

    let folder = || path.parent().unwrap_or(path).to_owned();
    let text = read_file(path, LONGEST_DOCUMENT)?.ok_or_else(|| RecordError::NoRun { path: folder() })?;
    let version = parsed::<Version>(path, &text)?.schema_version;
    if !version.is_readable() {
        return Err(RecordError::OtherMajor { path: path.to_owned(), found: version });
    }
    Ok(text)
}

/// Reads the committed intervals of the run in the directory `path`, in order, without their histograms.
///
/// # Errors
///
/// Like [`read`].
pub fn read_seconds(path: &Path) -> Result<Vec<Second>, RecordError> {
    read_series(&path.join(SERIES), None).map(|(seconds, _)| seconds)
}

/// All committed intervals, and their sum without the histograms.
fn read_series(path: &Path, ignored: Option<&mut Ignored>) -> Result<(Vec<Second>, Interval), RecordError> {
    let mut seconds: Vec<Second> = Vec::new();
    let mut total = Interval::default();
    let mut one = Interval::default();
    let mut sums = [0u64; ADDENDS];
    each_json_line(path, LONGEST_SERIES, ignored, |second: Second| {
        second.restore(&mut one)?;
        if let Some(last) = seconds.last()
            && (second.index <= last.index || second.start_ns <= last.start_ns)
        {
            return Err(Damage::sum("it does not come after the line before it"));
        }
        // Checked here, so that no sum of these lines can overflow later.
        for (sum, addend) in sums.iter_mut().zip(second.addends()) {
            *sum = sum.checked_add(addend).ok_or_else(|| Damage::sum("the sum over the run overflows"))?;
        }
        total.merge(&one);
        total.counts.outstanding = second.outstanding;
        seconds.push(second);
        Ok(())
    })?;
    if let (Some(first), Some(last)) = (seconds.first(), seconds.last()) {
        total.start = Nanos(first.start_ns);
        total.length = Nanos(last.start_ns + last.length_ns - first.start_ns);
    }
    Ok((seconds, total))
}

/// Merges the histograms of `series` that belong to committed intervals into `total`.
fn read_histograms(
    path: &Path,
    series: Series,
    seconds: &[Second],
    decoder: &mut Decoder,
    total: &mut Interval,
) -> Result<(), RecordError> {
    let name = series.name();
    let awaited = seconds.iter().filter_map(|second| {
        Some(Awaited {
            index: second.index,
            start_ns: second.start_ns,
            length_ns: second.length_ns,
            counts: second.expected_count(series),
            sum_ns: *second.sums_ns.get(&name)?,
            out_of_range: second.out_of_range.get(&name).copied().unwrap_or(0),
        })
    });
    let committed = |start_ns| {
        let found = seconds.binary_search_by_key(&start_ns, |second| second.start_ns);
        found.ok().map(|i| seconds[i].index)
    };
    read_log(path, awaited, committed, decoder, |durations| total.slot(series).merge(durations))
}

/// Checks that the totals of a finished document equal the sums of the series.
fn check_results(document: &Document, total: &Interval) -> Result<(), Damage> {
    let Some(results) = document.results.as_ref() else { return Ok(()) };
    if !matches!(document.state, State::Finished | State::Interrupted) {
        return Ok(());
    }
    let failed = total.ended() - total.counts.ok;
    for (name, stated, summed) in [
        ("scheduled", results.totals.scheduled, total.counts.scheduled),
        ("ok", results.totals.ok, total.counts.ok),
        ("failed", results.totals.failed, failed),
    ] {
        if stated != summed {
            return Err(Damage::sum(format!("{name} is {stated}, {SERIES} sums to {summed}")));
        }
    }
    Ok(())
}

/// Parses every line of a file of JSON lines as a `T`. The unknown fields of the first line that has any are added to
/// `ignored`.
pub(crate) fn each_json_line<T: Serialize + DeserializeOwned>(
    path: &Path,
    limit: u64,
    mut ignored: Option<&mut Ignored>,
    mut take: impl FnMut(T) -> Result<(), Damage>,
) -> Result<(), RecordError> {
    let file = name_of(path);
    let mut of_file = Ignored::default();
    each_line(path, limit, |text| {
        let value: T = serde_json::from_slice(text)?;
        if ignored.is_some() && of_file.is_empty() {
            of_file.compare(&file, &serde_json::from_slice(text)?, &value);
        }
        take(value)
    })?;
    if let Some(ignored) = &mut ignored {
        ignored.extend(of_file);
    }
    Ok(())
}

/// Passes every complete line of a file of JSON lines to `take`, unparsed.
pub(crate) fn each_line(
    path: &Path,
    limit: u64,
    mut take: impl FnMut(&[u8]) -> Result<(), Damage>,
) -> Result<(), RecordError> {
    let Some(mut lines) = Lines::open(path, LONGEST_JSON_LINE, limit)? else { return Ok(()) };
    while let Some(text) = lines.next()? {
        let taken = take(text);
        taken.map_err(|damage| lines.damaged(damage))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
