//! A process that disturbs, from start to end: reads orders from its input, uses up resources within each episode, and
//! reports what it actually used.
//!
//! It is a separate process, so that its CPU time, its memory and its control groups are its own, and so that the
//! kernel's out-of-memory killer takes it and nothing else. It ends with the process that started it.
#![expect(unsafe_code, reason = "to ignore a signal has no safe wrapper here")]

mod cpu;
mod disk;
mod memory;

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Write};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rustix::process::{Signal, getppid, set_parent_process_death_signal, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use units::Nanos;

use super::conduct::Fact;

/// What one process uses up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Burns a share of a CPU's time.
    Cpu { duty_ppm: u64, cpu: Option<usize>, nice: i32 },
    /// Allocates memory and touches each page in turn; with a rate repeatedly, otherwise once.
    Memory { bytes: u64, bytes_per_s: Option<u64> },
    /// Writes blocks into a file in `folder`, each followed by fsync; with a rate, otherwise back to back.
    Disk { folder: PathBuf, block_bytes: u64, file_bytes: u64, per_s: Option<u64> },
}

impl Work {
    /// The work as command-line arguments.
    pub(crate) fn encode(&self) -> Vec<OsString> {
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string()).into();
        match self {
            Work::Cpu { duty_ppm, cpu, nice } => vec![
                "cpu".into(),
                number(Some(*duty_ppm)),
                number(cpu.map(|cpu| cpu as u64)),
                nice.to_string().into(),
            ],
            Work::Memory { bytes, bytes_per_s } => {
                vec!["memory".into(), number(Some(*bytes)), number(*bytes_per_s)]
            }
            Work::Disk { folder, block_bytes, file_bytes, per_s } => vec![
                "disk".into(),
                folder.into(),
                number(Some(*block_bytes)),
                number(Some(*file_bytes)),
                number(*per_s),
            ],
        }
    }

    /// `None` if the arguments were not written by [`Work::encode`].
    pub(crate) fn parse(arguments: &[OsString]) -> Option<Work> {
        let texts: Vec<&str> = arguments.iter().map(|text| text.to_str().unwrap_or("-")).collect();
        let maybe = |text: &str| if text == "-" { Some(None) } else { text.parse::<u64>().ok().map(Some) };
        Some(match *texts.as_slice() {
            ["cpu", duty, cpu, nice] => Work::Cpu {
                duty_ppm: duty.parse().ok()?,
                cpu: maybe(cpu)?.map(usize::try_from).transpose().ok()?,
                nice: nice.parse().ok()?,
            },
            ["memory", bytes, rate] => Work::Memory { bytes: bytes.parse().ok()?, bytes_per_s: maybe(rate)? },
            ["disk", _, block, file, rate] => Work::Disk {
                folder: PathBuf::from(&arguments[1]),
                block_bytes: block.parse().ok()?,
                file_bytes: file.parse().ok()?,
                per_s: maybe(rate)?,
            },
            _ => return None,
        })
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Work::Cpu { .. } => "cpu",
            Work::Memory { .. } => "memory",
            Work::Disk { .. } => "disk",
        }
    }
}

/// Runs a process that disturbs. `arguments` are the pid of its parent and its work, as
/// [`Program::worker`](super::Program) appends them.
///
/// # Errors
///
/// When it cannot do that work; nothing was disturbed then.
pub fn work(arguments: &[OsString]) -> io::Result<()> {
    let wrong = || io::Error::other("only `parallax disturb` starts this");
    let (parent, work) = arguments.split_first().ok_or_else(wrong)?;
    let parent: i32 = parent.to_str().and_then(|pid| pid.parse().ok()).ok_or_else(wrong)?;
    let work = Work::parse(work).ok_or_else(wrong)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent) {
        // The parent was gone before this could be requested.
        return Ok(());
    }
    for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        // A terminal sends them to the whole process group: the first process ends in order and takes this one with it.
        // SAFETY: SIG_IGN is not a function that could run at a wrong moment.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let _ = rustix::thread::set_name(c"plx-disturb");
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // If memory runs out, this is the process to kill.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    // The reason goes to the first process, which has the terminal.
    toil(work).or_else(|error| say(&format!("refused {error}")))
}

fn toil(work: Work) -> io::Result<()> {
    let mut doing = Doing::prepare(work)?;
    let window = listen()?;
    say("ready")?;
    while let Some(begin) = window.wait_for_begin() {
        say(&format!("begun {}", begin.0))?;
        let facts = doing.perform(&window)?;
        let facts = facts.iter().map(|fact| format!(" {}={}", fact.name, fact.value)).collect::<String>();
        say(&format!("ended {}{facts}", clock::now().0))?;
    }
    Ok(())
}

