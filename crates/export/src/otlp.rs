//! OTLP metrics as JSON (opentelemetry-proto 1.x, `ExportMetricsServiceRequest`), cumulative over the run.
//!
//! Histograms are exponential, at the finest scale that keeps them to 320 buckets; count, sum, minimum and maximum
//! are exact. Following the JSON mapping of Protobuf, 64-bit numbers are strings.

use record::Durations;
use serde_json::{Value, json};

use crate::figures::{counters, families, targets};
use crate::snapshot::Snapshot;

/// Twice what the SDKs of OpenTelemetry keep: they update histograms per request, this is written once per push.
const MOST_BUCKETS: i64 = 320;

/// At 10, neighbouring buckets differ by 0.07 %, which is as fine as our own histograms.
const FINEST_SCALE: i32 = 10;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// The body of one push, with everything since the start of the run.
pub fn request(snapshot: &Snapshot<'_>) -> Value {
    let facts = snapshot.facts;
    let started = facts.started_unix_ns;
    let at = started.saturating_add(snapshot.at.0);
    let times = json!({ "startTimeUnixNano": started.to_string(), "timeUnixNano": at.to_string() });
    let mut metrics: Vec<Value> = counters(snapshot.total)
        .into_iter()
        .map(|(name, help, value)| {
            let unit = if name.ends_with("bytes") { "By" } else { "1" };
            sum(name, help, unit, &[point(&times, &[], value)])
        })
        .collect();
    metrics.push(requests(snapshot, &times));
    metrics.push(responses(snapshot, &times));
    metrics.extend(target_requests(snapshot, &times));
    if let Some(second) = snapshot.last {
        metrics.push(json!({
            "name": "parallax.outstanding_requests",
            "description": "Requests in flight or queued.",
            "unit": "1",
            "gauge": { "dataPoints": [{ "timeUnixNano": at.to_string(), "asInt": second.outstanding.to_string() }] },
        }));
    }
    metrics.extend(families(snapshot).into_iter().map(|family| {
        let points = family.members.iter().map(|(value, durations)| {
            let label = [(family.label, *value)];
            let labels = if family.label.is_empty() { &[][..] } else { &label[..] };
            let mut point = histogram(durations);
            merge(&mut point, &times);
            point["attributes"] = attributes(labels);
            point
        });
        json!({
            "name": format!("parallax.{}", family.name),
            "description": family.help,
            "unit": "s",
            "exponentialHistogram": {
                "aggregationTemporality": CUMULATIVE,
                "dataPoints": points.collect::<Vec<_>>(),
            },
        })
    }));
    let resource = [
        ("service.name", "parallax"),
        ("service.version", &*facts.version),
        ("parallax.url", &facts.url),
        ("parallax.protocol", &facts.protocol),
    ];
    json!({
        "resourceMetrics": [{
            "resource": { "attributes": attributes(&resource) },
            "scopeMetrics": [{
                "scope": { "name": "parallax", "version": facts.version },
                "metrics": metrics,
            }],
        }],
    })
}

fn requests(snapshot: &Snapshot<'_>, times: &Value) -> Value {
    let mut points = vec![point(times, &[("outcome", "ok")], snapshot.total.counts.ok)];
    points.extend(snapshot.total.failures().iter().map(|(failure, count)| {
        let labels = [
            ("outcome", failure.outcome.name()),
            ("phase", failure.phase.name()),
            ("blame", failure.blame.name()),
        ];
        point(times, &labels, *count)
    }));
    sum("requests", "Requests that ended, by outcome, phase and blame.", "1", &points)
}

/// `None` if a run has a single target.
fn target_requests(snapshot: &Snapshot<'_>, times: &Value) -> Option<Value> {
    let points = targets(snapshot).flat_map(|(target, kind)| {
        let failed = kind.failures().iter().map(|(_, count)| count).sum();
        [("ok", kind.ok), ("failed", failed)]
            .map(|(result, count)| point(times, &[("target", target), ("result", result)], count))
    });
    let points: Vec<Value> = points.collect();
    let made = || sum("target_requests", "Requests of each target that ended.", "1", &points);
    (!points.is_empty()).then(made)
}

fn responses(snapshot: &Snapshot<'_>, times: &Value) -> Value {
    let codes = snapshot.total.codes().iter();
    let points = codes.map(|(code, count)| point(times, &[("code", code.as_str())], *count));
    sum("responses", "Responses by the application's own code.", "1", &points.collect::<Vec<_>>())
}

fn sum(name: &str, help: &str, unit: &str, points: &[Value]) -> Value {
    json!({
        "name": format!("parallax.{name}"),
        "description": help,
        "unit": unit,
        "sum": { "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points },
    })
}

fn point(times: &Value, labels: &[(&str, &str)], value: u64) -> Value {
    let mut point = json!({ "attributes": attributes(labels), "asInt": value.to_string() });
    merge(&mut point, times);
    point
}

fn merge(point: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        point[key.as_str()] = value.clone();
    }
}

fn attributes(labels: &[(&str, &str)]) -> Value {
    labels.iter().map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } })).collect()
}

