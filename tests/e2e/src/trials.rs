//! `parallax compare --run`: commands whose difference is known, what runs around them, and what is left of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use testkit::leash::Leash;
use units::Nanos;

use crate::support::laws::fits;
use crate::support::run::argument;
use crate::support::{binary, port, turn, wait};

fn compare(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary::parallax());
    command.arg("compare").args(arguments).current_dir(folder.path()).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn trials(folder: &TempDir, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.path().join(name).join("trials.ndjson")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// If this fails, what is made to be shared has the password of a database.
#[test]
fn passwords_in_commands_are_not_kept() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    let compared = ["--run", "true mysql://ann:hunter2@h/{db}", "-L", "db=a,redis://:hunter2@h", "--json"];
    let hook = ["--setup", "false --url=postgres://ann:hunter2@h"];
    for (name, more, code) in [("one", &[][..], 0), ("two", &hook, 1)] {
        let output = compare(&folder, &[&compared[..], &["--blocks", "2", "-o", name], more].concat());
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{shown}");
        assert!(!shown.contains("hunter2") && shown.contains("--password-file"), "{shown}");
        for file in fs::read_dir(folder.path().join(name)).unwrap() {
            let kept = fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(!kept.contains("hunter2"), "{kept}");
        }
    }
    // The first one and its twin, in two blocks.
    let ran = trials(&folder, "one").into_iter().filter(|trial| trial["command"] == "true mysql://ann@h/a");
    assert_eq!(ran.count(), 4);
}

/// Half as much time again is found; the twin of the base, which takes the same, is not called worse.
#[test]
fn a_slower_program_is_worse() {
    let _turn = turn::alone();
    let folder = tempfile::tempdir().unwrap();
    let gate = ["--fail-if", "wall_time worse"];
    let line = ["--run", "sleep 0.1", "--run", "sleep 0.15", "--blocks", "6", "--seed", "5", "-o", "one"];
    let output = compare(&folder, &[&line[..], &gate].concat());
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{printed} {}", text(&output.stderr));
    assert!(printed.starts_with("worse: wall time of B is "), "{printed}");
    for words in
        ["% higher than with A", "6 blocks", "of a second, identical A is", "A sleep 0.1", "B sleep 0.15"]
    {
        assert!(printed.contains(words), "no `{words}` in {printed}");
    }
    let made = trials(&folder, "one");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for trial in &made {
        *counts.entry(trial["arm"].as_str().unwrap().to_owned()).or_default() += 1;
        assert_eq!(trial["exit_code"], 0);
    }
    let expected = ["A", "A (twin)", "B"].map(|arm| (arm.to_owned(), 6));
    assert_eq!(counts, BTreeMap::from(expected));
    // The same seed gives the same order, which is not the same in every block.
    let again = compare(&folder, &[&line[..8], &["-o", "two", "--json", "--quiet"]].concat());
    assert!(again.stderr.is_empty(), "{}", text(&again.stderr));
    fits("view.schema.json", &serde_json::from_slice(&again.stdout).unwrap());
    let order = |made: &[Value]| made.iter().map(|trial| trial["arm"].to_string()).collect::<Vec<_>>();
    assert_eq!(order(&made), order(&trials(&folder, "two")));
    assert!(order(&made).chunks(3).any(|block| block != &order(&made)[..3]));
}

