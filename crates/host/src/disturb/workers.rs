//! The first process's handle to the processes that disturb: starts them, sends them the begin and the end of each
//! episode, and adds up what they report.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::Nanos;

use super::conduct::{Began, Disturbance, Done, Ended, Fact, Run};
use super::error::DisturbError;
use super::guard::{Guard, Program};
use super::undo::{PROCS, Undo, Who};
use super::victim::{Stat, Victim};
use super::work::Work;
use crate::cgroup::{Hierarchy, group_of};

/// Processes that all do their work in the same episodes.
#[derive(Debug)]
pub struct Workers {
    each: Vec<Worker>,
    /// A folder made for their files, which is removed with them.
    folder: Option<PathBuf>,
}

impl Workers {
    /// Starts one process per piece of work; none does anything until an episode begins. With `in_groups_of`, they
    /// are put into the control groups of that process, under its CPU quota and weight.
    ///
    /// # Errors
    ///
    /// When a process cannot be started, or cannot do its work.
    pub fn start(
        program: &Program,
        works: &[Work],
        in_groups_of: Option<&Victim>,
        guard: &mut Guard,
    ) -> Result<Workers, DisturbError> {
        let mut workers = Workers { each: Vec::new(), folder: None };
        for work in works {
            let worker = Worker::start(program, work, guard)?;
            workers.each.push(worker);
        }
        for worker in &mut workers.each {
            worker.wait_until_ready()?;
            if let Some(victim) = in_groups_of {
                join_groups(worker.child.id(), victim)?;
            }
        }
        Ok(workers)
    }

    /// As [`Workers::start`], with the files of the work in a new folder within `folder`.
    ///
    /// # Errors
    ///
    /// Also when that folder cannot be made.
    pub fn start_in(
        program: &Program,
        folder: &Path,
        work: impl Fn(&Path) -> Vec<Work>,
        guard: &mut Guard,
    ) -> Result<Workers, DisturbError> {
        let shown = folder.display();
        let folder =
            fs::canonicalize(folder).map_err(DisturbError::system(format!("use the directory `{shown}`")))?;
        let own = folder.join(format!("parallax-disturb-{}-{}", std::process::id(), clock::now().0));
        let armed = guard.arm(&Undo::Remove(own.clone()), None)?;
        if let Err(error) = fs::create_dir(&own) {
            guard.disarm(&armed)?;
            return Err(DisturbError::system(format!("create a directory in `{shown}`"))(error));
        }
        // Dropped when the start fails, and the folder with it.
        let mut keeper = Workers { each: Vec::new(), folder: Some(own.clone()) };
        let mut started = Workers::start(program, &work(&own), None, guard)?;
        keeper.each.append(&mut started.each);
        Ok(keeper)
    }

    /// The pids of their processes.
    pub fn pids(&self) -> Vec<u32> {
        self.each.iter().map(|worker| worker.child.id()).collect()
    }
}

impl Disturbance for Workers {
    fn begin(&mut self, end: Option<Nanos>, _run: &mut Run<'_>) -> Result<Began, DisturbError> {
        let until = end.unwrap_or(Nanos::MAX);
        for worker in &mut self.each {
            worker.send(&format!("begin {}\n", until.0))?;
        }
        let mut latest = Nanos::ZERO;
        for worker in &mut self.each {
            let begun = worker.reply("begun ")?;
            worker.begun = Nanos(begun.parse().unwrap_or(0));
            latest = latest.max(worker.begun);
        }
        Ok(Began::At(latest))
    }

    fn end(&mut self, _guard: &mut Guard) -> Ended {
        self.finish().into()
    }
}

