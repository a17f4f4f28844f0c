//! k6: the file of `--summary-export`, and the summary as `handleSummary` gets it, which has each metric's figures
//! one level deeper, under `values`. Times are in milliseconds.

use record::import::{ErrorCount, ImportedResults, ImportedTime};
use serde_json::Value;

use super::text::{exact_share, json, number, stated, time, whole};
use super::{ImportError, MOST_ERRORS, NO_BLAME, NO_SCHEDULE, NO_STAMPS, NO_UNANSWERED, NO_VALUES, Parsed};

const MS: f64 = 1e6;

/// k6's trends, the names they get here, and what they measure.
const TRENDS: [(&str, &str, &str); 7] = [
    (
        "http_req_duration",
        "service",
        "sending, waiting and receiving together, of all requests, failed ones included",
    ),
    ("http_req_blocked", "phase-pool_wait", "until a connection was there to use; 0 where there was one"),
    ("http_req_connecting", "phase-connect", "the TCP connect; 0 on an open connection"),
    ("http_req_tls_handshaking", "phase-tls", "the handshake; 0 on an open connection"),
    ("http_req_sending", "phase-send", "the request written"),
    ("http_req_waiting", "phase-wait", "request written until the first byte was read"),
    ("http_req_receiving", "phase-receive", "first byte read until the body was read"),
];

pub(super) fn parse(text: &str) -> Result<Parsed, ImportError> {
    let json = json(text)?;
    let metrics = json.get("metrics").filter(|metrics| metrics.is_object());
    let metrics =
        metrics.ok_or_else(|| ImportError::Whole { what: "there is no object `metrics`".to_owned() })?;
    let metrics = &flat(metrics);
    let requests = whole(metrics, "/http_reqs/count")?;
    let mut results = ImportedResults {
        requests,
        request_rate_per_s: number(metrics, "/http_reqs/rate")?,
        bytes_sent: whole(metrics, "/data_sent/count")?,
        bytes_received: whole(metrics, "/data_received/count")?,
        connections: None,
        // Of the rate "did this request fail?", `passes` counts those that did.
        failed: whole(metrics, "/http_req_failed/passes")?,
        ..ImportedResults::default()
    };
    results.ok = requests.zip(results.failed).map(|(all, failed)| all.saturating_sub(failed));
    for (original, name, meaning) in TRENDS {
        let Some(trend) = metrics.get(original).filter(|trend| trend.is_object()) else { continue };
        let trend = one(trend, name, original, meaning, requests)?;
        // A phase with a maximum of 0 occurred in no request: it is absent.
        if trend.max_ns != Some(0) {
            results.times.push(trend);
        }
    }
    if results.times.is_empty() && requests.is_none() {
        return Err(ImportError::Whole { what: "there are no figures of HTTP requests in it".to_owned() });
    }
    if let Some(dropped) = whole(metrics, "/dropped_iterations/count")?.filter(|&dropped| dropped > 0) {
        results.errors.push(ErrorCount {
            original: "dropped_iterations: due, and never sent".to_owned(),
            count: Some(dropped),
        });
    }
    Ok(Parsed {
        tool: "k6",
        tool_version: None,
        form: "summary export",
        cannot_know: vec![
            NO_SCHEDULE,
            NO_STAMPS,
            NO_BLAME,
            NO_UNANSWERED,
            NO_VALUES,
            "how many requests passed a phase: k6 counts a phase that was not passed as 0",
            "the status codes of the responses",
        ],
        results,
        values: Vec::new(),
    })
}

/// Each metric with its figures directly in it.
fn flat(metrics: &Value) -> Value {
    let metrics = metrics.as_object().into_iter().flatten();
    let flat = metrics.map(|(name, metric)| {
        (name.clone(), metric.get("values").filter(|values| values.is_object()).unwrap_or(metric).clone())
    });
    Value::Object(flat.collect())
}

fn one(
    trend: &Value,
    name: &str,
    original: &str,
    meaning: &str,
    count: Option<u64>,
) -> Result<ImportedTime, ImportError> {
    let mut imported = ImportedTime {
        name: name.to_owned(),
        original: original.to_owned(),
        meaning: meaning.to_owned(),
        count,
        min_ns: time(trend, "/min", MS)?,
        mean_ns: time(trend, "/avg", MS)?,
        max_ns: time(trend, "/max", MS)?,
        ..ImportedTime::default()
    };
    for key in trend.as_object().into_iter().flat_map(|trend| trend.keys()).take(MOST_ERRORS) {
        let percent = key.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
        let q = if key == "med" { Some(0.5) } else { percent.and_then(exact_share) };
        // A key of p(…) has no character that a pointer would have to escape.
        if let Some((q, ns)) = q.zip(time(trend, &format!("/{key}"), MS)?) {
            imported.quantiles.push(stated(q, ns));
        }
    }
    imported.quantiles.sort_by(|a, b| a.q.total_cmp(&b.q));
    Ok(imported)
}
