//! `parallax disturb` compared with what it does to real processes: that it does it, records when, and leaves nothing
//! behind, however it ends. The worst end is SIGKILL at a random moment, to the process alone or to its whole process
//! group.

mod early;
mod late;
mod left;
mod real;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use record::observation::disturb::{BEGUN, Episode};
use record::observation::{ObservationBody, read_observation};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use units::Nanos;

use crate::{binary, quiet};

/// The requirement: fifty of fifty.
const TRIALS: u64 = 50;

/// Nothing may take longer than this, even on a busy host.
const PATIENCE: Nanos = Nanos::from_secs(20);

/// If this fails, a killed `disturb` leaves a server stopped.
#[test]
fn killed_at_any_moment_it_leaves_nothing_stopped() {
    let _together = quiet::together();
    let mut caught = 0;
    for trial in 0..TRIALS {
        let victim = Victim::start();
        let pid = victim.pid().to_string();
        let run = Running::start(&["pause", "-p", &pid, "--for", "15ms", "--every", "20ms"]);
        run.wait_for_a_random_moment(trial);
        caught += u64::from(victim.is_stopped());
        run.kill(trial);
        wait_until("the victim runs", || !victim.is_stopped());
    }
    // Three quarters of the moments are within a pause: if none were, this would test nothing.
    println!("{caught} of {TRIALS} were killed while the victim was stopped");
    assert!(caught > TRIALS / 4, "{caught} of {TRIALS}");
}

/// If this fails, a killed `disturb` leaves a server frozen, or in an unknown control group.
#[test]
fn killed_at_any_moment_it_leaves_nothing_frozen_and_no_group() {
    let _together = quiet::together();
    let kinds: Vec<&str> = [("cgroup-v1", "cgroup"), ("cgroup-v2", "cgroup2")]
        .into_iter()
        .filter(|(_, kind)| has_freezer(kind))
        .map(|(by, _)| by)
        .collect();
    assert!(
        !kinds.is_empty(),
        "this host has no control groups with a freezer that this test may use (root may)"
    );
    let mut caught = 0;
    for trial in 0..TRIALS {
        let by = kinds[trial as usize % kinds.len()];
        let victim = Victim::start();
        let (pid, before) = (victim.pid().to_string(), victim.groups());
        let line = ["pause", "-p", &pid, "--by", by, "--for", "15ms", "--every", "20ms"];
        let run = Running::start(&line);
        run.wait_for_a_random_moment(trial);
        let groups = own_groups(run.pid());
        caught += u64::from(groups.iter().any(|group| is_frozen(group)));
        run.kill(trial);
        assert_eq!(victim.groups(), before, "trial {trial}, {by}");
        assert!(own_groups(run.pid()).is_empty(), "trial {trial}, {by}: {groups:?}");
        // It reacts again: a signal that can be caught ends it.
        victim.end_by_term();
    }
    println!("{caught} of {TRIALS} were killed while the victim was frozen");
    assert!(caught > TRIALS / 4, "{caught} of {TRIALS}");
}

/// If this fails, a killed `disturb` leaves a whole service frozen. A host may have both kinds of groups, and a
/// service may be in one of each.
#[test]
fn killed_at_any_moment_it_leaves_no_whole_group_frozen() {
    let _together = quiet::together();
    let kinds: Vec<&str> = ["cgroup", "cgroup2"].into_iter().filter(|kind| has_freezer(kind)).collect();
    assert!(
        !kinds.is_empty(),
        "this host has no control groups with a freezer that this test may use (root may)"
    );
    let mut caught = 0;
    for trial in 0..TRIALS {
        let kind = kinds[trial as usize % kinds.len()];
        let group = Group::new(kind);
        let (victim, beside) = (Victim::start(), Victim::start());
        group.add(victim.pid());
        group.add(beside.pid());
        let pid = victim.pid().to_string();
        let line = ["pause", "-p", &pid, "--by", "whole-group", "--for", "15ms", "--every", "20ms"];
        let run = Running::start(&line);
        run.wait_for_a_random_moment(trial);
        caught += u64::from(is_frozen(&group.0));
        run.kill(trial);
        assert!(!is_frozen(&group.0), "trial {trial}, {kind}");
        victim.end_by_term();
        beside.end_by_term();
    }
    println!("{caught} of {TRIALS} were killed while the group was frozen");
    assert!(caught > TRIALS / 4, "{caught} of {TRIALS}");
}

