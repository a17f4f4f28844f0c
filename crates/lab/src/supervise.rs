//! One run of a program: started in a separate process group, measured, and ended with everything that it started.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use units::Nanos;

use crate::guard::Guard;
use crate::tree::{TreeMemory, below_this_process, memory, reap, signal};

/// What a run used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// From before the start of the program to its end.
    pub wall: Nanos,
    /// User and system time of the program and of all that it started; `None` if the kernel does not report it.
    pub cpu: Option<Nanos>,
    /// The most memory that the processes were seen to have together, in bytes: a lower bound, looked at every 10 ms.
    /// `None` if they ended before the first look.
    pub peak_memory: Option<u64>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal that this program did not send.
    Signaled(i32),
    /// It took longer than the limit.
    TimedOut(Nanos),
    /// The user ended the experiment.
    Interrupted,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub ended: Ended,
    pub usage: Usage,
    /// Processes that were still running after the program had ended, and were killed.
    pub left_behind: usize,
    /// The end of its standard error.
    pub errors: String,
}

/// How often memory is looked at, and the stop flag.
const LOOK: Nanos = Nanos::from_millis(10);

/// How long a program may take to end after SIGTERM; a run of `drive` closes its record in that time.
const GRACE: Nanos = Nanos::from_secs(5);

/// How long killed processes may take to end: one in an uninterruptible wait takes longer.
const KILL_PATIENCE: Nanos = Nanos::from_secs(10);

/// So much of the end of standard error is kept.
const KEPT_ERRORS: usize = 4096;

/// Limits of a run.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) longest: Nanos,
    pub(crate) stop: &'a AtomicBool,
}

/// Runs `command` to its end. Afterwards no process below this one is left, except the guard.
///
/// # Errors
///
/// When the program cannot be started, and when a process that was killed does not end.
pub(crate) fn run(mut command: Command, guard: &mut Guard, limits: Limits<'_>) -> anyhow::Result<Trial> {
    let shown = command.get_program().to_string_lossy().into_owned();
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let used = host::children_cpu();
    let start = clock::now();
    let mut child =
        command.spawn().with_context(|| format!("cannot run `{shown}`; is it installed and in PATH?"))?;
    let watched = guard.watch(Some(child.id()));
    let errors = child.stderr.take().map(|pipe| thread::spawn(move || end_of(pipe)));
    let waited = watched.and_then(|()| wait_for_end(&mut child, guard.pid(), start, limits));
    // Whatever happened: nothing of this run survives it.
    let left_behind = end_all(guard.pid());
    let _ = guard.watch(None);
    let (ended, end, memory) = waited.with_context(|| format!("cannot wait for `{shown}`"))?;
    let left_behind = left_behind?;
    let cpu = used.zip(host::children_cpu()).map(|(before, after)| after.saturating_sub(before));
    let peak = memory.resident.max(memory.highest);
    let errors = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let usage = Usage { wall: end.saturating_sub(start), cpu, peak_memory: (peak > 0).then_some(peak) };
    Ok(Trial { ended, usage, left_behind, errors })
}

/// Waits until the program has ended, and ends it if it must: how, when, and the most memory that was seen.
fn wait_for_end(
    child: &mut Child,
    guard: u32,
    start: Nanos,
    limits: Limits<'_>,
) -> io::Result<(Ended, Nanos, TreeMemory)> {
    let pid = Pid::from_child(child);
    let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
    let mut peak = TreeMemory::default();
    let mut forced: Option<(Ended, Nanos)> = None;
    loop {
        let tree = below_this_process(Some(guard));
        peak = peak.or(memory(&tree));
        let mut waited = [PollFd::new(&descriptor, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(LOOK.0).unwrap_or(i64::MAX) };
        match poll(&mut waited, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                let end = clock::now();
                let status = child.wait()?;
                return Ok((forced.map_or_else(|| ended(status), |(ended, _)| ended), end, peak));
            }
            Err(error) => return Err(error.into()),
        }
        let now = clock::now();
        match &forced {
            None if limits.stop.load(Ordering::Relaxed) => {
                signal(&below_this_process(Some(guard)), Signal::TERM);
                forced = Some((Ended::Interrupted, now));
            }
            None if now.saturating_sub(start) > limits.longest => {
                signal(&below_this_process(Some(guard)), Signal::TERM);
                forced = Some((Ended::TimedOut(limits.longest), now));
            }
            Some((_, asked)) if now.saturating_sub(*asked) > GRACE => {
                signal(&below_this_process(Some(guard)), Signal::KILL)
            }
            _ => {}
        }
    }
}

fn ended(status: ExitStatus) -> Ended {
    status.code().map_or_else(|| Ended::Signaled(status.signal().unwrap_or(0)), Ended::Exited)
}

/// Kills all processes below this one, and waits until they are gone: how many there were at first.
pub(crate) fn end_all(guard: u32) -> anyhow::Result<usize> {
    let deadline = clock::now() + KILL_PATIENCE;
    let mut first = None;
    loop {
        reap();
        let left = below_this_process(Some(guard));
        let count = *first.get_or_insert(left.len());
        if left.is_empty() {
            return Ok(count);
        }
        ensure!(
            clock::now() < deadline,
            "process {} does not end, although it was killed",
            left.iter().next().unwrap_or(&0)
        );
        signal(&left, Signal::KILL);
        clock::sleep_until(clock::now() + Nanos::from_millis(1));
    }
}

/// Reads to the end, and keeps the last part as text.
fn end_of(mut pipe: ChildStderr) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = pipe.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..length]);
        let surplus = kept.len().saturating_sub(KEPT_ERRORS);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests;
