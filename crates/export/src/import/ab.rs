//! The text of ab (ApacheBench).
//!
//! Its times are whole milliseconds. `Complete requests` counts all responses, `Failed requests` those whose length
//! differed and those that broke, `Non-2xx responses` those with another status.

use record::import::{ErrorCount, ImportedResults, ImportedTime};

use super::text::{Line, lines, stated};
use super::{ImportError, NO_BLAME, NO_PHASES, NO_SCHEDULE, NO_STAMPS, NO_UNANSWERED, NO_VALUES, Parsed};

const MEANING: &str =
    "the beginning of the connect, or of the request on a kept connection, until the response is read";
const ROUNDED: &str = "fractions of a millisecond: percentiles and extremes are whole milliseconds";

pub(super) fn parse(text: &str) -> Result<Parsed, ImportError> {
    let mut results = ImportedResults::default();
    let mut time = ImportedTime {
        name: "request".to_owned(),
        original: "Total".to_owned(),
        meaning: MEANING.to_owned(),
        ..ImportedTime::default()
    };
    let mut bad = 0;
    let (mut host, mut port, mut path) = ("", "", "");
    for line in lines(text) {
        let first =
            |name: &str| line.after(name).map(|rest| rest.split_ascii_whitespace().next().unwrap_or(""));
        if let Some(text) = line.after("Server Hostname") {
            host = text;
        } else if let Some(text) = line.after("Server Port") {
            port = text;
        } else if let Some(text) = line.after("Document Path") {
            path = text;
        } else if let Some(count) = first("Concurrency Level") {
            results.connections = Some(line.count(count)?);
        } else if let Some(seconds) = first("Time taken for tests") {
            results.elapsed_ns = Some(line.seconds(seconds)?);
        } else if let Some(count) = first("Complete requests") {
            results.requests = Some(line.count(count)?);
        } else if let Some(count) = first("Failed requests") {
            failures(&mut results, line, "Failed requests", count, &mut bad)?;
        } else if let Some(count) = first("Non-2xx responses") {
            failures(&mut results, line, "Non-2xx responses", count, &mut bad)?;
        } else if let Some(count) = first("Total transferred") {
            results.bytes_received = Some(line.count(count)?);
        } else if let Some(rate) = first("Requests per second") {
            results.request_rate_per_s = Some(line.float(rate)?);
        } else if let Some(mean) = first("Time per request").filter(|_| time.mean_ns.is_none()) {
            time.mean_ns = Some(line.milliseconds(mean)?);
        } else {
            distribution(&mut time, line)?;
        }
    }
    let Some(requests) = results.requests else {
        return Err(ImportError::Whole { what: "there is no line `Complete requests`".to_owned() });
    };
    if !host.is_empty() {
        let scheme = if text.contains("SSL/TLS Protocol:") { "https" } else { "http" };
        results.url = Some(format!("{scheme}://{host}:{port}{path}"));
    }
    let failed = u64::min(bad, requests);
    (results.ok, results.failed) = (Some(requests - failed), Some(failed));
    time.count = Some(requests);
    results.times.push(time);
    let version =
        text.split_once("ApacheBench, Version ").map(|(_, rest)| rest.split(' ').next().unwrap_or(""));
    Ok(Parsed {
        tool: "ab",
        tool_version: version.map(super::text::shown),
        form: "text",
        cannot_know: vec![NO_SCHEDULE, ROUNDED, NO_PHASES, NO_STAMPS, NO_BLAME, NO_UNANSWERED, NO_VALUES],
        results,
        values: Vec::new(),
    })
}

fn failures(
    results: &mut ImportedResults,
    line: Line<'_>,
    what: &str,
    count: &str,
    bad: &mut u64,
) -> Result<(), ImportError> {
    let count = line.count(count)?;
    *bad = bad.saturating_add(count);
    if count > 0 {
        results.errors.push(ErrorCount { original: what.to_owned(), count: Some(count) });
    }
    Ok(())
}

/// `Total: MIN MEAN SD MEDIAN MAX`, `50% 7`, `100% 26 (longest request)`.
fn distribution(time: &mut ImportedTime, line: Line<'_>) -> Result<(), ImportError> {
    let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
    match words.as_slice() {
        ["Total:", min, _, _, _, max] => {
            time.min_ns = Some(line.milliseconds(min)?);
            time.max_ns = Some(line.milliseconds(max)?);
        }
        [share, value, ..] if share.ends_with('%') && *share != "100%" && time.quantiles.len() < 100 => {
            time.quantiles.push(stated(line.percent(share)?, line.milliseconds(value)?));
        }
        _ => {}
    }
    Ok(())
}
