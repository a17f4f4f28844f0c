//! The thread clocks compared with programs that know which mode they were in. Needs the right to load eBPF programs.
#![expect(clippy::unwrap_used, reason = "a panic in a test is the test failing")]

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use units::Nanos;
use watch::cpu::{Boundaries, ThreadClocks, Watched};

/// `crates/host/examples/burner.rs`.
struct Burner {
    child: Child,
    orders: ChildStdin,
    replies: BufReader<ChildStdout>,
    /// As of the last reply: total, user and system.
    reported: [u64; 3],
    /// Removed after the process has ended.
    group: Group,
}

impl Burner {
    fn start() -> Burner {
        Burner::start_by(Command::new(Burner::path()))
    }

    /// Nothing takes its CPU: otherwise the kernel would work for the burner in between, in a mode that the burner does
    /// not know.
    fn start_undisturbed() -> Burner {
        let mut command = Command::new("chrt");
        command.args(["--fifo", "1"]).arg(Burner::path());
        Burner::start_by(command)
    }

    fn path() -> PathBuf {
        let path = std::env::current_exe().unwrap().parent().unwrap().join("../examples/burner");
        assert!(path.exists(), "{} is not there; `cargo build -p host --examples` makes it", path.display());
        path
    }

    fn start_by(mut command: Command) -> Burner {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (orders, replies) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let group = Group::around(child.id());
        let mut burner = Burner { child, orders, replies, reported: [0; 3], group };
        burner.listen();
        burner
    }

    fn listen(&mut self) {
        let mut line = String::new();
        self.replies.read_line(&mut line).unwrap();
        let mut numbers = line.split_ascii_whitespace().map(|word| word.parse().unwrap());
        self.reported = std::array::from_fn(|_| numbers.next().unwrap());
        let begin = clock::now();
        while !self.stat().rsplit_once(") ").unwrap().1.starts_with('S') {
            assert!(clock::now() - begin < Nanos::from_secs(20), "it does not come to rest");
            clock::sleep_until(clock::now() + Nanos::from_micros(200));
        }
    }

    fn stat(&self) -> String {
        fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap()
    }

