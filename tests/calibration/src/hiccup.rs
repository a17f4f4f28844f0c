//! `parallax hiccup` compared with stalls that are made for it: a stop of a known length, a hog with a higher priority,
//! and a CPU quota that is used up. The length must be right, and the cause must be named.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use record::observation::hiccup::{CausesNs, HiccupLine, HiccupResults, Stall};
use record::observation::{ObservationBody, Observed, read_observation};
use rustix::process::{Pid, Signal, kill_process};
use units::Nanos;

use crate::{binary, quiet};

/// If this fails, a stopped process looks like one without hiccups, or its stall has no cause.
///
/// A stop of *F* ms makes *F* late ticks at 1 ms: counted one by one, so this is a lower bound that no noise can break.
#[test]
fn a_stop_has_its_length_its_ticks_and_its_cause() {
    let _alone = quiet::alone();
    let stop = Nanos::from_millis(300);
    let metering = Metering::start(&["-d", "2s"]);
    metering.pause_for(stop);
    let seen = metering.finish();
    let longest = seen.longest();
    assert!(longest.length_ns >= stop.0, "{longest:?}");
    // Everything belongs to the stop, except what comes between the stop and its end on a busy host.
    assert!(longest.causes_ns.stopped * 10 >= longest.length_ns * 9, "{longest:?}");
    let meters = seen.results.meters.len() as u64;
    let late = seen.observed.logs["hiccup"].count_over(Nanos::from_millis(1));
    assert!(late >= meters * 290, "{late} late ticks of {meters} meters");
    for meter in &seen.results.meters {
        assert!(meter.saw.over_100ms >= 1 && meter.saw.max_ns >= Some(stop.0), "{meter:?}");
    }
}

