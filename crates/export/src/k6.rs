//! A summary as k6 writes it with `--summary-export`, from a run's results. Times are in milliseconds.
//!
//! | k6 | here |
//! |---|---|
//! | `http_req_duration` | service: first byte sent to last byte arrived |
//! | `http_req_blocked` | `pool_wait` |
//! | `http_req_connecting`, `_tls_handshaking`, `_sending`, `_waiting`, `_receiving` | `connect`, `tls`, `send`, `wait`, `receive` |
//! | `http_req_failed` | the share of what was scheduled that did not end `ok` |
//! | `dropped_iterations` | `queue_full` and `not_sent` |
//! | `parallax_response` | response time, from when a request was due; k6 has no such figure |
//!
//! k6 counts a phase that a request did not pass as 0, and includes failed requests. Here a trend covers the `ok`
//! requests that passed the phase; one that none passed is left out, and so is a percentile that the sample cannot
//! carry or that falls among requests without a response.

use record::document::{Distribution, Document, QuantileValue, Results};
use record::{Outcome, Phase};
use serde_json::{Map, Value, json};

/// The trends of phases.
const PHASES: [(&str, Phase); 6] = [
    ("http_req_blocked", Phase::PoolWait),
    ("http_req_connecting", Phase::Connect),
    ("http_req_tls_handshaking", Phase::Tls),
    ("http_req_sending", Phase::Send),
    ("http_req_waiting", Phase::Wait),
    ("http_req_receiving", Phase::Receive),
];

/// The summary; `None` for a run without results.
pub fn summary(document: &Document) -> Option<Value> {
    let results = document.results.as_ref()?;
    let window_s = document.time.window_ns.filter(|&ns| ns > 0).map(|ns| ns as f64 / 1e9);
    let counter = |count: u64| json!({ "count": count, "rate": window_s.map(|s| count as f64 / s) });
    let totals = &results.totals;
    let mut metrics = Map::new();
    let mut put = |name: &str, value| metrics.insert(name.to_owned(), value);
    put("http_reqs", counter(totals.sent));
    put("data_sent", counter(totals.bytes_sent));
    put("data_received", counter(totals.bytes_received));
    put("dropped_iterations", counter(ended_in(results, &[Outcome::QueueFull, Outcome::NotSent])));
    // As in k6, `passes` counts the requests that failed, because the metric is the rate of failures.
    put(
        "http_req_failed",
        json!({
            "passes": totals.failed,
            "fails": totals.ok,
            "value": totals.failed as f64 / totals.scheduled.max(1) as f64,
        }),
    );
    put("http_req_duration", trend(&results.service));
    put("parallax_response", trend(&results.response));
    for (name, phase) in PHASES {
        let result = results.phases.iter().find(|result| result.phase == phase.name());
        if let Some(value) = result.and_then(|result| result.distribution.as_ref()).map(trend) {
            put(name, value);
        }
    }
    let root = json!({
        "name": "", "path": "", "id": "d41d8cd98f00b204e9800998ecf8427e", "groups": {}, "checks": {},
    });
    Some(json!({ "root_group": root, "metrics": metrics }))
}

fn ended_in(results: &Results, outcomes: &[Outcome]) -> u64 {
    let named = |name: &str| outcomes.iter().any(|outcome| outcome.name() == name);
    results.outcomes.iter().filter(|row| named(&row.outcome)).map(|row| row.count).sum()
}

fn trend(distribution: &Distribution) -> Value {
    let mut trend = Map::new();
    let mut put = |name: &str, ns: Option<u64>| {
        if let Some(ns) = ns {
            trend.insert(name.to_owned(), json!(ns as f64 / 1e6));
        }
    };
    put("min", distribution.min_ns);
    put("avg", distribution.mean_ns);
    put("max", distribution.max_ns);
    for (name, q) in [("med", 0.5), ("p(90)", 0.9), ("p(95)", 0.95), ("p(99)", 0.99), ("p(99.9)", 0.999)] {
        let quantile = distribution.quantiles.iter().find(|quantile| quantile.q == q);
        put(
            name,
            quantile.and_then(|quantile| match quantile.value {
                QuantileValue::Known { ns, .. } => Some(ns),
                QuantileValue::Above { .. } | QuantileValue::TooFew { .. } => None,
            }),
        );
    }
    Value::Object(trend)
}
