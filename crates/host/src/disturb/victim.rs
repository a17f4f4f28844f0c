//! A process to be disturbed, held by a descriptor, so that no other process can take its place.
//!
//! The kernel reuses pids. A [`Victim`] is opened once; every signal goes through its descriptor (pidfd), and
//! everything else that needs to identify the process gets its pid together with its start time.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, test_kill_process};

use super::error::DisturbError;

/// One particular process, even after its pid is reused.
#[derive(Debug)]
pub struct Victim {
    pid: u32,
    /// In ticks since boot, from /proc/PID/stat.
    started: u64,
    name: String,
    pidfd: OwnedFd,
}

/// Whether the user overrides the checks for likely mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Refuse likely mistakes.
    No,
    /// Allow them.
    Yes,
}

impl Victim {
    /// Opens the process `pid` if it may be disturbed: it exists, we may signal it, and it is neither this process
    /// nor pid 1; without force, not an ancestor of this process either.
    ///
    /// # Errors
    ///
    /// Why it may not be disturbed, in one line.
    pub fn open(pid: u32, force: Force) -> Result<Victim, DisturbError> {
        let victim = Victim::find(pid)?;
        victim.check(force)?;
        Ok(victim)
    }

    /// Opens a process by pid without checking whether it should be disturbed.
    pub(crate) fn find(pid: u32) -> Result<Victim, DisturbError> {
        let none = || DisturbError::NoSuchProcess { pid };
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(none)?;
        let pidfd = pidfd_open(raw, PidfdFlags::empty()).map_err(|errno| match (errno, process_of(pid)) {
            // For a thread that leads no process the kernel returns EINVAL, or from 6.15 on ENOENT.
            (Errno::INVAL | Errno::NOENT, Some(process)) if process != pid => {
                DisturbError::Thread { pid, process }
            }
            (Errno::SRCH | Errno::INVAL | Errno::NOENT, _) => none(),
            (errno, _) => DisturbError::System { what: format!("open pid {pid}"), source: errno.into() },
        })?;
        let stat = Stat::read(pid).ok_or_else(none)?;
        let victim = Victim { pid, started: stat.started, name: stat.name, pidfd };
        // Read after the descriptor was opened: if that process is still alive, it is the one that was read.
        if victim.has_ended() { Err(none()) } else { Ok(victim) }
    }

    fn check(&self, force: Force) -> Result<(), DisturbError> {
        let (pid, name) = (self.pid, self.name.clone());
        let never = |what| DisturbError::Never { pid, name: name.clone(), what };
        if pid == 1 {
            return Err(never("the first process of this host"));
        }
        if pid == std::process::id() {
            return Err(never("this process itself"));
        }
        let stat = Stat::read(pid).ok_or(DisturbError::NoSuchProcess { pid })?;
        if stat.flags & KERNEL_THREAD != 0 {
            return Err(never("a thread of the kernel"));
        }
        if stat.state == 'Z' {
            return Err(DisturbError::Gone { pid });
        }
        let raw = Pid::from_raw(pid.cast_signed()).ok_or(DisturbError::NoSuchProcess { pid })?;
        if let Err(Errno::PERM) = test_kill_process(raw) {
            return Err(DisturbError::NotYours { pid, name });
        }
        if force == Force::Yes {
            return Ok(());
        }
        let guarded = |what| DisturbError::Guarded { pid, name: name.clone(), what };
        if ancestors(std::process::id()).contains(&pid) {
            return Err(guarded("an ancestor of this process, such as its shell"));
        }
        if Stat::read(std::process::id()).is_some_and(|this| this.session == pid) {
            return Err(guarded("the leader of this session, such as its shell"));
        }
        Ok(())
    }

    /// The process id, valid as long as the process lives.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The kernel's short name of the process (`comm`), at most 15 bytes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its start time in ticks since boot: together with the pid unique until the next boot.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Whether the process has ended. Not cached.
    pub fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&zero)).is_ok_and(|ready| ready > 0)
    }

    /// Whether it has been stopped (SIGSTOP, or a terminal), or will be as soon as it notices the pending signal.
    pub(crate) fn is_stopped(&self) -> bool {
        // The pending signal first: a stop that takes effect between the two looks is seen by one of them.
        is_stop_pending(self.pid) || Stat::read(self.pid).is_some_and(|stat| stat.state == 'T')
    }

    /// Whether none of its threads runs any of its code, given that SIGSTOP has been sent.
    ///
    /// The kernel gives the signal to one thread, and stops the others when that thread notices it (`get_signal` and
    /// `do_signal_stop`, Linux 6.12). While that thread waits for a CPU, the others continue.
    pub(crate) fn has_noticed_stop(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid));
        status.is_ok_and(|status| is_alone(&status) || !is_pending(&status, Signal::STOP))
    }

    /// Sends a signal to exactly this process.
    ///
    /// # Errors
    ///
    /// [`DisturbError::Gone`], or an error of the kernel.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), DisturbError> {
        let (pid, name) = (self.pid, || self.name.clone());
        pidfd_send_signal(self.pidfd.as_fd(), signal).map_err(|errno| match errno {
            Errno::SRCH => DisturbError::Gone { pid },
            Errno::PERM => DisturbError::NotYours { pid, name: name() },
            errno => DisturbError::System { what: format!("signal pid {pid}"), source: errno.into() },
        })
    }
}

