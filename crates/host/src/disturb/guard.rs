//! A second process that undoes what the first one did, if that is killed.
//!
//! It holds the reading end of a pipe whose only writing end belongs to the first process: when that process is gone,
//! for whatever reason, the kernel closes the pipe, after the last of its system calls has returned. Before each
//! disturbance the guard is sent how to undo it, opens the process or file that it will need, and acknowledges. A
//! disturbance that it has not acknowledged is not done.
//!
//! A disturbance with a known end is also undone a little after that end, so that a stopped or starved first process
//! does not keep its victim stopped. The guard has its own session, so that a signal to the process group of the first
//! process does not reach it, and it ignores the signals that people send by name. If permitted, it leaves the control
//! groups of the first process, so that killing one of those as a whole does not reach it either.
#![expect(unsafe_code, reason = "to ignore a signal has no safe wrapper here")]

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::Nanos;

use super::error::DisturbError;
use super::undo::{Ready, Undo};
use crate::cgroup::tops;

/// How to start this program again, as a second process.
#[derive(Debug, Clone)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Arguments with which it calls [`guard`].
    pub guard: Vec<OsString>,
    /// Arguments with which it calls [`super::work`]; those of the work are appended.
    pub worker: Vec<OsString>,
}

/// The first process's handle to the guard. When it is dropped, the guard undoes what is left to be undone, and ends.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    /// Dropped to signal to the guard that this process is done.
    orders: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    next: u64,
    /// It did not take an order, or did not reply: it is gone, even if the kernel does not report that yet.
    lost: bool,
}

/// A disturbance that the guard would undo.
#[derive(Debug)]
#[must_use = "without it the guard cannot be informed that the disturbance is undone"]
pub(crate) struct Armed(u64);

impl Guard {
    /// Starts the guard and waits until it is protected from what may happen to this process.
    ///
    /// # Errors
    ///
    /// When no process can be started.
    ///
    /// # Cost
    ///
    /// A sleeping process of some megabytes.
    pub fn start(program: &Program) -> Result<Guard, DisturbError> {
        let mut child = Command::new(&program.path)
            // Under another name: killing the first process by name does not hit its guard.
            .arg0(NAME)
            .args(&program.guard)
            // It must not keep a file system busy that somebody wants to unmount.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(DisturbError::system("start the guard process"))?;
        let orders = child.stdin.take();
        let replies = child.stdout.take().expect("the guard's output was asked for as a pipe");
        let mut guard = Guard { child, orders, replies: BufReader::new(replies), next: 0, lost: false };
        match guard.reply()?.as_str() {
            READY => Ok(guard),
            why => Err(DisturbError::GuardRefused { why: why.to_owned() }),
        }
    }

    /// The pid of the guard's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the guard how to undo a disturbance that has not been applied yet; a while after `until` it undoes it by
    /// itself.
    ///
    /// # Errors
    ///
    /// The disturbance must not be applied in that case.
    pub(crate) fn arm(&mut self, undo: &Undo, until: Option<Nanos>) -> Result<Armed, DisturbError> {
        let id = self.next;
        self.next += 1;
        let until = until.map_or(0, |until| until.saturating_add(OVERDUE).0);
        self.send(&format!("arm\t{id}\t{until}\t{}\n", undo.encode()?))?;
        let reply = self.reply()?;
        match reply.strip_prefix("ok") {
            Some(_) => Ok(Armed(id)),
            None => Err(DisturbError::GuardRefused { why: reply }),
        }
    }

    /// Reports that a disturbance is undone. Returns when the guard undid it as overdue, if it did.
    ///
    /// # Errors
    ///
    /// [`DisturbError::NoGuard`].
    pub(crate) fn disarm(&mut self, armed: &Armed) -> Result<Option<Nanos>, DisturbError> {
        self.send(&format!("done\t{}\n", armed.0))?;
        let reply = self.reply()?;
        Ok(reply.strip_prefix("overdue ").and_then(|at| at.parse().ok()).map(Nanos))
    }

    /// Checks that the guard is alive.
    ///
    /// # Errors
    ///
    /// [`DisturbError::NoGuard`] when it has ended.
    pub fn check(&mut self) -> Result<(), DisturbError> {
        match self.child.try_wait() {
            Ok(None) if !self.lost => Ok(()),
            _ => Err(DisturbError::NoGuard),
        }
    }

