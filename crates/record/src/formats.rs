//! Checks `formats/` against the code: schemas are generated from the types, and the golden run is read.
//!
//! `UPDATE_FORMATS=1 cargo test -p record formats` writes the files again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use intervals::{Durations, Interval, Series};
use serde_json::{Value, json};
use testkit::{check_format, formats, is_update};
use units::Nanos;

use crate::commit::{EVENTS, RUN, SERIES};
use crate::diagnosis::Diagnosis;
use crate::document::{Document, EffectiveOption, OptionSource, SCHEMA_VERSION, SchemaVersion};
use crate::fixture;
use crate::folder::FolderWriter;
use crate::folder_reader::read;
use crate::import::Import;
use crate::observation::cpu::CpuLine;
use crate::observation::hiccup::HiccupLine;
use crate::observation::jvm::{Hiccup, JvmLine, Pause};
use crate::observation::profile::ProfileLine;
use crate::observation::watch::WatchLine;
use crate::observation::{self, LineFrame, Observation, read_observation};
use crate::search::{self, SearchDocument};
use crate::series::Second;
use crate::two_clocks::{self, TwoClocks};

fn schema_of<T: schemars::JsonSchema>(title: &str) -> Value {
    let mut schema = schemars::schema_for!(T);
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let run = schema_of::<Document>(&format!("run.json, schema version {SCHEMA_VERSION}"));
    let series = schema_of::<Second>(&format!("a line of series.ndjson, schema version {SCHEMA_VERSION}"));
    let import = schema_of::<Import>(&format!("run.json of an import, schema version {SCHEMA_VERSION}"));
    check_format("run.schema.json", &pretty(&run));
    check_format("import.schema.json", &pretty(&import));
    check_format("series.schema.json", &pretty(&series));
    let search = schema_of::<SearchDocument>(&format!("search.json, schema version {SCHEMA_VERSION}"));
    check_format("search.schema.json", &pretty(&search));
    let observation =
        schema_of::<Observation>(&format!("run.json of an observation, schema version {SCHEMA_VERSION}"));
    check_format("observation.schema.json", &pretty(&observation));
    let diagnosis = schema_of::<Diagnosis>(&format!("what `doctor --json` prints, version {SCHEMA_VERSION}"));
    check_format("doctor.schema.json", &pretty(&diagnosis));
    let clocks = schema_of::<TwoClocks>(&format!("clock.json, schema version {SCHEMA_VERSION}"));
    check_format("clock.schema.json", &pretty(&clocks));
    let lines = [
        ("frame", schema_of::<LineFrame>("what every line of an observation's series.ndjson has")),
        ("watch", schema_of::<WatchLine>("additional fields of a line of watch")),
        ("cpu", schema_of::<CpuLine>("additional fields of a line of cpu")),
        ("hiccup", schema_of::<HiccupLine>("additional fields of a line of hiccup")),
        ("profile", schema_of::<ProfileLine>("additional fields of a line of profile")),
        ("jvm", schema_of::<JvmLine>("additional fields of a line of a JVM's record")),
    ];
    for (name, schema) in lines {
        check_format(&format!("observation-{name}.schema.json"), &pretty(&schema));
    }
}

