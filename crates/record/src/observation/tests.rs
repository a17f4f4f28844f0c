//! Tests of observations: crashes at every byte, hostile records, kinds. Uses the writer, and reads real files.

use std::fs;

use proptest::prelude::*;

use super::watch::{Digest, PartsNs, Tier, WatchLine, WatchQuantiles};
use super::*;
use crate::document::MissingFact;
use crate::files::journal::{Journal, Write, apply};
use crate::fixture;
use crate::served::{Part, Protocol};

pub(crate) fn bodies() -> [ObservationBody; 6] {
    [
        ObservationBody::Watch(Box::new(watched())),
        ObservationBody::Cpu(CpuResults::default()),
        ObservationBody::Hiccup(Box::default()),
        ObservationBody::Disturb(DisturbResults::default()),
        ObservationBody::Profile(Box::default()),
        ObservationBody::Jvm(JvmResults::default()),
    ]
}

fn watched() -> WatchResults {
    let parts_ns = PartsNs::from(fixture::served(1).parts);
    let digest = Digest {
        count: 1,
        statements: None,
        sum_ns: 1_000_001,
        socket_queue_ns: Some(40),
        parts_ns,
        ..Digest::named("GET /users/?".to_owned(), Protocol::Http1)
    };
    WatchResults {
        tier: Tier { name: "tracepoints".to_owned(), attached: vec!["tp_btf/sched_switch".to_owned()] },
        requests: 1,
        parts_ns,
        digests: vec![digest],
        ..WatchResults::default()
    }
}

pub(crate) fn started(body: ObservationBody) -> Observation {
    let run = fixture::document();
    let envelope = Envelope {
        kind: body.kind().into(),
        command: ["parallax", "watch", "-p", "4711"].map(str::to_owned).into(),
        missing: vec![MissingFact { what: "socket_queue".to_owned(), why: "no such tracepoint".to_owned() }],
        ..run.envelope
    };
    Observation { envelope, body }
}

pub(crate) fn finished(body: ObservationBody) -> Observation {
    let mut observation = started(body);
    observation.state = State::Finished;
    observation
}

pub(crate) fn line(requests: u64) -> WatchLine {
    let response_ns =
        WatchQuantiles { p50: 1_000_001, p95: 1_000_002, p99: 1_000_002, max: 1_000_000 + requests };
    WatchLine { requests, response_ns: Some(response_ns), ..WatchLine::default() }
}

fn durations(digits: u8, values: impl IntoIterator<Item = u64>) -> Durations {
    let mut durations = Durations::with_digits(digits);
    values.into_iter().for_each(|value| durations.record(Nanos(value)));
    durations
}

/// Three intervals, the second of which has an additional log.
fn append_all(writer: &mut ObservationWriter) {
    for n in 0..3 {
        append(writer, n).unwrap();
        writer.event(&fixture::events()[0]).unwrap();
    }
}

fn append(writer: &mut ObservationWriter, n: u64) -> Result<(), RecordError> {
    let digits = writer.kind.digits();
    let response = durations(digits, 1..n + 2);
    let class = durations(digits, (n == 1).then_some(5_000_000_000_000));
    let logs = [("response", &response), ("response-class-hit", &class)];
    writer.append(&line(n), Nanos(n * 3_000_000_001), Nanos(3_000_000_000), &logs)
}

fn record() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let body = || ObservationBody::Watch(Box::new(watched()));
    let mut writer = ObservationWriter::create(folder.path(), &started(body())).unwrap();
    append_all(&mut writer);
    writer.finish(&finished(body())).unwrap();
    folder
}

#[test]
fn an_observation_reads_back_as_it_was() {
    for body in bodies() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = ObservationWriter::create(folder.path(), &started(body.clone())).unwrap();
        assert_eq!(writer.path(), folder.path());
        assert!(read_observation(folder.path()).unwrap().is_cut_off());
        append_all(&mut writer);
        writer.finish(&finished(body.clone())).unwrap();

        let mut read = read_observation(folder.path()).unwrap();
        // The lines are those of `watch`, whatever the kind.
        let notes = std::mem::take(&mut read.document.notes);
        assert!(notes.is_empty() || body.kind() != ObservationKind::Watch, "{notes:?}");
        assert_eq!((read.document, read.events.len()), (finished(body), 3));
        let lines: Vec<WatchLine> = read.lines.iter().map(|line| line.fields().unwrap()).collect();
        assert_eq!(lines, [line(0), line(1), line(2)]);
        assert_eq!((read.lines[2].start, read.lines[2].length), (Nanos(6_000_000_002), Nanos(3_000_000_000)));
        assert_eq!(read.lines[1].fields::<Value>().unwrap()["requests"], 1);
        let response = &read.logs["response"];
        assert_eq!((response.count(), response.sum_ns()), (6, 1 + 3 + 6));
        let class = &read.logs["response-class-hit"];
        assert_eq!((class.count(), class.sum_ns(), class.out_of_range()), (1, 5_000_000_000_000, 1));
        assert_eq!(read.logs.len(), 2);
    }
}