/// If this fails, records of two addresses that are made here are not those that are compared.
#[test]
fn lines_of_drive_are_compared_by_their_records() {
    let _turn = turn::alone();
    let folder = tempfile::tempdir().unwrap();
    let port = port::free();
    let (program, listen) = (argument(binary::parallax()), format!("127.0.0.1:{port}"));
    let mut server =
        Leash::start(&[&program, "serve", "--listen", &listen], &folder.path().join("serve.log"));
    server.wait_for(port);
    let line = format!(
        "parallax drive -r 200/s -n 100 -c 20 --on-invalid retry:5 -H 'X-Is: quoted' http://{listen}/delay/{{delay}}"
    );
    let more = ["-L", "delay=0.010,0.013", "--blocks", "6", "--no-twin", "--metric", "p50", "-o", "runs"];
    let output = compare(&folder, &[&["--run", &line][..], &more].concat());
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed} {}", text(&output.stderr));
    assert!(printed.starts_with("worse: response p50 of delay=0.013 is "), "{printed}");
    // The same verdict again, later, from the records.
    let made = trials(&folder, "runs");
    let records = |delay: &str| {
        let of_arm = made.iter().filter(|trial| trial["arm"] == format!("delay={delay}").as_str());
        of_arm.map(|trial| trial["record"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (base, other) = (records("0.010"), records("0.013"));
    let mut line: Vec<&str> = base.iter().map(String::as_str).collect();
    line.push("--to");
    line.extend(other.iter().map(String::as_str));
    line.extend(["--metric", "p50"]);
    let again = compare(&folder, &line);
    assert!(text(&again.stdout).starts_with("worse: response p50 of "), "{}", text(&again.stdout));
}

#[test]
fn hooks_run_in_their_places() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    let hook = |word: &str| format!("echo {word} {{n}} >> log");
    let output = compare(
        &folder,
        &[
            &[
                "--run",
                "sh -c 'echo run {n} >> log'",
                "-L",
                "n=1,2",
                "--blocks",
                "2",
                "--warmup",
                "1",
                "--no-twin",
            ][..],
            &["--setup", &hook("setup"), "--prepare", &hook("prepare"), "--cleanup", "echo cleanup >> log"],
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("look only: "), "{}", text(&output.stdout));
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[..6], ["setup 1", "setup 2", "prepare 1", "run 1", "prepare 2", "run 2"]);
    assert_eq!(lines.len(), 2 + 2 * 2 + 4 * 2 + 1, "{log}");
    // One cleanup, because its text is the same for both.
    assert_eq!(lines.last(), Some(&"cleanup"));
}

#[test]
fn a_command_that_fails_ends_the_comparison_in_one_line() {
    let _turn = turn::together();
    for (line, message) in [
        (
            &["--run", "true", "--run", "sh -c 'echo no such table >&2; exit 3'"][..],
            "`sh -c 'echo no such table >&2; exit 3'` exited with status 3: no such table",
        ),
        (&["--run", "/no/such/program", "--run", "true"], "cannot run `/no/such/program`"),
        (&["--run", "true", "--run", "true", "--setup", "exit 9"], "--setup `exit 9` exited with status 9"),
        (
            &["--run", "sleep 9", "--run", "sleep 8", "--time-limit", "100ms"],
            "took longer than --time-limit 100 ms",
        ),
        (
            &[
                "--run",
                "true",
                "--run",
                "true",
                "--blocks",
                "6",
                "--fail-if",
                "wall_time worse",
                "--fail-if",
                "cpu_time worse",
            ],
            "6 blocks cannot decide --fail-if: 7 are needed; give --blocks 7",
        ),
        (&["--run", "true"], "one command has nothing to be compared with"),
        (&["--run", "true", "--run", "parallax drive http://127.0.0.1:1/"], "compare two of one kind"),
        (
            &[
                "--run",
                "parallax drive -n 1 http://127.0.0.1:1/",
                "--run",
                "parallax drive -n 1 http://127.0.0.1:1/",
                "-q",
            ],
            "`parallax drive -n 1 http://127.0.0.1:1/` exited with status 4",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = compare(&folder, &[line, &["--cleanup", "touch clean"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line:?}: {errors}");
        let last = errors.lines().last().unwrap();
        assert!(last.contains(message), "{line:?}: {errors}");
        let has_begun = errors.contains(" runs: ") && !message.contains("of one kind");
        assert_eq!(
            folder.path().join("clean").exists(),
            has_begun || line.contains(&"-q"),
            "{line:?}: {errors}"
        );
    }
}

/// If this fails, an hour of results is lost because of the hook before the last run, or no message says that runs
/// are missing.
#[test]
fn a_hook_that_fails_later_keeps_the_results_so_far() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    let prepare = "echo >> log; test $(wc -l < log) -lt 6";
    let line = ["--run", "true", "--run", "true", "--no-twin", "--blocks", "6", "--prepare", prepare];
    let output = compare(&folder, &[&line[..], &["--cleanup", "touch clean"]].concat());
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("--prepare") && errors.contains("exited with status 1"), "{errors}");
    assert!(errors.contains("2 of 6 blocks are complete"), "{errors}");
    assert!(text(&output.stdout).starts_with("look only: "), "{}", text(&output.stdout));
    assert!(folder.path().join("clean").exists());
}

/// If this fails, who presses Ctrl-C twice has to clean up by hand.
#[test]
fn a_second_interrupt_still_cleans_up() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(binary::parallax())
        .args(["compare", "--run", "sleep 72001", "--run", "sleep 72002"])
        .args(["--cleanup", "touch cleaning; until test -e go; do sleep 0.05; done; touch clean"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let has = |name: &str| wait::until(Nanos::from_secs(60), || folder.path().join(name).exists());
    assert!(wait::until(Nanos::from_secs(60), || alive("72001").len() + alive("72002").len() > 0));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(has("cleaning"), "the cleanup does not begin");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    fs::write(folder.path().join("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(has("clean"));
}

/// Processes whose command line has this word.
fn alive(word: &str) -> Vec<i32> {
    let has_word = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    let names = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).filter(has_word).collect()
}

/// An experiment that sleeps in three processes, the second of which is started by `second`.
fn start(folder: &TempDir, seconds: &str, second: &str) -> Child {
    let line = format!("sh -c 'sleep {seconds} & {second} sleep {seconds} & sleep {seconds}'");
    let child = Command::new(binary::parallax())
        .args(["compare", "--run", &line, "--run", &line, "--cleanup", "touch clean"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(File::create(folder.path().join("out")).unwrap())
        .stderr(File::create(folder.path().join("err")).unwrap())
        .spawn()
        .unwrap();
    assert!(wait::until(Nanos::from_secs(20), || alive(seconds).len() == 3), "the run does not begin");
    child
}

/// If this fails, an experiment that was ended goes on in the background.
#[test]
fn an_ended_comparison_leaves_no_process() {
    let _turn = turn::together();
    for (signal, code, seconds) in [(Signal::INT, 130, "71001"), (Signal::TERM, 143, "71002")] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = start(&folder, seconds, "setsid");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        let errors = fs::read_to_string(folder.path().join("err")).unwrap();
        assert_eq!(status.code(), Some(code), "{errors}");
        assert!(errors.contains("interrupted before the first block was complete"), "{errors}");
        assert_eq!(alive(seconds), [0; 0]);
        assert!(folder.path().join("clean").exists());
    }
    // Killed: its guard ends the group of the run. A process that left the group would go on, which LIMITS says.
    let folder = tempfile::tempdir().unwrap();
    let mut child = start(&folder, "71003", "nice");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(wait::until(Nanos::from_secs(10), || alive("71003").is_empty()), "{:?}", alive("71003"));
}
