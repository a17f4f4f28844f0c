//! A load of known CPU use, for tests of instruments: it carries out the commands on its standard input, one per line,
//! replies with the CPU time it has used, and waits for the next line without using any.
//!
//! `spin MS` burns in user space, `kernel MS` in system calls. `evade-user MS` burns in user space and is in a system
//! call whenever the kernel's tick comes, `evade-kernel MS` the reverse: an instrument that samples at the tick sees
//! the opposite of the truth. `threads N MS` starts N threads one after another that burn MS each, half of it in system
//! calls; `last` does the same and the threads stay, and `end` ends them. `children N MS` starts N processes one after
//! another that burn MS each in user space, and waits for each; `stay N MS` starts N that stay, `again MS` makes those
//! burn MS more, and `end` ends them, too.
//!
//! Each reply is `TOTAL USER SYSTEM`, in nanoseconds: the CPU clock of the process including its children's, and its
//! own time in each mode according to the CPU clocks of its threads.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rustix::time::ClockId;
use units::Nanos;

static USER: AtomicU64 = AtomicU64::new(0);
static SYSTEM: AtomicU64 = AtomicU64::new(0);

/// How long before and after a tick it is in the other mode. A tick comes to each CPU up to some 100 us after that of
/// the coarse clock.
const BEFORE: Nanos = Nanos::from_micros(250);
const AFTER: Nanos = Nanos::from_micros(250);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    User,
    System,
}

fn main() -> io::Result<()> {
    if let Some(length) = std::env::args().nth(1).and_then(|text| text.parse().ok()) {
        return burn(Mode::User, Nanos::from_millis(length));
    }
    let mut kept: Vec<(SyncSender<()>, JoinHandle<()>)> = Vec::new();
    let mut children: Vec<Worker> = Vec::new();
    answer(&children)?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_ascii_whitespace();
        let verb = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        match verb {
            "spin" => burn(Mode::User, Nanos::from_millis(number()))?,
            "kernel" => burn(Mode::System, Nanos::from_millis(number()))?,
            "evade-user" => evade(Mode::User, Nanos::from_millis(number()))?,
            "evade-kernel" => evade(Mode::System, Nanos::from_millis(number()))?,
            "threads" => {
                let (count, length) = (number(), Nanos::from_millis(number()));
                for _ in 0..count {
                    let _ = thread::spawn(move || half_and_half(length)).join();
                }
            }
            "last" => {
                let (count, length) = (number(), Nanos::from_millis(number()));
                for _ in 0..count {
                    let (sender, end) = sync_channel(0);
                    let (done, is_done) = sync_channel(1);
                    let stays = thread::spawn(move || {
                        half_and_half(length);
                        let _ = done.send(());
                        let _ = end.recv();
                    });
                    let _ = is_done.recv();
                    kept.push((sender, stays));
                }
            }
            "children" => {
                let (count, length) = (number(), number());
                for _ in 0..count {
                    Command::new(std::env::current_exe()?).arg(length.to_string()).status()?;
                }
            }
            "stay" => {
                let (count, length) = (number(), number());
                for _ in 0..count {
                    let mut worker = Worker::start()?;
                    worker.does(&format!("spin {length}"))?;
                    children.push(worker);
                }
            }
            "again" => {
                let length = number();
                children.iter_mut().try_for_each(|worker| worker.does(&format!("spin {length}")))?;
            }
            "end" => {
                children.drain(..).try_for_each(Worker::end)?;
                for (end, thread) in kept.drain(..) {
                    let _ = end.send(());
                    let _ = thread.join();
                }
            }
            _ => return Err(io::Error::other(format!("`{line}` is nothing it can do"))),
        }
        answer(&children)?;
    }
    Ok(())
}

/// A child process that runs this program again.
struct Worker {
    child: Child,
    answers: BufReader<ChildStdout>,
    /// Its CPU clock at its last reply.
    used: u64,
}