/// Without times and attributes. Every value of one of our buckets is put into the bucket of its middle.
fn histogram(durations: &Durations) -> Value {
    let histogram = durations.histogram();
    let values: Vec<(f64, u64)> = histogram
        .iter_recorded()
        .map(|bucket| {
            let middle = histogram.median_equivalent(bucket.value_iterated_to());
            (middle.max(1) as f64 / 1e9, bucket.count_at_value())
        })
        .collect();
    let scale = scale(&values);
    let first = values.first().map_or(0, |&(value, _)| index(value, scale));
    let last = values.last().map_or(0, |&(value, _)| index(value, scale));
    let width = usize::try_from(last - first + 1).unwrap_or(1);
    let mut counts = vec![0u64; width];
    for &(value, count) in &values {
        // Values rise, so none is before the first.
        counts[usize::try_from(index(value, scale) - first).unwrap_or(0)] += count;
    }
    let end = |value: Option<units::Nanos>| value.map(|value| value.0 as f64 / 1e9);
    json!({
        "count": durations.count().to_string(),
        "sum": durations.sum_ns() as f64 / 1e9,
        "min": end(durations.min()),
        "max": end(durations.max()),
        "scale": scale,
        "zeroCount": "0",
        "positive": {
            "offset": first,
            "bucketCounts": counts.iter().map(u64::to_string).collect::<Vec<_>>(),
        },
    })
}

/// The finest scale at which all values fit.
fn scale(values: &[(f64, u64)]) -> i32 {
    let (Some(&(low, _)), Some(&(high, _))) = (values.first(), values.last()) else { return 0 };
    let fits = |scale: &i32| index(high, *scale) - index(low, *scale) < MOST_BUCKETS;
    (0..=FINEST_SCALE).rev().find(fits).unwrap_or(0)
}

/// Bucket i has the values above base^i up to base^(i+1), where base is 2^(2^-scale).
fn index(seconds: f64, scale: i32) -> i64 {
    (seconds.log2() * f64::from(1u32 << scale.clamp(0, 20))).ceil() as i64 - 1
}

#[cfg(test)]
mod tests {
    use record::{Failure, Interval, Outcome, Phase, Series};
    use units::Nanos;

    use super::*;
    use crate::snapshot::Facts;

    fn number(value: &Value) -> u64 {
        value.as_str().unwrap().parse().unwrap()
    }

    proptest::proptest! {
        /// If this fails, a dashboard shows other percentiles than the run had.
        #[test]
        fn every_value_is_in_its_bucket(ns in proptest::collection::vec(1u64..3_600_000_000_000, 1..60)) {
            let mut durations = Durations::new();
            ns.iter().for_each(|&ns| durations.record(Nanos(ns)));
            let point = histogram(&durations);
            let scale = point["scale"].as_i64().unwrap();
            let first = point["positive"]["offset"].as_i64().unwrap();
            let counts: Vec<u64> = point["positive"]["bucketCounts"].as_array().unwrap().iter().map(number).collect();
            proptest::prop_assert!(counts.len() as i64 <= MOST_BUCKETS);
            proptest::prop_assert_eq!(counts.iter().sum::<u64>(), ns.len() as u64);
            let mut sorted = ns;
            sorted.sort_unstable();
            let mut rank = 0;
            for (i, count) in counts.iter().enumerate() {
                let edge = |i: i64| 2f64.powf((first + i) as f64 / 2f64.powi(scale as i32)) * 1e9;
                let (low, high) = (edge(i as i64), edge(i as i64 + 1));
                for &ns in &sorted[rank..rank + *count as usize] {
                    // Our own buckets are a thousandth wide, half of it to either side.
                    proptest::prop_assert!(ns as f64 > low * 0.999 - 1.0 && (ns as f64) < high * 1.001 + 1.0);
                }
                rank += *count as usize;
            }
        }
    }

    #[test]
    fn a_push_is_cumulative_and_carries_its_numbers_as_strings() {
        let facts = Facts {
            url: "http://h/".to_owned(),
            protocol: "http/1.1".to_owned(),
            version: "0.1.0".to_owned(),
            targets: vec!["GET /a".to_owned()],
            started_unix_ns: 1_700_000_000_000_000_000,
        };
        let mut total = Interval::default();
        total.counts.ok = 2;
        total.slot(Series::Response).record(Nanos::from_millis(1));
        total.slot(Series::Response).record(Nanos::from_millis(2));
        total.record_failure(Failure::new(Outcome::Reset, Phase::Wait), Nanos::from_millis(3));
        total.kind(0).record_failure(Failure::new(Outcome::Reset, Phase::Wait), Nanos::from_millis(3));
        let snapshot = Snapshot { facts: &facts, total: &total, last: None, at: Nanos::from_secs(2) };
        let body = request(&snapshot);
        let metrics = body.pointer("/resourceMetrics/0/scopeMetrics/0/metrics").unwrap().as_array().unwrap();
        let named = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
        let requests = &named("parallax.requests")["sum"];
        assert_eq!(requests["aggregationTemporality"], 2);
        assert_eq!(requests["isMonotonic"], true);
        assert_eq!(requests["dataPoints"][0]["asInt"], "2");
        assert_eq!(requests["dataPoints"][0]["timeUnixNano"], "1700000002000000000");
        assert_eq!(requests["dataPoints"][1]["attributes"][0]["value"]["stringValue"], "reset");
        let target = &named("parallax.target_failed")["exponentialHistogram"]["dataPoints"][0];
        assert_eq!(target["attributes"][0]["value"]["stringValue"], "GET /a");
        assert_eq!(named("parallax.target_requests")["sum"]["dataPoints"][1]["asInt"], "1");
        let response = &named("parallax.response")["exponentialHistogram"]["dataPoints"][0];
        assert_eq!((response["count"].as_str(), response["sum"].as_f64()), (Some("2"), Some(0.003)));
        assert_eq!(response["startTimeUnixNano"], "1700000000000000000");
    }
}