    /// User and system time from /proc, in hundredths of a second.
    fn ticks(&self) -> [u64; 2] {
        let stat = self.stat();
        let mut fields = stat.rsplit_once(") ").unwrap().1.split_ascii_whitespace().skip(11);
        std::array::from_fn(|_| fields.next().unwrap().parse().unwrap())
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a burner did: by its own account, by /proc, by its control group and by its clocks.
#[derive(Debug)]
struct Trial {
    /// Total, user, system.
    truth: [u64; 3],
    group: u64,
    proc_user_share: f64,
    seen: Boundaries,
    threads: usize,
}

/// The time of all of its threads, and their number, once none is ending or falling asleep any more.
fn at_rest(clocks: &mut ThreadClocks, pid: u32) -> (Boundaries, usize) {
    let begin = clock::now();
    let mut tids = BTreeSet::new();
    let mut before = None;
    loop {
        let reading = clocks.read();
        assert!(reading.threads.iter().all(|thread| thread.pid == pid), "{:?}", reading.threads);
        tids.extend(reading.threads.iter().map(|thread| thread.tid));
        let seen = reading.processes[&pid];
        if before == Some(seen) {
            return (seen, tids.len());
        }
        assert!(clock::now() - begin < Nanos::from_secs(20), "it does not come to rest");
        before = Some(seen);
    }
}

fn trial(orders: &[&str]) -> Trial {
    let mut burner = Burner::start_undisturbed();
    let pid = burner.child.id();
    let mut clocks = ThreadClocks::start(&Watched::Pids(vec![pid])).unwrap();
    let (reported, ticks, accounted) = (burner.reported, burner.ticks(), burner.group.accounted());
    for order in orders {
        writeln!(burner.orders, "{order}").unwrap();
        burner.listen();
    }
    let (seen, threads) = at_rest(&mut clocks, pid);
    let accounted = burner.group.accounted() - accounted;
    let [user, system] = {
        let now = burner.ticks();
        [now[0] - ticks[0], now[1] - ticks[1]]
    };
    assert_eq!(clocks.lost(), 0);
    let truth = std::array::from_fn(|n| burner.reported[n] - reported[n]);
    Trial {
        group: accounted,
        truth,
        proc_user_share: user as f64 / (user + system).max(1) as f64,
        seen,
        threads,
    }
}

impl Trial {
    /// As a share of the whole. What the burner did between its two modes, and to start threads, may be in either.
    fn split_is_off_by(&self) -> f64 {
        let [total, user, system] = self.truth;
        let seen = self.seen.user.0;
        (user.saturating_sub(seen) + seen.saturating_sub(total - system)) as f64 / total as f64
    }

    fn proc_is_off_by(&self) -> f64 {
        (self.proc_user_share - self.truth[1] as f64 / (self.truth[1] + self.truth[2]) as f64).abs()
    }

    /// Compared with the process's own clock.
    fn total_is_off_by(&self) -> f64 {
        (self.accounted() / self.truth[0] as f64 - 1.0).abs()
    }

    /// Compared with the account of its control group, to which the scheduler adds everything that runs in it. The
    /// clock of a process lacks what its threads use while they exit, after the kernel has closed their accounts.
    fn sum_is_off_by(&self) -> f64 {
        (self.accounted() / self.group as f64 - 1.0).abs()
    }

    /// What the hypervisor takes is in the wall time, and not in the thread's own clock.
    fn accounted(&self) -> f64 {
        self.seen.wall().0 as f64 - self.seen.stolen_ns as f64
    }
}

/// A control group of one process, for its account of CPU time.
struct Group(PathBuf);

impl Group {
    fn around(pid: u32) -> Group {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let of = |kind: &str, option: &str| {
            mounts.lines().find_map(|line| {
                let fields: Vec<&str> = line.split(' ').collect();
                let is_it = fields[2] == kind && fields[3].split(',').any(|name| name == option);
                is_it.then(|| PathBuf::from(fields[1]))
            })
        };
        let root =
            of("cgroup", "cpuacct").or_else(|| of("cgroup2", "rw")).expect("control groups are mounted");
        let group = root.join(format!("parallax-cpu-test-{pid}"));
        fs::create_dir(&group).unwrap();
        fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
        Group(group)
    }

    /// Version 1 has nanoseconds, version 2 microseconds.
    fn accounted(&self) -> u64 {
        if let Ok(ns) = fs::read_to_string(self.0.join("cpuacct.usage")) {
            return ns.trim().parse().unwrap();
        }
        let stat = fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let us: u64 =
            stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap().parse().unwrap();
        us * 1_000
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// One at a time: while one test attaches its programs, the kernel may skip those of another.
static ALONE: Mutex<()> = Mutex::new(());

/// In 19 of 20 trials: between the thread's two readings of its own clock the hypervisor may take the CPU.
fn holds(orders: &[&str], check: impl Fn(&Trial) -> bool) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let failed: Vec<Trial> = (0..20).map(|_| trial(orders)).filter(|trial| !check(trial)).collect();
    assert!(failed.len() <= 1, "{orders:?}: {failed:#?}");
}

/// If this fails, nothing shows where the time goes in a server that works between the kernel's ticks.
#[test]
fn the_split_of_a_load_that_evades_the_tick_is_right_where_proc_is_wrong() {
    for orders in [["evade-user 150"], ["evade-kernel 150"]] {
        let proc_off = Cell::new(0.0_f64);
        holds(&orders, |trial| {
            proc_off.set(proc_off.get().max(trial.proc_is_off_by()));
            trial.split_is_off_by() <= 0.02 && trial.total_is_off_by() <= 0.001
        });
        // The load must do what it is meant to: otherwise this would prove nothing.
        assert!(proc_off.get() > 0.5, "{orders:?}: /proc was off by {} at most", proc_off.get());
    }
}

/// If this fails, part of the time of a server with a thread per connection is lost.
#[test]
fn threads_that_begin_and_end_have_their_time_in_their_process() {
    holds(&["threads 20 4", "last 2 10", "end"], |trial| {
        trial.threads == 23 && trial.split_is_off_by() <= 0.02 && trial.sum_is_off_by() <= 0.001
    });
    holds(&["threads 100 1"], |trial| trial.threads == 101 && trial.sum_is_off_by() <= 0.001);
}

/// A thread that runs when the programs are attached, in one mode for all of the time, crosses no boundary.
#[test]
fn a_thread_that_never_leaves_its_cpu_is_seen() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut burner = Burner::start();
    let pid = burner.child.id();
    writeln!(burner.orders, "spin 3000").unwrap();
    clock::sleep_until(clock::now() + Nanos::from_millis(50));
    let mut clocks = ThreadClocks::start(&Watched::Pids(vec![pid])).unwrap();
    clock::sleep_until(clock::now() + Nanos::from_millis(200));
    let seen = clocks.read().processes[&pid];
    let share = seen.user.0 as f64 / seen.wall().0 as f64;
    // It reads its own clock, a system call, some ten thousand times per second.
    assert!(seen.wall() > Nanos::from_millis(20) && share > 0.9, "{seen:?}");
    burner.listen();
    drop(clocks);
}
