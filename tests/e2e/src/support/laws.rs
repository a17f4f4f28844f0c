//! What must hold for every record, whatever happened in the run.
//!
//! `run.json` fits its schema, names every option, conserves requests, splits the response time exactly, and agrees
//! with the rest of the directory, from which `parallax report` recomputes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use record::Durations;
use serde_json::Value;
use units::Nanos;

use super::binary;
use super::run::{number, text};

/// Checks `run.json` of a run that ended by itself or by a signal against these laws and its directory.
#[track_caller]
pub fn check(record: &Path, document: &Value) {
    fits("run.schema.json", document);
    conserves(document);
    names_every_option(document);
    agrees_with_series(record, document);
    agrees_with_histograms(record, document);
    is_reported_as_it_is(record, document);
}

/// Whether `value` fits a schema that is shipped in `formats/`.
#[track_caller]
pub fn fits(schema: &str, value: &Value) {
    static MADE: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let made = MADE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(schema.to_owned())
        .or_insert_with(|| {
            let path = binary::root().join("formats").join(schema);
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("formats/{schema}: {error}"));
            Arc::new(jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap())
        })
        .clone();
    let validator = &made;
    let problems: Vec<_> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(problems.is_empty(), "against formats/{schema}: {}", problems.join("; "));
}

#[track_caller]
fn conserves(document: &Value) {
    let results = &document["results"];
    let rows = |name: &str| results[name].as_array().unwrap().iter();
    let scheduled = number(results, "/totals/scheduled");
    let ended: u64 = rows("outcomes").map(|row| number(row, "/count")).sum();
    assert_eq!(scheduled, ended, "scheduled is not the sum of the outcomes");
    if let Some(warmup) = document.pointer("/load/warmup") {
        let ended: u64 = warmup["outcomes"].as_array().unwrap().iter().map(|row| number(row, "/count")).sum();
        assert_eq!(number(warmup, "/scheduled"), ended, "requests of the warm-up are lost");
    }
    let booked = number(results, "/totals/ok") + number(results, "/totals/failed");
    assert_eq!(scheduled, booked, "scheduled is not ok and failed");
    let phases: u64 =
        rows("phases").filter_map(|row| row.pointer("/distribution/sum_ns")).filter_map(Value::as_u64).sum();
    assert_eq!(phases, number(results, "/response/sum_ns"), "the phases do not sum to the response");
    assert_eq!(rows("phases").count(), 10);
    for phase in rows("phases") {
        let is_absent = phase["distribution"].is_null();
        assert_eq!(is_absent, phase["absent"].is_string(), "absent without a reason: {phase}");
    }
    for row in rows("outcomes").filter(|row| row["outcome"] != "ok") {
        assert!(row["blame"].is_string() && row["phase"].is_string(), "{row}");
        let age = format!("/failed/{}", text(row, "/outcome"));
        assert!(results.pointer(&age).is_some(), "no ages of {row}");
    }
}

/// If this fails, a default that mattered is not in the record.
#[track_caller]
fn names_every_option(document: &Value) {
    for name in options() {
        let option = &document["options"][name];
        assert!(option["value"].is_string(), "run.json has no option `{name}`");
        let source = option["source"].as_str().unwrap();
        assert!(["given", "set", "file", "default", "derived"].contains(&source), "{name}: {source}");
    }
    // A name with a dot is a value of a scenario file, not an option.
    let counted = document["options"].as_object().unwrap().keys().filter(|name| !name.contains('.')).count();
    assert_eq!(counted, options().len(), "run.json has options that --help has not");
}

/// Options that only decide where the options of a run come from: the record contains the result.
const NOT_OF_THE_RUN: [&str; 4] = ["help", "spec", "print-spec", "print-workload"];

/// Every option of a run by its long name, and the URL, from `drive --help`.
fn options() -> &'static [String] {
    static OPTIONS: OnceLock<Vec<String>> = OnceLock::new();
    OPTIONS.get_or_init(|| {
        let output = Command::new(binary::parallax()).args(["drive", "--help"]).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let flags = help.lines().filter(|line| line.trim_start().starts_with('-'));
        let names =
            flags.filter_map(|line| Some(line.split_once("--")?.1.split_whitespace().next()?.to_owned()));
        let mut names: Vec<String> = names.filter(|name| !NOT_OF_THE_RUN.contains(&name.as_str())).collect();
        assert!(names.len() > 20, "cannot read the help: {names:?}");
        names.push("url".to_owned());
        // A line of prose may begin with an option's name.
        names.sort();
        names.dedup();
        names
    })
}

