//! A second process that undoes what the first one did, should that be killed.
//!
//! It holds the reading end of a pipe whose only writing end is the first process's: when that process is gone, by
//! whatever means, the kernel closes it, after the last of its system calls has returned. Before each deed the guard
//! is told how to undo it, takes hold of the process or file that it will need, and says that it has. A deed that it
//! has not acknowledged is not done.
//!
//! What has an end in time is also undone a little after it, so that a first process that is stopped or starved
//! does not keep its victim stopped. The guard has a session of its own, so that a signal to the group of the first
//! process does not reach it, and does not end by the signals that people send by name.
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

/// How to start this program again, as a process beside the first.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: PathBuf,
    /// Arguments with which it calls [`guard`].
    pub guard: Vec<OsString>,
    /// Arguments with which it calls [`super::work`]; those of the work follow.
    pub worker: Vec<OsString>,
}

/// The first process's end of it. When it is dropped, the guard undoes what is still to be undone and ends.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    /// Taken when it is dropped: that is how the guard learns of it.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    next: u64,
    /// It did not take an order, or did not answer: it is gone, though the kernel may not say so yet.
    lost: bool,
}

/// A deed that the guard would undo.
#[derive(Debug)]
#[must_use = "without it the guard cannot be told that the deed is undone"]
pub(crate) struct Armed(u64);

impl Guard {
    /// Starts the guard and waits until it is safe from what may happen to this process.
    ///
    /// # Errors
    ///
    /// When there can be no process for it.
    ///
    /// # Cost
    ///
    /// A process of some megabytes that sleeps.
    pub fn start(program: &Program) -> Result<Guard, DisturbError> {
        let mut child = Command::new(&program.path)
            // Told apart by name: who kills the first process by its name does not mean its guard.
            .arg0(NAME)
            .args(&program.guard)
            // It holds no file system that somebody wants to unmount.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(DisturbError::system("start the guard process"))?;
        let orders = child.stdin.take();
        let answers = child.stdout.take().expect("the guard's output was asked for as a pipe");
        let mut guard = Guard { child, orders, answers: BufReader::new(answers), next: 0, lost: false };
        match guard.answer()?.as_str() {
            READY => Ok(guard),
            why => Err(DisturbError::GuardRefused { why: why.to_owned() }),
        }
    }

    /// The guard's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells the guard how to undo a deed that is not done yet; a while after `until` it undoes it by itself.
    ///
    /// # Errors
    ///
    /// The deed must not be done then.
    pub(crate) fn arm(&mut self, undo: &Undo, until: Option<Nanos>) -> Result<Armed, DisturbError> {
        let id = self.next;
        self.next += 1;
        let until = until.map_or(0, |until| until.saturating_add(OVERDUE).0);
        self.tell(&format!("arm\t{id}\t{until}\t{}\n", undo.encode()?))?;
        let answer = self.answer()?;
        match answer.strip_prefix("ok") {
            Some(_) => Ok(Armed(id)),
            None => Err(DisturbError::GuardRefused { why: answer }),
        }
    }

    /// The deed is undone. When the guard undid it as overdue, where it did.
    ///
    /// # Errors
    ///
    /// [`DisturbError::NoGuard`].
    pub(crate) fn disarm(&mut self, armed: &Armed) -> Result<Option<Nanos>, DisturbError> {
        self.tell(&format!("done\t{}\n", armed.0))?;
        let answer = self.answer()?;
        Ok(answer.strip_prefix("overdue ").and_then(|at| at.parse().ok()).map(Nanos))
    }

    /// # Errors
    ///
    /// [`DisturbError::NoGuard`] when it has ended.
    pub fn check(&mut self) -> Result<(), DisturbError> {
        match self.child.try_wait() {
            Ok(None) if !self.lost => Ok(()),
            _ => Err(DisturbError::NoGuard),
        }
    }

    fn tell(&mut self, line: &str) -> Result<(), DisturbError> {
        let orders = self.orders.as_mut().ok_or(DisturbError::NoGuard)?;
        let told = orders.write_all(line.as_bytes());
        self.lost |= told.is_err();
        told.map_err(|_| DisturbError::NoGuard)
    }

    fn answer(&mut self) -> Result<String, DisturbError> {
        let mut fds = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
        let patience = Timespec { tv_sec: PATIENCE_S, tv_nsec: 0 };
        let mut line = String::new();
        let ready = self.answers.buffer().contains(&b'\n')
            || poll(&mut fds, Some(&patience)).is_ok_and(|ready| ready > 0);
        match ready && self.answers.read_line(&mut line).is_ok_and(|length| length > 0) {
            true => Ok(line.trim_end().to_owned()),
            false => {
                self.lost = true;
                Err(DisturbError::NoGuard)
            }
        }
    }
}

