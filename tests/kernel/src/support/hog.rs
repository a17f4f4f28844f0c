//! Hogs as child processes, and the periods in which they had the CPU.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tempfile::NamedTempFile;
use units::Nanos;

use super::cores::{self, Core};
use super::group::Group;

pub struct Hog {
    child: Child,
    file: NamedTempFile,
    pub name: &'static str,
    _group: Arc<Group>,
}

/// A period on the monotonic clock: begin and end.
pub type Stretch = (u64, u64);

impl Hog {
    /// Begins at once; `turns` are its busy and its idle time, without them it never rests.
    pub fn start(name: &'static str, core: Core, niceness: i32, turns: Option<(Nanos, Nanos)>) -> Hog {
        Hog::start_by(Command::new(env!("CARGO_BIN_EXE_hog")), name, core, niceness, turns)
    }

    /// Keeps the server's CPU from going idle, and yields at once to any other thread (SCHED_IDLE). An idle CPU of a
    /// virtual machine is given back to the hypervisor: waking it sometimes takes 25 us, which is run-queue latency and
    /// is reported as such, but the kernel's own account, the truth of a test, leaves it out. That account uses the run
    /// queue's clock, which Linux does not advance between a wake-up and the switch that it requests
    /// (`rq_clock_skip_update`, 6.18).
    pub fn that_keeps_awake() -> Hog {
        let mut command = Command::new("chrt");
        command.args(["--idle", "0", env!("CARGO_BIN_EXE_hog")]);
        Hog::start_by(command, "awake", Core::Last, 0, None)
    }

    fn start_by(
        mut command: Command,
        name: &'static str,
        core: Core,
        niceness: i32,
        turns: Option<(Nanos, Nanos)>,
    ) -> Hog {
        let file = NamedTempFile::new().unwrap();
        command.arg(name).arg(file.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some((busy, idle)) = turns {
            command.args([busy, idle].map(|length| format!("{}ns", length.0)));
        }
        let mut child = cores::start(&mut command, core, niceness);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let group = Group::ahead();
        group.take_in(child.id());
        Hog { child, file, name, _group: group }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn stretches(mut self) -> Vec<Stretch> {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
        let text = fs::read_to_string(self.file.path()).unwrap();
        text.lines()
            .map(|line| {
                let (begin, end) = line.split_once(' ').unwrap();
                (begin.parse().unwrap(), end.parse().unwrap())
            })
            .collect()
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How much of these periods is within `from..to`.
pub fn overlap(stretches: &[Stretch], from: u64, to: u64) -> Nanos {
    let first = stretches.partition_point(|&(_, end)| end <= from);
    let within = stretches[first..].iter().take_while(|&&(begin, _)| begin < to);
    Nanos(within.map(|&(begin, end)| end.min(to) - begin.max(from)).sum())
}
