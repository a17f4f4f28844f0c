//! Invalid input: one line that states what to do, exit code 1, nothing sent, no directory made.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

use crate::support::{binary, turn};

/// Runs in `folder`. `URL` in the arguments is replaced by the server's.
#[track_caller]
fn check_in(folder: &Path, arguments: &[&str], words: &[&str]) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let server = listener.local_addr().unwrap().to_string();
    let before = listed(folder);
    let output = Command::new(binary::parallax())
        .arg("drive")
        .args(arguments.iter().map(|argument| argument.replace("SERVER", &server)))
        .current_dir(folder)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("parallax: "), "{arguments:?}: {stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?}: no `{word}` in: {stderr}");
    }
    let sent = listener.accept();
    assert!(
        sent.is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
        "{arguments:?}: it has connected"
    );
    assert_eq!(listed(folder), before, "{arguments:?}: it has made something");
}

fn listed(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[track_caller]
fn check(arguments: &[&str], words: &[&str]) {
    let _turn = turn::together();
    check_in(tempfile::tempdir().unwrap().path(), arguments, words);
}

const URL: &str = "http://SERVER/";

#[test]
fn flags_of_other_tools_get_a_hint() {
    check(&["-t", "30s", URL], &["`-t`", "-d 30s", "--timeout 30s"]);
    check(&["-z", "10s", URL], &["`-z`", "-d 10s"]);
    check(&["-q", "100", URL], &["`-q`", "--rate 100/s"]);
    check(&["--latency", URL], &["--latency"]);
    check(&["--no-such-thing", URL], &["--no-such-thing"]);
}

#[test]
fn values_without_sense_are_refused() {
    check(&["-d", "30", URL], &["30", "unit"]);
    check(&["-d", "0s", URL], &["longer than 0"]);
    check(&["-c", "0", URL], &["at least 1"]);
    check(&["-c", "many", URL], &["many"]);
    check(&["-n", "0", URL], &["at least 1"]);
    check(&["-r", "0/s", URL], &["0/s"]);
    check(&["-r", "fast", URL], &["fast"]);
    check(&["--timeout", "0s", URL], &["off"]);
    check(&["--users", "0", URL], &["at least 1"]);
    check(&["--callers", "0", URL], &["at least 1"]);
    check(&["-w", "5", "-c", "2", URL], &["--workers 5"]);
    check(&["-w", "2", "--users", "1", URL], &["--workers 2", "--users 1"]);
    check(&["--pipeline", "100000", URL], &["--pipeline"]);
    check(&["--expect-status", "abc", URL], &["abc", "200-299"]);
    check(&["--expect-sha256", "1234", URL], &["64"]);
    check(&["--stamps", "nowhere", URL], &["nowhere"]);
    check(&["--max-body", "1 apple", URL], &["apple", "MiB"]);
}

#[test]
fn a_url_that_cannot_be_driven_is_refused() {
    check(&[], &["URL"]);
    check(&["--http", "2", URL], &["h2c"]);
    check(&["-k", URL], &["https://"]);
    check(&["--cacert", "/nowhere", "https://SERVER/"], &["/nowhere"]);
    check(&["--resolve", "elsewhere:1:127.0.0.1", URL], &["--resolve"]);
    check(&["unix:"], &["unix:/path/of.sock:/path"]);
    check(&["ftp://SERVER/"], &["ftp"]);
    check(&["http://"], &["http://"]);
    check(&["http://SERVER/a\nb"], &["%0A"]);
    check(&["http://user:secret@SERVER/"], &[]);
}

/// If this fails, an untrusted value can smuggle a request into the run.
#[test]
fn headers_and_methods_that_break_the_request_are_refused() {
    check(&["-H", "no colon", URL], &["Name: value"]);
    check(&["-H", ": empty", URL], &["Name: value"]);
    check(&["-H", "X: a\r\nY: b", URL], &[]);
    check(&["-H", "X: a\nY: b", URL], &[]);
    check(&["-H", "X Y: b", URL], &[]);
    check(&["-X", "GET /other", URL], &[]);
    check(&["-X", "", URL], &[]);
    check(&["-X", "GET\r\nX: y", URL], &[]);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    check(&["-b", "@missing.txt", URL], &["missing.txt"]);
    check(&["--targets", "missing.txt"], &["missing.txt"]);
    check(&["--targets", "."], &["`.`"]);
    check(&["--targets", "missing.txt", URL], &["--targets"]);
}

#[test]
fn an_error_in_a_target_file_names_its_line() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    for (content, words) in [
        ("GET http://127.0.0.1:1/a\n\nnonsense\n", ["line 3", "nonsense"]),
        ("GET http://127.0.0.1:1/a\n\n# weight: none\nGET http://127.0.0.1:1/a\n", ["line 3", "none"]),
        ("GET http://127.0.0.1:1/a\nX: y\n@missing\n", ["line 3", "missing"]),
        ("{\"method\":\"GET\",\"url\":\"http://127.0.0.1:1/a\"}\n\n{\"method\":7}\n", ["line 3", "JSON"]),
        ("", ["targets", "no target"]),
    ] {
        fs::write(folder.path().join("targets"), content).unwrap();
        check_in(folder.path(), &["--targets", "targets"], &words);
    }
}

/// If this fails, a second run overwrites the first.
#[test]
fn a_folder_that_holds_a_run_is_left_alone() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    fs::create_dir(&record).unwrap();
    fs::write(record.join("run.json"), "{}").unwrap();
    check_in(
        folder.path(),
        &["-n", "1", "-o", "record", URL],
        &["record", "already contains a record", "-o"],
    );
    assert_eq!(fs::read_to_string(record.join("run.json")).unwrap(), "{}");
    // What a killed run may leave: a series without its document.
    fs::rename(record.join("run.json"), record.join("series.ndjson")).unwrap();
    check_in(folder.path(), &["-n", "1", "-o", "record", URL], &["record", "already contains a record"]);
}

/// These places refuse everybody, even root.
#[test]
fn a_folder_that_cannot_be_written_is_refused_before_anything_is_sent() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    check_in(folder.path(), &["-n", "1", "-o", "file", URL], &["file", "-o"]);
    check_in(folder.path(), &["-n", "1", "-o", "file/record", URL], &["file/record", "-o"]);
    check_in(folder.path(), &["-n", "1", "-o", "/proc/record", URL], &["/proc/record", "-o"]);
    // It exists, but no file can be created in it.
    check_in(folder.path(), &["-n", "1", "-o", "/proc", URL], &["/proc"]);
}
