//! oha: `--output-format json`, and its summary as text. Times are in seconds.
//!
//! oha measures from before a connection is taken or made; with `--latency-correction` from when a request was due,
//! and neither output shows which of the two it was.

use record::document::CodeCount;
use record::import::{ErrorCount, ImportedResults, ImportedTime};
use serde_json::Value;

use super::text::{Line, exact_share, json, lines, number, scaled, shown, stated, time, whole};
use super::{
    ImportError, MOST_ERRORS, NO_BLAME, NO_PHASES, NO_SCHEDULE, NO_STAMPS, NO_UNANSWERED, NO_VALUES, Parsed,
};

const SECOND: f64 = 1e9;

const REQUEST: &str = "before a connection is taken or made until the body is read, of the requests that got a response; \
                       with --latency-correction from when they were due";

const UNKNOWN_ORIGIN: &str = "whether times count from when requests were due (--latency-correction) or from when they \
                              were sent";

pub(super) fn parse(text: &str) -> Result<Parsed, ImportError> {
    let (form, results) = if text.trim_start().starts_with('{') {
        ("json", of_json(text)?)
    } else {
        ("summary as text", of_text(text)?)
    };
    Ok(Parsed {
        tool: "oha",
        tool_version: None,
        form,
        cannot_know: vec![
            UNKNOWN_ORIGIN,
            NO_SCHEDULE,
            NO_PHASES,
            NO_STAMPS,
            NO_BLAME,
            NO_UNANSWERED,
            NO_VALUES,
        ],
        results,
        values: Vec::new(),
    })
}

fn request() -> ImportedTime {
    ImportedTime {
        name: "request".to_owned(),
        original: "response time".to_owned(),
        meaning: REQUEST.to_owned(),
        ..ImportedTime::default()
    }
}

fn of_json(text: &str) -> Result<ImportedResults, ImportError> {
    let json = json(text)?;
    if !json.get("summary").is_some_and(Value::is_object) {
        return Err(ImportError::Whole { what: "there is no object `summary`".to_owned() });
    }
    let mut results = ImportedResults {
        elapsed_ns: time(&json, "/summary/total", SECOND)?,
        request_rate_per_s: number(&json, "/summary/requestsPerSec")?,
        bytes_received: whole(&json, "/summary/totalData")?,
        ..ImportedResults::default()
    };
    for (key, count) in counts(&json, "statusCodeDistribution")? {
        let code = key
            .parse()
            .map_err(|_| ImportError::Whole { what: format!("`{}` is not a status", shown(&key)) })?;
        results.codes.push(CodeCount { code, count });
    }
    for (original, count) in counts(&json, "errorDistribution")? {
        results.errors.push(ErrorCount { original, count: Some(count) });
    }
    let mut request = ImportedTime {
        min_ns: time(&json, "/summary/fastest", SECOND)?,
        mean_ns: time(&json, "/summary/average", SECOND)?,
        max_ns: time(&json, "/summary/slowest", SECOND)?,
        ..request()
    };
    for key in object(&json, "latencyPercentiles").map(|(key, _)| key) {
        let q = key.strip_prefix('p').and_then(exact_share);
        if let Some((q, ns)) = q.zip(time(&json, &format!("/latencyPercentiles/{key}"), SECOND)?) {
            request.quantiles.push(stated(q, ns));
        }
    }
    finish(results, request)
}

fn object<'a>(json: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    json.get(name).and_then(Value::as_object).into_iter().flatten().take(MOST_ERRORS)
}

fn counts(json: &Value, name: &str) -> Result<Vec<(String, u64)>, ImportError> {
    let entries = object(json, name).map(|(key, value)| {
        let count =
            value.as_u64().ok_or_else(|| ImportError::Whole { what: format!("`{name}` has no counts") })?;
        Ok((key.clone(), count))
    });
    entries.collect()
}