/// If this fails, a crash at that byte loses more than the last interval, or adds data that never existed.
#[test]
fn a_crash_at_any_byte_leaves_every_committed_interval() {
    let journal = Journal::default();
    let mut writer = writer_on(&journal);
    append_all(&mut writer);
    let folder = tempfile::tempdir().unwrap();
    let (mut committed, mut events) = (0, 0);
    for write in journal.writes() {
        let Write::Append(name, bytes) = write else {
            apply(folder.path(), &write);
            continue;
        };
        for byte in bytes {
            apply(folder.path(), &Write::Append(name.clone(), vec![byte]));
            committed += u64::from(name == SERIES && byte == b'\n');
            events += usize::from(name == EVENTS && byte == b'\n');
            let read = read_observation(folder.path()).unwrap();
            assert_eq!((read.lines.len() as u64, read.events.len()), (committed, events));
            let held = read.logs.get("response").map_or(0, Durations::count);
            assert_eq!(held, committed * (committed + 1) / 2);
        }
    }
    assert_eq!((committed, events), (3, 3));
}

/// If this fails, a disk that was full for a second makes the whole record unreadable.
#[test]
fn a_full_disk_costs_only_what_did_not_fit() {
    for room in (0..2_000).step_by(41) {
        let journal = Journal::default();
        let mut writer = writer_on(&journal);
        append(&mut writer, 0).unwrap();
        journal.set_room(Some(room));
        let fits = append(&mut writer, 1).is_ok();
        journal.set_room(None);
        append(&mut writer, 2).unwrap();
        let folder = tempfile::tempdir().unwrap();
        journal.replay(folder.path());
        let read = read_observation(folder.path()).unwrap();
        assert_eq!((read.lines.len(), read.logs["response"].count()), if fits { (3, 6) } else { (2, 4) });
    }
}

fn writer_on(journal: &Journal) -> ObservationWriter {
    let document = started(ObservationBody::Watch(Box::default()));
    let commits = Commits::on(Box::new(journal.clone()), Path::new("run"), &document.time.started).unwrap();
    ObservationWriter::with(commits, &document).unwrap()
}

#[test]
fn a_name_that_is_no_file_s_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer =
        ObservationWriter::create(folder.path(), &started(ObservationBody::Cpu(CpuResults::default())))
            .unwrap();
    let one = durations(DIGITS, [1]);
    for name in ["", "../x", ".x", "a/b", "a.hlog", "ä", &"x".repeat(101)] {
        let error = writer.append(&line(0), Nanos(0), Nanos(1), &[("response", &one), (name, &one)]);
        assert!(matches!(error, Err(RecordError::LogName { .. })), "{name}");
    }
    assert!(writer.append(&line(0), Nanos(0), Nanos(1), &[("response", &one)]).is_ok());
    assert_eq!(read_observation(folder.path()).unwrap().lines.len(), 1);
}

#[test]
#[should_panic(expected = "`length_ns` is the frame's field")]
fn a_line_cannot_hide_its_frame() {
    let mut writer = writer_on(&Journal::default());
    let _ = writer.append(&serde_json::json!({ "length_ns": 1 }), Nanos(0), Nanos(1), &[]);
}

#[test]
fn a_record_of_another_kind_is_named() {
    let folder = record();
    let place = folder.path().display().to_string();
    let error = crate::read(folder.path()).unwrap_err().to_string();
    let expected = "is a record of `watch`, but a record of `drive` is needed";
    assert_eq!(error, format!("{place} {expected}"));
    assert_eq!(crate::kind_of(folder.path()).unwrap(), "watch");

    let run = tempfile::tempdir().unwrap();
    crate::FolderWriter::create(run.path(), &fixture::document()).unwrap();
    let error = read_observation(run.path()).unwrap_err().to_string();
    assert!(
        error.contains("is a record of `drive`, but a record of `an observing verb` is needed"),
        "{error}"
    );
    assert!(matches!(
        ObservationWriter::create(folder.path(), &started(bodies()[0].clone())),
        Err(RecordError::Occupied { .. })
    ));
}

/// Edits one file of a valid record as text, and returns the error of reading it.
fn error_after(name: &str, edit: impl Fn(&str) -> String) -> String {
    let folder = record();
    let path = folder.path().join(name);
    let text = fs::read_to_string(&path).unwrap();
    let edited = edit(&text);
    assert_ne!(text, edited, "the edit changes nothing");
    fs::write(&path, edited).unwrap();
    read_observation(folder.path()).expect_err("damage was read as if it were none").to_string()
}