impl Guard {
    /// Has everything undone that is left, and waits for it; a control group may take some seconds.
    ///
    /// # Errors
    ///
    /// [`DisturbError::Left`] with what could not be undone, or when the guard did not come to it.
    pub fn finish(mut self) -> Result<(), DisturbError> {
        self.orders = None;
        let mut said = String::new();
        // Its end is the end of its answers.
        let _ = self.answers.read_to_string(&mut said);
        let what = said.lines().find_map(|line| line.strip_prefix(LEFT)).map(str::to_owned);
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
        // Nothing after [`Guard::finish`], which is for who wants to know.
        let _ = self.child.wait();
    }
}

/// What the guard process does from its start to its end: waits for the end of its input, and undoes.
///
/// # Errors
///
/// What could not be undone, or why it cannot guard.
pub fn guard() -> io::Result<()> {
    protect()?;
    let undone = serve(io::stdin().lock(), &mut io::stdout().lock());
    undone.map_err(io::Error::other)
}

/// Leaves the session and the group of the first process, and outlives what is sent to processes by name.
fn protect() -> io::Result<()> {
    rustix::process::setsid()?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTSTP] {
        // SAFETY: SIG_IGN is no function that could run at a wrong moment.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // Both are wishes: without privileges the guard has the priority and the score that it has.
    let _ = rustix::thread::set_name(c"plx-guard");
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    let _ = rustix::process::setpriority_process(None, -10);
    Ok(())
}

/// Undoes what is left when `orders` end.
fn serve(mut orders: impl Read + AsFd, answers: &mut dyn Write) -> Result<(), String> {
    let mut held: Vec<Held> = Vec::new();
    let mut text = Vec::new();
    answer(answers, READY);
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
            handle(&mut held, String::from_utf8_lossy(&line).trim_end_matches('\n'), answers);
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
    // The latest deed first, as one would by hand.
    for left in held.iter_mut().rev() {
        failed.extend(left.ready.undo().err());
    }
    if failed.is_empty() {
        return Ok(());
    }
    let left = failed.join("; ");
    answer(answers, &format!("{LEFT}{left}"));
    Err(left)
}

/// A deed that is to be undone.
#[derive(Debug)]
struct Held {
    id: u64,
    /// When it is overdue; of one that was, and was undone, no more.
    until: Option<Nanos>,
    /// When it was undone as overdue.
    undone: Option<Nanos>,
    ready: Ready,
}

impl Held {
    /// It is held on to all the same: who was so late to undo the deed may have been as late to do it.
    fn undo_overdue(&mut self, now: Nanos) {
        match self.ready.undo() {
            Ok(()) => (self.until, self.undone) = (None, self.undone.or(Some(now))),
            Err(_) => self.until = Some(now.saturating_add(AGAIN)),
        }
    }
}

fn handle(held: &mut Vec<Held>, line: &str, answers: &mut dyn Write) {
    let mut fields = line.splitn(4, '\t');
    let verb = fields.next();
    let id = fields.next().and_then(|id| id.parse::<u64>().ok());
    match (verb, id) {
        (Some("done"), Some(id)) => {
            let undone = held.iter().find(|held| held.id == id).and_then(|held| held.undone);
            held.retain(|held| held.id != id);
            answer(answers, &undone.map_or("ok".to_owned(), |at| format!("overdue {}", at.0)));
        }
        (Some("arm"), Some(id)) => {
            let until = fields.next().and_then(|until| until.parse::<u64>().ok());
            let undo = fields.next().and_then(Undo::parse);
            let ready = until.zip(undo).ok_or_else(|| "it is not understood".to_owned());
            match ready.and_then(|(until, undo)| Ready::open(undo).map(|ready| (until, ready))) {
                Ok((until, ready)) => {
                    let until = (until > 0).then_some(Nanos(until));
                    held.push(Held { id, until, undone: None, ready });
                    answer(answers, "ok");
                }
                Err(why) => answer(answers, &why),
            }
        }
        _ => answer(answers, "it is not understood"),
    }
}

/// Who is to read it may be gone; that is learnt from the orders.
fn answer(answers: &mut dyn Write, line: &str) {
    let _ =
        answers.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes()).and_then(|()| answers.flush());
}

/// Whether there is something to read, or the end of it; `false` when `until` has come first.
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

/// A guard that does not answer for so long is stopped or starved, and would not undo anything either.
const PATIENCE_S: i64 = 10;

/// So much longer than planned a disturbance may last before the guard ends it. A first process that shares its CPU
/// with hogs is late by some scheduler slices, which are milliseconds.
const OVERDUE: Nanos = Nanos::from_millis(1_000);