fn finish(mut results: ImportedResults, mut request: ImportedTime) -> Result<ImportedResults, ImportError> {
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
    let answered = sum(&mut results.codes.iter().map(|code| code.count));
    let bad = sum(&mut results.codes.iter().filter(|code| code.code >= 400).map(|code| code.count));
    let lost = sum(&mut results.errors.iter().filter_map(|error| error.count));
    if results.elapsed_ns.is_none() {
        return Err(ImportError::Whole { what: "the summary has no total time".to_owned() });
    }
    request.count = Some(answered);
    request.quantiles.sort_by(|a, b| a.q.total_cmp(&b.q));
    results.requests = Some(answered.saturating_add(lost));
    results.ok = Some(answered.saturating_sub(bad));
    results.failed = Some(lost.saturating_add(bad));
    results.times.push(request);
    Ok(results)
}

/// The text form is hey's with other units: `Total: 2.0034 sec`, or `10.25 ms` in later versions.
fn of_text(text: &str) -> Result<ImportedResults, ImportError> {
    let mut results = ImportedResults::default();
    let mut request = request();
    let mut section = "";
    for line in lines(text).filter(|line| !line.text.is_empty()) {
        if line.text.ends_with(':') {
            section = line.text;
            continue;
        }
        match section {
            "Summary:" => head(line, &mut results, &mut request)?,
            "Response time distribution:" => {
                if let Some((share, value)) = line.text.split_once(" in ") {
                    request
                        .quantiles
                        .push(stated(line.percent(&share.replace("%", ""))?, with_unit(line, value)?));
                }
            }
            "Status code distribution:" => {
                let (code, rest) = bracketed(line)?;
                let code =
                    code.parse().map_err(|_| line.wrong(format!("`{}` is not a status", shown(code))))?;
                let count = line.count(rest.trim().trim_end_matches("responses"))?;
                results.codes.push(CodeCount { code, count });
            }
            "Error distribution:" => {
                let (count, original) = bracketed(line)?;
                results.errors.push(ErrorCount {
                    original: original.trim().to_owned(),
                    count: Some(line.count(count)?),
                });
            }
            _ => {}
        }
        if results.codes.len().max(results.errors.len()) > MOST_ERRORS {
            return Err(line.wrong(format!("over {MOST_ERRORS} different codes or errors")));
        }
    }
    finish(results, request)
}

fn bracketed(line: Line<'_>) -> Result<(&str, &str), ImportError> {
    let parts = line.text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    parts.ok_or_else(|| line.wrong("no [CODE] or [COUNT] before it"))
}

fn head(
    line: Line<'_>,
    results: &mut ImportedResults,
    request: &mut ImportedTime,
) -> Result<(), ImportError> {
    let value = |name: &str| line.after(name).map(|value| with_unit(line, value)).transpose();
    results.elapsed_ns = results.elapsed_ns.or(value("Total")?);
    request.max_ns = request.max_ns.or(value("Slowest")?);
    request.min_ns = request.min_ns.or(value("Fastest")?);
    request.mean_ns = request.mean_ns.or(value("Average")?);
    if let Some(rate) = line.after("Requests/sec") {
        results.request_rate_per_s = Some(line.float(rate)?);
    }
    Ok(())
}

/// `0.0123 secs`, `2.0 sec`, `10.25 ms`, `93.1 us`.
fn with_unit(line: Line<'_>, text: &str) -> Result<u64, ImportError> {
    let wrong = || line.wrong(format!("`{}` is not a time", shown(text)));
    let (number, unit) = text.trim().split_once(' ').ok_or_else(wrong)?;
    let unit_ns = match unit.trim() {
        "s" | "sec" | "secs" => SECOND,
        "ms" => 1e6,
        "us" | "µs" => 1e3,
        "ns" => 1.0,
        _ => return Err(wrong()),
    };
    scaled(line.float(number)?, unit_ns).ok_or_else(wrong)
}