/// If this fails, hogs, memory and files outlive the process that made them.
#[test]
fn killed_at_any_moment_it_leaves_no_process_file_or_socket() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().to_str().unwrap();
    let schedule = ["--for", "15ms", "--every", "20ms"];
    let means: [&[&str]; 4] = [
        &["cpu", "--hogs", "2", "--duty", "50%"],
        &["memory", "--size", "4MiB", "--touch", "64MiB/s"],
        &["disk", shown, "--file", "128KiB"],
        &["net", "0", "1", "--delay", "5ms"],
    ];
    for trial in 0..TRIALS {
        let line = [means[trial as usize % means.len()], &schedule].concat();
        let run = Running::start(&line);
        run.wait_for_a_random_moment(trial);
        run.kill(trial);
        for worker in &run.workers {
            wait_until("a worker is gone", || !is_alive(*worker));
        }
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "trial {trial}: {left:?}");
        if let Some(address) = &run.relays {
            assert!(TcpStream::connect(address).is_err(), "trial {trial}: {address} still listens");
        }
    }
}

/// If this fails, a relay ends before the run of the client that uses it.
#[test]
fn a_run_lasts_as_long_as_requested() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let schedule = ["--for", "10ms", "--start", "0s", "-d", "400ms"];
    let begin = clock::now();
    let (episodes, ..) = finished(&["net", "0", "1", "--delay", "5ms"], &schedule, folder.path());
    assert!(clock::now() >= begin + Nanos::from_millis(400));
    assert_eq!(episodes.len(), 1);
}

#[test]
fn a_run_ends_normally_when_its_victim_ends() {
    let _together = quiet::together();
    let victim = Victim::start();
    let folder = tempfile::tempdir().unwrap();
    let pid = victim.pid().to_string();
    let run = Running::start_in(&["pause", "-p", &pid, "--for", "5ms", "--every", "20ms"], folder.path());
    clock::sleep_until(clock::now() + Nanos::from_millis(70));
    drop(victim);
    run.wait_for_success();
    let observed = read_observation(folder.path()).unwrap();
    let ObservationBody::Disturb(results) = observed.document.body else { panic!("another kind of record") };
    assert_eq!(results.over, Some(record::observation::disturb::Over::VictimGone));
}

/// If this fails, Ctrl-C in the middle of a pause leaves it to the guard, or loses the record.
#[test]
fn ctrl_c_in_the_middle_undoes_and_keeps_the_record() {
    let _together = quiet::together();
    let victim = Victim::start();
    let folder = tempfile::tempdir().unwrap();
    let pid = victim.pid().to_string();
    let run = Running::start_in(&["pause", "-p", &pid, "--for", "60s"], folder.path());
    wait_until("the victim is stopped", || victim.is_stopped());
    kill_process(run.as_pid(), Signal::INT).unwrap();
    assert_eq!(run.wait().code(), Some(130));
    assert!(!victim.is_stopped());
    let observed = read_observation(folder.path()).unwrap();
    let ObservationBody::Disturb(results) = observed.document.body else { panic!("another kind of record") };
    assert_eq!((results.episodes, results.over), (1, Some(record::observation::disturb::Over::Stopped)));
}

/// If this fails, the record of a `disturb` that was killed denies the pause in which that happened.
#[test]
fn killed_in_the_middle_its_record_has_the_pause_that_was_under_way() {
    let _together = quiet::together();
    let victim = Victim::start();
    let folder = tempfile::tempdir().unwrap();
    let pid = victim.pid().to_string();
    let schedule = ["--for", "60s", "--start", "0s"];
    let run = Running::start_in(&[&["pause", "-p", &pid][..], &schedule].concat(), folder.path());
    let begun = || {
        let observed = read_observation(folder.path());
        observed.is_ok_and(|observed| observed.events.iter().any(|event| event.kind == BEGUN))
    };
    wait_until("its record says that the pause has begun", begun);
    assert!(victim.is_stopped());
    run.kill(0);
    wait_until("the victim runs", || !victim.is_stopped());
    let (episodes, results, _) = kept(folder.path());
    let [pause] = &episodes[..] else { panic!("{episodes:?}") };
    assert_eq!(pause.real.map(|real| real.end_ns), Some(None), "{pause:?}");
    assert_eq!((results.episodes, results.skipped, results.over), (1, 0, None));
}

