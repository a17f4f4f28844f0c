//! vegeta: `report -type=json`, and `encode`, whose JSON lines or CSV have every request. Times are in nanoseconds.
//!
//! vegeta measures from when it requests a connection until the body is read, of all requests, failed ones included.

use std::collections::BTreeMap;

use record::document::CodeCount;
use record::import::{ErrorCount, ImportedResults, ImportedTime};
use serde::Deserialize;
use units::Nanos;

use super::text::{Line, json, json_error, lines, number, scaled, shown, stated, time, whole};
use super::values::Values;
use super::{
    ImportError, MOST_ERRORS, NO_BLAME, NO_PHASES, NO_SCHEDULE, NO_STAMPS, NO_UNANSWERED, NO_VALUES, Parsed,
};

const REQUEST: &str =
    "before a connection is taken or made until the body is read, of all requests, failed ones included";

/// The number of columns of `encode --to=csv`; it has no header line.
const CELLS: usize = 12;

pub(super) fn parse(text: &str) -> Result<Parsed, ImportError> {
    let first = text.trim_start();
    if !first.starts_with('{') {
        return csv(text);
    }
    // A report is one object; of results, each line is one.
    let is_report = first.lines().next().is_some_and(|line| !line.contains("\"timestamp\":"));
    if is_report { report(text) } else { encoded(text) }
}

/// Whether a line begins like one of `encode --to=csv`: an instant, a status and a time, all whole numbers.
pub(super) fn is_csv(line: &str) -> bool {
    let cells: Vec<&str> = line.splitn(4, ',').collect();
    cells.len() == 4 && cells[0].len() >= 16 && cells[..3].iter().all(|cell| is_whole(cell))
}

fn is_whole(cell: &str) -> bool {
    !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit())
}

fn report(text: &str) -> Result<Parsed, ImportError> {
    let json = json(text)?;
    let requests = whole(&json, "/requests")?;
    let mut request = ImportedTime {
        name: "request".to_owned(),
        original: "latencies".to_owned(),
        meaning: REQUEST.to_owned(),
        count: requests,
        min_ns: time(&json, "/latencies/min", 1.0)?,
        mean_ns: time(&json, "/latencies/mean", 1.0)?,
        max_ns: time(&json, "/latencies/max", 1.0)?,
        ..ImportedTime::default()
    };
    for (key, q) in [("50th", 0.5), ("90th", 0.9), ("95th", 0.95), ("99th", 0.99)] {
        if let Some(ns) = time(&json, &format!("/latencies/{key}"), 1.0)? {
            request.quantiles.push(stated(q, ns));
        }
    }
    let codes = json.get("status_codes").and_then(|codes| codes.as_object());
    let mut counts = BTreeMap::new();
    for (code, count) in codes.into_iter().flatten().take(MOST_ERRORS) {
        let status = code.parse::<u16>();
        let pair = status.ok().zip(count.as_u64());
        let (code, count) = pair.ok_or_else(|| ImportError::Whole {
            what: format!("`{}` is not a status with its count", shown(code)),
        })?;
        counts.insert(code, count);
    }
    let attack_ns = time(&json, "/duration", 1.0)?;
    let ok = number(&json, "/success")?
        .zip(requests)
        .map(|(share, all)| (share.min(1.0) * all as f64).round() as u64);
    let original = json.get("errors").and_then(|errors| errors.as_array()).into_iter().flatten();
    let original = original.filter_map(|error| error.as_str()).take(MOST_ERRORS);
    let results = ImportedResults {
        started: json.get("earliest").and_then(|at| at.as_str()).map(str::to_owned),
        elapsed_ns: attack_ns.zip(time(&json, "/wait", 1.0)?).map(|(attack, wait)| attack + wait),
        rate_per_s: None,
        requests,
        ok,
        failed: requests.zip(ok).map(|(all, ok)| all.saturating_sub(ok)),
        throughput_per_s: number(&json, "/throughput")?,
        request_rate_per_s: number(&json, "/rate")?,
        bytes_sent: whole(&json, "/bytes_out/total")?,
        bytes_received: whole(&json, "/bytes_in/total")?,
        errors: original.map(|original| ErrorCount { original: original.to_owned(), count: None }).collect(),
        times: vec![request],
        ..with_codes(counts)
    };
    Ok(Parsed {
        tool: "vegeta",
        tool_version: None,
        form: "report as json",
        cannot_know: vec![NO_SCHEDULE, NO_PHASES, NO_STAMPS, NO_BLAME, NO_UNANSWERED, NO_VALUES],
        results,
        values: Vec::new(),
    })
}

/// vegeta uses code 0 for "no response": no code was seen.
fn with_codes(counts: BTreeMap<u16, u64>) -> ImportedResults {
    let codes = counts.into_iter().filter(|(code, _)| *code > 0);
    ImportedResults {
        codes: codes.map(|(code, count)| CodeCount { code, count }).collect(),
        ..ImportedResults::default()
    }
}

/// One request, from either form of `encode`.
#[derive(Default)]
struct Hit {
    began_ns: u64,
    code: u16,
    took_ns: u64,
    bytes_out: u64,
    bytes_in: u64,
    error: String,
}

#[derive(Default)]
struct Hits {
    hits: Vec<(u64, u64)>,
    codes: BTreeMap<u16, u64>,
    errors: BTreeMap<String, u64>,
    ok: u64,
    bytes_out: u64,
    bytes_in: u64,
}

