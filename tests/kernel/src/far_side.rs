//! `drive --watch ssh:HOST:PID`: the server's side of a run on another host, over a real sshd. That host has another
//! boot, another monotonic clock and another network; it shares the kernel with this one, so the offset of its clock is
//! known.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use record::TwoClocks;
use record::document::State;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use units::Nanos;

use crate::support::far::{AHEAD_S, FarHost, Login};
use crate::support::planted::{Plan, Planted};
use crate::support::{binary, quiet, wait};

const PATIENCE: Nanos = Nanos::from_secs(30);

/// A run against a server on a far host.
struct Run {
    child: Child,
    record: PathBuf,
    _folder: TempDir,
}

struct Ended {
    output: Output,
    message: String,
    record: PathBuf,
    _folder: TempDir,
}

impl Run {
    /// 100 requests per second over four connections.
    fn start(far: &FarHost, login: Login, pid: u32, address: &str, arguments: &[&str]) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("run");
        let mut command = Command::new(binary::parallax());
        command.args(["drive", "-r", "100/s", "-c", "4", "-o"]).arg(&record).args(arguments);
        command.args([
            "--watch",
            &format!("ssh:{}:{pid}", login.alias()),
            &format!("http://{address}/sleep=2ms"),
        ]);
        command.env("PATH", far.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Run { child: command.spawn().unwrap(), record, _folder: folder }
    }

    fn of(far: &FarHost, server: &Planted, arguments: &[&str]) -> Run {
        Run::start(far, Login::Root, server.pid(), server.address(), arguments)
    }

    /// Waits until requests are being sent.
    fn wait_for_begin(&mut self) {
        let run = self.record.join("series.ndjson");
        let begun = || fs::metadata(&run).is_ok_and(|file| file.len() > 0);
        let begun = wait::until(PATIENCE, || begun() || self.child.try_wait().unwrap().is_some());
        assert!(begun, "the run does not begin");
    }

    fn end(self) -> Ended {
        let output = self.child.wait_with_output().unwrap();
        let message = [&output.stdout[..], &output.stderr[..]].concat();
        let message = String::from_utf8_lossy(&message).into_owned();
        Ended { output, message, record: self.record, _folder: self._folder }
    }
}

impl Ended {
    fn server(&self) -> PathBuf {
        self.record.join("server")
    }