    fn send(&mut self, line: &str) -> Result<(), DisturbError> {
        let orders = self.orders.as_mut().ok_or(DisturbError::NoGuard)?;
        let sent = orders.write_all(line.as_bytes());
        self.lost |= sent.is_err();
        sent.map_err(|_| DisturbError::NoGuard)
    }

    fn reply(&mut self) -> Result<String, DisturbError> {
        let mut fds = [PollFd::new(self.replies.get_ref(), PollFlags::IN)];
        let patience = Timespec { tv_sec: PATIENCE_S, tv_nsec: 0 };
        let mut line = String::new();
        let ready = self.replies.buffer().contains(&b'\n')
            || poll(&mut fds, Some(&patience)).is_ok_and(|ready| ready > 0);
        match ready && self.replies.read_line(&mut line).is_ok_and(|length| length > 0) {
            true => Ok(line.trim_end().to_owned()),
            false => {
                self.lost = true;
                Err(DisturbError::NoGuard)
            }
        }
    }
}

impl Guard {
    /// Makes the guard undo everything that is left, and waits for that; a control group may take some seconds.
    ///
    /// # Errors
    ///
    /// [`DisturbError::Left`] with what could not be undone, or when the guard failed.
    pub fn finish(mut self) -> Result<(), DisturbError> {
        self.orders = None;
        let mut output = String::new();
        // It ends when its replies end.
        let _ = self.replies.read_to_string(&mut output);
        let what = output.lines().find_map(|line| line.strip_prefix(LEFT)).map(str::to_owned);
        match (what, self.child.wait()) {
            (Some(what), _) => Err(DisturbError::Left { what }),
            (None, Ok(status)) if status.success() => Ok(()),
            (None, Ok(status)) => Err(DisturbError::Unguarded { why: status.to_string() }),
            (None, Err(error)) => Err(DisturbError::Unguarded { why: error.to_string() }),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.orders = None;
        // No effect after [`Guard::finish`], which reports errors.
        let _ = self.child.wait();
    }
}

/// The guard process from start to end: waits for the end of its input, and undoes what is left.
///
/// # Errors
///
/// What could not be undone, or why it cannot guard.
pub fn guard() -> io::Result<()> {
    protect()?;
    let undone = serve(io::stdin().lock(), &mut io::stdout().lock());
    undone.map_err(io::Error::other)
}

/// Leaves the session, the process group and the control groups of the first process, and ignores the signals that
/// people send by name. For a guard process, before it reports that it is ready.
///
/// # Errors
///
/// When this process leads a group: it must be a child that was not made to lead one.
pub fn protect() -> io::Result<()> {
    rustix::process::setsid()?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTSTP] {
        // SAFETY: SIG_IGN is not a function that could run at a wrong moment.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // Best effort: without privileges the guard keeps the priority and the score that it has.
    let _ = rustix::thread::set_name(c"plx-guard");
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    let _ = rustix::process::setpriority_process(None, -10);
    leave_groups();
    Ok(())
}

/// Killing the control group of the first process (by hand, by a service manager or for lack of memory) must not kill
/// its guard. The topmost groups are never killed and have no limits. If moving there is not permitted, the guard
/// stays.
fn leave_groups() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for top in tops(&mounts) {
        let _ = fs::write(top.join("cgroup.procs"), std::process::id().to_string());
    }
}

/// Undoes what is left when `orders` end.
fn serve(mut orders: impl Read + AsFd, replies: &mut dyn Write) -> Result<(), String> {
    let mut held: Vec<Held> = Vec::new();
    let mut text = Vec::new();
    reply(replies, READY);
    loop {
        let until = held.iter().filter_map(|held| held.until).min();
        if wait(&orders, until) {
            let mut bytes = [0; 4_096];
            match orders.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => text.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        while let Some(end) = text.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            handle(&mut held, String::from_utf8_lossy(&line).trim_end_matches('\n'), replies);
        }
        if text.len() > LONGEST_ORDER {
            break;
        }
        let now = clock::now();
        for overdue in held.iter_mut().filter(|held| held.until.is_some_and(|until| until <= now)) {
            overdue.undo_overdue(now);
        }
    }
    let mut failed = Vec::new();
    // The latest disturbance first, as one would by hand.
    for left in held.iter_mut().rev() {
        failed.extend(left.ready.undo().err());
    }
    if failed.is_empty() {
        return Ok(());
    }
    let left = failed.join("; ");
    reply(replies, &format!("{LEFT}{left}"));
    Err(left)
}

