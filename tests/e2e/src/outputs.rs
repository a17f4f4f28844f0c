//! What a run keeps and prints by option: no record, several attempts, samples of failed checks, requests of a recording.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::nginx::Nginx;
use crate::support::run::drive;
use crate::support::{binary, turn};

/// The exit code, standard output and standard error of `parallax` in `folder`.
fn parallax(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(binary::parallax()).args(arguments).current_dir(folder).output().unwrap();
    let Output { status, stdout, stderr } = output;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn listed(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// If this fails, `--no-record` fills the disk of a user in a loop, or advice leads to a record that is not there.
#[test]
fn a_run_without_a_record_leaves_nothing_behind() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    let (code, out, errors) = parallax(folder.path(), &["drive", "--no-record", "-n", "20", &nginx.url("/")]);
    assert_eq!(code, Some(0), "{out}{errors}");
    assert_eq!(listed(folder.path()), [""; 0]);
    assert!(out.contains("20") && !format!("{out}{errors}").contains("parallax-runs"), "{out}{errors}");

    // With one, `report` without an argument shows the latest.
    for path in ["/first", "/second"] {
        parallax(folder.path(), &["drive", "-n", "20", &nginx.url(path)]);
    }
    let (code, out, errors) = parallax(folder.path(), &["report", "--json"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(out.contains("/second") && !out.contains("/first"), "{out}");
}

/// If this fails, a run that a busy host disturbed is not repeated, or the attempts overwrite one another.
#[test]
fn an_invalid_run_is_repeated_as_often_as_asked() {
    let _turn = turn::together();
    // Every response fails, so every attempt is invalid.
    let nginx = Nginx::start("location / { return 500 'no'; }");
    let folder = tempfile::tempdir().unwrap();
    let line = ["drive", "--on-invalid", "retry:2", "-n", "20", "-o", "record", &nginx.url("/")];
    let (code, _, errors) = parallax(folder.path(), &line);
    assert_eq!(code, Some(3), "{errors}");
    assert_eq!(listed(folder.path()), ["record", "record-2", "record-3"]);
    assert!(errors.contains("repeating the run (2 of 2)"), "{errors}");
    assert_eq!(nginx.finish().len(), 60);
}

/// If this fails, users see that a check failed, and not what came instead.
#[test]
fn failed_checks_have_samples() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'login page'; }");
    let line = ["-n", "10", "--expect-body-contains", "welcome"];
    let run = drive(&[&line[..], &[&nginx.url("/")]].concat());
    let samples = run.json["results"]["check_samples"].as_array().unwrap();
    assert_eq!(samples.len(), 3, "{samples:?}");
    assert!(samples.iter().all(|sample| sample["got"] == "login page"), "{samples:?}");
    let (_, report, _) = parallax(&run.record(), &["report", "."]);
    assert!(report.contains("got: login page") && report.contains("welcome"), "{report}");
}

/// If this fails, a replay sends its requests in another order, or does not say what it left out.
#[test]
fn a_recording_is_sent_in_its_order() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    let line = |second: u32, request: &str| {
        format!("10.0.0.1 - - [10/Oct/2026:13:55:{second:02} +0000] \"{request} HTTP/1.1\" 200 1\n")
    };
    let requests = ["GET /c", "GET /a", "POST /pay", "HEAD /b", "GET /a"];
    let log: String = (30..).zip(requests).map(|(second, request)| line(second, request)).collect();
    fs::write(folder.path().join("access.log"), log).unwrap();
    let url = nginx.url("/");
    let replay = ["drive", "--replay", "access.log", "--speed", "10x", "-c", "1", "-o", "record", "-v", &url];
    let (code, out, errors) = parallax(folder.path(), &replay);
    assert_eq!(code, Some(0), "{out}{errors}");
    assert!(out.contains("left out") && out.contains("method POST"), "{out}");
    let seen = nginx.finish();
    let seen: Vec<_> = seen.iter().map(|one| format!("{} {}", one.method, one.uri)).collect();
    assert_eq!(seen, ["GET /c", "GET /a", "HEAD /b", "GET /a"]);
}

/// If this fails, a search looks for the rate of a server that fails every request, for minutes.
#[test]
fn a_search_on_a_server_that_only_fails_ends_at_once() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 404 'no'; }");
    let folder = tempfile::tempdir().unwrap();
    let search = ["drive", "--search", "p99 < 1s", "--probe-duration", "2s", "--json", "--quiet", "-o", "s"];
    let (_, out, errors) = parallax(folder.path(), &[&search[..], &[&nginx.url("/")]].concat());
    let document: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {errors}"));
    assert_eq!(document["probes"].as_array().unwrap().len(), 1, "{document}");
    assert!(document["answer"].to_string().contains("404"), "{}", document["answer"]);
}

#[test]
fn the_version_names_its_commit_and_features() {
    let (_, out, _) = parallax(Path::new("/"), &["--version"]);
    assert!(out.starts_with("parallax ") && out.contains("ebpf"), "{out}");
}
