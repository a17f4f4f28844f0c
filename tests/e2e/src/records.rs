//! The results of a run: the same in `run.json`, in `--json`, and in the rest of the directory.
//!
//! For every run of this package, `support::laws` checks that its record fits its schema, conserves requests, splits
//! the response time exactly, and agrees with its own series and histograms.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::binary;
use crate::support::nginx::Nginx;
use crate::support::run::{drive, start};
use crate::support::turn;

#[test]
fn the_report_names_the_record_and_what_happened() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let run = start(&["-n", "500", "-c", "2", &nginx.url("/")]).finish();
    run.assert_done();
    for words in ["response", "service", "wait", "500"] {
        assert!(run.stdout.contains(words), "no `{words}` in: {}", run.stdout);
    }
    assert!(!run.stdout.contains('\u{1b}'), "colours in a file: {}", run.stdout);
}

/// If this fails, two readers of one run see two results.
#[test]
fn json_is_the_document_of_the_folder() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let run = drive(&["-r", "300/s", "-d", "2500ms", "-c", "4", "-w", "2", &nginx.url("/")]);
    run.assert_done();
    // Equality is checked for each run that prints JSON: this only checks that it did.
    assert!(run.stdout.starts_with('{'), "{}", run.stdout);
    assert_eq!(run.reported(), ["ok - 750"]);
    assert_eq!(run.json["state"], "finished");
    let lines = fs::read_to_string(run.record().join("series.ndjson")).unwrap();
    assert!(lines.lines().count() >= 3);
}

#[test]
fn options_say_where_their_values_come_from() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let run = drive(&["-n", "50", "-c", "2", "--timeout", "7s", &nginx.url("/")]);
    for (name, value, source) in [
        ("timeout", "7s", "given"),
        ("connections", "2", "given"),
        ("connect-timeout", "5s", "default"),
        ("users", "2", "derived"),
        ("workers", "1", "derived"),
        ("method", "GET", "derived"),
        ("rate", "none: closed loop", "derived"),
        ("duration", "no limit", "derived"),
        ("drain", "off", "derived"),
        ("stamps", "kernel", "default"),
        ("url", nginx.url("/").as_str(), "given"),
    ] {
        let option = &run.json["options"][name];
        assert_eq!(
            (option["value"].as_str(), option["source"].as_str()),
            (Some(value), Some(source)),
            "{name}"
        );
    }
}

/// If this fails, passing on a record or a report passes on a password.
#[test]
fn credentials_are_sent_and_not_kept() {
    let _turn = turn::together();
    let nginx = Nginx::start(
        "location / { if ($http_authorization != 'Bearer hunter2') { return 401; } return 200 'hello'; }",
    );
    let url = nginx.url("/");
    for spelling in [
        &["-H", "Authorization: Bearer hunter2"][..],
        &["-HAuthorization: Bearer hunter2"],
        &["--header", "authorization: Bearer hunter2"],
        &["--header=Authorization: Bearer hunter2"],
        &["-H", "Authorization: Bearer hunter2", "-H", "Cookie: hunter2", "-H", "X-My-Token: hunter2"],
    ] {
        for form in [&["--json"], &["-v"]] {
            let arguments = [&["-n", "20", "-c", "2", url.as_str()][..], spelling, form].concat();
            let run = start(&arguments).finish();
            assert_eq!(run.reported(), ["ok - 20"], "{spelling:?}");
            assert!(run.stdout.contains("(redacted)"), "{}", run.stdout);
            assert!(!run.stdout.contains("hunter2"), "{}", run.stdout);
            assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
            for entry in fs::read_dir(run.record()).unwrap() {
                let path = entry.unwrap().path();
                let kept = fs::read(&path).unwrap();
                assert!(!String::from_utf8_lossy(&kept).contains("hunter2"), "{}", path.display());
            }
        }
    }
}

/// If this fails, 4 requests at 1/s are reported as 1.33/s.
#[test]
fn an_open_loop_has_the_requested_rate() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    for end in [["-d", "2s"], ["-n", "8"]] {
        let run = drive(&["-r", "4/s", end[0], end[1], "-c", "2", &nginx.url("/")]);
        assert_eq!(run.reported(), ["ok - 8"]);
        assert_eq!(run.json["time"]["window_ns"], 2_000_000_000_u64);
        assert_eq!(run.json["results"]["totals"]["throughput_per_s"], 4.0);
    }
}

/// `parallax drive … | head -1` is a common way to see the top of a report.
#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    for arguments in [vec![], vec!["--json"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(binary::parallax())
            .args(["drive", "--quiet", "-n", "200", "-c", "2"])
            .args(arguments)
            .arg(nginx.url("/"))
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Nothing reads at all: the first output already meets the closed pipe.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0));
    }
}

/// Without `-o` each run makes a new folder.
#[test]
fn a_folder_is_made_for_a_run_that_names_none() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new(binary::parallax())
        .args(["drive", "--quiet", "--json", "-n", "20", "-c", "1", &nginx.url("/")])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let runs: Vec<_> = fs::read_dir(folder.path().join("parallax-runs")).unwrap().collect();
    assert_eq!(runs.len(), 1);
    assert!(record::read(&runs[0].as_ref().unwrap().path()).is_ok());
}