#[test]
fn what_does_not_add_up_is_refused() {
    let table: [(&str, &str, &str, &str); 10] = [
        (RUN, "\"kind\": \"watch\"", "\"kind\": \"cpu\"", "kind is cpu, but the content is that of watch"),
        (RUN, "\"schema_version\": \"1.1\"", "\"schema_version\": \"2.0\"", "use a parallax of that version"),
        (SERIES, "\"start_ns\":3000000001", "\"start_ns\":0", "it does not come after the line before it"),
        (SERIES, "\"start_ns\":6000000002", "\"start_ns\":18446744073709551615", "reach beyond"),
        (SERIES, "\"count\":1,", "\"count\":2,", "it has 1 values, but series.ndjson allows 2 to 2"),
        (SERIES, "\"sum_ns\":6", "\"sum_ns\":7", "its values cannot sum to the 7 ns"),
        (SERIES, "{\"response\":", "{\"../response\":", "`../response` is not a known histogram"),
        (SERIES, "{\"response\":", "{\"answer\":", "answer.hlog is missing, but interval 0 has values in it"),
        (SERIES, "\"out_of_range\":1", "\"out_of_range\":2", "2 of its 1 values are out of range"),
        ("response.hlog", "\n3.0", "\n9.0", "has interval 1 in response, and it is not here"),
    ];
    for (name, from, to, expected) in table {
        let error = error_after(name, |text| text.replacen(from, to, 1));
        assert!(error.contains(expected), "{name}: {from} -> {to}: {error}");
    }
}

#[test]
fn fields_that_are_not_known_are_ignored_and_named() {
    let folder = record();
    let edit = |name: &str, from: &str, to: &str| {
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
    };
    edit(SERIES, "\"preempted\":0", "\"preempted\":0,\"x\\u001b\":[\"\\u001b\"]");
    edit(RUN, "\"requests\": 1", "\"surprise\": 1, \"requests\": 1");
    let read = read_observation(folder.path()).unwrap();
    let expected = "fields that this program does not know were ignored: run.json watch.surprise, series.ndjson \
                    x\\u{1b}";
    assert_eq!(read.document.notes, [expected]);
    assert_eq!(read.lines[0].fields::<WatchLine>().unwrap(), line(0));
    let value: Value = read.lines[0].fields().unwrap();
    assert_eq!(value["x\\u{1b}"][0], "\\u{1b}");
}

#[test]
fn part_logs_sum_to_the_response() {
    let served = fixture::served(9);
    let parts: Vec<_> =
        Part::ALL.map(|part| (watch::part_log(part), durations(DIGITS, [served.part(part).0]))).into();
    let sum: u128 = parts.iter().map(|(_, durations)| durations.sum_ns()).sum();
    assert_eq!(sum, u128::from(served.response().0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any bytes in place of a file are an error or a record, and never cause a panic.
    #[test]
    fn any_bytes_in_any_file_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let folder = record();
        let names = [RUN, SERIES, EVENTS, "response.hlog", "response-class-hit.hlog"];
        fs::write(folder.path().join(which.get(&names)), bytes).unwrap();
        if let Ok(read) = read_observation(folder.path()) {
            let _ = read.lines.iter().map(ObservedLine::fields::<Value>).collect::<Vec<_>>();
        }
    }

    /// If this fails, one wrong byte on a disk becomes a wrong figure in a report.
    #[test]
    fn a_changed_byte_never_changes_a_histogram(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let folder = record();
        let names = [RUN, SERIES, EVENTS, "response.hlog", "response-class-hit.hlog"];
        let path = folder.path().join(which.get(&names));
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        fs::write(&path, bytes).unwrap();
        if let Ok(read) = read_observation(folder.path()) {
            let count = |name: &str| read.logs.get(name).map(Durations::count);
            // The last line's line feed is its commit.
            let expected = if read.lines.len() == 3 { 6 } else { 3 };
            prop_assert_eq!(count("response"), Some(expected));
            prop_assert_eq!(count("response-class-hit"), Some(1));
        }
    }
}

/// If this fails, an old record of a relay no longer explains a run through the relay.
#[test]
fn a_relay_of_1_0_has_its_addresses_from_its_text() {
    let read = |version: &str, what: &str| {
        let folder = tempfile::tempdir().unwrap();
        let results =
            DisturbResults { means: "net".to_owned(), what: what.to_owned(), ..DisturbResults::default() };
        let mut document = serde_json::to_value(started(ObservationBody::Disturb(results))).unwrap();
        document["schema_version"] = serde_json::from_str(version).unwrap();
        fs::write(folder.path().join(RUN), document.to_string()).unwrap();
        let ObservationBody::Disturb(results) = read_observation(folder.path()).unwrap().document.body else {
            panic!("a record of `disturb` has another body")
        };
        results.relay.map(|relay| (relay.listen, relay.target))
    };
    let what = "relay to 127.0.0.1:5000: 20 ms later, relaying 127.0.0.1:4000 to 127.0.0.1:5000";
    let both = ("127.0.0.1:4000".to_owned(), "127.0.0.1:5000".to_owned());
    assert_eq!(read("1", what), Some(both));
    assert_eq!(read("1", "relaying this to that"), None);
    // From 1.1 on, the addresses have their own field, and the text is not parsed.
    assert_eq!(read("\"1.1\"", what), None);
}
