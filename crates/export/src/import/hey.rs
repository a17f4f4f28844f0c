//! hey: its summary as text, and `-o csv`, which has every request that got a response.
//!
//! hey measures from before a connection is taken or made until the response body is read.

use std::collections::BTreeMap;

use record::document::CodeCount;
use record::import::{ErrorCount, ImportedResults, ImportedTime};
use units::Nanos;

use super::text::{Line, lines, scaled, shown, stated};
use super::values::Values;
use super::{
    ImportError, MOST_ERRORS, NO_BLAME, NO_PHASES, NO_SCHEDULE, NO_STAMPS, NO_UNANSWERED, NO_VALUES, Parsed,
};

const REQUEST: &str =
    "before a connection is taken or made until the body is read, of all requests that got a response";

/// hey keeps times and codes of this many responses, and continues; it does not print how many there were in all.
const KEPT: u64 = 1_000_000;

const CUT: &str = "how many requests there were, and how many of them failed: hey keeps times and codes of its first \
                   1 000 000 responses only";

pub(super) fn parse(text: &str) -> Result<Parsed, ImportError> {
    if text.trim_start().starts_with("response-time,") { csv(text) } else { summary(text) }
}

fn time(name: &str, original: &str, meaning: &str) -> ImportedTime {
    ImportedTime {
        name: name.to_owned(),
        original: original.to_owned(),
        meaning: meaning.to_owned(),
        ..ImportedTime::default()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    Head,
    Summary,
    Histogram,
    Percentiles,
    Details,
    Codes,
    Errors,
}

fn section(line: Line<'_>) -> Option<Section> {
    Some(match line.text {
        "Summary:" => Section::Summary,
        "Response time histogram:" => Section::Histogram,
        "Latency distribution:" => Section::Percentiles,
        text if text.starts_with("Details (") => Section::Details,
        "Status code distribution:" => Section::Codes,
        "Error distribution:" => Section::Errors,
        _ => return None,
    })
}

fn summary(text: &str) -> Result<Parsed, ImportError> {
    let mut results = ImportedResults::default();
    let mut request = time("request", "response time", REQUEST);
    let mut details = Vec::new();
    let mut now = Section::Head;
    for line in lines(text).filter(|line| !line.text.is_empty()) {
        if let Some(next) = section(line) {
            now = next;
            continue;
        }
        match now {
            Section::Summary => head(line, &mut results, &mut request)?,
            Section::Percentiles => {
                if let Some((share, value)) = line.text.split_once(" in ") {
                    // hey prints 0 for percentiles that it has no value for.
                    let quantile = stated(line.percent(share)?, line.seconds(value)?);
                    request.quantiles.push(quantile);
                }
            }
            Section::Details => details.extend(detail(line)?),
            Section::Codes => results.codes.extend(code(line)?),
            Section::Errors => results.errors.push(error(line)?),
            Section::Head | Section::Histogram => {}
        }
        if results.codes.len().max(results.errors.len()) > MOST_ERRORS {
            return Err(line.wrong(format!("over {MOST_ERRORS} different codes or errors")));
        }
    }
    let answered: u64 = results.codes.iter().map(|code| code.count).fold(0, u64::saturating_add);
    let lost = results.errors.iter().filter_map(|error| error.count).fold(0, u64::saturating_add);
    let bad = results.codes.iter().filter(|code| code.code >= 400).map(|code| code.count);
    let bad = bad.fold(0, u64::saturating_add);
    request.count = Some(answered);
    if answered == 0 {
        // hey prints 0 and NaN for what it does not have.
        (request.min_ns, request.max_ns, request.mean_ns) = (None, None, None);
        details.clear();
    }
    let mut cannot_know = vec![NO_SCHEDULE, NO_PHASES, NO_STAMPS, NO_BLAME, NO_UNANSWERED, NO_VALUES];
    if answered < KEPT {
        results.requests = Some(answered.saturating_add(lost));
        results.ok = Some(answered.saturating_sub(bad));
        results.failed = Some(lost.saturating_add(bad));
    } else {
        cannot_know.push(CUT);
    }
    if results.elapsed_ns.is_none() {
        return Err(ImportError::Whole { what: "there is no `Total:` in its summary".to_owned() });
    }
    results.times.push(request);
    results.times.extend(details);
    Ok(Parsed {
        tool: "hey",
        tool_version: None,
        form: "summary as text",
        cannot_know,
        results,
        values: Vec::new(),
    })
}

fn head(
    line: Line<'_>,
    results: &mut ImportedResults,
    request: &mut ImportedTime,
) -> Result<(), ImportError> {
    let is_number = |value: &&str| !value.contains("NaN");
    let seconds =
        |name: &str| line.after(name).filter(is_number).map(|value| line.seconds(value)).transpose();
    results.elapsed_ns = results.elapsed_ns.or(seconds("Total")?);
    request.max_ns = request.max_ns.or(seconds("Slowest")?);
    request.min_ns = request.min_ns.or(seconds("Fastest")?);
    request.mean_ns = request.mean_ns.or(seconds("Average")?);
    if let Some(rate) = line.after("Requests/sec") {
        results.request_rate_per_s = Some(line.float(rate)?);
    }
    if let Some(bytes) = line.after("Total data") {
        results.bytes_received = Some(line.count(bytes.trim_end_matches("bytes"))?);
    }
    Ok(())
}

/// `DNS+dialup: 0.0001 secs, 0.0000 secs, 0.0009 secs`: average, fastest, slowest.
fn detail(line: Line<'_>) -> Result<Option<ImportedTime>, ImportError> {
    let Some((original, values)) = line.text.split_once(':') else { return Ok(None) };
    if values.contains("NaN") {
        return Ok(None);
    }
    let mut values = values.split(',').map(|value| line.seconds(value));
    let mut next = || values.next().unwrap_or_else(|| Err(line.wrong("less than three times")));
    let (mean, min, max) = (next()?, next()?, next()?);
    let meaning = "as hey names it; requests on an open connection count as 0 in it";
    Ok(Some(ImportedTime {
        mean_ns: Some(mean),
        min_ns: Some(min),
        max_ns: Some(max),
        ..time("other", original.trim(), meaning)
    }))
}

/// `[200] 200 responses`.
fn code(line: Line<'_>) -> Result<Option<CodeCount>, ImportError> {
    let Some((code, rest)) = bracketed(line) else { return Ok(None) };
    let code = code.parse().map_err(|_| line.wrong(format!("`{}` is not a status", shown(code))))?;
    let count = rest.split_ascii_whitespace().next().unwrap_or("");
    Ok(Some(CodeCount { code, count: line.count(count)? }))
}

/// `[5] Get "http://…": dial tcp …`.
fn error(line: Line<'_>) -> Result<ErrorCount, ImportError> {
    let (count, original) = bracketed(line).ok_or_else(|| line.wrong("an error without its count"))?;
    Ok(ErrorCount { original: original.trim().to_owned(), count: Some(line.count(count)?) })
}

fn bracketed(line: Line<'_>) -> Option<(&str, &str)> {
    line.text.strip_prefix('[')?.split_once(']')
}

/// The columns of hey's CSV, and the meaning of each.
const COLUMNS: [(&str, &str, &str); 6] = [
    ("response-time", "request", REQUEST),
    ("DNS+dialup", "other", "name lookup, connect and handshake together, where there were any"),
    ("DNS", "phase-resolve", "name lookup, where there was one"),
    ("Request-write", "phase-send", "the request written, as Go's transport saw it"),
    ("Response-delay", "phase-wait", "request written until the first byte was read"),
    ("Response-read", "phase-receive", "first byte read until the body was read"),
];

/// The columns that only a new connection has.
const SET_UP: [usize; 2] = [1, 2];

fn csv(text: &str) -> Result<Parsed, ImportError> {
    let rows = rows(text)?;
    let answered: u64 = rows.codes.values().sum();
    let named = COLUMNS.iter().zip(rows.columns);
    let named =
        named.map(|((original, name, meaning), values)| (values.time(name, original, meaning), values));
    // A phase that no request passed is absent.
    let (times, values): (Vec<_>, Vec<_>) = named.filter(|(_, values)| !values.is_empty()).unzip();
    let names: Vec<String> = times.iter().map(|time: &ImportedTime| time.name.clone()).collect();
    let good = rows.codes.iter().filter(|(code, _)| **code < 400);
    let mut cannot_know = vec![
        NO_SCHEDULE,
        NO_STAMPS,
        "requests that failed: hey writes only those that got a response, and not how many did not",
        "bytes, and when the run began",
        "times below 0.1 ms, to which it rounds: a phase of 0 is shorter than half of that",
    ];
    let is_whole = answered < KEPT;
    if !is_whole {
        cannot_know.push(CUT);
    }
    let results = ImportedResults {
        ok: is_whole.then(|| good.map(|(_, count)| count).sum()),
        elapsed_ns: (answered > 0 && is_whole).then_some(rows.end_ns),
        request_rate_per_s: (rows.end_ns > 0).then(|| answered as f64 * 1e9 / rows.end_ns as f64),
        codes: rows.codes.into_iter().map(|(code, count)| CodeCount { code, count }).collect(),
        times,
        ..ImportedResults::default()
    };
    Ok(Parsed {
        tool: "hey",
        tool_version: None,
        form: "csv",
        cannot_know,
        results,
        // The sum of three phases has no log.
        values: names.into_iter().zip(values).filter(|(name, _)| name != "other").collect(),
    })
}

#[derive(Default)]
struct Rows {
    columns: [Values; COLUMNS.len()],
    codes: BTreeMap<u16, u64>,
    /// When the last request ended.
    end_ns: u64,
}

fn rows(text: &str) -> Result<Rows, ImportError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut rows = Rows::default();
    for (i, row) in reader.records().enumerate() {
        let number = row.as_ref().ok().and_then(|row| row.position()).map_or(i + 1, |at| at.line() as usize);
        let line = Line { number, text: "" };
        let row = row.map_err(|_| line.wrong("not a line of CSV"))?;
        let head = COLUMNS.iter().map(|column| column.0).chain(["status-code", "offset"]);
        if i > 0 {
            rows.add(line, &row)?;
        } else if !row.iter().eq(head) {
            return Err(line.wrong("not the columns of hey's CSV"));
        }
    }
    Ok(rows)
}

impl Rows {
    fn add(&mut self, line: Line<'_>, row: &csv::StringRecord) -> Result<(), ImportError> {
        if row.len() != COLUMNS.len() + 2 {
            return Err(line.wrong(format!("{} cells instead of {}", row.len(), COLUMNS.len() + 2)));
        }
        let seconds = |cell: usize| {
            let value = line.float(&row[cell])?;
            scaled(value, 1e9).ok_or_else(|| line.wrong(format!("`{}` is not a time", shown(&row[cell]))))
        };
        let ended = Nanos(seconds(7)?.saturating_add(seconds(0)?));
        self.end_ns = self.end_ns.max(ended.0);
        for (cell, values) in self.columns.iter_mut().enumerate() {
            let took = Nanos(seconds(cell)?);
            // On an open connection there was no lookup and no connect: that is absent, not 0.
            if took > Nanos::ZERO || !SET_UP.contains(&cell) {
                values.add(ended, took).map_err(|what| line.wrong(what))?;
            }
        }
        let code = row[6].parse().map_err(|_| line.wrong(format!("`{}` is not a status", shown(&row[6]))))?;
        *self.codes.entry(code).or_default() += 1;
        Ok(())
    }
}
