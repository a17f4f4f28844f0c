//! Reads a run folder back: finished, still running, or cut off at any byte.
//!
//! The folder is taken as a stranger's. Every size is bounded before memory is taken, no link is followed, only
//! names of ours are opened, texts are escaped, and numbers that do not add up are an error rather than a result.

use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use units::Nanos;

use crate::document::{Document, SCHEMA_VERSION, State};
use crate::durations::Durations;
use crate::error::{Damage, RecordError};
use crate::escape::escaped;
use crate::folder::{EVENTS, Event, LONGEST_JSON_LINE, RUN, SERIES};
use crate::hlog::{self, Decoder};
use crate::interval::{Interval, Series};
use crate::lines::{self, Lines};
use crate::outcome::{Failure, Outcome};
use crate::phase::Phase;
use crate::series::{ADDENDS, Second};

/// A document names every option and a few dozen distributions: tens of kilobytes.
const LONGEST_DOCUMENT: u64 = 16 << 20;

/// At about a kilobyte a second, twelve days.
const LONGEST_SERIES: u64 = 1 << 30;

const LONGEST_EVENTS: u64 = 64 << 20;

/// A run as its folder tells it.
#[derive(Debug, Clone)]
pub struct Recording {
    pub document: Document,
    /// Every committed interval, in order.
    pub seconds: Vec<Second>,
    /// All committed intervals, merged. Its length reaches from the begin of the first to the end of the last;
    /// its `outstanding` is that of the last.
    pub total: Interval,
    pub events: Vec<Event>,
}

/// Reads the run in the folder `path`.
///
/// # Errors
///
/// [`RecordError::NoRun`], [`RecordError::Newer`] and what a damaged or hostile folder deserves.
///
/// # Cost
///
/// One pass over every file. The memory taken is that of the series, about twice its file, and some megabytes.
pub fn read(path: &Path) -> Result<Recording, RecordError> {
    // The document first: when it says that the run is over, all the rest has been written.
    let document = escaped(read_document(path)?);
    let (seconds, mut total) = read_series(&path.join(SERIES))?;
    let mut decoder = Decoder::new();
    for series in Series::of(total.kinds().len()) {
        let file = path.join(format!("{}.hlog", series.name()));
        read_histograms(&file, series, &seconds, &mut decoder, &mut total)?;
    }
    let mut events = Vec::new();
    each_json_line(&path.join(EVENTS), LONGEST_EVENTS, |event| {
        events.push(escaped::<Event>(event));
        Ok(())
    })?;
    check_results(&document, &total).map_err(|damage| RecordError::Damaged {
        path: path.join(RUN),
        line: 1,
        damage,
    })?;
    Ok(Recording { document, seconds, total, events })
}

/// The committed intervals of the run in `path` that begin at `from` or later and before `to`, and all of them
/// merged.
///
/// # Errors
///
/// As [`read`].
pub fn read_part(path: &Path, from: Nanos, to: Nanos) -> Result<(Vec<Second>, Interval), RecordError> {
    let (mut seconds, _) = read_series(&path.join(SERIES))?;
    seconds.retain(|second| (from.0..to.0).contains(&second.start_ns));
    let (mut total, mut one) = (Interval::default(), Interval::default());
    for (line, second) in (1..).zip(&seconds) {
        let damaged = |damage| RecordError::Damaged { path: path.join(SERIES), line, damage };
        second.restore(&mut one).map_err(damaged)?;
        total.merge(&one);
    }
    let mut decoder = Decoder::new();
    for series in Series::of(total.kinds().len()) {
        let file = path.join(format!("{}.hlog", series.name()));
        read_histograms(&file, series, &seconds, &mut decoder, &mut total)?;
    }
    Ok((seconds, total))
}

impl Recording {
    /// The document was never finished: the run is under way, or its process is gone. The folder alone cannot
    /// tell which.
    pub fn is_cut_off(&self) -> bool {
        self.document.state == State::Running
    }