impl Workers {
    /// Ends an episode and reports what it was.
    fn finish(&mut self) -> Result<Done, DisturbError> {
        for worker in &mut self.each {
            worker.send("end\n")?;
        }
        let mut done = Done::default();
        let mut first = Nanos::MAX;
        for worker in &mut self.each {
            let reply = worker.reply("ended ")?;
            let mut words = reply.split(' ');
            let ended = words.next().and_then(|end| end.parse().ok()).unwrap_or(0);
            // All of them were working from the last begin to the first end.
            done.begin = done.begin.max(worker.begun);
            first = first.min(Nanos(ended));
            for (name, value) in words.filter_map(|word| word.split_once('=')) {
                add(&mut done.facts, name, value.parse().unwrap_or(0));
            }
        }
        done.end = Some(first.max(done.begin));
        Ok(done)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.each.clear();
        if let Some(folder) = &self.folder {
            // If it fails, the guard tries again.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Adds a value to the fact of this name; facts with `_max_` in their name keep the larger value instead.
fn add(facts: &mut Vec<Fact>, name: &str, value: u64) {
    match facts.iter_mut().find(|fact| fact.name == name) {
        Some(fact) if name.contains("_max_") => fact.value = fact.value.max(value),
        Some(fact) => fact.value += value,
        None => facts.push(Fact { name: name.to_owned(), value }),
    }
}

#[derive(Debug)]
struct Worker {
    name: &'static str,
    child: Child,
    orders: ChildStdin,
    replies: BufReader<ChildStdout>,
    begun: Nanos,
}

impl Worker {
    fn start(program: &Program, work: &Work, guard: &mut Guard) -> Result<Worker, DisturbError> {
        let mut child = Command::new(&program.path)
            .arg0("plx-disturb")
            .args(&program.worker)
            .arg(std::process::id().to_string())
            .args(work.encode())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| DisturbError::Start { work: work.name(), source })?;
        let orders = child.stdin.take().expect("its input was asked for as a pipe");
        let replies = BufReader::new(child.stdout.take().expect("its output was asked for as a pipe"));
        let worker = Worker { name: work.name(), child, orders, replies, begun: Nanos::ZERO };
        let pid = worker.child.id();
        let stat =
            Stat::read(pid).ok_or_else(|| DisturbError::WorkerGone { what: "at its start".to_owned() })?;
        // In addition to the signal that the kernel sends it when this process ends.
        let _for_good = guard.arm(&Undo::Kill(Who { pid, started: stat.started }), None)?;
        Ok(worker)
    }

    fn wait_until_ready(&mut self) -> Result<(), DisturbError> {
        self.reply("ready").map(drop)
    }

    fn send(&mut self, line: &str) -> Result<(), DisturbError> {
        // Its last line may contain the reason why it ended.
        self.orders.write_all(line.as_bytes()).or_else(|_| self.reply("went").map(drop))
    }

    /// The text after `word` in its next line.
    fn reply(&mut self, word: &str) -> Result<String, DisturbError> {
        let mut fds = [PollFd::new(self.replies.get_ref(), PollFlags::IN)];
        let patience = Timespec { tv_sec: PATIENCE_S, tv_nsec: 0 };
        let mut line = String::new();
        let came = self.replies.buffer().contains(&b'\n')
            || poll(&mut fds, Some(&patience)).is_ok_and(|ready| ready > 0);
        if came && self.replies.read_line(&mut line).is_ok_and(|length| length > 0) {
            if let Some(rest) = line.trim_end().strip_prefix(word) {
                return Ok(rest.to_owned());
            }
            if let Some(why) = line.trim_end().strip_prefix("refused ") {
                return Err(DisturbError::Refused { work: self.name, why: why.to_owned() });
            }
        }
        Err(self.gone())
    }

    fn gone(&mut self) -> DisturbError {
        let pid = self.child.id();
        let _ = self.child.kill();
        let why = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let hint = if self.name == "memory" { "; the kernel may have run out of memory" } else { "" };
        DisturbError::WorkerGone { what: format!("{} pid {pid}, {why}{hint}", self.name) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Moves one of our processes into the control groups of the victim that share out the CPU.
fn join_groups(pid: u32, victim: &Victim) -> Result<(), DisturbError> {
    let read = |path: String| fs::read_to_string(&path).map_err(DisturbError::system(format!("read {path}")));
    let (theirs, ours) =
        (read(format!("/proc/{}/cgroup", victim.pid()))?, read(format!("/proc/{pid}/cgroup"))?);
    let mounts = read("/proc/self/mountinfo".to_owned())?;
    let mut found = false;
    for hierarchy in [Hierarchy::One("cpu"), Hierarchy::Two] {
        let Some(group) = group_of(&theirs, &mounts, hierarchy) else { continue };
        found = true;
        if group_of(&ours, &mounts, hierarchy).as_ref() == Some(&group) {
            continue;
        }
        let shown = group.display();
        fs::write(group.join(PROCS), pid.to_string()).map_err(DisturbError::system(format!(
            "join the control group {shown} of pid {} (root may)",
            victim.pid()
        )))?;
    }
    let none =
        DisturbError::Lacking { what: "control groups that share out the CPU", instead: "leave out -p" };
    if found { Ok(()) } else { Err(none) }
}

/// An fsync may take seconds on a disturbed disk; so may a hog whose group has used up its quota.
const PATIENCE_S: i64 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_summed_but_the_largest_is_kept() {
        let mut facts = Vec::new();
        for (name, value) in [("fsyncs", 3), ("fsync_max_ns", 9), ("fsyncs", 4), ("fsync_max_ns", 7)] {
            add(&mut facts, name, value);
        }
        assert_eq!(facts.iter().map(|fact| fact.value).collect::<Vec<_>>(), [7, 9]);
    }
}
