//! Tests of the record's reader: damaged and hostile records are refused, and the damage is named. Writes real files.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::check::Check;
use crate::fixture;
use crate::folder::FolderWriter;

/// A finished run in its own directory.
fn run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let intervals = fixture::intervals();
    let mut writer = FolderWriter::create(folder.path(), &fixture::document()).unwrap();
    intervals.iter().for_each(|interval| writer.append(interval, None).unwrap());
    fixture::events().iter().for_each(|event| writer.event(event).unwrap());
    writer.finish(&fixture::finished(&intervals)).unwrap();
    folder
}

/// If this fails, a report from a record does not show which target was slow, or why requests failed.
#[test]
fn a_folder_gives_back_its_targets_and_reasons() {
    let folder = tempfile::tempdir().unwrap();
    let mut intervals = fixture::short_intervals();
    for interval in &mut intervals {
        // Every second response and all failures belong to the second target.
        for n in 0..interval.counts.ok {
            interval.kind(u16::try_from(n % 2).unwrap()).record_ok(&fixture::answered(n));
        }
        for (failure, count) in interval.failures().to_vec() {
            (0..count).for_each(|_| interval.kind(1).record_failure(failure, Nanos(77)));
            interval.add_reasons(failure.outcome, "the server was tired".into(), count);
        }
    }
    let mut writer = FolderWriter::create(folder.path(), &fixture::document()).unwrap();
    intervals.iter().for_each(|interval| writer.append(interval, None).unwrap());
    writer.finish(&fixture::finished(&intervals)).unwrap();
    let read = read(folder.path()).unwrap();
    fixture::assert_same(&fixture::merged(&intervals), &read.total);
    assert_eq!(read.total.kinds().len(), 2);
    assert_eq!(read.total.reasons().len(), 1);
    let path = folder.path().join("series.ndjson");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"targets\":[{\"ok\":1", "\"targets\":[{\"ok\":2", 1)).unwrap();
    assert!(super::read(folder.path()).is_err(), "its targets have more requests than there were");
}

/// If this fails, a record of more than 100 targets cannot be read, or takes memory as if it had a thousand.
#[test]
fn a_folder_gives_back_its_hundreds_of_targets() {
    let folder = tempfile::tempdir().unwrap();
    let mut intervals = fixture::short_intervals();
    let mut kinds = (98..102).cycle();
    for interval in &mut intervals {
        for n in 0..interval.counts.ok {
            interval.kind(kinds.next().unwrap()).record_ok(&fixture::answered(n));
        }
    }
    let mut writer = FolderWriter::create(folder.path(), &fixture::document()).unwrap();
    intervals.iter().for_each(|interval| writer.append(interval, None).unwrap());
    writer.finish(&fixture::finished(&intervals)).unwrap();
    let total = read(folder.path()).unwrap().total;
    fixture::assert_same(&fixture::merged(&intervals), &total);
    let digits = |kind: usize| total.kinds()[kind].response().unwrap().histogram().sigfig();
    assert_eq!([99, 100].map(digits), [DIGITS, COARSE_DIGITS]);
}

