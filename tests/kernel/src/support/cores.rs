//! Which CPUs are used: the server and its hogs on one, clients and the observer on another.

use std::process::{Child, Command};

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Which of the CPUs that this test may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Core {
    /// For clients and the observer.
    First,
    /// For the server.
    Last,
}

/// A higher priority than other work on this host.
pub const AHEAD: i32 = -15;

/// Starts a program on one CPU with a niceness: a child inherits those of the thread that starts it.
pub fn start(command: &mut Command, core: Core, niceness: i32) -> Child {
    let before = sched_getaffinity(None).unwrap();
    let usual = getpriority_process(None).unwrap();
    sched_setaffinity(None, &only(core, &before)).unwrap();
    setpriority_process(None, niceness).unwrap();
    let child = command.spawn();
    setpriority_process(None, usual).unwrap();
    sched_setaffinity(None, &before).unwrap();
    child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

fn only(core: Core, allowed: &CpuSet) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(number(core, allowed));
    set
}

fn number(core: Core, allowed: &CpuSet) -> usize {
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let (first, last) = (cpus.next(), cpus.next_back());
    let last = last.expect("two CPUs are needed: one for the server, one for its clients");
    match core {
        Core::First => first.unwrap(),
        Core::Last => last,
    }
}