/// If this fails, a disturbance continues although nothing would undo it.
#[test]
fn without_its_guard_nothing_more_is_disturbed() {
    let _together = quiet::together();
    let victim = Victim::start();
    let pid = victim.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    // A minute: it does not wait for the end of the pause.
    let run = Running::start_in(&["pause", "-p", &pid, "--for", "60s"], folder.path());
    wait_until("the victim is stopped", || victim.is_stopped());
    kill_process(pid_of(run.guard), Signal::KILL).unwrap();
    assert_eq!(run.wait().code(), Some(1));
    assert!(!victim.is_stopped());
    let (episodes, results, _) = kept(folder.path());
    assert_eq!((results.episodes, results.over), (1, Some(record::observation::disturb::Over::Broken)));
    assert!(episodes[0].real.unwrap().end_ns.is_some(), "{episodes:?}");
}

fn finished(
    means: &[&str],
    schedule: &[&str],
    folder: &Path,
) -> (Vec<Episode>, record::observation::DisturbResults, u64) {
    Running::start_in(&[means, schedule].concat(), folder).wait_for_success();
    kept(folder)
}

/// The record of a run: its episodes, its figures, and its start.
fn kept(folder: &Path) -> (Vec<Episode>, record::observation::DisturbResults, u64) {
    let observed = read_observation(folder).unwrap();
    let episodes = observed.events.iter().filter_map(|event| event.disturbance.clone()).collect();
    let zero = observed.document.time.started_monotonic_ns;
    let ObservationBody::Disturb(results) = observed.document.body else { panic!("another kind of record") };
    (episodes, results, zero)
}

/// A process that works a little, and frequently.
struct Victim(Child);

impl Victim {
    fn start() -> Victim {
        // Sleeps of a millisecond: it switches context a thousand times per second.
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do sleep 0.001; done"]).stdin(Stdio::null());
        Victim(command.spawn().unwrap())
    }