/// Edits one file of a valid run as text, and returns the error of reading it.
fn error_after(name: &str, edit: impl Fn(&str) -> String) -> String {
    let folder = run();
    let path = folder.path().join(name);
    let text = fs::read_to_string(&path).unwrap();
    let edited = edit(&text);
    assert_ne!(text, edited, "the edit changes nothing");
    fs::write(&path, edited).unwrap();
    let error = read(folder.path()).expect_err("damage was read as if it were none").to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn damage_is_named_with_file_and_line() {
    type Edit = fn(&str) -> String;
    let table: [(&str, Edit, &str); 14] = [
        (
            "series.ndjson",
            |text| text.replacen("\"ok\":90", "\"ok\":91", 1),
            "response.hlog line 6: it has 90 values",
        ),
        (
            "series.ndjson",
            |text| text.replacen("\"failed\":4", "\"failed\":3", 1),
            "failed is 3, not the sum",
        ),
        ("series.ndjson", |text| text.replacen("app_error", "ok", 1), "series.ndjson line 2: `ok`"),
        ("series.ndjson", |text| text.replacen("\"index\":2", "\"index\":1", 1), "does not come after"),
        ("series.ndjson", |text| text.replacen("\"phase-send\"", "\"phase-../..\"", 1), "is not a known"),
        (
            "series.ndjson",
            |text| text.replacen("\"sent\"", "\"sent_\"", 1),
            "series.ndjson line 1: missing field `sent`",
        ),
        ("series.ndjson", |text| text.replacen('\n', "\n\n", 1), "series.ndjson line 2: EOF"),
        ("series.ndjson", |text| text.replacen(":100,", ":99,", 1), "run.json line 1: scheduled is 264"),
        ("response.hlog", |text| text.replacen("#[B", "[B", 1), "response.hlog line 3: not a line"),
        (
            "response.hlog",
            |text| format!("{}\n", text.lines().take(5).collect::<Vec<_>>().join("\n")),
            "interval 1",
        ),
        ("response.hlog", |text| format!("{text}{}\n", text.lines().last().unwrap()), "should have no line"),
        ("phase-wait.hlog", |text| text.replacen(",HI", ",HJ", 1), "phase-wait.hlog line 5: the histogram"),
        ("events.ndjson", |text| text.replacen("kind", "kin", 1), "events.ndjson line 1: "),
        ("run.json", |text| text.replacen("\"kind\"", "\"kin\"", 1), "run.json line "),
    ];
    for (name, edit, expected) in table {
        let error = error_after(name, edit);
        assert!(error.contains(expected), "{name}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_sum_that_its_histogram_cannot_have_is_refused() {
    for factor in [0, 2] {
        let error = error_after("series.ndjson", |text| {
            let mut second: Second = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            *second.sums_ns.get_mut("phase-wait").unwrap() *= factor;
            let rest = text.split_once('\n').unwrap().1;
            format!("{}\n{rest}", serde_json::to_string(&second).unwrap())
        });
        assert!(error.contains("phase-wait.hlog line 5: its values cannot sum"), "{error}");
    }
}

#[test]
fn another_major_version_is_refused() {
    let error = error_after("run.json", |text| {
        text.replacen("\"schema_version\": \"1.1\"", "\"schema_version\": \"7.0\", \"new\": 0", 1)
    });
    assert_eq!(
        error,
        "run.json has schema version 7.0, but this parallax reads 1.x; use a parallax of that version"
    );
}

/// If this fails, only the program that wrote a record can read it, or a reader silently ignores parts of it.
#[test]
fn a_newer_minor_version_is_read_and_what_is_not_known_is_named() {
    let folder = run();
    let known = read(folder.path()).unwrap();
    assert_eq!(known.document.notes, [""; 0]);
    for (name, from, to) in [
        (RUN, "\"schema_version\": \"1.1\"", "\"schema_version\": \"1.9\", \"moon\": \"full\""),
        (RUN, "\"check\": \"worker_cpu\"", "\"check\": \"moon_phase\", \"since\": \"1.9\""),
        (SERIES, "\"index\":", "\"tide\":3,\"index\":"),
        (EVENTS, "\"at_ns\":", "\"who\":\"me\",\"at_ns\":"),
    ] {
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
    }
    let mut newer = read(folder.path()).unwrap();
    assert_eq!(
        std::mem::take(&mut newer.document.notes),
        [
            "this record has schema version 1.9, and this program knows 1.1: what is newer is not shown; fields that \
          this program does not know were ignored: run.json moon, run.json verdict.findings.since, series.ndjson \
          tide, events.ndjson who"
        ]
    );
    assert_eq!((newer.seconds, newer.events), (known.seconds, known.events));
    let finding = &newer.document.verdict.as_ref().unwrap().findings[0];
    assert_eq!(finding.check, Check::Other("moon_phase".to_owned()));
}

#[test]
fn a_run_without_its_zero_is_refused() {
    let error = error_after("run.json", |text| text.replacen("started_monotonic_ns", "began", 1));
    assert!(error.contains("time.started or time.started_monotonic_ns is missing"), "{error}");
}

#[test]
fn a_log_that_is_gone_is_missed() {
    let folder = run();
    fs::remove_file(folder.path().join("phase-wait.hlog")).unwrap();
    let error = read(folder.path()).unwrap_err();
    assert!(matches!(error, RecordError::NoLog { index: 0, .. }), "{error}");
}

/// A pipe would block the reader, and a link would make it read a file chosen by the sender of the record.
#[cfg(unix)]
#[test]
fn only_regular_files_are_opened() {
    for name in ["run.json", "series.ndjson", "service.hlog", "events.ndjson"] {
        let folder = run();
        let path = folder.path().join(name);
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(matches!(read(folder.path()), Err(RecordError::NotAFile { .. })), "{name}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(read(folder.path()), Err(RecordError::NotAFile { .. })), "{name}");
    }
}

#[test]
fn endless_lines_are_not_read_into_memory() {
    for (name, limit) in
        [("run.json", LONGEST_DOCUMENT), ("series.ndjson", LONGEST_JSON_LINE), ("response.hlog", 1 << 20)]
    {
        let folder = run();
        // Sparse: as long as a disk, but takes no space.
        fs::File::create(folder.path().join(name)).unwrap().set_len(1 << 40).unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("longer than {limit} bytes")), "{error}");
    }
}

fn names() -> Vec<PathBuf> {
    let folder = run();
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into()).collect();
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_in_any_file_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let folder = run();
        let names = names();
        fs::write(folder.path().join(which.get(&names)), bytes).unwrap();
        let _ = read(folder.path());
    }

    /// If this fails, one wrong byte on a disk becomes a wrong figure in a report.
    #[test]
    fn a_changed_byte_never_changes_a_count(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let folder = run();
        let names = names();
        let path = folder.path().join(which.get(&names));
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        fs::write(&path, bytes).unwrap();
        if let Ok(recording) = read(folder.path()) {
            let expected = fixture::merged(&fixture::intervals());
            prop_assert_eq!(recording.total.ended(), expected.ended());
            for series in Series::all() {
                let histogram = |interval: &Interval| interval.series(series).map(|held| held.histogram().clone());
                prop_assert_eq!(histogram(&recording.total), histogram(&expected));
            }
        }
    }
}