/// A disturbance that is to be undone.
#[derive(Debug)]
struct Held {
    id: u64,
    /// When it is overdue; `None` once it has been undone as overdue.
    until: Option<Nanos>,
    /// When it was undone as overdue.
    undone: Option<Nanos>,
    ready: Ready,
}

impl Held {
    /// It stays on the list: a process too late to undo a disturbance may also have been late to apply it.
    fn undo_overdue(&mut self, now: Nanos) {
        match self.ready.undo() {
            Ok(()) => (self.until, self.undone) = (None, self.undone.or(Some(now))),
            Err(_) => self.until = Some(now.saturating_add(AGAIN)),
        }
    }
}

fn handle(held: &mut Vec<Held>, line: &str, replies: &mut dyn Write) {
    let mut fields = line.splitn(4, '\t');
    let verb = fields.next();
    let id = fields.next().and_then(|id| id.parse::<u64>().ok());
    match (verb, id) {
        (Some("done"), Some(id)) => {
            let undone = held.iter().find(|held| held.id == id).and_then(|held| held.undone);
            held.retain(|held| held.id != id);
            reply(replies, &undone.map_or("ok".to_owned(), |at| format!("overdue {}", at.0)));
        }
        (Some("arm"), Some(id)) => {
            let until = fields.next().and_then(|until| until.parse::<u64>().ok());
            let undo = fields.next().and_then(Undo::parse);
            let ready = until.zip(undo).ok_or_else(|| "not understood".to_owned());
            match ready.and_then(|(until, undo)| Ready::open(undo).map(|ready| (until, ready))) {
                Ok((until, ready)) => {
                    let until = (until > 0).then_some(Nanos(until));
                    held.push(Held { id, until, undone: None, ready });
                    reply(replies, "ok");
                }
                Err(why) => reply(replies, &why),
            }
        }
        _ => reply(replies, "not understood"),
    }
}

/// The reader may be gone; that becomes apparent when the orders end.
fn reply(replies: &mut dyn Write, line: &str) {
    let _ =
        replies.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes()).and_then(|()| replies.flush());
}

/// Whether there is something to read, or the end of the input; `false` if `until` came first.
fn wait(orders: &impl AsFd, until: Option<Nanos>) -> bool {
    let timeout = until.map(|until| until.saturating_sub(clock::now()));
    let timeout = timeout.map(|left| Timespec {
        tv_sec: i64::try_from(left.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (left.0 % 1_000_000_000) as _,
    });
    let mut fds = [PollFd::new(orders, PollFlags::IN)];
    poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0)
}

const NAME: &str = "plx-guard";
const READY: &str = "ready";
const LEFT: &str = "left ";

/// A guard that does not reply within this time is stopped or starved, and would not undo anything either.
const PATIENCE_S: i64 = 10;

/// How long a disturbance may exceed its planned end before the guard ends it. A first process that shares its CPU
/// with hogs is late by some scheduler slices, which are milliseconds.
const OVERDUE: Nanos = Nanos::from_millis(1_000);

/// What could not be undone when it was overdue is tried again after this time.
const AGAIN: Nanos = Nanos::from_millis(100);