/// The work, with what it needs already open.
enum Doing {
    Cpu { duty_ppm: u64 },
    Memory { bytes: u64, bytes_per_s: Option<u64> },
    Disk(disk::Writer),
}

impl Doing {
    fn prepare(work: Work) -> io::Result<Doing> {
        Ok(match work {
            Work::Cpu { duty_ppm, cpu, nice } => {
                if let Some(cpu) = cpu {
                    let mut set = CpuSet::new();
                    set.set(cpu);
                    sched_setaffinity(None, &set)
                        .map_err(|errno| io::Error::other(format!("cannot run on CPU {cpu}: {errno}")))?;
                }
                if nice != 0 {
                    setpriority_process(None, nice)
                        .map_err(|errno| io::Error::other(format!("cannot have nice {nice}: {errno}")))?;
                }
                Doing::Cpu { duty_ppm }
            }
            Work::Memory { bytes, bytes_per_s } => Doing::Memory { bytes, bytes_per_s },
            Work::Disk { folder, block_bytes, file_bytes, per_s } => {
                Doing::Disk(disk::Writer::open(&folder, block_bytes, file_bytes, per_s)?)
            }
        })
    }

    fn perform(&mut self, window: &Window) -> io::Result<Vec<Fact>> {
        match self {
            Doing::Cpu { duty_ppm } => Ok(cpu::burn(*duty_ppm, window)),
            Doing::Memory { bytes, bytes_per_s } => memory::hold(*bytes, *bytes_per_s, window),
            Doing::Disk(writer) => writer.write(window),
        }
    }
}

/// The current episode, as far as its end is known.
#[derive(Debug, Default)]
pub(crate) struct Window {
    until: AtomicU64,
    orders: Mutex<Orders>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Orders {
    begin: bool,
    /// No more orders will come.
    over: bool,
}

impl Window {
    /// Whether the episode is still running.
    pub(crate) fn is_open(&self) -> bool {
        clock::now().0 < self.until.load(Ordering::Relaxed)
    }

    /// Sleeps until `due`, but not beyond the episode, and not long after an order to end it.
    pub(crate) fn sleep_until(&self, due: Nanos) {
        while self.is_open() && clock::now() < due {
            let until = Nanos(self.until.load(Ordering::Relaxed));
            clock::sleep_until(due.min(until).min(clock::now() + Nanos::from_millis(10)));
        }
    }

    fn wait_for_begin(&self) -> Option<Nanos> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if orders.over {
                return None;
            }
            if std::mem::take(&mut orders.begin) {
                return Some(clock::now());
            }
            orders = self.came.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn order(&self, line: &str) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        match line.split_once(' ') {
            Some(("begin", until)) => {
                self.until.store(until.parse().unwrap_or(0), Ordering::Relaxed);
                orders.begin = true;
            }
            _ => self.until.store(0, Ordering::Relaxed),
        }
        self.came.notify_all();
    }

    fn close(&self) {
        self.until.store(0, Ordering::Relaxed);
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.came.notify_all();
    }

    #[cfg(test)]
    pub(crate) fn until(until: Nanos) -> Window {
        Window { until: AtomicU64::new(until.0), ..Window::default() }
    }
}

/// Starts a thread that reads the orders, because the work itself cannot.
fn listen() -> io::Result<Arc<Window>> {
    let window = Arc::<Window>::default();
    let theirs = Arc::clone(&window);
    thread::Builder::new().name("orders".to_owned()).spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            theirs.order(&line);
        }
        theirs.close();
    })?;
    Ok(window)
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn fact(name: &str, value: u64) -> Fact {
    Fact { name: name.to_owned(), value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_survives_a_command_line() {
        for work in [
            Work::Cpu { duty_ppm: 500_000, cpu: Some(3), nice: -5 },
            Work::Cpu { duty_ppm: 1, cpu: None, nice: 0 },
            Work::Memory { bytes: 1 << 30, bytes_per_s: None },
            Work::Memory { bytes: 1, bytes_per_s: Some(5) },
            Work::Disk { folder: "/tmp/a b".into(), block_bytes: 1, file_bytes: 2, per_s: Some(3) },
        ] {
            assert_eq!(Work::parse(&work.encode()), Some(work));
        }
        assert_eq!(Work::parse(&["cpu".into()]), None);
        assert_eq!(Work::parse(&[]), None);
    }

    #[test]
    fn orders_open_and_close_the_window() {
        let window = Window::default();
        assert!(!window.is_open());
        window.order(&format!("begin {}", u64::MAX));
        assert!(window.wait_for_begin().is_some() && window.is_open());
        window.order("end");
        assert!(!window.is_open());
        window.order("begin nonsense");
        assert!(!window.is_open());
        window.close();
        assert!(window.wait_for_begin().is_none());
    }
}