impl Worker {
    fn start() -> io::Result<Worker> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = BufReader::new(child.stdout.take().expect("the child was started with pipes"));
        let mut worker = Worker { child, answers, used: 0 };
        worker.listen()?;
        Ok(worker)
    }

    fn does(&mut self, what: &str) -> io::Result<()> {
        writeln!(self.child.stdin.as_mut().expect("the child was started with pipes"), "{what}")?;
        self.listen()
    }

    fn listen(&mut self) -> io::Result<()> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let total = line.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
        self.used = total.ok_or_else(|| io::Error::other("a child has ended"))?;
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().map(|_| ())
    }
}

/// Children that have ended are in the kernel's account of children, exactly; those that stay have reported their
/// clocks.
#[expect(clippy::disallowed_methods, reason = "the truth must not come from the instrument")]
fn answer(children: &[Worker]) -> io::Result<()> {
    let ended = host::children_cpu().ok_or_else(|| io::Error::other("no account of children"))?;
    let staying: u64 = children.iter().map(|worker| worker.used).sum();
    let (user, system) = (USER.load(Ordering::Relaxed), SYSTEM.load(Ordering::Relaxed));
    let mut out = io::stdout().lock();
    let total = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    let total = total.tv_sec as u64 * 1_000_000_000 + total.tv_nsec as u64;
    writeln!(out, "{} {user} {system}", total + ended.0 + staying)?;
    out.flush()
}

fn half_and_half(length: Nanos) {
    let half = Nanos(length.0 / 2);
    let _ = burn(Mode::User, half).and_then(|()| burn(Mode::System, half));
}

fn burn(mode: Mode, length: Nanos) -> io::Result<()> {
    let mut work = Work::new()?;
    let begin = clock::thread_cpu();
    while clock::thread_cpu() < begin + length {
        // Long enough for the clock's own system call not to matter.
        (0..4).try_for_each(|_| work.some(mode))?;
    }
    note(mode, begin);
    Ok(())
}

fn evade(mode: Mode, length: Nanos) -> io::Result<()> {
    let mut work = Work::new()?;
    let other = if mode == Mode::User { Mode::System } else { Mode::User };
    let tick = clock::tick();
    let started = clock::thread_cpu();
    let offset = offset_of_tick(tick);
    note(Mode::User, started);
    let begin = clock::thread_cpu();
    let (mut now_in, mut since) = (mode, begin);
    while clock::thread_cpu() < begin + length {
        for _ in 0..4 {
            let after = since_coarse().saturating_sub(offset);
            let wanted = if after < AFTER || after + BEFORE > tick { other } else { mode };
            if wanted != now_in {
                note(now_in, since);
                (now_in, since) = (wanted, clock::thread_cpu());
            }
            work.some(wanted)?;
        }
    }
    note(now_in, since);
    Ok(())
}

/// The coarse clock advances at the tick, to a time somewhat before it.
fn offset_of_tick(tick: Nanos) -> Nanos {
    let end = clock::now() + Nanos(tick.0 * 10);
    let mut least = since_coarse();
    while clock::now() < end {
        least = least.min(since_coarse());
    }
    least
}

#[expect(clippy::disallowed_methods, reason = "the phase of the tick is what this program plays with")]
fn since_coarse() -> Nanos {
    let coarse = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
    // Read in this order the difference is never negative, however long this thread has no CPU in between.
    clock::now().saturating_sub(Nanos(coarse.tv_sec as u64 * 1_000_000_000 + coarse.tv_nsec as u64))
}

fn note(mode: Mode, since: Nanos) {
    let used = clock::thread_cpu() - since;
    let of = if mode == Mode::User { &USER } else { &SYSTEM };
    of.fetch_add(used.0, Ordering::Relaxed);
}

struct Work {
    random: File,
    buffer: Vec<u8>,
}

impl Work {
    fn new() -> io::Result<Work> {
        Ok(Work { random: File::open("/dev/urandom")?, buffer: vec![1; 16 * 1_024] })
    }

    /// Burns some 50 us, of which the overhead between two calls is less than a hundredth.
    fn some(&mut self, mode: Mode) -> io::Result<()> {
        match mode {
            Mode::System => self.random.read_exact(&mut self.buffer),
            Mode::User => {
                (0..5_000u64).for_each(|n| {
                    black_box(n * n);
                });
                Ok(())
            }
        }
    }
}
