//! The text of ab (ApacheBench).
//!
//! Its times are whole milliseconds. `Complete requests` counts all responses, `Failed requests` those whose length
//! differed and those that broke, `Non-2xx responses` those with another status; a response may be in both. `Time per
//! request` is the duration times the concurrency, divided by the responses: no measurement, so it is left out.

use record::import::{ErrorCount, ImportedResults, ImportedTime};

use super::text::{Line, lines, stated};
use super::{ImportError, NO_BLAME, NO_PHASES, NO_SCHEDULE, NO_STAMPS, NO_UNANSWERED, NO_VALUES, Parsed};

const MEANING: &str =
    "the beginning of the connect, or of the request on a kept connection, until the response is read";
const ROUNDED: &str = "fractions of a millisecond: its times are whole milliseconds";
const OVERLAP: &str = "how many failed: `Failed requests` and `Non-2xx responses` may have responses in common; the larger one is shown";

pub(super) fn parse(text: &str) -> Result<Parsed, ImportError> {
    let mut results = ImportedResults::default();
    let mut time = ImportedTime {
        name: "request".to_owned(),
        original: "Total".to_owned(),
        meaning: MEANING.to_owned(),
        ..ImportedTime::default()
    };
    let (mut failed, mut of_another_status) = (0, 0);
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
            failed = failures(&mut results, line, "Failed requests", count)?;
        } else if let Some(count) = first("Non-2xx responses") {
            of_another_status = failures(&mut results, line, "Non-2xx responses", count)?;
        } else if let Some(count) = first("Total transferred") {
            results.bytes_received = Some(line.count(count)?);
        } else if let Some(rate) = first("Requests per second") {
            results.request_rate_per_s = Some(line.float(rate)?);
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
    let overlap = failed > 0 && of_another_status > 0;
    let failed = u64::max(failed, of_another_status).min(requests);
    (results.ok, results.failed) = (Some(requests - failed), Some(failed));
    time.count = Some(requests);
    results.times.push(time);
    let mut cannot_know =
        vec![NO_SCHEDULE, ROUNDED, NO_PHASES, NO_STAMPS, NO_BLAME, NO_UNANSWERED, NO_VALUES];
    if overlap {
        cannot_know.insert(0, OVERLAP);
    }
    let version =
        text.split_once("ApacheBench, Version ").map(|(_, rest)| rest.split(' ').next().unwrap_or(""));
    Ok(Parsed {
        tool: "ab",
        tool_version: version.map(super::text::shown),
        form: "text",
        cannot_know,
        results,
        values: Vec::new(),
    })
}

fn failures(
    results: &mut ImportedResults,
    line: Line<'_>,
    what: &str,
    count: &str,
) -> Result<u64, ImportError> {
    let count = line.count(count)?;
    if count > 0 {
        results.errors.push(ErrorCount { original: what.to_owned(), count: Some(count) });
    }
    Ok(count)
}

/// `Total: MIN MEAN SD MEDIAN MAX`, with `-S` `Total: MIN MEAN MAX`, `50% 7`, `100% 26 (longest request)`.
fn distribution(time: &mut ImportedTime, line: Line<'_>) -> Result<(), ImportError> {
    let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
    match words.as_slice() {
        ["Total:", min, mean, .., max] => {
            time.min_ns = Some(line.milliseconds(min)?);
            time.mean_ns = Some(line.milliseconds(mean)?);
            time.max_ns = Some(line.milliseconds(max)?);
        }
        [share, value, ..] if share.ends_with('%') && *share != "100%" && time.quantiles.len() < 100 => {
            time.quantiles.push(stated(line.percent(share)?, line.milliseconds(value)?));
        }
        _ => {}
    }
    Ok(())
}
