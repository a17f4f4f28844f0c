//! A full disk, or a kernel that refuses information, does not end a watch: the totals are printed, and what is missing
//! is reported, in one line and in the record as far as that can still be written.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use record::document::State;
use record::observation::{ObservationBody, read_observation};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tempfile::TempDir;
use units::Nanos;

use crate::support::client::Client;
use crate::support::planted::{Plan, Planted};
use crate::support::watched::Watching;
use crate::support::{binary, quiet, wait};

/// A watch whose record is on a small separate disk, in a mount namespace that ends with it.
struct Cramped {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    /// The disk. Held open, it outlives its namespace.
    disk: File,
    _place: TempDir,
}

/// Room for the begin of a record, but not for its logs: each takes a page of the sixteen.
const SMALL: &str = "size=64k";

/// Room for all of a short record.
const ROOMY: &str = "size=4m";

const ON_A_DISK: &str = r#"mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@""#;

impl Cramped {
    fn watch(server: &Planted, size: &str) -> Cramped {
        let place = TempDir::new().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ON_A_DISK, "sh", size]).arg(place.path());
        command.arg(binary::parallax()).args(["watch", "--interval", "100ms", "-o"]);
        command.arg(place.path().join("record")).args(["-p", &server.pid().to_string()]);
        command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut message = String::new();
        stderr.read_line(&mut message).unwrap();
        assert!(message.contains("watching"), "{message}");
        let root = PathBuf::from(format!("/proc/{}/root", child.id()));
        let disk = File::open(root.join(place.path().strip_prefix("/").unwrap())).unwrap();
        Cramped { child, stderr, disk, _place: place }
    }

    /// A path on the disk, as this process reaches it.
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.disk.as_raw_fd()))
    }

    fn fill(&self) {
        let mut ballast = OpenOptions::new().write(true).create_new(true).open(self.path("ballast")).unwrap();
        let page = [0; 4096];
        while ballast.write_all(&page).is_ok() {}
    }

    /// Waits until the watch ends with its server.
    fn ended(&mut self) -> Output {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.stderr.read_to_end(&mut stderr).unwrap();
        Output { status: self.child.wait().unwrap(), stdout, stderr }
    }
}

impl Drop for Cramped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The totals are printed, and the damage is one line.
#[track_caller]
fn check_told(output: &Output, requests: &str) {
    let (reported, message) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(reported.contains(requests), "no totals: {reported}\n{message}");
    assert!(reported.contains("where the time at the server went"), "{reported}");
    let damage: Vec<&str> =
        message.lines().filter(|line| line.contains("the record is incomplete")).collect();
    assert_eq!(damage.len(), 1, "{message}");
    assert!(damage[0].contains("No space left on device"), "{message}");
    assert_eq!(output.status.code(), Some(1), "{message}");
}

/// If this fails, a full disk costs hours of observation.
#[test]
fn a_disk_that_is_full_ends_no_watch() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let mut watch = Cramped::watch(&server, SMALL);
    let mut client = server.new_client();
    (0..100).for_each(|_| drop(client.http("/sleep=10ms")));
    drop(server);
    let output = watch.ended();
    check_told(&output, "100 requests in");
    let reported = String::from_utf8_lossy(&output.stdout);
    let lines = reported.lines().filter(|line| line.contains("throughput ")).count();
    assert!(lines >= 5, "an interval each 100 ms: {reported}");
}

/// If this fails, the record of a disk that was full for a while has no totals, or does not mention its gap.
#[test]
fn a_disk_that_has_room_again_takes_the_record() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let mut watch = Cramped::watch(&server, ROOMY);
    watch.fill();
    let mut client = server.new_client();
    (0..100).for_each(|_| drop(client.http("/sleep=10ms")));
    fs::remove_file(watch.path("ballast")).unwrap();
    (0..100).for_each(|_| drop(client.http("/sleep=10ms")));
    drop(server);
    check_told(&watch.ended(), "200 requests in");
    let observed = read_observation(&watch.path("record")).unwrap();
    assert_eq!(observed.document.state, State::Finished);
    let ObservationBody::Watch(results) = &observed.document.body else { panic!("another kind") };
    assert_eq!(results.requests, 200);
    let in_folder = observed.logs["response"].count();
    assert!(in_folder > 0 && in_folder < 200, "{in_folder} of 200 in the intervals that are there");
    let damage: Vec<_> = observed.events.iter().filter(|event| event.kind == "record_damage").collect();
    assert_eq!(damage.len(), 1, "{:?}", observed.events);
    assert!(damage[0].text.contains("No space left on device"), "{:?}", damage[0]);
}

/// Sends twenty requests, and waits until they are in the record.
fn send_twenty(client: &mut Client, watching: &Watching) {
    (0..20).for_each(|_| drop(client.http("/burn=100us")));
    let are_kept = || {
        let observed = read_observation(watching.folder());
        observed.is_ok_and(|observed| observed.logs.get("response").is_some_and(|log| log.count() == 20))
    };
    assert!(wait::until(Nanos::from_secs(10), are_kept), "the record does not grow");
}

/// /proc cannot be read without a descriptor: for a while the watch has none left.
#[test]
fn a_look_for_new_ports_that_fails_ends_no_watch() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let watching = Watching::start(&["--interval", "100ms", "-p", &server.pid().to_string()]);
    let mut client = server.new_client();
    send_twenty(&mut client, &watching);
    let pid = Pid::from_raw(i32::try_from(watching.pid()).unwrap());
    let none = Rlimit { current: Some(0), maximum: Some(1_024) };
    let before = prlimit(pid, Resource::Nofile, none).unwrap();
    // It checks once per second. No requests in the meantime: the record might have to open a log for them.
    wait::pause(Nanos::from_secs(3));
    prlimit(pid, Resource::Nofile, Rlimit { current: before.current.min(Some(1_024)), ..none }).unwrap();
    (0..20).for_each(|_| drop(client.http("/burn=100us")));
    let watched = watching.finish();
    assert_eq!(watched.served.len(), 40, "{}", watched.losses());
    let missing = &watched.document.missing;
    assert!(missing.iter().any(|fact| fact.what == "new ports and processes"), "{missing:?}");
}

/// If this fails, a watch that was killed reports no request, although its record has them.
#[test]
fn a_killed_watch_reports_the_sums_of_its_series() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let watching = Watching::start(&["--interval", "100ms", "-p", &server.pid().to_string()]);
    send_twenty(&mut server.new_client(), &watching);
    let folder = watching.kill();
    let output = Command::new(binary::parallax()).arg("report").arg(folder.path()).output().unwrap();
    let reported = String::from_utf8(output.stdout).unwrap();
    assert!(reported.contains("20 requests in ") && reported.contains(" on 1 connection"), "{reported}");
    assert!(reported.contains("where the time at the server went"), "{reported}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("these are the sums of its series"), "{message}");
}