#[track_caller]
fn agrees_with_series(record: &Path, document: &Value) {
    let series = fs::read_to_string(record.join("series.ndjson")).unwrap();
    let lines: Vec<Value> = series.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        fits("series.schema.json", line);
    }
    for (of_line, of_total) in SUMMED {
        let sum: u64 = lines.iter().map(|line| number(line, &format!("/{of_line}"))).sum();
        let total = number(document, &format!("/results/totals/{of_total}"));
        assert_eq!(sum, total, "{of_total} is not the sum of series.ndjson");
    }
}

/// Fields of a line of the series, and of the totals.
const SUMMED: &[(&str, &str)] = &[
    ("scheduled", "scheduled"),
    ("sent", "sent"),
    ("ok", "ok"),
    ("failed", "failed"),
    ("bytes_sent", "bytes_sent"),
    ("bytes_received", "bytes_received"),
    ("body_bytes", "body_bytes"),
    ("connections_opened", "connections_opened"),
    ("idle_closes", "idle_closes"),
    ("unstamped", "unstamped"),
    ("stamps_moved", "stamps_moved"),
];

#[track_caller]
fn agrees_with_histograms(record: &Path, document: &Value) {
    let recording = record::read(record).unwrap();
    let total = &recording.total;
    let results = &document["results"];
    agrees(total.response(), &results["response"], "response");
    agrees(total.service(), &results["service"], "service");
    for row in results["phases"].as_array().unwrap() {
        let phase = record::Phase::from_name(text(row, "/phase")).unwrap();
        agrees(total.phase(phase), &row["distribution"], phase.name());
    }
    for (name, stated) in results["failed"].as_object().unwrap() {
        agrees(total.failed(record::Outcome::from_name(name).unwrap()), stated, name);
    }
    let unanswered = results["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .any(|row| record::Outcome::from_name(text(row, "/outcome")).unwrap().is_unanswered());
    if let (Some(response), false) = (total.response(), unanswered) {
        quantiles_agree(response, &results["response"], "response");
    }
    if let Some(service) = total.service() {
        quantiles_agree(service, &results["service"], "service");
    }
}

/// If this fails, the figures of `run.json` cannot be recomputed from the rest of its directory.
#[track_caller]
fn is_reported_as_it_is(record: &Path, document: &Value) {
    let output = Command::new(binary::parallax()).args(["report", "--json"]).arg(record).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(message, "", "`parallax report` of {}", record.display());
    let rebuilt = findings::rebuild(record::read(record).unwrap());
    let rebuilt = serde_json::to_value(&rebuilt.document).unwrap();
    assert_eq!(&rebuilt, document, "`parallax report` works out something else than the run did");
    let view: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(view["verdict"]["word"], document["verdict"]["word"]);
    let (errors, failed) =
        (&view["headline"]["errors"]["figure"]["value"], &document["results"]["totals"]["failed"]);
    assert_eq!(errors, failed, "the headline of `parallax report`");
}

#[track_caller]
fn agrees(read: Option<&Durations>, stated: &Value, name: &str) {
    let Some(read) = read.filter(|read| !read.is_empty()) else {
        let count = stated["count"].as_u64().unwrap_or(0);
        return assert_eq!(count, 0, "{name} has no histogram");
    };
    assert_eq!(read.count(), number(stated, "/count"), "count of {name}");
    assert_eq!(read.sum_ns(), u128::from(number(stated, "/sum_ns")), "sum of {name}");
    assert_eq!(read.mean(), Some(Nanos(number(stated, "/mean_ns"))), "mean of {name}");
}

/// The quantile q of n values is the smallest with at least q·n of them at or below it.
#[track_caller]
fn quantiles_agree(read: &Durations, stated: &Value, name: &str) {
    for quantile in
        stated["quantiles"].as_array().unwrap().iter().filter(|quantile| quantile["is"] == "known")
    {
        let share = quantile["q"].as_f64().unwrap();
        // Slightly below the product: 0.999 · 1000 is 999 and not 1000.
        let rank = (share * read.count() as f64 - 1e-6).ceil().max(1.0) as u64;
        assert_eq!(read.at_rank(rank), Some(Nanos(number(quantile, "/ns"))), "{name} at {share}");
    }
}