impl Hits {
    fn add(&mut self, line: Line<'_>, hit: Hit) -> Result<(), ImportError> {
        let took = scaled(hit.took_ns as f64, 1.0);
        if took.is_none() || hit.began_ns.checked_add(hit.took_ns).is_none() {
            return Err(line.wrong("its time is longer than any request takes"));
        }
        *self.codes.entry(hit.code).or_default() += 1;
        // For vegeta, 2xx and 3xx are successes.
        self.ok += u64::from((200..400).contains(&hit.code) && hit.error.is_empty());
        if !hit.error.is_empty() {
            *self.errors.entry(hit.error).or_default() += 1;
            if self.errors.len() > MOST_ERRORS {
                return Err(line.wrong(format!("over {MOST_ERRORS} different errors")));
            }
        }
        let sums = self.bytes_out.checked_add(hit.bytes_out).zip(self.bytes_in.checked_add(hit.bytes_in));
        (self.bytes_out, self.bytes_in) =
            sums.ok_or_else(|| line.wrong("that many bytes were never sent"))?;
        self.hits.push((hit.began_ns, hit.took_ns));
        Ok(())
    }

    fn parsed(self, form: &'static str, url: Option<String>) -> Result<Parsed, ImportError> {
        let nothing = || ImportError::Whole { what: "there is no request in it".to_owned() };
        let first = self.hits.iter().map(|(began, _)| *began).min().ok_or_else(nothing)?;
        let last = self.hits.iter().map(|(began, _)| *began).max().ok_or_else(nothing)?;
        let mut values = Values::default();
        let mut end = 0;
        for &(began, took) in &self.hits {
            let ended = began - first + took;
            end = end.max(ended);
            values.add(Nanos(ended), Nanos(took)).map_err(|what| ImportError::Whole { what })?;
        }
        let requests = self.hits.len() as u64;
        let span_s = (last - first) as f64 / 1e9;
        let errors =
            self.errors.into_iter().map(|(original, count)| ErrorCount { original, count: Some(count) });
        let results = ImportedResults {
            url,
            started: record::import::timestamp(Nanos(first)),
            elapsed_ns: Some(end),
            requests: Some(requests),
            ok: Some(self.ok),
            failed: Some(requests - self.ok),
            // As in vegeta's own report: successful requests over the whole time.
            throughput_per_s: (end > 0 && span_s >= 0.0).then(|| self.ok as f64 * 1e9 / end as f64),
            bytes_sent: Some(self.bytes_out),
            bytes_received: Some(self.bytes_in),
            errors: errors.collect(),
            times: vec![values.time("request", "latency", REQUEST)],
            ..with_codes(self.codes)
        };
        Ok(Parsed {
            tool: "vegeta",
            tool_version: None,
            form,
            cannot_know: vec![NO_SCHEDULE, NO_PHASES, NO_STAMPS, NO_BLAME, NO_UNANSWERED],
            results,
            values: vec![("request".to_owned(), values)],
        })
    }
}

/// The fields that are used of a line of `encode --to=json`; the others are skipped.
#[derive(Deserialize)]
struct JsonHit {
    #[serde(default)]
    code: u16,
    timestamp: String,
    latency: u64,
    #[serde(default)]
    bytes_out: u64,
    #[serde(default)]
    bytes_in: u64,
    #[serde(default)]
    error: String,
    #[serde(default)]
    url: String,
}

fn encoded(text: &str) -> Result<Parsed, ImportError> {
    let mut hits = Hits::default();
    let mut url = None;
    for line in lines(text).filter(|line| !line.text.is_empty()) {
        let hit: JsonHit = serde_json::from_str(line.text).map_err(|error| line.wrong(json_error(&error)))?;
        let began_ns = record::import::unix_ns(&hit.timestamp);
        let began_ns =
            began_ns.ok_or_else(|| line.wrong(format!("`{}` is not a time", shown(&hit.timestamp))))?;
        if url.is_none() && !hit.url.is_empty() {
            url = Some(hit.url);
        }
        let JsonHit { code, latency, bytes_out, bytes_in, error, .. } = hit;
        hits.add(line, Hit { began_ns, code, took_ns: latency, bytes_out, bytes_in, error })?;
    }
    hits.parsed("results as json", url)
}

fn csv(text: &str) -> Result<Parsed, ImportError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut hits = Hits::default();
    let mut url = None;
    for (i, row) in reader.records().enumerate() {
        let number = row.as_ref().ok().and_then(|row| row.position()).map_or(i + 1, |at| at.line() as usize);
        let line = Line { number, text: "" };
        let row = row.map_err(|_| line.wrong("not a line of CSV"))?;
        if row.len() != CELLS {
            return Err(line.wrong(format!("{} cells instead of {CELLS}", row.len())));
        }
        let code = row[1].parse().map_err(|_| line.wrong(format!("`{}` is not a status", shown(&row[1]))))?;
        if url.is_none() && !row[10].is_empty() {
            url = Some(row[10].to_owned());
        }
        let hit = Hit {
            began_ns: line.count(&row[0])?,
            code,
            took_ns: line.count(&row[2])?,
            bytes_out: line.count(&row[3])?,
            bytes_in: line.count(&row[4])?,
            error: row[5].to_owned(),
        };
        hits.add(line, hit)?;
    }
    hits.parsed("results as csv", url)
}
