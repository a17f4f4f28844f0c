//! Ctrl-C and similar signals: the first ends the run and keeps everything, the second ends the program.

use std::fs;
use std::io::{PipeWriter, Write, pipe};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

use crate::support::nginx::Nginx;
use crate::support::run::start;
use crate::support::{binary, turn, wait};

/// If this fails, Ctrl-C loses what was measured.
#[track_caller]
fn check_interrupted(signal: Signal, load: &[&str]) {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let url = nginx.url("/");
    let mut arguments = vec!["-d", "30s", "-c", "4", "-w", "2", &url];
    arguments.extend(load);
    let running = start(&arguments);
    running.wait_for_record();
    wait::pause(Nanos::from_secs(1));
    running.signal(signal);
    let run = running.finish();
    // As in shells.
    assert_eq!(run.code, Some(128 + signal.as_raw()), "{}", run.stderr);
    assert_eq!(run.json["state"], "interrupted");
    let events = fs::read_to_string(run.record().join("events.ndjson")).unwrap();
    assert!(events.contains(r#""kind":"interrupted""#), "{events}");
    assert!(run.ended("ok") > 0);
    assert!(run.stdout.contains("response"), "no report: {}", run.stdout);
    // The responses of nginx: everything that is ok, plus at most what was in flight at the signal.
    let answered = nginx.finish().len() as u64;
    let under_way = run.ended("in_flight");
    assert!(
        (run.ended("ok")..=run.ended("ok") + under_way).contains(&answered),
        "{answered}: {:?}",
        run.reported()
    );
}

#[test]
fn ctrl_c_in_a_closed_loop_keeps_the_run() {
    check_interrupted(Signal::INT, &[]);
}

#[test]
fn ctrl_c_in_an_open_loop_keeps_the_run() {
    check_interrupted(Signal::INT, &["-r", "500/s"]);
}

#[test]
fn sigterm_keeps_the_run() {
    check_interrupted(Signal::TERM, &["-r", "500/s"]);
}

/// A drain may be long; a user who presses Ctrl-C does not want to wait for it.
#[test]
fn ctrl_c_ends_a_drain() {
    let _turn = turn::together();
    // Its kernel accepts connections, but nothing ever responds.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let running = start(&["-d", "200ms", "-c", "3", "--drain", "80s", "--timeout", "off", &url]);
    running.wait_for_record();
    wait::pause(Nanos::from_millis(700));
    let begin = clock::now();
    running.signal(Signal::INT);
    let run = running.finish();
    assert!(clock::now() - begin < Nanos::from_secs(20));
    assert_eq!(run.code, Some(130));
    assert_eq!(run.reported(), ["in_flight undecided 3"]);
}

/// The first Ctrl-C cannot end a report that nothing reads; the second one does.
#[test]
fn the_second_ctrl_c_ends_the_program() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let folder = tempfile::tempdir().unwrap();
    let (_reader, writer) = pipe().unwrap();
    let writer = full(writer);
    let mut child = Command::new(binary::parallax())
        .args(["drive", "--quiet", "-d", "30s", "-r", "50/s", "-o", "record", &nginx.url("/")])
        .current_dir(folder.path())
        .stdout(Stdio::from(writer))
        .spawn()
        .unwrap();
    let document = folder.path().join("record/run.json");
    let says = |words: &str| fs::read_to_string(&document).is_ok_and(|text| text.contains(words));
    assert!(wait::until(Nanos::from_secs(20), || says("\"running\"")));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(wait::until(Nanos::from_secs(20), || says("\"interrupted\"")), "the record is not closed");
    assert_eq!(child.try_wait().unwrap(), None, "it has printed into a full pipe");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = wait::until(Nanos::from_secs(20), || child.try_wait().unwrap().is_some());
    if !ended {
        child.kill().unwrap();
    }
    assert!(ended, "the second Ctrl-C does nothing");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(record::read(&folder.path().join("record")).is_ok());
}

/// A pipe without room for another byte.
fn full(mut pipe: PipeWriter) -> PipeWriter {
    fcntl_setfl(&pipe, OFlags::NONBLOCK).unwrap();
    while pipe.write(&[b'x'; 4_096]).is_ok() {}
    while pipe.write(b"x").is_ok() {}
    fcntl_setfl(&pipe, OFlags::empty()).unwrap();
    pipe
}
