//! Records of every kind with hostile texts: their views as JSON contain all that is printed, and no text from outside
//! controls a terminal.

#[path = "fixture/rendered.rs"]
mod rendered;

use std::path::{Path, PathBuf};

use findings::view::{Block, Phrase, Role, Section, Subject, View};
use findings::{RunRecord, WatchQuery, import_view, observation_view, rebuild, run_view, search_view};
use record::document::{self, Envelope, QuantileValue, RecordKind, VerdictWord};
use record::import::{ErrorCount, Import, Imported, ImportedQuantile, ImportedResults, ImportedTime};
use record::observation::cpu::CpuProcess;
use record::observation::disturb::DisturbResults;
use record::observation::profile::{ProfileResults, Sleeper};
use record::observation::watch::WatchResults;
use record::observation::{CpuResults, HiccupResults, ObservationBody};
use record::search::{Demanded, Limit, ProbeFigure, ProbeOutcome, ProbeResult, SearchDocument, SearchResult};
use record::{Durations, Event, Observed, read_observation};
use rendered::rendered;
use report::Style;
use serde_json::json;
use units::Nanos;

/// Texts that may come from outside: terminal control sequences, markup, placeholders for figures, right-to-left text.
const HOSTILE: &str = "\u{1b}[2J<b>{share}</b>\u{202e}\r\n{*x} \u{9b}1m";

fn golden(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats/golden").join(kind)
}

#[track_caller]
fn check(view: &View) -> String {
    let styles = [
        Style::PLAIN,
        Style { unicode: false, width: 60, ..Style::PLAIN },
        Style { width: 200, ..Style::PLAIN },
    ];
    for style in styles {
        let text = rendered(view, style);
        assert!(!text.is_empty());
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }
    rendered(&view.clone(), Style { colour: true, ..Style::PLAIN });
    rendered(view, Style::PLAIN)
}

fn observed(body: ObservationBody) -> Observed {
    let mut observed = read_observation(&golden("jvm")).expect("the golden record is read");
    observed.document.body = body;
    (observed.logs, observed.lines, observed.events) = Default::default();
    observed.events.push(Event::new(7, HOSTILE, HOSTILE.to_owned()));
    observed
}

fn durations() -> Durations {
    let mut durations = Durations::new();
    (1..500).for_each(|us| durations.record(Nanos::from_micros(us)));
    durations
}

#[test]
fn a_run() {
    let recording = record::read(&golden("run")).unwrap();
    let mut rebuilt = rebuild(recording);
    let document = &mut rebuilt.document;
    document.subject.url = HOSTILE.to_owned();
    document.host.name = Some(HOSTILE.to_owned());
    let run = RunRecord { document, seconds: &rebuilt.seconds, folder: Some(Path::new(HOSTILE)) };
    let text = check(&run_view(&run));
    assert!(text.contains("<b>{share}</b>"), "a stranger's braces are text: {text}");
    check(&findings::demo_view(&run));
}

#[test]
fn a_record_of_a_jvm() {
    let mut observed = read_observation(&golden("jvm")).unwrap();
    check(&observation_view(&observed, &WatchQuery::default()).unwrap());
    observed.events.push(Event::new(7, HOSTILE, HOSTILE.to_owned()));
    observed.logs.insert(format!("wait-{HOSTILE}"), durations());
    check(&observation_view(&observed, &WatchQuery::default()).unwrap());
}

#[test]
fn a_watch() {
    let mut results = WatchResults { requests: 499, connections: 3, ..WatchResults::default() };
    results.subject.comm = Some(HOSTILE.to_owned());
    results.digests.push(
        serde_json::from_value(json!({
            "text": HOSTILE, "protocol": "http1", "count": 499, "sum_ns": 1_000_000,
            "parts_ns": record::observation::watch::PartsNs { on_cpu: 900_000, ..Default::default() },
        }))
        .unwrap(),
    );
    let logs = [("response".to_owned(), durations())].into();
    findings::summarize_watch(&mut results, &logs);
    let mut observed = observed(ObservationBody::Watch(Box::new(results)));
    observed.logs = logs;
    check(&observation_view(&observed, &WatchQuery::default()).unwrap());
}

#[test]
fn cpu_use() {
    let process: CpuProcess = serde_json::from_value(json!({
        "pid": 7, "started": 9, "name": HOSTILE, "uid": 0, "user": HOSTILE, "began": true, "end": "alive",
        "used": record::observation::cpu::CpuUse { to_ns: 1_000_000_000, run_ns: 5_000_000, ..Default::default() },
        "threads_began": 0, "threads_ended": 0, "unseen_ns": 0, "counts_all": false, "threads": [],
    }))
    .unwrap();
    let results = CpuResults { cpus: 2, processes: vec![process], ..CpuResults::default() };
    check(&observation_view(&observed(ObservationBody::Cpu(results)), &WatchQuery::default()).unwrap());
}

#[test]
fn hiccups() {
    let results =
        HiccupResults { all: findings::summarize_hiccups(&durations()), ..HiccupResults::default() };
    let mut observed = observed(ObservationBody::Hiccup(Box::new(results)));
    observed.logs.insert("hiccup".to_owned(), durations());
    check(&observation_view(&observed, &WatchQuery::default()).unwrap());
}

#[test]
fn disturbances() {
    let results = DisturbResults { what: HOSTILE.to_owned(), episodes: 3, skipped: 5, ..Default::default() };
    check(&observation_view(&observed(ObservationBody::Disturb(results)), &WatchQuery::default()).unwrap());
}