/// If this fails, a tool that follows the schema refuses our records or those of a newer program, or accepts anything.
#[test]
fn the_schemas_accept_what_is_written_and_fields_of_a_newer_program() {
    let intervals = fixture::intervals();
    let run = jsonschema::validator_for(&schema_of::<Document>("")).unwrap();
    for document in [fixture::document(), fixture::finished(&intervals)] {
        check_schema(&run, &serde_json::to_value(document).unwrap(), &[]);
    }
    let document = serde_json::to_value(fixture::finished(&intervals)).unwrap();
    check_schema(
        &run,
        &document,
        &["", "/results", "/results/response/quantiles/0", "/verdict/findings/0", "/verdict/unchecked/0"],
    );
    let search = jsonschema::validator_for(&schema_of::<SearchDocument>("")).unwrap();
    let document = serde_json::to_value(search::tests::document()).unwrap();
    check_schema(&search, &document, &["", "/answer", "/probes/0", "/probes/0/figures/0", "/objective/0"]);
    let observation = jsonschema::validator_for(&schema_of::<Observation>("")).unwrap();
    for body in observation::tests::bodies() {
        let document = serde_json::to_value(observation::tests::finished(body)).unwrap();
        let name = document["kind"].as_str().unwrap().to_owned();
        check_schema(&observation, &document, &["", &format!("/{name}"), "/host", "/missing/0"]);
    }
    let line = jsonschema::validator_for(&schema_of::<WatchLine>("")).unwrap();
    let value = serde_json::to_value(observation::tests::line(3)).unwrap();
    check_schema(&line, &value, &["", "/parts_ns", "/response_ns"]);
    let clocks = jsonschema::validator_for(&schema_of::<TwoClocks>("")).unwrap();
    check_schema(&clocks, &serde_json::to_value(two_clocks::tests::clocks()).unwrap(), &["", "/readings/0"]);
    let series = jsonschema::validator_for(&schema_of::<Second>("")).unwrap();
    for interval in intervals {
        let line = serde_json::to_value(Second::of(&interval, Some(Nanos(1)))).unwrap();
        check_schema(&series, &line, &["", "/response_ns"]);
    }
}

/// Checks that `document` is accepted as it is, and with an additional field at each of `places`, and is refused with a
/// text there.
fn check_schema(schema: &jsonschema::Validator, document: &Value, places: &[&str]) {
    let errors: Vec<_> = schema.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for place in places {
        let mut document = document.clone();
        document.pointer_mut(place).unwrap()["surprise"] = 1.into();
        assert!(schema.is_valid(&document), "a field more at `{place}`");
        *document.pointer_mut(place).unwrap() = "text".into();
        assert!(!schema.is_valid(&document), "a text at `{place}`");
    }
}

/// If this fails, records of the current schema version no longer have the same meaning: raise the version.
#[test]
fn the_golden_run_reads_as_ever() {
    let golden = formats().join("golden/run-1.1");
    let fresh = tempfile::tempdir().unwrap();
    write_run(fresh.path());
    if is_update() {
        let _ = fs::remove_dir_all(&golden);
        write_run(&golden);
    }
    // The logs are compared by their contents, because another zlib may compress the same counts differently.
    for name in [RUN, SERIES, EVENTS] {
        check_format(
            &format!("golden/run-1.1/{name}"),
            &fs::read_to_string(fresh.path().join(name)).unwrap(),
        );
    }
    let intervals = fixture::intervals();
    let recording = read(&golden).unwrap();
    assert_eq!(recording.document, fixture::finished(&intervals));
    assert_eq!(recording.events, fixture::events());
    fixture::assert_same(&recording.total, &fixture::merged(&intervals));
    check_format("golden/expected.json", &pretty(&expected(&intervals)));
    assert_eq!(recording.document.notes, [""; 0]);

    // Checked by hand, to find mistakes in the fixture: 260 responses of 1 to 10 ms, except for three of 250 ms.
    let response = recording.total.response().unwrap();
    assert_eq!((response.count(), recording.total.ended()), (260, 264));
    let p50 = response.at_rank(130).unwrap();
    assert!((Nanos::from_millis(1)..Nanos::from_millis(10)).contains(&p50), "{p50}");
    assert!(response.at_rank(257).unwrap() < Nanos::from_millis(11));
    assert!(response.at_rank(258).unwrap() > Nanos::from_millis(249));
}

/// `golden/run` was written before records had minor versions, and is never written again. If this fails, users can no
/// longer read the records that they have kept.
#[test]
fn a_run_of_1_0_reads_as_ever() {
    let intervals = fixture::intervals();
    let recording = read(&formats().join("golden/run")).unwrap();
    let mut expected = fixture::finished(&intervals);
    expected.schema_version = SchemaVersion { major: 1, minor: 0 };
    assert_eq!(recording.document, expected);
    assert_eq!(recording.document.notes, [""; 0]);
    assert_eq!(recording.events, fixture::events());
    fixture::assert_same(&recording.total, &fixture::merged(&intervals));
}

