//! Real programs whose use of time and memory is known, and programs that try to survive.
//!
//! All processes below this one belong to the trial, so these tests take turns.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{getpid, set_child_subreaper};

use super::*;

static TURN: Mutex<()> = Mutex::new(());

struct Bench {
    guard: Guard,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    fn new() -> Bench {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        set_child_subreaper(Some(getpid())).unwrap();
        Bench { guard: Guard::start().unwrap(), _turn: turn }
    }

    fn run(&mut self, script: &str, longest: Nanos) -> Trial {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let stop = AtomicBool::new(false);
        let trial = run(command, &mut self.guard, Limits { longest, stop: &stop }).unwrap();
        assert!(below_this_process(Some(self.guard.pid())).is_empty(), "a process is left");
        trial
    }
}

const MINUTE: Nanos = Nanos::from_secs(60);

/// If this fails, a program that works in its children, or in children of children that ended, looks idle.
#[test]
fn the_whole_tree_is_measured() {
    let mut bench = Bench::new();
    let burn = "python3 -c 'import time\nwhile time.process_time() < 0.2: pass'";
    let trial = bench.run(&format!("({burn}; {burn}) & wait"), MINUTE);
    assert_eq!(trial.ended, Ended::Exited(0), "{}", trial.errors);
    let cpu = trial.usage.cpu.unwrap();
    assert!(cpu >= Nanos::from_millis(400), "{cpu}");
    let idle = bench.run("sleep 0.3", MINUTE).usage;
    assert!(idle.wall >= Nanos::from_millis(300) && idle.cpu.unwrap() < cpu, "{idle:?}");
    // Two processes that hold 48 MiB each, until both have it.
    let hold = "python3 -c 'import time; kept = bytearray(48 << 20); time.sleep(1)'";
    let held = bench.run(&format!("{hold} & {hold} & wait"), MINUTE).usage.peak_memory.unwrap();
    assert!((96 << 20..200 << 20).contains(&held), "{held}");
}

/// If this fails, a run leaves a process that disturbs the next one.
#[test]
fn nothing_survives_its_run() {
    let mut bench = Bench::new();
    let left = bench.run("setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); sleep 0.2", MINUTE);
    assert_eq!(left.ended, Ended::Exited(0));
    assert_eq!(left.left_behind, 4, "three of them sleep, and one waits");
    let stubborn = bench.run("trap '' TERM; while :; do sleep 1; done", Nanos::from_millis(200));
    assert_eq!(stubborn.ended, Ended::TimedOut(Nanos::from_millis(200)));
    assert!(stubborn.usage.wall >= GRACE, "{:?}", stubborn.usage);
}

#[test]
fn how_a_run_ended_is_known() {
    let mut bench = Bench::new();
    assert_eq!(bench.run("exit 7", MINUTE).ended, Ended::Exited(7));
    assert_eq!(bench.run("kill -9 $$", MINUTE).ended, Ended::Signaled(9));
    let noisy = bench.run("yes error | head -c 1000000 >&2; echo the last line >&2", MINUTE);
    assert!(
        noisy.errors.len() <= KEPT_ERRORS && noisy.errors.ends_with("the last line\n"),
        "{}",
        noisy.errors
    );
    let stop = AtomicBool::new(true);
    let mut command = Command::new("sleep");
    command.arg("1000");
    let stopped = run(command, &mut bench.guard, Limits { longest: MINUTE, stop: &stop }).unwrap();
    assert_eq!(stopped.ended, Ended::Interrupted);
    let limits = Limits { longest: MINUTE, stop: &AtomicBool::new(false) };
    let error = run(Command::new("/no/such/program"), &mut bench.guard, limits).unwrap_err();
    assert!(format!("{error:#}").starts_with("cannot run `/no/such/program`"), "{error:#}");
}

/// The guard is what remains when this process is killed: it kills the group that was named last.
#[test]
fn the_guard_ends_the_run_of_a_process_that_was_killed() {
    let mut bench = Bench::new();
    let mut command = Command::new("sleep");
    let mut child = command.arg("1000").process_group(0).spawn().unwrap();
    bench.guard.watch(Some(child.id())).unwrap();
    bench.guard.close_as_if_killed();
    assert_eq!(ended(child.wait().unwrap()), Ended::Signaled(9));
    assert!(!fs::exists(format!("/proc/{}/fd", child.id())).unwrap());
}