    /// One that starts no processes: a group cannot be frozen completely while one of its processes waits for a child
    /// that was frozen before its `exec` (vfork), which the shell of [`Victim::start`] does in 2 of 100 pauses.
    fn asleep() -> Victim {
        Victim(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Or about to be: one that waits for a CPU notices the signal when it gets one, and runs nothing before.
    fn is_stopped(&self) -> bool {
        state(self.pid()) == Some('T') || has_stop_pending(self.pid())
    }

    fn groups(&self) -> String {
        fs::read_to_string(format!("/proc/{}/cgroup", self.pid())).unwrap()
    }

    fn end_by_term(self) {
        kill_process(pid_of(self.pid()), Signal::TERM).unwrap();
        wait_until("the victim reacts", || !is_alive(self.pid()));
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A control group for this test, removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new(kind: &str) -> Group {
        let group = mounts(kind)[0].join(format!("parallax-test-whole-{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        Group(group)
    }

    fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The victims' own children end a moment after them.
        let begin = clock::now();
        while fs::remove_dir(&self.0).is_err() && clock::now() < begin + PATIENCE {
            clock::sleep_until(clock::now() + Nanos::from_millis(1));
        }
    }
}

/// A running `parallax disturb`.
struct Running {
    child: std::cell::RefCell<Child>,
    guard: u32,
    workers: Vec<u32>,
    relays: Option<String>,
    errors: File,
    // Keeps the pipe open: it must not notice that nothing reads its output.
    _out: BufReader<ChildStdout>,
    _folder: Option<tempfile::TempDir>,
}

impl Running {
    fn start(line: &[&str]) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let mut running = Running::start_in(line, &folder.path().join("record"));
        running._folder = Some(folder);
        running
    }

    fn start_in(line: &[&str], folder: &Path) -> Running {
        let errors = tempfile::tempfile().unwrap();
        let mut child = Command::new(binary::path())
            .arg("disturb")
            .args(line)
            .arg("-o")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        let after = |word: &str| first.split_once(word).map(|(_, rest)| rest.trim());
        let guard = after("guard pid ").and_then(|pid| pid.parse().ok());
        let guard = guard.unwrap_or_else(|| panic!("it does not print the pid of its guard: {first}"));
        let workers = after(", by pid ").map(|rest| rest.split(';').next().unwrap().to_owned());
        let workers =
            workers.iter().flat_map(|pids| pids.split(", ")).map(|pid| pid.parse().unwrap()).collect();
        let relays = after("relaying ").map(|rest| rest.split(' ').next().unwrap().to_owned());
        Running { child: child.into(), guard, workers, relays, errors, _out: out, _folder: None }
    }

    fn pid(&self) -> u32 {
        self.child.borrow().id()
    }

    fn as_pid(&self) -> Pid {
        pid_of(self.pid())
    }

    /// Waits until a moment between its start and its seventh episode, a different one in each trial.
    fn wait_for_a_random_moment(&self, trial: u64) {
        // Steps of the golden ratio of 140 ms are spread evenly over it, whatever the number of trials.
        let moment = trial.wrapping_mul(86_525_238) % 140_000_000;
        clock::sleep_until(clock::now() + Nanos(moment));
    }

    /// Kills it alone, or its whole group, alternating, and waits until its guard has ended.
    fn kill(&self, trial: u64) {
        let pid = self.as_pid();
        match trial % 2 {
            0 => kill_process(pid, Signal::KILL).unwrap(),
            _ => kill_process_group(pid, Signal::KILL).unwrap(),
        }
        self.child.borrow_mut().wait().unwrap();
        wait_until("the guard has ended", || !is_alive(self.guard));
    }

    fn wait(&self) -> std::process::ExitStatus {
        wait_until("it ends", || self.child.borrow_mut().try_wait().unwrap().is_some());
        self.child.borrow_mut().wait().unwrap()
    }

    #[track_caller]
    fn wait_for_success(&self) {
        let status = self.wait();
        let mut message = String::new();
        (&self.errors).rewind().unwrap();
        (&self.errors).read_to_string(&mut message).unwrap();
        assert!(status.success(), "{status}: {message}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut child = self.child.borrow_mut();
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begin = clock::now();
    while !holds() {
        assert!(clock::now() < begin + PATIENCE, "waited {PATIENCE} until {what}");
        clock::sleep_until(clock::now() + Nanos::from_millis(1));
    }
}

fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed()).unwrap()
}

fn has_stop_pending(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let pending = pending.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    pending.is_some_and(|mask| mask >> (Signal::STOP.as_raw() - 1) & 1 == 1)
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// A zombie that its parent has not reaped counts as gone.
fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// Where the trees of control groups with a freezer of this kind are mounted.
fn mounts(kind: &str) -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap();
    let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines
        .filter(|fields| {
            fields[2] == kind && (kind == "cgroup2" || fields[3].split(',').any(|name| name == "freezer"))
        })
        .map(|fields| PathBuf::from(fields[1]))
        .collect()
}

fn has_freezer(kind: &str) -> bool {
    mounts(kind).iter().any(|mount| {
        let own = mount.join(format!("parallax-test-{}", std::process::id()));
        let made = fs::create_dir(&own).is_ok();
        let _ = fs::remove_dir(&own);
        made
    })
}

/// The groups that our process `pid` made and that still exist, anywhere below the mounts.
fn own_groups(pid: u32) -> Vec<PathBuf> {
    let name = format!("parallax-pause-{pid}-");
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = ["cgroup", "cgroup2"].iter().flat_map(|kind| mounts(kind)).collect();
    while let Some(folder) = folders.pop() {
        let inside = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if entry.file_name().to_string_lossy().starts_with(&name) {
                found.push(entry.path());
            }
            folders.push(entry.path());
        }
    }
    found
}

fn is_frozen(group: &Path) -> bool {
    let one = fs::read_to_string(group.join("freezer.state")).is_ok_and(|state| state.trim() == "FROZEN");
    one || fs::read_to_string(group.join("cgroup.freeze")).is_ok_and(|state| state.trim() == "1")
}
