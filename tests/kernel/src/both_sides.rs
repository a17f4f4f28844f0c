//! `drive --watch`, `drive --profile` and `watch --profile`: both sides of a run in one step, and their records read
//! back.

use std::path::Path;
use std::process::{Command, Output};

use record::document::State;
use record::observation::{Observation, ObservationBody, ProfileResults, read_observation};
use units::Nanos;

use crate::support::planted::Plan;
use crate::support::watched::Watching;
use crate::support::{binary, quiet, wait};

fn parallax(arguments: &[&str]) -> Output {
    Command::new(binary::parallax()).args(arguments).env("NO_COLOR", "1").output().unwrap()
}

#[track_caller]
fn message(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_run_is_watched_and_explained_in_one_step() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let (record, pid) = (record.to_str().unwrap(), server.pid().to_string());
    let url = format!("http://{}/sleep=2ms", server.address());
    let output = parallax(&[
        "drive",
        "-r",
        "100/s",
        "-c",
        "4",
        "-d",
        "2s",
        "-o",
        record,
        "--watch",
        &pid,
        "--profile",
        &pid,
        &url,
    ]);
    let reported = message(&output);
    // With few requests a run is not valid, but can still be explained.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{reported}");
    assert!(reported.contains("200 by their connection"), "{reported}");
    assert!(Path::new(record).join("profile/run.json").exists(), "{reported}");
    for part in ["", "server", "profile"] {
        let folder = Path::new(record).join(part);
        let again = parallax(&["report", folder.to_str().unwrap()]);
        assert!(
            matches!(again.status.code(), Some(0 | 3)) && !again.stdout.is_empty(),
            "{part}: {}",
            message(&again)
        );
    }
}

#[test]
fn a_server_that_is_not_there_begins_no_run() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let output = parallax(&[
        "drive",
        "-d",
        "1s",
        "-o",
        record.to_str().unwrap(),
        "--watch",
        "4194305",
        "http://127.0.0.1:9/",
    ]);
    let reported = message(&output);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(reported.contains("there is no process 4194305"), "{reported}");
    assert!(!record.join("run.json").exists(), "{reported}");
}

/// What a profile that runs with a watch reports about the planted server.
fn profiled(record: &Path) -> (Observation, ProfileResults) {
    let profile = record.join("profile");
    let document = read_observation(&profile).unwrap().document;
    assert!(profile.join("on-cpu.svg").exists() && profile.join("off-cpu.collapsed").exists());
    let ObservationBody::Profile(results) = document.body.clone() else { panic!("another kind") };
    (document, *results)
}

/// If this fails, a profile ends after its default of ten seconds, or misses the watch's begin.
#[test]
fn a_profile_with_a_watch_lasts_as_long_as_the_watch() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let watching = Watching::start(&["--profile", "-p", &server.pid().to_string()]);
    let mut client = server.new_client();
    // Twelve seconds, of which the server burns a half.
    (0..60).for_each(|_| drop(client.http("/burn=100ms,sleep=100ms")));
    let (watched, folder) = watching.finish_and_keep();
    assert_eq!(watched.served.len(), 60, "{}", watched.losses());
    let (document, results) = profiled(folder.path());
    assert_eq!(document.state, State::Finished);
    assert_eq!(document.options["duration"].value, "until the controlling parallax ends it");
    let begin = |of: &Observation| of.time.started_monotonic_ns;
    let end = |of: &Observation| begin(of) + of.time.elapsed_ns.unwrap();
    let (profile, watch) = (&document, &watched.document);
    assert!(
        begin(profile) <= begin(watch) && end(profile) >= end(watch),
        "{:?} {:?}",
        profile.time,
        watch.time
    );
    assert!(results.processes.iter().any(|process| process.pid == server.pid()), "{:?}", results.processes);
    // Burning alone is six seconds on a CPU, according to the scheduler, without what the host takes from it.
    assert!(results.on_cpu_ns >= 5_900_000_000, "{results:?}");
}

/// If this fails, an observer keeps running after the run that it was for.
#[test]
fn a_profile_ends_with_a_watch_that_is_killed() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let watching = Watching::start(&["--profile", "-p", &server.pid().to_string()]);
    let folder = watching.kill();
    let is_finished = || {
        let profile = read_observation(&folder.path().join("profile"));
        profile.is_ok_and(|profile| profile.document.state == State::Finished)
    };
    assert!(wait::until(Nanos::from_secs(30), is_finished), "the profile goes on");
}

#[test]
fn a_server_that_cannot_be_profiled_begins_no_watch() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let output = parallax(&["watch", "--profile", "-p", "4194305", "-o", record.to_str().unwrap()]);
    let reported = message(&output);
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert_eq!(reported.trim_end().lines().count(), 1, "{reported}");
    assert!(reported.contains("there is no process 4194305") && !record.exists(), "{reported}");
}