/// If this fails, a results directory from somewhere else can send commands to the reader's terminal.
#[test]
fn texts_are_read_without_what_a_terminal_obeys() {
    let folder = run();
    let edit = |name: &str, from: &str, to: &str| {
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} is not in {name}");
        fs::write(&path, text.replace(from, to)).unwrap();
    };
    edit("run.json", "client-1", "\\u001b[2Jclient-1\u{202e}");
    edit("run.json", "\"100/s\"", "\"100/s\\r\\n\"");
    edit("run.json", "\"rate\"", "\"rate\\u009b\"");
    edit("events.ndjson", "2 requests", "2\u{7f} requests");
    let recording = read(folder.path()).unwrap();
    let document = recording.document;
    assert_eq!(document.host.name.as_deref(), Some("\\u{1b}[2Jclient-1\\u{202e}"));
    assert_eq!(document.options["rate\\u{9b}"].value, "100/s\\u{d}\\u{a}");
    assert!(recording.events[0].text.starts_with("2\\u{7f} requests"));

    edit("run.json", "\"schema_version\"", "\"\\u001b\": 1, \"schema_version\"");
    let notes = read(folder.path()).unwrap().document.envelope.notes;
    assert!(notes[0].contains("\\u{1b}") && !notes[0].contains('\u{1b}'), "{notes:?}");
    edit("run.json", "\"state\": \"finished\"", "\"state\": \"\\u001b\"");
    let error = read(folder.path()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("\\u{1b}") && !error.contains('\u{1b}'), "{error:?}");
}