/// Two paths and some numbers; a longer line is not one of ours.
const LONGEST_ORDER: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::disturb::testing::Sleeper;
    use crate::disturb::undo::Who;
    use crate::disturb::victim::{Force, Victim};

    /// A guard without its own process: its orders and replies.
    struct Other {
        orders: Option<io::PipeWriter>,
        replies: BufReader<io::PipeReader>,
        thread: Option<thread::JoinHandle<Result<(), String>>>,
    }

    impl Other {
        fn start() -> Other {
            let (reader, orders) = io::pipe().unwrap();
            let (replies, mut writer) = io::pipe().unwrap();
            let thread = thread::spawn(move || serve(reader, &mut writer));
            let mut other =
                Other { orders: Some(orders), replies: BufReader::new(replies), thread: Some(thread) };
            assert_eq!(other.reply(), READY);
            other
        }

        fn reply(&mut self) -> String {
            let mut line = String::new();
            self.replies.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        }

        fn send(&mut self, line: &str) {
            self.orders.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
        }

        fn end(&mut self) -> Result<(), String> {
            self.orders = None;
            self.thread.take().unwrap().join().unwrap()
        }
    }

    fn who(victim: &Victim) -> String {
        Undo::Continue(Who { pid: victim.pid(), started: victim.started() }).encode().unwrap()
    }

    /// If this fails, a killed `disturb` leaves a server stopped for good.
    #[test]
    fn the_guard_undoes_what_is_left_when_its_orders_end() {
        let sleeper = Sleeper::start();
        let victim = Victim::open(sleeper.pid(), Force::No).unwrap();
        let mut guard = Other::start();
        guard.send(&format!("arm\t0\t0\t{}", who(&victim)));
        assert_eq!(guard.reply(), "ok");
        victim.signal(rustix::process::Signal::STOP).unwrap();
        sleeper.wait_until(|| victim.is_stopped());
        guard.end().unwrap();
        sleeper.wait_until(|| !victim.is_stopped());
    }

    /// If this fails, the guard wakes a process that somebody else has stopped.
    #[test]
    fn a_disarmed_disturbance_is_left_alone() {
        let sleeper = Sleeper::start();
        let victim = Victim::open(sleeper.pid(), Force::No).unwrap();
        let mut guard = Other::start();
        guard.send(&format!("arm\t0\t0\t{}", who(&victim)));
        assert_eq!(guard.reply(), "ok");
        guard.send("done\t0");
        assert_eq!(guard.reply(), "ok");
        victim.signal(rustix::process::Signal::STOP).unwrap();
        sleeper.wait_until(|| victim.is_stopped());
        guard.end().unwrap();
        assert!(victim.is_stopped());
    }

    #[test]
    fn an_overdue_disturbance_is_undone_while_orders_continue() {
        let sleeper = Sleeper::start();
        let victim = Victim::open(sleeper.pid(), Force::No).unwrap();
        let mut guard = Other::start();
        victim.signal(rustix::process::Signal::STOP).unwrap();
        sleeper.wait_until(|| victim.is_stopped());
        guard.send(&format!("arm\t0\t{}\t{}", clock::now().0 + 20_000_000, who(&victim)));
        assert_eq!(guard.reply(), "ok");
        sleeper.wait_until(|| !victim.is_stopped());
        guard.send("done\t0");
        assert!(guard.reply().starts_with("overdue "), "the reply carries the instant of the undo");
        guard.end().unwrap();
    }

    /// If this fails, a first process that stalled just before a disturbance applies it, and no guard would undo it.
    #[test]
    fn a_disturbance_overdue_before_it_was_applied_is_undone_at_the_end() {
        let sleeper = Sleeper::start();
        let victim = Victim::open(sleeper.pid(), Force::No).unwrap();
        let mut guard = Other::start();
        guard.send(&format!("arm\t0\t1\t{}", who(&victim)));
        assert_eq!(guard.reply(), "ok");
        // The next order is handled after the overdue disturbance was undone.
        guard.send("arm\t1\t0\tnonsense");
        assert_eq!(guard.reply(), "not understood");
        victim.signal(rustix::process::Signal::STOP).unwrap();
        sleeper.wait_until(|| victim.is_stopped());
        guard.end().unwrap();
        sleeper.wait_until(|| !victim.is_stopped());
    }

    /// If this fails, a process that was given the pid of an ended victim is signalled.
    #[test]
    fn a_reused_pid_is_refused() {
        let sleeper = Sleeper::start();
        let mut guard = Other::start();
        let undo = Undo::Kill(Who { pid: sleeper.pid(), started: 1 }).encode().unwrap();
        guard.send(&format!("arm\t0\t0\t{undo}"));
        assert!(guard.reply().contains("now another process"));
        guard.send("arm\t1\t0\tnonsense");
        assert_eq!(guard.reply(), "not understood");
        guard.end().unwrap();
        assert!(!Victim::open(sleeper.pid(), Force::No).unwrap().has_ended());
    }
}