#[test]
fn a_profile() {
    let sleeper = Sleeper {
        thread: HOSTILE.to_owned(),
        threads: 2,
        sleeps: 3,
        asleep_ns: 30_000_000,
        what: Some(HOSTILE.to_owned()),
    };
    let picture = serde_json::from_value(json!({
        "picture": "off_cpu", "count": 3, "time_ns": 30_000_000, "stacks": 1, "widest": [],
        "frames": [{ "frame": HOSTILE, "own": 0.75, "total": 1.0 }],
    }))
    .unwrap();
    let results = ProfileResults { pictures: vec![picture], sleepers: vec![sleeper], ..Default::default() };
    check(
        &observation_view(&observed(ObservationBody::Profile(Box::new(results))), &WatchQuery::default())
            .unwrap(),
    );
}

fn probe(rate: Option<f64>, says: ProbeOutcome) -> ProbeResult {
    ProbeResult {
        folder: "probe-01".to_owned(),
        rate_per_s: rate,
        warmup_ns: 1_000_000_000,
        measured_ns: 4_000_000_000,
        sent_per_s: 1_985.0,
        ok_per_s: 1_980.0,
        error_share: 0.0025,
        p50: QuantileValue::Known { ns: 1_200_000, low_ns: 1_100_000, high_ns: Some(1_300_000) },
        p99: QuantileValue::Above { ns: 29_300_000 },
        figures: vec![ProbeFigure { measured: None, held: None }],
        client_cpu_share: Some(0.125),
        verdict: Some(VerdictWord::Valid),
        against_client: Vec::new(),
        says,
        why: HOSTILE.to_owned(),
    }
}

#[test]
fn a_search() {
    let run = rebuild(record::read(&golden("run")).unwrap()).document;
    let mut search = SearchDocument {
        envelope: Envelope { kind: RecordKind::Search, ..run.envelope },
        answer: None,
        subject: document::Subject { url: HOSTILE.to_owned(), ..run.subject },
        objective: vec![Demanded { condition: "response.p99 < 20ms".to_owned(), implied: false }],
        tolerance: 0.02,
        probes_allowed: 12,
        probes: Vec::new(),
    };
    check(&search_view(&search, None));
    search.probes = vec![
        probe(None, ProbeOutcome::Estimate),
        probe(Some(1_985.0), ProbeOutcome::Holds),
        probe(Some(2_020.0), ProbeOutcome::Fails),
    ];
    for limit in [Limit::Server, Limit::Client, Limit::Range, Limit::Unknown] {
        for (holds_per_s, fails_per_s) in
            [(Some(1_985.0), Some(2_020.0)), (Some(1_985.0), None), (None, None)]
        {
            let reason = HOSTILE.to_owned();
            search.answer = Some(SearchResult { holds_per_s, fails_per_s, confirmed: true, limit, reason });
            let text = check(&search_view(&search, Some(Path::new(HOSTILE))));
            assert!(text.contains("<b>{share}</b>"), "a stranger's braces are text: {text}");
            assert!(text.contains("1985/s"), "a probe is in the text: {text}");
        }
    }
}

#[test]
fn an_import() {
    let time = ImportedTime {
        name: "request".to_owned(),
        original: HOSTILE.to_owned(),
        meaning: HOSTILE.to_owned(),
        count: Some(2_000),
        min_ns: Some(100_000),
        mean_ns: Some(250_000),
        max_ns: Some(9_000_000),
        quantiles: vec![ImportedQuantile { q: 0.99, ns: 900_000, low_ns: None, high_ns: None }],
        log: None,
    };
    let results = ImportedResults {
        url: Some(HOSTILE.to_owned()),
        elapsed_ns: Some(2_000_000_000),
        requests: Some(2_000),
        ok: Some(1_990),
        failed: Some(10),
        throughput_per_s: Some(995.0),
        errors: vec![ErrorCount { original: HOSTILE.to_owned(), count: Some(10) }],
        times: vec![time],
        ..ImportedResults::default()
    };
    let imported = Imported {
        tool: "wrk".to_owned(),
        tool_version: Some(HOSTILE.to_owned()),
        form: "text".to_owned(),
        file: HOSTILE.to_owned(),
        cannot_know: vec![HOSTILE.to_owned()],
    };
    let envelope = Envelope::new(RecordKind::Import, "0.0.0");
    let mut import = Import { envelope, thresholds: Vec::new(), imported, results };
    let text = check(&import_view(&import, Path::new(HOSTILE)));
    assert!(text.contains("900 us"), "a figure of the tool is in the text: {text}");
    (import.results, import.imported.tool_version) = (ImportedResults::default(), None);
    check(&import_view(&import, Path::new("folder")));
}

/// If this fails, a section that a newer version adds cannot be printed.
#[test]
fn a_table_that_the_layout_does_not_know_is_printed() {
    let row = findings::view::Row::new(vec![HOSTILE.into(), Nanos(1_500).into()]);
    let columns = [("name", "name", "text", "a name"), ("time", "time", "ns", "a time")];
    let table = findings::view::Table::new("new", &columns, vec![row]);
    let mut view = View::new(Subject::Watch);
    let blocks = vec![Block::line(Role::Title, Phrase::text(HOSTILE)), Block::Table(table)];
    view.sections.push(Section::new("new", blocks));
    assert!(check(&view).contains("1.50 us"));
}
