//! What other tools receive from a run, during and after it: read by their own libraries.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use units::Nanos;

use crate::support::leash::Leash;
use crate::support::nginx::{Nginx, fetch};
use crate::support::python::python;
use crate::support::run::{argument, drive, number, start};
use crate::support::{binary, port, turn, wait};

/// The contents of the text, read by Prometheus' own client library.
const PROMETHEUS: &str = "
import json, sys
from prometheus_client.parser import text_string_to_metric_families as read
print(json.dumps({sample.name + json.dumps(sample.labels, sort_keys=True): sample.value
    for family in read(open(sys.argv[1]).read()) for sample in family.samples}))
";

/// The contents of the body, parsed as OpenTelemetry's messages.
const OTLP: &str = "
import json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
told = {}
for line in open(sys.argv[1]):
    request = json_format.Parse(line, ExportMetricsServiceRequest())
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.sum.data_points:
            attributes = json.dumps({a.key: a.value.string_value for a in point.attributes}, sort_keys=True)
            told[metric.name + attributes] = point.as_int
        for point in metric.exponential_histogram.data_points or metric.histogram.data_points:
            told[metric.name + '.count'] = point.count
print(json.dumps(told))
";

/// A collector that appends each body to a file, one line each.
const COLLECTOR: &str = "
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        with open(sys.argv[2], 'a') as file:
            file.write(json.dumps(body) + '\\n')
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'{}')
    def log_message(self, *_):
        pass
HTTPServer(('127.0.0.1', int(sys.argv[1])), Collector).serve_forever()
";

#[track_caller]
fn read_by(program: &str, file: &Path) -> Value {
    let output = Command::new(python()).args(["-c", program, &argument(file)]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Without the buckets of histograms, which are many.
fn names(reported: &Value) -> Vec<&String> {
    reported.as_object().unwrap().keys().filter(|name| !name.contains("_bucket")).collect()
}

/// The first value whose name begins with `begins`.
#[track_caller]
fn value(reported: &Value, begins: &str) -> u64 {
    let mut found = reported.as_object().unwrap().iter().filter(|(name, _)| name.starts_with(begins));
    let (_, value) = found.next().unwrap_or_else(|| panic!("no {begins}: {:?}", names(reported)));
    value.as_f64().unwrap() as u64
}

#[track_caller]
fn convert(record: &Path, format: &str) -> Vec<u8> {
    let output =
        Command::new(binary::parallax()).arg("convert").arg(record).args(["--to", format]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && message.is_empty(), "--to {format}: {message}");
    output.stdout
}

/// If this fails, a dashboard or a script shows another run than the report does.
#[test]
fn a_record_has_the_same_figures_in_every_format() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; } location /bad { return 503; }");
    let run = drive(&["-r", "400/s", "-d", "2500ms", "-c", "4", &nginx.url("/"), &nginx.url("/bad")]);
    let (ok, failed) = (run.total("ok"), run.total("failed"));
    assert_eq!((ok, failed), (500, 500));
    let folder = tempfile::tempdir().unwrap();
    let kept = |format: &str| {
        let path = folder.path().join(format);
        fs::write(&path, convert(&run.record(), format)).unwrap();
        path
    };
    let reported = read_by(PROMETHEUS, &kept("prometheus"));
    assert_eq!(value(&reported, "parallax_scheduled_requests_total{"), 1_000);
    assert_eq!(value(&reported, "parallax_response_seconds_count{"), ok);
    let line = String::from_utf8(convert(&run.record(), "otlp")).unwrap();
    let flat = serde_json::from_str::<Value>(&line).unwrap().to_string();
    let path = folder.path().join("otlp");
    fs::write(&path, flat + "\n").unwrap();
    assert_eq!(value(&read_by(OTLP, &path), "parallax.scheduled"), 1_000);
    let csv = fs::read_to_string(kept("csv")).unwrap();
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "ok").unwrap();
    let cells = csv.lines().skip(1).map(|row| row.split(',').nth(column).unwrap().parse::<u64>().unwrap());
    assert_eq!(cells.sum::<u64>(), ok, "{csv}");
    let series = fs::read_to_string(run.record().join("series.ndjson")).unwrap();
    let rows = fs::read_to_string(kept("jsonl")).unwrap();
    assert_eq!(rows.lines().count(), series.lines().count());
    let k6: Value = serde_json::from_slice(&convert(&run.record(), "k6-summary")).unwrap();
    assert_eq!(number(&k6, "/metrics/http_reqs/count"), 1_000, "{k6}");
    let hlog = String::from_utf8(convert(&run.record(), "hlog")).unwrap();
    assert!(hlog.lines().any(|line| line.starts_with("Tag=response,")), "{hlog}");
}