    fn explained(&self) -> Value {
        let mut command = Command::new(binary::parallax());
        command.arg("explain").args([&self.record, &self.server()]).arg("--json");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Each reading bounds the difference of the two clocks, which is known.
#[track_caller]
fn check_clocks(server: &Path) -> usize {
    let clocks = TwoClocks::read(server).unwrap().expect("the clocks were compared");
    let truth = AHEAD_S as i64 * 1_000_000_000;
    for reading in &clocks.readings {
        assert!((reading.least_ns..=reading.most_ns).contains(&truth), "{reading:?}");
    }
    assert!(!clocks.contradicts_itself());
    clocks.readings.len()
}

/// If this fails, records of two hosts are joined by chance, and a slow server is mistaken for a slow network.
#[test]
fn a_run_is_watched_on_a_host_with_another_clock() {
    let _alone = quiet::alone();
    let far = FarHost::start();
    let server = Plan::of("threads").start_on(&far);
    // Longer than the interval after which an observer without remote control prints a line.
    let ended = Run::of(&far, &server, &["-d", "5s"]).end();
    // With few requests a run is not valid, but can still be explained.
    assert!(matches!(ended.output.status.code(), Some(0 | 3)), "{}", ended.message);
    assert!(ended.message.contains("500 by their connection"), "{}", ended.message);
    assert!(
        ended.message.contains("was made on another host, whose clock is known within"),
        "{}",
        ended.message
    );
    // Before, after, and every second between.
    assert!(check_clocks(&ended.server()) >= 6);
    let explained = ended.explained();
    assert_eq!(
        (&explained["join"]["by_ends"], &explained["join"]["others_at_servers"]),
        (&500.into(), &0.into())
    );
    let accounts = server.accounts();
    let served: u64 = accounts.iter().map(|account| account.written_ns - account.read_ns).sum();
    let all = &explained["groups"][0]["segments_ns"];
    let at_server: u64 = ["on_cpu", "timer", "other_blocked", "run_queue", "own_run_queue", "stolen"]
        .iter()
        .filter_map(|segment| all[*segment].as_u64())
        .sum();
    // As for any part of a request: 2 %.
    assert!(at_server.abs_diff(served) < served / 50, "{at_server} ns, by its account {served} ns: {all}");
    assert_eq!(far.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn ctrl_c_ends_the_run_and_keeps_both_records() {
    let _together = quiet::together();
    let far = FarHost::start();
    let server = Plan::of("threads").start_on(&far);
    let mut run = Run::of(&far, &server, &["-d", "60s"]);
    run.wait_for_begin();
    kill_process(Pid::from_child(&run.child), Signal::INT).unwrap();
    let ended = run.end();
    assert_eq!(ended.output.status.code(), Some(130), "{}", ended.message);
    check_clocks(&ended.server());
    let join = &ended.explained()["join"];
    assert_eq!(join["connection_not_seen"], 0, "{join}");
    assert_eq!(join["request_not_seen"], 0, "{join}");
    assert_eq!(far.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_server_that_ends_meanwhile_leaves_what_was_seen() {
    let _together = quiet::together();
    let far = FarHost::start();
    let server = Plan::of("threads").start_on(&far);
    let mut run = Run::of(&far, &server, &["-d", "4s"]);
    run.wait_for_begin();
    drop(server);
    let ended = run.end();
    let observed = record::read_observation(&ended.server())
        .unwrap_or_else(|error| panic!("{error}: {}", ended.message));
    assert_eq!(observed.document.state, State::Finished, "{}", ended.message);
    assert!(observed.events.iter().any(|event| event.kind == "server_ended"), "{:?}", observed.events);
    check_clocks(&ended.server());
    assert_eq!(far.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_host_that_is_cut_off_costs_its_record_and_not_the_run_s() {
    let _together = quiet::together();
    let far = FarHost::start();
    // On this host, so that the run continues.
    let server = Plan::of("threads").start();
    let mut run = Run::of(&far, &server, &["-d", "3s"]);
    run.wait_for_begin();
    far.cut_off();
    let ended = run.end();
    assert!(matches!(ended.output.status.code(), Some(0 | 3)), "{}", ended.message);
    assert!(ended.message.contains("--watch: the connection was lost; "), "{}", ended.message);
    assert!(ended.message.contains("on the other host, at far-root:/tmp/parallax-"), "{}", ended.message);
    assert!(record::read(&ended.record).is_ok());
    assert_eq!(far.leftovers().len(), 1, "it lies there");
}

#[test]
fn what_cannot_be_watched_on_the_other_host_is_reported_in_one_line() {
    let _together = quiet::together();
    let far = FarHost::start();
    let server = Plan::of("threads").start_on(&far);
    for (login, pid, reported) in [
        (Login::Root, 4_194_305, "on far-root: there is no process 4194305"),
        (Login::Bare, server.pid(), "far-bare has no `parallax` in the PATH of ssh"),
        (Login::Nobody, server.pid(), "on far-nobody: not allowed to look at process"),
        (Login::Stranger, server.pid(), "Permission denied (publickey)"),
        (Login::Nowhere, server.pid(), "Connection refused; `ssh far-nowhere true` must work"),
    ] {
        let ended = Run::start(&far, login, pid, server.address(), &["-d", "1s"]).end();
        assert_eq!(ended.output.status.code(), Some(1), "{login:?}: {}", ended.message);
        assert_eq!(ended.message.trim_end().lines().count(), 1, "{login:?}: {}", ended.message);
        assert!(
            ended.message.starts_with("parallax: ") && ended.message.contains(reported),
            "{login:?}: {}",
            ended.message
        );
        assert!(!ended.record.exists(), "{login:?}: {:?} is left", fs::read_dir(&ended.record));
        assert_eq!(far.leftovers(), Vec::<PathBuf>::new(), "{login:?}");
    }
}