/// If this fails, Rust and Java do not agree about the meaning of a record. `golden/jvm` is written by Java, whose
/// tests check it against `golden/jvm-expected.json` as well.
#[test]
fn the_record_that_java_wrote_reads_as_java_reads_it() {
    let observed = read_observation(&formats().join("golden/jvm")).unwrap();
    let cause = Some("G1 Evacuation Pause".to_owned());
    let pause = Pause { begin_ns: 1_500_000_000, end_ns: 1_503_000_000, cause };
    let pauses: Vec<_> = observed.events.iter().map(|event| event.pause.clone()).collect();
    assert_eq!(pauses, [None, Some(pause), None]);
    let causes_ns = [("safepoint".to_owned(), 3_000_000), ("timer".to_owned(), 1_000_000)].into();
    assert_eq!(observed.events[2].hiccup, Some(Hiccup { length_ns: 4_000_000, causes_ns }));
    assert_eq!(observed.lines.len(), 3);
    assert_eq!(
        (observed.lines[1].start, observed.lines[1].length),
        (Nanos(1_000_123_456), Nanos(999_876_544))
    );
    let unusable: JvmLine = observed.lines[0].fields().unwrap();
    assert_eq!(unusable.unusable, BTreeMap::from([("response".to_owned(), 2)]));
    assert_eq!(observed.events[0].text, "what \"people\" read");
    let option = |value: &str, source| EffectiveOption { value: value.to_owned(), source };
    let options = [
        ("interval".to_owned(), option("1s", OptionSource::Default)),
        ("out".to_owned(), option("a \"record\"", OptionSource::Given)),
    ];
    assert_eq!(observed.document.options, options.into());
    let schema = jsonschema::validator_for(&schema_of::<Observation>("")).unwrap();
    check_schema(&schema, &serde_json::to_value(&observed.document).unwrap(), &["", "/jvm"]);
    let logs = observed.logs.iter().map(|(name, durations)| {
        let mut figures = figures(durations);
        figures["sum_ns"] = u64::try_from(durations.sum_ns()).unwrap().into();
        figures["out_of_range"] = durations.out_of_range().into();
        (name.clone(), figures)
    });
    check_format("golden/jvm-expected.json", &pretty(&json!(logs.collect::<BTreeMap<_, _>>())));

    // Checked by hand against the values planted in Java: 1 us, 2 us, … 1000 us in each of three intervals, then three
    // hours.
    let response = &observed.logs["response"];
    assert_eq!((response.count(), response.out_of_range()), (3_001, 1));
    assert_eq!(response.sum_ns(), 3 * 500_500_000 + 10_800_000_000_000);
}

fn write_run(folder: &Path) {
    let intervals = fixture::intervals();
    let mut writer = FolderWriter::create(folder, &fixture::document()).unwrap();
    intervals.iter().for_each(|interval| writer.append(interval, Some(Nanos(500_000))).unwrap());
    fixture::events().iter().for_each(|event| writer.event(event).unwrap());
    writer.finish(&fixture::finished(&intervals)).unwrap();
}

/// What any reader of histogram logs must find in each file: line by line, and merged.
fn expected(intervals: &[Interval]) -> Value {
    let total = fixture::merged(intervals);
    let files = Series::all().filter_map(|series| {
        let lines = intervals.iter().filter_map(|interval| {
            let mut line = figures(interval.series(series)?);
            line["start_ns"] = interval.start.0.into();
            line["length_ns"] = interval.length.0.into();
            Some(line)
        });
        let merged = figures(total.series(series)?);
        Some((
            format!("{}.hlog", series.name()),
            json!({ "lines": lines.collect::<Vec<_>>(), "merged": merged }),
        ))
    });
    json!(files.collect::<BTreeMap<_, _>>())
}

// The 90th percentile: with these counts its rank is whole, so tools agree however they round ranks.
fn figures(durations: &Durations) -> Value {
    let at = |percent: u64| durations.at_rank((durations.count() * percent).div_ceil(100)).unwrap().0;
    json!({ "count": durations.count(), "p50_ns": at(50), "p90_ns": at(90), "max_ns": durations.max().unwrap().0 })
}