/// What could not be undone when it was overdue is tried again so much later.
const AGAIN: Nanos = Nanos::from_millis(100);

/// Two paths and some numbers; more is not from us.
const LONGEST_ORDER: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::disturb::testing::Sleeper;
    use crate::disturb::undo::Who;
    use crate::disturb::victim::{Force, Victim};

    /// A guard without a process of its own: its orders and answers.
    struct Other {
        orders: Option<io::PipeWriter>,
        answers: BufReader<io::PipeReader>,
        thread: Option<thread::JoinHandle<Result<(), String>>>,
    }

    impl Other {
        fn start() -> Other {
            let (reader, orders) = io::pipe().unwrap();
            let (answers, mut writer) = io::pipe().unwrap();
            let thread = thread::spawn(move || serve(reader, &mut writer));
            let mut other =
                Other { orders: Some(orders), answers: BufReader::new(answers), thread: Some(thread) };
            assert_eq!(other.answer(), READY);
            other
        }

        fn answer(&mut self) -> String {
            let mut line = String::new();
            self.answers.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        }

        fn tell(&mut self, line: &str) {
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
    fn what_is_not_undone_when_the_orders_end_is_undone_then() {
        let sleeper = Sleeper::start();
        let victim = Victim::open(sleeper.pid(), Force::No).unwrap();
        let mut guard = Other::start();
        guard.tell(&format!("arm\t0\t0\t{}", who(&victim)));
        assert_eq!(guard.answer(), "ok");
        victim.signal(rustix::process::Signal::STOP).unwrap();
        sleeper.wait_until(|| victim.is_stopped());
        guard.end().unwrap();
        sleeper.wait_until(|| !victim.is_stopped());
    }

    /// If this fails, the guard wakes what somebody else has stopped.
    #[test]
    fn what_is_disarmed_is_left_alone() {
        let sleeper = Sleeper::start();
        let victim = Victim::open(sleeper.pid(), Force::No).unwrap();
        let mut guard = Other::start();
        guard.tell(&format!("arm\t0\t0\t{}", who(&victim)));
        assert_eq!(guard.answer(), "ok");
        guard.tell("done\t0");
        assert_eq!(guard.answer(), "ok");
        victim.signal(rustix::process::Signal::STOP).unwrap();
        sleeper.wait_until(|| victim.is_stopped());
        guard.end().unwrap();
        assert!(victim.is_stopped());
    }

    #[test]
    fn what_is_overdue_is_undone_though_the_orders_go_on() {
        let sleeper = Sleeper::start();
        let victim = Victim::open(sleeper.pid(), Force::No).unwrap();
        let mut guard = Other::start();
        victim.signal(rustix::process::Signal::STOP).unwrap();
        sleeper.wait_until(|| victim.is_stopped());
        guard.tell(&format!("arm\t0\t{}\t{}", clock::now().0 + 20_000_000, who(&victim)));
        assert_eq!(guard.answer(), "ok");
        sleeper.wait_until(|| !victim.is_stopped());
        guard.tell("done\t0");
        assert!(guard.answer().starts_with("overdue "), "who is told that it was undone knows when");
        guard.end().unwrap();
    }

    /// If this fails, who stood still just before a deed does it with nobody to undo it.
    #[test]
    fn what_was_overdue_before_it_was_done_is_undone_at_the_end() {
        let sleeper = Sleeper::start();
        let victim = Victim::open(sleeper.pid(), Force::No).unwrap();
        let mut guard = Other::start();
        guard.tell(&format!("arm\t0\t1\t{}", who(&victim)));
        assert_eq!(guard.answer(), "ok");
        // The next order is taken after what is overdue was undone.
        guard.tell("arm\t1\t0\tnonsense");
        assert_eq!(guard.answer(), "it is not understood");
        victim.signal(rustix::process::Signal::STOP).unwrap();
        sleeper.wait_until(|| victim.is_stopped());
        guard.end().unwrap();
        sleeper.wait_until(|| !victim.is_stopped());
    }

    /// If this fails, a process that was given the pid of an ended victim is signalled.
    #[test]
    fn a_pid_that_changed_hands_is_refused() {
        let sleeper = Sleeper::start();
        let mut guard = Other::start();
        let undo = Undo::Kill(Who { pid: sleeper.pid(), started: 1 }).encode().unwrap();
        guard.tell(&format!("arm\t0\t0\t{undo}"));
        assert!(guard.answer().contains("another process by now"));
        guard.tell("arm\t1\t0\tnonsense");
        assert_eq!(guard.answer(), "it is not understood");
        guard.end().unwrap();
        assert!(!Victim::open(sleeper.pid(), Force::No).unwrap().has_ended());
    }
}