    /// Books the requests of a cut-off run that were scheduled and never ended, without an age, and marks the
    /// document as recovered. Does nothing to a run that ended by itself.
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

fn read_document(folder: &Path) -> Result<Document, RecordError> {
    read_whole(folder)
}

/// A folder's `run.json`, whichever kind of document it is.
pub(crate) fn read_whole<T: DeserializeOwned>(folder: &Path) -> Result<T, RecordError> {
    /// Read on its own: a newer document may have fields that ours has not.
    #[derive(Deserialize)]
    struct Version {
        schema_version: u64,
    }

    let path = folder.join(RUN);
    let file = lines::open(&path)?.ok_or_else(|| RecordError::NoRun { path: folder.to_owned() })?;
    let mut text = Vec::new();
    let read = file.take(LONGEST_DOCUMENT + 1).read_to_end(&mut text);
    read.map_err(|source| RecordError::Read { path: path.clone(), source })?;
    if text.len() as u64 > LONGEST_DOCUMENT {
        return Err(RecordError::TooLarge { path, limit: LONGEST_DOCUMENT });
    }
    let damaged = |error: serde_json::Error| RecordError::Damaged {
        path: path.clone(),
        line: error.line() as u64,
        damage: Damage::Json(error),
    };
    let version: Version = serde_json::from_slice(&text).map_err(damaged)?;
    if version.schema_version > u64::from(SCHEMA_VERSION) {
        return Err(RecordError::Newer { path, found: version.schema_version, known: SCHEMA_VERSION });
    }
    serde_json::from_slice(&text).map_err(damaged)
}

/// All committed intervals, and their merge but for the histograms.
/// Reads the committed intervals of the run in the folder `path` without their histograms, in order.
///
/// # Errors
///
/// As [`read`].
pub fn read_seconds(path: &Path) -> Result<Vec<Second>, RecordError> {
    read_series(&path.join(SERIES)).map(|(seconds, _)| seconds)
}

fn read_series(path: &Path) -> Result<(Vec<Second>, Interval), RecordError> {
    let mut seconds: Vec<Second> = Vec::new();
    let mut total = Interval::default();
    let mut one = Interval::default();
    let mut sums = [0u64; ADDENDS];
    each_json_line(path, LONGEST_SERIES, |second: Second| {
        second.restore(&mut one)?;
        if let Some(last) = seconds.last()
            && (second.index <= last.index || second.start_ns <= last.start_ns)
        {
            return Err(Damage::sum("it does not come after the line before it"));
        }
        // Checked here, so that no sum below this line can overflow.
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
    let mut awaited = seconds.iter().filter(|second| second.sums_ns.contains_key(&name));
    let mut next = awaited.next();
    let missing = |second: &Second| {
        Damage::sum(format!("{SERIES} has interval {} in {name}, and it is not here", second.index))
    };
    if let Some(mut lines) = Lines::open(path, hlog::LONGEST_LINE, u64::MAX)? {
        while let Some(text) = lines.next()? {
            // Split in two: the line borrows the reader, and so would its error.
            let step = match hlog::parse(text) {
                Ok(None) => continue,
                Ok(Some(line)) => match next {
                    Some(second) if line.start.0 == second.start_ns => {
                        let slot = total.slot(series);
                        merge_line(&line, second, series, decoder, slot).map(|()| next = awaited.next())
                    }
                    Some(second) if line.start.0 > second.start_ns => Err(missing(second)),
                    _ => check_uncommitted(&line, seconds),
                },
                Err(damage) => Err(damage),
            };
            step.map_err(|damage| lines.damaged(damage))?;
        }
        return next.map_or(Ok(()), |second| Err(lines.damaged(missing(second))));
    }
    next.map_or(Ok(()), |second| Err(RecordError::NoLog { path: path.to_owned(), index: second.index }))
}

/// A line that no committed interval waits for was cut off before its commit, or does not belong here.
fn check_uncommitted(line: &hlog::Line<'_>, seconds: &[Second]) -> Result<(), Damage> {
    match seconds.binary_search_by_key(&line.start.0, |second| second.start_ns) {
        Ok(i) => Err(Damage::sum(format!("interval {} should have no line here", seconds[i].index))),
        Err(_) => Ok(()),
    }
}

fn merge_line(
    line: &hlog::Line<'_>,
    second: &Second,
    series: Series,
    decoder: &mut Decoder,
    into: &mut Durations,
) -> Result<(), Damage> {
    if line.length.0 != second.length_ns {
        return Err(Damage::sum(format!("its length is not the {} ns of {SERIES}", second.length_ns)));
    }
    let histogram = decoder.decode(line)?;
    let (least, most) = second.expected_count(series);
    if !(least..=most).contains(&histogram.len()) || histogram.is_empty() {
        let count = histogram.len();
        return Err(Damage::sum(format!("it holds {count} values, {SERIES} allows {least} to {most}")));
    }
    let name = series.name();
    let sum_ns = u128::from(second.sums_ns.get(&name).copied().unwrap_or(0));
    let out_of_range = second.out_of_range.get(&name).copied().unwrap_or(0);
    if out_of_range > histogram.len() {
        return Err(Damage::sum(format!(
            "{out_of_range} of its {} values are out of range",
            histogram.len()
        )));
    }
    let (low, high) = histogram.iter_recorded().fold((0u128, 0u128), |(low, high), bucket| {
        let count = u128::from(bucket.count_at_value());
        let value = bucket.value_iterated_to();
        (low + count * u128::from(histogram.lowest_equivalent(value)), high + count * u128::from(value))
    });
    // Values out of range are higher than their bucket, and a sum may have met the end of a u64.
    if sum_ns < low.min(u128::from(u64::MAX)) || (out_of_range == 0 && sum_ns > high) {
        return Err(Damage::sum(format!("its values cannot sum to the {sum_ns} ns of {SERIES}")));
    }
    into.merge(&Durations::from_parts(histogram, sum_ns, out_of_range));
    Ok(())
}

/// A finished document carries the totals it was written with.
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

fn each_json_line<T: DeserializeOwned>(
    path: &Path,
    limit: u64,
    mut take: impl FnMut(T) -> Result<(), Damage>,
) -> Result<(), RecordError> {
    let Some(mut lines) = Lines::open(path, LONGEST_JSON_LINE, limit)? else { return Ok(()) };
    while let Some(text) = lines.next()? {
        let taken = serde_json::from_slice(text).map_err(Damage::Json).and_then(&mut take);
        taken.map_err(|damage| lines.damaged(damage))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