/// If this fails, a dashboard shows a running run as stalled, or misses its last second.
#[test]
fn a_run_is_exported_while_it_is_running() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (scraped, pushed) = (port::free(), path("pushed.ndjson"));
    let collecting = port::free();
    let collector = [&argument(python()), "-c", COLLECTOR, &collecting.to_string(), &argument(&pushed)];
    let mut collector = Leash::start(&collector, &path("collector.log"));
    collector.wait_for(collecting);
    let (endpoint, otlp) = (format!("127.0.0.1:{scraped}"), format!("http://127.0.0.1:{collecting}"));
    let (jsonl, csv) = (argument(&path("rows.ndjson")), argument(&path("rows.csv")));
    let run = start(&[
        "-r",
        "200/s",
        "-d",
        "3500ms",
        "--prometheus",
        &endpoint,
        "--otlp",
        &otlp,
        "--otlp-interval",
        "1s",
        "--jsonl",
        &jsonl,
        "--csv",
        &csv,
        &nginx.url("/"),
    ]);
    // Rows come during the run: two seconds have been reported, and the third has not been measured yet.
    let lines = || fs::read_to_string(path("rows.ndjson")).unwrap_or_default().lines().count();
    assert!(wait::until(Nanos::from_secs(20), || lines() >= 2), "no rows");
    // A second in which a push reads the totals is merged with the next one.
    let scheduled = || {
        fs::write(path("scraped"), fetch(scraped, "/metrics")).unwrap();
        value(&read_by(PROMETHEUS, &path("scraped")), "parallax_scheduled_requests_total{")
    };
    let mut seen = 0;
    assert!(
        wait::until(Nanos::from_secs(20), || {
            seen = scheduled();
            seen >= 300
        }),
        "{seen} of 700"
    );
    assert!(seen < 700, "{seen} of 700");
    let run = run.finish();
    collector.kill();
    run.assert_done();
    assert_eq!(value(&read_by(OTLP, &pushed), "parallax.scheduled"), 700);
    assert!(fs::read_to_string(&pushed).unwrap().lines().count() >= 3, "few pushes");
    let series = fs::read_to_string(run.record().join("series.ndjson")).unwrap();
    let rows = fs::read_to_string(path("rows.ndjson")).unwrap();
    let counted = |text: &str| -> Vec<(u64, u64)> {
        let values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        values.map(|row| (number(&row, "/start_ns"), number(&row, "/ok"))).collect()
    };
    assert_eq!(counted(&rows), counted(&series));
    assert_eq!(fs::read_to_string(path("rows.csv")).unwrap().lines().count(), series.lines().count() + 1);
}

/// If this fails, anyone who reads the log of a pipeline or its record gets the credentials of the collector that was down.
#[test]
fn a_push_that_fails_leaves_no_credentials_behind() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; } location /otlp { return 500; }");
    let refuses = format!("127.0.0.1:{}", port::free());
    let fails = nginx.url("/otlp").replace("http://", "");
    for (collector, words) in [(refuses.as_str(), "refused"), (fails.trim_end_matches("/otlp"), "500")] {
        let otlp = format!("http://ann:hunter2@{collector}/otlp/hunter2?api_key=hunter2");
        let run = drive(&["-n", "20", "-c", "1", "--otlp", &otlp, &nginx.url("/")]);
        run.assert_done();
        assert!(run.stderr.contains("pushes failed") && run.stderr.contains(words), "{}", run.stderr);
        let files = fs::read_dir(run.record()).unwrap().map(|file| file.unwrap().path());
        let mut kept: Vec<Vec<u8>> = files.map(|path| fs::read(path).unwrap()).collect();
        kept.extend([run.stdout.into_bytes(), run.stderr.into_bytes()]);
        for text in kept.iter().map(|bytes| String::from_utf8_lossy(bytes)) {
            assert!(!text.contains("hunter2") && !text.contains("ann:"), "{text}");
        }
    }
}

/// If this fails, a pipeline passes when it should stop, or the reverse.
#[test]
fn a_gate_closes_by_its_exit_code() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; } location /bad { return 503; }");
    let load = ["-n", "400", "-c", "4"];
    let gate = |conditions: &[&str], paths: &[&str]| {
        let urls: Vec<String> = paths.iter().map(|path| nginx.url(path)).collect();
        let mut all = load.to_vec();
        conditions.iter().for_each(|condition| all.extend(["--fail-if", *condition]));
        all.extend(urls.iter().map(String::as_str));
        let run = drive(&all);
        // A client that this machine kept from its work is reported first.
        if run.code == Some(3) { None } else { run.code }
    };
    let mixed = ["/", "/", "/", "/bad"];
    for (conditions, paths, code) in [
        (&["error_share > 1%", "response.p99 > 30s"][..], &["/"][..], 0),
        (&["error_share > 1%"], &mixed, 2),
        (&["error_share > 26%"], &mixed, 0),
        (&["code.503 > 99"], &mixed, 2),
        (&["response.p50 > 1ns"], &["/"], 2),
        // 400 requests do not carry this percentile: an undecided condition does not pass.
        (&["response.p99.999 > 30s"], &["/"], 2),
    ] {
        let found = gate(conditions, paths);
        assert!(found.is_none_or(|found| found == code), "{conditions:?}: {found:?}");
    }
}

/// If this fails, a run of another tool is shown with something that it does not contain.
#[test]
fn a_run_of_wrk_becomes_a_record() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let output = Command::new("wrk").args(["-t1", "-c4", "-d2s", "--latency", &nginx.url("/")]).output();
    let output = output.expect("no wrk here: run scripts/setup test");
    assert!(output.status.success());
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("wrk.txt");
    fs::write(&text, &output.stdout).unwrap();
    let record = folder.path().join("record");
    let import = Command::new(binary::parallax()).arg("import").arg(&text).arg("-o").arg(&record).output();
    let import = import.unwrap();
    assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    let report = Command::new(binary::parallax()).args(["report", "--json"]).arg(&record).output().unwrap();
    let view: Value = serde_json::from_slice(&report.stdout).unwrap();
    let document: Value = serde_json::from_slice(&fs::read(record.join("run.json")).unwrap()).unwrap();
    assert_eq!(view["verdict"]["word"], document["verdict"]["word"]);
    // nginx has logged everything that wrk counted, and the requests that were cut off at its end.
    let seen = nginx.finish().len() as u64;
    let counted =
        document.pointer("/results/requests").and_then(Value::as_u64).unwrap_or_else(|| panic!("{document}"));
    assert!((seen.saturating_sub(8)..=seen).contains(&counted), "{counted} of {seen}");
    assert_ne!(document["verdict"]["word"], "valid", "{document}");
}
