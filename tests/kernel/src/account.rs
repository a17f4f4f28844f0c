//! The planted server's own account of a request: the truth that an observer is compared with.
//!
//! Times of the monotonic clock, the thread's CPU clock, and the kernel's own count of how long the thread waited for a
//! CPU. Time that is neither CPU time nor such a wait is blocked time, and the step shows on what.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use units::Nanos;

/// One request, from the view of the server that served it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The client's port; 0 if it has none.
    pub peer_port: u16,
    /// Its number on its connection.
    pub n: u64,
    pub path: String,
    pub pid: u32,
    /// The thread that did the steps and wrote the response.
    pub tid: u32,
    /// The thread that read the request.
    pub reader: u32,
    /// When the read that brought its last byte had returned.
    pub read_ns: u64,
    /// When a thread picked it up: a few microseconds after `read_ns`, or later if it had to queue within the server.
    pub begun_ns: u64,
    /// When its steps were done.
    pub worked_ns: u64,
    /// Just before the first write of its response.
    pub writing_ns: u64,
    /// When the last write of its response had returned.
    pub written_ns: u64,
    /// From begun to written, by the clock and the counters of the thread.
    pub used: Used,
    pub steps: Vec<Done>,
    pub request_bytes: u64,
    pub response_bytes: u64,
    /// How it was read and written.
    pub io: String,
}

/// What one thread used between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Used {
    pub wall_ns: u64,
    pub cpu_ns: u64,
    /// Runnable but not running, as the kernel counts it: preempted, woken, yielded or throttled.
    pub run_delay_ns: u64,
    /// How often it was put on a CPU.
    pub slices: u64,
}

impl Used {
    /// Neither on a CPU nor waiting for one; also what the hypervisor took while it ran.
    pub fn rest_ns(self) -> u64 {
        self.wall_ns.saturating_sub(self.cpu_ns + self.run_delay_ns)
    }
}

/// One step as it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub step: String,
    pub planned_ns: Option<u64>,
    pub used: Used,
}

impl Account {
    /// Neither running nor runnable within the steps with these names.
    pub fn blocked_in(&self, steps: &[&str]) -> Nanos {
        Nanos(self.of(steps).map(|done| done.used.rest_ns()).sum())
    }

    /// Runnable but not running within the steps with these names.
    pub fn delayed_in(&self, steps: &[&str]) -> Nanos {
        Nanos(self.of(steps).map(|done| done.used.run_delay_ns).sum())
    }

    fn of<'a>(&'a self, steps: &'a [&str]) -> impl Iterator<Item = &'a Done> {
        self.steps.iter().filter(|done| steps.contains(&done.step.as_str()))
    }
}

/// The counters of the calling thread at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub at: Nanos,
    cpu: Nanos,
    run_delay_ns: u64,
    slices: u64,
}

impl Moment {
    pub fn until(&self, later: &Moment) -> Used {
        Used {
            wall_ns: (later.at - self.at).0,
            cpu_ns: (later.cpu - self.cpu).0,
            run_delay_ns: later.run_delay_ns - self.run_delay_ns,
            slices: later.slices - self.slices,
        }
    }
}

/// Reads the counters of one thread; it belongs to the thread that made it.
pub struct Counters {
    schedstat: File,
    pub tid: u32,
}

impl Counters {
    /// # Errors
    ///
    /// This kernel does not account for waiting threads (`CONFIG_SCHED_INFO`).
    pub fn open() -> io::Result<Counters> {
        let schedstat = File::open("/proc/thread-self/schedstat")?;
        let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        Ok(Counters { schedstat, tid })
    }

    /// The clocks and the counters at one moment: read again if the thread was switched in between, because then they
    /// belong to two moments.
    ///
    /// # Panics
    ///
    /// The kernel's file for this thread can no longer be read.
    ///
    /// # Cost
    ///
    /// Three system calls, 2 to 5 us, all of which count as CPU time of the step or request that they begin or end.
    pub fn moment(&self) -> Moment {
        let mut before = self.waits();
        loop {
            let (at, cpu) = (clock::now(), clock::thread_cpu());
            let after = self.waits();
            if after == before {
                let (run_delay_ns, slices) = after;
                return Moment { at, cpu, run_delay_ns, slices };
            }
            before = after;
        }
    }

    /// How long it waited for a CPU, and how often it was put on one.
    fn waits(&self) -> (u64, u64) {
        let mut text = [0; 96];
        let length = self.schedstat.read_at(&mut text, 0).expect("a living thread has its schedstat");
        let mut fields = text[..length].split(|&byte| byte == b' ' || byte == b'\n').skip(1).map(number);
        let mut next = || fields.next().flatten().expect("schedstat has three numbers");
        (next(), next())
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The accounts of one process, kept until it ends.
#[derive(Default)]
pub struct Book {
    accounts: Mutex<Vec<Account>>,
}

impl Book {
    pub fn add(&self, account: Account) {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).push(account);
    }

    /// Writes all accounts to a file of this process in `folder`.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(format!("account-{}.ndjson", std::process::id()));
        let mut file = BufWriter::new(OpenOptions::new().create(true).append(true).open(path)?);
        for account in &*self.accounts.lock().unwrap_or_else(PoisonError::into_inner) {
            serde_json::to_writer(&mut file, account)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }
}

/// Reads the accounts of all processes of a server, by connection and order.
///
/// # Errors
///
/// The directory cannot be read, or a line is not such an account.
pub fn read(folder: &Path) -> io::Result<Vec<Account>> {
    let mut accounts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("account-") {
            for line in std::fs::read_to_string(&path)?.lines() {
                accounts.push(serde_json::from_str(line)?);
            }
        }
    }
    accounts.sort_by_key(|account: &Account| (account.peer_port, account.pid, account.n));
    Ok(accounts)
}
