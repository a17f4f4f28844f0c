//! Run-queue latency: how long a thread of this process was runnable but waiting for a CPU.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use units::Nanos;

/// The scheduler's own account of the thread that opened it. Opened and read by that thread.
#[derive(Debug)]
pub struct RunQueue {
    // `/proc/thread-self` is resolved when it is opened, so the file stays that thread's.
    file: File,
}

impl RunQueue {
    /// Opens the account of the calling thread.
    ///
    /// # Errors
    ///
    /// If the kernel keeps no such account (no `CONFIG_SCHED_INFO`), or /proc is missing.
    pub fn of_this_thread() -> io::Result<RunQueue> {
        let run_queue = RunQueue { file: File::open(PATH)? };
        match run_queue.waited() {
            Some(_) => Ok(run_queue),
            None => Err(io::Error::other("schedstat does not have the expected form")),
        }
    }

    /// Time spent so far on a run queue, runnable, while others ran; `None` if it can no longer be read.
    ///
    /// # Cost
    ///
    /// One read of a file of /proc, about 1 us: once per interval.
    pub fn waited(&self) -> Option<Nanos> {
        let mut text = [0; 96];
        let length = self.file.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(text.get(..length)?).ok()?)
    }
}

const PATH: &str = "/proc/thread-self/schedstat";

/// The file has the time on a CPU, the time waiting for one, and how often it ran.
fn parse(text: &str) -> Option<Nanos> {
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse("120 4500 7\n"), Some(Nanos(4_500)));
        assert_eq!(parse("120\n"), None);
    }

    #[test]
    fn a_wait_only_grows() {
        let run_queue = RunQueue::of_this_thread().unwrap();
        let before = run_queue.waited().unwrap();
        clock::sleep_until(clock::now() + Nanos::from_millis(1));
        assert!(run_queue.waited().unwrap() >= before);
    }
}
