//! A `disturb` that is itself stopped, or has no descriptor left, when it should end a disturbance: the guard ends it,
//! nothing stays disturbed, and the record has what actually happened.

use rustix::process::{Resource, Rlimit, Signal, kill_process, prlimit};

use super::*;
use testkit::trials;

/// Longer than a pause plus the time that the guard waits, with some margin.
const LATE: Nanos = Nanos::from_millis(1_800);

const MOST_TRIALS: usize = 10;

/// If this fails, a disturbance that the guard has given up as overdue is applied after all, with nothing to undo it.
///
/// The process is stopped as soon as the guard has read the order, which is 3 ms before the begin. A trial in which it
/// was faster shows nothing; one of ten hits that interval.
#[test]
fn a_pause_given_up_before_its_begin_is_not_applied() {
    let _together = quiet::together();
    for trial in 1..=MOST_TRIALS {
        let (victim, folder) = (Victim::start(), tempfile::tempdir().unwrap());
        let pid = victim.pid().to_string();
        let line = ["pause", "-p", &pid, "--for", "200ms", "--start", "500ms"];
        let run = Running::start_in(&line, folder.path());
        // Written a moment after the announcement.
        wait_until("the record exists", || read_observation(folder.path()).is_ok());
        let before = bytes_read(run.guard);
        let begin = clock::now();
        // On a busy host the guard may have had its order before; then the pause begins.
        while bytes_read(run.guard) == before && !victim.is_stopped() {
            assert!(clock::now() < begin + PATIENCE, "the guard was never informed");
            clock::sleep_until(clock::now() + Nanos(50_000));
        }
        kill_process(run.as_pid(), Signal::STOP).unwrap();
        wait_until("it is stopped", || state(run.pid()) == Some('T'));
        let began = victim.is_stopped();
        clock::sleep_until(clock::now() + LATE);
        kill_process(run.as_pid(), Signal::CONT).unwrap();
        if began {
            continue;
        }
        trials::report(trial, MOST_TRIALS);
        run.wait_for_success();
        assert!(!victim.is_stopped());
        let (episodes, results, _) = kept(folder.path());
        assert_eq!((results.skipped, results.disturbed_ns), (1, 0), "{episodes:?}");
        return;
    }
    panic!("no trial stopped it before the begin");
}

/// Bytes that a process has read from all its files and pipes.
fn bytes_read(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
    line.parse().unwrap()
}

/// If this fails, a pause that the guard ended is recorded as one that lasted until `disturb` woke up.
#[test]
fn a_pause_that_the_guard_ended_is_recorded_as_such() {
    let _together = quiet::together();
    let (victim, folder) = (Victim::start(), tempfile::tempdir().unwrap());
    let pid = victim.pid().to_string();
    let run = Running::start_in(&["pause", "-p", &pid, "--for", "300ms"], folder.path());
    wait_until("the victim is stopped", || victim.is_stopped());
    kill_process(run.as_pid(), Signal::STOP).unwrap();
    wait_until("the guard wakes the victim", || !victim.is_stopped());
    let awake = clock::now();
    clock::sleep_until(awake + Nanos::from_millis(300));
    kill_process(run.as_pid(), Signal::CONT).unwrap();
    run.wait_for_success();
    let (episodes, _, zero) = kept(folder.path());
    let (real, note) = (episodes[0].real.unwrap(), episodes[0].note.as_ref().unwrap());
    assert!(zero + real.end_ns.unwrap() <= awake.0, "{real:?}");
    assert!(real.end_ns.unwrap() >= episodes[0].intended.end_ns.unwrap(), "{real:?}");
    assert!(note.starts_with("the guard ended it"), "{note}");
}

/// If this fails, a `disturb` without a free descriptor leaves a whole service frozen.
#[test]
fn a_group_is_thawed_even_without_a_free_descriptor() {
    let _together = quiet::together();
    let kind = ["cgroup", "cgroup2"].into_iter().find(|kind| has_freezer(kind));
    let kind =
        kind.expect("this host has no control groups with a freezer that this test may use (root may)");
    let group = Group::new(kind);
    let victim = Victim::asleep();
    group.add(victim.pid());
    let pid = victim.pid().to_string();
    let run = Running::start(&["pause", "-p", &pid, "--by", "whole-group", "--for", "500ms"]);
    wait_until("the group is frozen", || is_frozen(&group.0));
    let none = Rlimit { current: Some(3), maximum: Some(4_096) };
    prlimit(Some(run.as_pid()), Resource::Nofile, none).unwrap();
    // How it ends depends on what it can still write.
    let _ = run.wait();
    wait_until("the guard has ended", || !is_alive(run.guard));
    assert!(!is_frozen(&group.0));
    victim.end_by_term();
}
