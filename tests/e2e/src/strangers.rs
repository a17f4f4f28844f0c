//! Untrusted records and directories, under limits of memory and time.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use units::Nanos;

use crate::support::binary;
use crate::support::turn;

/// Far more than a small record needs, far less than an endless device would take.
const MEMORY: u64 = 512 << 20;
const PATIENCE: Nanos = Nanos::from_secs(20);

/// Runs it to its end, within the limits. Returns its exit code and what it printed.
fn limited(arguments: &[&str], folder: &Path) -> (i32, String) {
    let mut command = Command::new(binary::parallax());
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    prlimit(Some(Pid::from_child(&child)), Resource::As, limit).unwrap();
    let ended = testkit::wait::until(PATIENCE, || child.try_wait().unwrap().is_some());
    assert!(ended, "{arguments:?} does not end{}", kill(&mut child));
    let output = child.wait_with_output().unwrap();
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

fn kill(child: &mut Child) -> &'static str {
    let _ = child.kill();
    ""
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// If this fails, a report on an untrusted directory waits forever, or uses up the memory of this host.
#[test]
fn what_is_no_file_in_a_record_is_refused_in_one_line() {
    let _turn = turn::together();
    let root = tempfile::tempdir().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats/golden/run");
    for name in ["run.json", "series.ndjson", "response.hlog", "events.ndjson", "requests.parquet"] {
        for (kind, place) in [("pipe", pipe as fn(&Path)), ("device", device)] {
            let record = root.path().join(format!("{name}-{kind}"));
            fs::create_dir(&record).unwrap();
            for file in fs::read_dir(&golden).unwrap().flatten() {
                fs::copy(file.path(), record.join(file.file_name())).unwrap();
            }
            place(&record.join(name));
            let shown = record.to_str().unwrap();
            let verbs = [&["explain", shown][..], &["report", shown], &["convert", "--to", "csv", shown]];
            for verb in &verbs[..if name == "requests.parquet" { 1 } else { 3 }] {
                let (code, text) = limited(verb, root.path());
                assert_eq!(code, 1, "{verb:?}: {text}");
                assert!(text.contains("is not a regular file"), "{verb:?}: {text}");
                assert_eq!(text.lines().count(), 1, "{text}");
            }
        }
    }
    let (before, after) = (root.path().join("before"), root.path().join("after"));
    for profile in [&before, &after] {
        fs::create_dir(profile).unwrap();
        device(&profile.join("on-cpu.collapsed"));
    }
    let (code, text) =
        limited(&["profile", "--diff", before.to_str().unwrap(), after.to_str().unwrap()], root.path());
    assert!(code == 1 && text.contains("is not a regular file"), "{text}");
}

/// If this fails, root draws into a directory whose owner can put links to files of the host in place of the pictures.
#[test]
fn pictures_are_not_drawn_into_somebody_elses_directory() {
    let _turn = turn::together();
    let root = tempfile::tempdir().unwrap();
    let place = |name: &str| root.path().join(name);
    let (before, after, foreign) = (place("before.collapsed"), place("after.collapsed"), place("foreign"));
    fs::write(&before, "main;a 300\nmain;b 300\n").unwrap();
    fs::write(&after, "main;a 100\nmain;b 500\n").unwrap();
    fs::create_dir(&foreign).unwrap();
    std::os::unix::fs::chown(&foreign, Some(65_534), None).expect("this test needs root");
    let [before, after, foreign_text] = [&before, &after, &foreign].map(|path| path.to_str().unwrap());
    for line in [
        &["profile", "--diff", before, after, "-o", foreign_text][..],
        &["profile", "--from", after, "--focus", "a", "-o", foreign_text],
    ] {
        let (code, text) = limited(line, root.path());
        assert!(code != 0 && text.contains("another user"), "{line:?}: {code} {text}");
        assert_eq!(fs::read_dir(&foreign).unwrap().count(), 0, "{line:?}");
    }
}

fn device(path: &Path) {
    let _ = fs::remove_file(path);
    symlink("/dev/zero", path).unwrap();
}

/// If this fails, every user of the host can read the routes and statements that root recorded.
#[test]
fn a_record_is_read_by_whom_its_owner_permits() {
    let _turn = turn::together();
    let root = tempfile::tempdir().unwrap();
    let duration = r#"{"avg":1,"min":1,"med":1,"max":1,"p(90)":1,"p(95)":1}"#;
    let summary = format!(
        r#"{{"metrics":{{"http_reqs":{{"count":9,"rate":3}},"iterations":{{"count":9,"rate":3}},"http_req_duration":{duration}}}}}"#
    );
    fs::write(root.path().join("k6.json"), summary).unwrap();
    let modes = |record: &str, options: &[&str]| {
        let arguments = [&["import", "k6.json", "-o", record], options].concat();
        let (code, text) = limited(&arguments, root.path());
        assert!(matches!(code, 0 | 3), "{text}");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let record = root.path().join(record);
        (mode(&record), mode(&record.join("run.json")))
    };
    assert_eq!(modes("open", &["--record-mode", "644"]), (0o755, 0o644));
    assert_eq!(modes("group", &["--record-mode", "0640"]), (0o750, 0o640));
    assert_eq!(modes("own", &["--record-mode", "600"]), (0o700, 0o600));
    if rustix::process::geteuid().is_root() {
        assert_eq!(modes("default", &[]), (0o700, 0o600));
    }
    let (code, text) = limited(&["import", "k6.json", "--record-mode", "666"], root.path());
    assert!(code == 1 && text.contains("everybody reads"), "{text}");
}