/// If this fails, a host that is too busy cannot be distinguished from one that does not run.
#[test]
fn a_hog_of_higher_priority_shows_as_run_queue_latency() {
    let _alone = quiet::alone();
    let hog = Nanos::from_millis(300);
    let metering = Metering::start(&["--cpus", "0", "-d", "2s"]);
    let mut line = Command::new("taskset");
    let spin = "while :; do :; done";
    let mut child =
        line.args(["-c", "0", "chrt", "-f", "50", "sh", "-c", spin]).spawn().unwrap_or_else(|error| {
            panic!("this test needs taskset and chrt (util-linux), and a privilege to use them: {error}")
        });
    clock::sleep_until(clock::now() + hog);
    assert!(
        child.try_wait().unwrap().is_none(),
        "the hog could not be made a real-time one: this test needs root"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let seen = metering.finish();
    let longest = seen.longest();
    assert!(longest.length_ns >= hog.0 / 2, "{longest:?}");
    let queued = longest.causes_ns.run_queue.expect("this kernel keeps run-queue accounts");
    assert!(queued * 10 >= longest.length_ns * 9, "{longest:?}");
}

/// If this fails, a quota is blamed on neighbours, who cannot do anything about it.
///
/// A group that may run for 20 ms of each 100 ms, on a CPU that it keeps busy, is stopped for four fifths of the
/// time.
#[test]
fn a_quota_that_is_used_up_is_throttling() {
    let _alone = quiet::alone();
    let group = Group::make();
    let metering = Metering::start_in(&["--cpus", "0", "-d", "2s"], Some(&group));
    let mut hog = group.command("exec taskset -c 0 sh -c 'while :; do :; done'").spawn().unwrap();
    let seen = metering.finish();
    hog.kill().unwrap();
    hog.wait().unwrap();
    let causes = seen.results.all.causes_ns;
    let throttled = causes.throttled.expect("a group with a quota has an account of it");
    assert!(throttled > 500_000_000, "{causes:?}");
    assert!(throttled * 10 >= total(&causes) * 8, "{causes:?}");
    let longest = seen.longest();
    assert!(longest.causes_ns.throttled > longest.causes_ns.run_queue, "{longest:?}");
}

/// If this fails, the parts of a stall do not sum to it.
#[test]
fn the_parts_of_every_stall_sum_to_it() {
    let _together = quiet::together();
    let metering = Metering::start(&["--threshold", "1us", "-d", "1s", "--interval", "200ms"]);
    let seen = metering.finish();
    assert!(!seen.stalls.is_empty());
    for stall in &seen.stalls {
        assert_eq!(total(&stall.causes_ns), stall.length_ns, "{stall:?}");
    }
    let lines: u64 = seen.lines.iter().map(|line| line.saw.ticks).sum();
    assert_eq!(lines, seen.results.all.ticks);
    let each: u64 = seen.results.meters.iter().map(|meter| meter.saw.ticks).sum();
    assert_eq!(each, seen.results.all.ticks);
}

#[test]
fn a_command_is_measured_and_its_exit_code_is_passed_on() {
    let _together = quiet::together();
    let line = ["--baseline", "500ms", "--", "sh", "-c", "kill -0 $$ && exit 7"];
    let (seen, status) = Metering::start(&line).finish_with();
    assert_eq!(status.code(), Some(7));
    let beside = seen.results.beside.unwrap();
    assert_eq!(beside.exit_code, Some(7));
    assert!(beside.idle.ticks > 0 && beside.until_ns > Some(beside.from_ns));
    assert!(beside.from_ns >= 500_000_000);
}

#[test]
fn ctrl_c_keeps_what_was_seen() {
    let _together = quiet::together();
    let metering = Metering::start(&["-d", "1h"]);
    clock::sleep_until(clock::now() + Nanos::from_millis(300));
    kill_process(metering.pid(), Signal::INT).unwrap();
    let (seen, status) = metering.finish_with();
    assert_eq!(status.code(), Some(130));
    assert!(seen.results.all.ticks > 0);
}

#[test]
fn what_cannot_be_measured_is_refused_in_one_line() {
    let _together = quiet::together();
    for (line, why) in [
        (&["--cpus", "1000"][..], "this process may not run on CPU 1000"),
        (&["--resolution", "1us"], "--resolution must be from 50us to 1s"),
        (&["--", "no-such-program-here"], "cannot run `no-such-program-here`"),
        (&["--priority", "high"], "write normal, nice:N"),
        (&["-d", "0s"], "-d must be at least 1ms, the time to the first tick"),
    ] {
        let out = Command::new(binary::path()).arg("hiccup").args(line).output().unwrap();
        let text = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{text}");
        assert!(text.contains(why) && text.lines().count() == 1, "{text}");
    }
}

fn total(causes: &CausesNs) -> u64 {
    causes.named().iter().map(|(_, ns)| ns).sum()
}

/// The contents of a record.
pub struct Seen {
    pub observed: Observed,
    pub results: HiccupResults,
    lines: Vec<HiccupLine>,
    pub stalls: Vec<Stall>,
}

impl Seen {
    fn longest(&self) -> &Stall {
        let longest = self.stalls.iter().max_by_key(|stall| stall.length_ns);
        longest.unwrap_or_else(|| panic!("no stall was reported: {:?}", self.results))
    }
}

/// A running `parallax hiccup`.
pub struct Metering {
    child: Child,
    folder: tempfile::TempDir,
    _out: BufReader<ChildStdout>,
}

impl Drop for Metering {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Metering {
    pub fn start(line: &[&str]) -> Metering {
        Metering::start_in(line, None)
    }

    /// Returns once the meters run.
    fn start_in(line: &[&str], group: Option<&Group>) -> Metering {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record");
        let mut command = match group {
            Some(group) => {
                let mut command = group.command("exec \"$@\"");
                command.arg("sh").arg(binary::path());
                command
            }
            None => Command::new(binary::path()),
        };
        command.arg("hiccup").arg("-o").arg(record).args(line);
        // With a command, its lines are printed with the command's output.
        let piped = if line.contains(&"--") { Stdio::null() } else { Stdio::piped() };
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(piped).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        if !line.contains(&"--") {
            out.read_line(&mut first).unwrap();
            assert!(first.contains("one tick per"), "{first}");
        }
        Metering { child, folder, _out: out }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed()).unwrap()
    }

    /// Stops the meter for at least this long.
    fn pause_for(&self, length: Nanos) {
        clock::sleep_until(clock::now() + Nanos::from_millis(500));
        kill_process(self.pid(), Signal::STOP).unwrap();
        clock::sleep_until(clock::now() + length + Nanos::from_millis(5));
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    /// Ends one without a duration.
    pub fn stop(self) -> Seen {
        kill_process(self.pid(), Signal::INT).unwrap();
        self.finish()
    }

    pub fn finish(self) -> Seen {
        let (seen, status) = self.finish_with();
        assert!(status.success(), "{status}");
        seen
    }

    fn finish_with(mut self) -> (Seen, ExitStatus) {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self._out, &mut rest).unwrap();
        println!("{rest}");
        let status = self.child.wait().unwrap();
        let observed = read_observation(&self.folder.path().join("record")).unwrap();
        let ObservationBody::Hiccup(results) = observed.document.body.clone() else {
            panic!("another kind of record")
        };
        let lines = observed.lines.iter().map(|line| line.fields::<HiccupLine>().unwrap());
        let lines: Vec<HiccupLine> = lines.collect();
        let stalls = lines.iter().flat_map(|line| line.stalls.clone()).collect();
        (Seen { observed, results: *results, lines, stalls }, status)
    }
}

/// A control group with a quota of 20 ms in each 100 ms.
struct Group(PathBuf);

impl Group {
    fn make() -> Group {
        let name = format!("parallax-test-quota-{}", std::process::id());
        let one = PathBuf::from("/sys/fs/cgroup/cpu").join(&name);
        let two = PathBuf::from("/sys/fs/cgroup").join(&name);
        let group = if fs::create_dir(&one).is_ok() { one } else { two };
        let _ = fs::create_dir(&group);
        let set = fs::write(group.join("cpu.cfs_period_us"), "100000")
            .and_then(|()| fs::write(group.join("cpu.cfs_quota_us"), "20000"))
            .or_else(|_| fs::write(group.join("cpu.max"), "20000 100000"));
        let group = Group(group);
        set.unwrap_or_else(|error| {
            panic!("this test needs a control group with a CPU quota (root may): {error}")
        });
        group
    }

    /// A shell in the group that runs `script`.
    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        let join = format!("echo $$ > '{}'; {script}", self.0.join("cgroup.procs").display());
        command.arg("-c").arg(join);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            clock::sleep_until(clock::now() + Nanos::from_millis(10));
        }
    }
}