/// `PF_KTHREAD` of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The fields of /proc/PID/stat that are needed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub name: String,
    pub state: char,
    pub parent: u32,
    /// The pid of the session's leader; 0 where that is outside this pid namespace, as in a container.
    pub session: u32,
    pub flags: u64,
    pub started: u64,
}

impl Stat {
    pub(crate) fn read(pid: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `12 (a) name) S 1 …`: the name may contain anything, so it ends at the last parenthesis.
    fn parse(text: &str) -> Option<Stat> {
        let (head, rest) = text.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let flags = fields.nth(2)?.parse().ok()?;
        let started = fields.nth(12)?.parse().ok()?;
        Some(Stat { name, state, parent, session, flags, started })
    }
}

fn is_stop_pending(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    status.is_ok_and(|status| is_pending(&status, Signal::STOP))
}

/// Reads the pending signals of the whole process: `ShdPnd`, one bit per signal.
fn is_pending(status: &str, signal: Signal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// Whether the process has one thread.
fn is_alone(status: &str) -> bool {
    status.lines().any(|line| line.strip_prefix("Threads:").is_some_and(|threads| threads.trim() == "1"))
}

/// The process that the thread `tid` belongs to.
fn process_of(tid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The ancestors of a process, its parent first.
fn ancestors(pid: u32) -> Vec<u32> {
    let parent = |pid: &u32| Stat::read(*pid).map(|stat| stat.parent).filter(|&parent| parent > 0);
    // A longer chain is a cycle, made by pids that were reused while it was read.
    std::iter::successors(parent(&pid), parent).take(1_000).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disturb::testing::Sleeper;

    #[test]
    fn parentheses_in_a_name_do_not_move_the_fields() {
        let tail = "S 7 7 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let stat = Stat::parse(&format!("42 (a) R 1 (b) {tail}")).unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.parent), ("a) R 1 (b", 'S', 7));
        assert_eq!((stat.session, stat.flags, stat.started), (9, 4_194_560, 98_765));
        assert_eq!(Stat::parse("42 (a) S 7"), None);
    }

    #[test]
    fn this_process_and_its_ancestors_are_not_disturbed() {
        let own = std::process::id();
        let parent = Stat::read(own).unwrap().parent;
        assert!(matches!(Victim::open(1, Force::Yes), Err(DisturbError::Never { pid: 1, .. })));
        assert!(matches!(Victim::open(own, Force::Yes), Err(DisturbError::Never { .. })));
        assert!(matches!(Victim::open(parent, Force::No), Err(DisturbError::Guarded { .. })));
        assert!(Victim::open(parent, Force::Yes).is_ok());
        // The first kernel thread, if it is visible.
        if Stat::read(2).is_some_and(|stat| stat.name == "kthreadd") {
            assert!(matches!(Victim::open(2, Force::Yes), Err(DisturbError::Never { .. })));
        }
    }

    #[test]
    fn a_pending_stop_counts_as_stopped() {
        assert!(is_pending("SigPnd:\t0000000000000000\nShdPnd:\t0000000000040000\n", Signal::STOP));
        assert!(!is_pending("SigPnd:\t0000000000040000\nShdPnd:\t0000000000020000\n", Signal::STOP));
        assert!(!is_pending("", Signal::STOP));
    }

    #[test]
    fn only_a_process_of_one_thread_is_alone() {
        assert!(is_alone("Name:\tThreads:\nThreads:\t1\nSigQ:\t0/1\n"));
        assert!(!is_alone("Threads:\t12\n") && !is_alone(""));
    }

    #[test]
    fn a_missing_process_is_reported_in_one_line() {
        let error = Victim::open(4_194_304, Force::No).unwrap_err().to_string();
        assert_eq!(error, "no process has the pid 4194304; find the right one with `pgrep -a NAME`");
        assert!(Victim::open(u32::MAX, Force::No).is_err());
        assert!(Victim::open(0, Force::No).is_err());
    }

    #[test]
    fn a_thread_is_not_a_process() {
        let (sender, receiver) = std::sync::mpsc::sync_channel::<()>(0);
        let (tid_of, tid) = std::sync::mpsc::sync_channel(1);
        let waiting = std::thread::spawn(move || {
            tid_of.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            let _ = receiver.recv();
        });
        let error = Victim::open(tid.recv().unwrap(), Force::No).unwrap_err();
        assert!(
            matches!(error, DisturbError::Thread { process, .. } if process == std::process::id()),
            "{error}"
        );
        drop(sender);
        waiting.join().unwrap();
    }

    /// If this fails, a signal reaches the process that got the pid next.
    #[test]
    fn a_victim_that_ended_is_never_another_process() {
        let mut sleeper = Sleeper::start();
        let victim = Victim::open(sleeper.pid(), Force::No).unwrap();
        assert!(!victim.has_ended());
        sleeper.end();
        assert!(victim.has_ended());
        assert!(matches!(victim.signal(Signal::STOP), Err(DisturbError::Gone { .. })));
    }
}
