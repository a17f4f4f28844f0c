//! The CPU meter compared with programs that know what they used.
//!
//! Each program reports the clock of its own process and then waits: nothing is hidden then, so both sides must agree
//! except for the cost of reporting.
#![expect(clippy::unwrap_used, reason = "a panic in a test is the test failing")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use host::process::{CpuError, CpuMeter, Detail, End, ProcessUse, Wanted};
use units::Nanos;

struct Burner {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// At the last reply: total, user and system.
    reported: [u64; 3],
}

impl Burner {
    fn start() -> Burner {
        // `cargo test -p host` builds the examples; `--test processes` alone does not.
        let path: PathBuf = std::env::current_exe().unwrap().parent().unwrap().join("../examples/burner");
        let mut command = Command::new(&path);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{}: {error}; `cargo build -p host --examples` makes it", path.display())
        });
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut burner = Burner { orders: child.stdin.take(), child, answers, reported: [0; 3] };
        burner.listen();
        burner
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it used to carry out `what`: total, user and system.
    fn does(&mut self, what: &str) -> [u64; 3] {
        let before = self.reported;
        self.order(what);
        self.listen();
        std::array::from_fn(|n| self.reported[n] - before[n])
    }

    fn order(&mut self, what: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{what}").unwrap();
    }

    fn listen(&mut self) {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let mut numbers = line.split_ascii_whitespace().map(|word| word.parse().unwrap());
        self.reported = std::array::from_fn(|_| numbers.next().unwrap());
        self.settle();
    }

    /// Waits until all its threads are asleep or have ended after a reply.
    fn settle(&self) {
        let sleeps = || {
            let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
            // A thread that has ended in the meantime is at rest as well.
            let mut stats = threads
                .filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).ok());
            stats.all(|stat| stat.rsplit_once(") ").unwrap().1.starts_with('S'))
        };
        let begin = clock::now();
        while !sleeps() {
            assert!(clock::now() - begin < Nanos::from_secs(20), "it does not come to rest");
            clock::sleep_until(clock::now() + Nanos::from_micros(200));
        }
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn meter(burner: &Burner, detail: Detail) -> CpuMeter {
    CpuMeter::start(Wanted::Only(vec![burner.pid()]), detail).unwrap()
}

fn only(meter: &mut CpuMeter) -> ProcessUse {
    meter.read();
    let mut processes = meter.take().processes;
    assert_eq!(processes.len(), 1);
    processes.remove(0)
}

/// A reply takes a write and a read of a pipe, some 20 us; in debug builds and on a busy host more. The cost is the
/// same at both ends, so only its difference remains.
#[track_caller]
fn agrees(used: &ProcessUse, truth: u64) {
    let off = used.usage.run.0.abs_diff(truth);
    assert!(off * 1_000 <= truth, "{} by the meter, {truth} by itself: {off} ns off", used.usage.run.0);
    assert!(used.usage.error < Nanos::from_millis(1), "it was asleep: {}", used.usage.error);
}

/// If this fails, the CPU cost of a request is unknown: a server that works between ticks may be counted with anything.
#[test]
fn a_load_that_evades_the_tick_is_measured_to_a_thousandth() {
    for what in ["evade-user 400", "evade-kernel 400", "spin 300"] {
        let mut burner = Burner::start();
        let mut meter = meter(&burner, Detail::Processes);
        let [truth, ..] = burner.does(what);
        agrees(&only(&mut meter), truth);
    }
}

/// If this fails, a server that starts a thread per connection is counted only with what its last threads used.
#[test]
fn threads_that_come_and_go_are_all_counted() {
    let mut burner = Burner::start();
    burner.does("last 2 20");
    let mut meter = meter(&burner, Detail::Threads);
    // Two that existed end, forty begin and end, three begin and stay.
    let steps = ["end", "threads 40 8", "last 3 20"];
    let truth: u64 = steps.iter().map(|step| burner.does(step)[0]).sum();
    let used = only(&mut meter);
    agrees(&used, truth);
    assert!(!used.counts_all(), "the waits of those that ended are in no count");
    let began = used.threads.values().filter(|thread| thread.began && !thread.ended);
    let (began, ended): (Vec<_>, _) =
        (began.collect(), used.threads.values().filter(|thread| thread.ended).count());
    assert_eq!((began.len(), ended), (3, 2));
    for thread in began {
        assert!(thread.usage.run >= Nanos::from_millis(20) && thread.name.is_some(), "{thread:?}");
    }
    // Forty of 8 ms each.
    assert!(used.unseen() >= Nanos::from_millis(320), "{}", used.unseen());
}

/// The time of a running thread is known up to the last tick. The rest is reported, and not lost to the next span.
#[test]
fn what_a_running_thread_hides_is_told_and_comes_to_light_in_the_next_span() {
    let mut burner = Burner::start();
    let begin = burner.reported[0];
    let mut meter = meter(&burner, Detail::Processes);
    burner.order("spin 300");
    clock::sleep_until(clock::now() + Nanos::from_millis(60));
    let half = only(&mut meter);
    burner.listen();
    let rest = only(&mut meter);
    let (sum, truth) = ((half.usage.run + rest.usage.run).0, burner.reported[0] - begin);
    assert!(sum.abs_diff(truth) * 1_000 <= truth, "{sum} by the meter, {truth} by itself");
    assert!(half.usage.error >= clock::tick() && rest.usage.error >= clock::tick(), "{half:?} {rest:?}");
}

#[test]
fn what_was_seen_of_a_process_that_ends_is_kept() {
    let mut burner = Burner::start();
    let mut meter = meter(&burner, Detail::Processes);
    let [truth, ..] = burner.does("spin 50");
    meter.read();
    burner.orders = None;
    // It has ended, and its parent has not waited for it: all of it can still be seen.
    let begin = clock::now();
    while !meter.is_over() && clock::now() - begin < Nanos::from_secs(20) {
        clock::sleep_until(clock::now() + Nanos::from_millis(1));
        meter.read();
    }
    burner.child.wait().unwrap();
    meter.read();
    let ended = meter.take().processes.remove(0);
    assert_eq!((ended.end, meter.is_over()), (End::Whole, true));
    assert!(ended.usage.run.0 >= truth && ended.usage.run.0 < truth + 5_000_000, "{ended:?}");
    meter.read();
    assert_eq!(meter.take().processes, [], "it is told once");

    let burner = Burner::start();
    let mut meter = CpuMeter::start(Wanted::Only(vec![burner.pid()]), Detail::Processes).unwrap();
    drop(burner);
    meter.read();
    assert_eq!((meter.take().processes[0].end, meter.is_over()), (End::Cut, true));
}

#[test]
fn a_process_that_begins_meanwhile_is_taken_in_and_one_that_was_there_is_not_counted_from_its_birth() {
    let mut old = Burner::start();
    old.does("spin 200");
    let mut meter = CpuMeter::start(Wanted::Comm("burner".to_owned()), Detail::Processes).unwrap();
    let mut young = Burner::start();
    let [truth, ..] = young.does("spin 50");
    meter.read();
    let span = meter.take();
    let of = |pid| span.processes.iter().find(|process| process.pid == pid).unwrap();
    assert!(of(old.pid()).usage.run < Nanos::from_millis(1), "{:?}", of(old.pid()));
    let young = of(young.pid());
    assert!(young.began && young.usage.run.0 >= truth && young.usage.run.0 < truth + 20_000_000, "{young:?}");
    assert!(young.command.as_ref().is_some_and(|command| command.ends_with("burner")));
}

/// If this fails, `cpu PID` shows 0 for a server that forks: nginx, PostgreSQL, uWSGI, a Node.js cluster.
#[test]
fn a_process_means_its_descendants_too() {
    let mut burner = Burner::start();
    burner.does("stay 1 20");
    let start = |wanted| CpuMeter::start(wanted, Detail::Processes).unwrap();
    let mut alone = start(Wanted::Only(vec![burner.pid()]));
    let mut tree = start(Wanted::Trees(vec![burner.pid()]));
    // One that existed continues to work; eight begin and end, six of them between two readings; two begin and stay.
    let mut truth = burner.does("again 100")[0];
    truth += burner.does("children 6 40")[0];
    tree.read();
    truth += burner.does("stay 2 30")[0];
    tree.read();
    truth += burner.does("children 2 40")[0];
    tree.read();
    let (span, root) = (tree.take(), only(&mut alone));
    let group = &span.groups[0];
    let off = group.usage.run.0.abs_diff(truth);
    // Two truncations to hundredths of a second, and a tick of one that is on its way to sleep.
    assert!(group.usage.error <= Nanos::from_millis(25), "{}", group.usage.error);
    assert!(off <= group.usage.error.0, "{} by the meter, {truth} by themselves", group.usage.run.0);
    assert_eq!((group.processes, group.cut), (4, 0), "{group:?}");
    assert!(root.usage.run < Nanos::from_millis(40), "{root:?}");
    let sum: u64 = span.processes.iter().map(|process| process.usage.run.0).sum();
    assert!(span.processes.len() == 4 && sum <= group.usage.run.0 && sum >= 160_000_000, "{sum} {span:?}");
    assert!(group.faults.unwrap().minor > 100 && group.storage.is_some() && !group.counts_all, "{group:?}");
    assert!(group.memory.resident > group.memory_before.resident && group.memory.virtual_size > 4 << 20);
    let proportional = tree.proportional()[0].unwrap();
    assert!(proportional > 0 && proportional <= group.memory.resident, "{proportional} {group:?}");
    // Those that stayed end: what they used was counted, and is not counted again.
    burner.does("end");
    tree.read();
    let after = tree.take();
    assert!(after.groups[0].usage.run < Nanos::from_millis(40), "{after:?}");
    assert_eq!((after.groups[0].processes, after.groups[0].ended, after.processes.len()), (1, 3, 1));
}

#[test]
fn a_process_that_is_named_with_its_parent_is_counted_once() {
    let mut burner = Burner::start();
    burner.does("stay 1 1");
    let children = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()?;
        (parent == burner.pid()).then(|| entry.file_name().to_str().unwrap().parse::<u32>().unwrap())
    });
    let child = children.collect::<Vec<_>>()[0];
    let mut tree = CpuMeter::start(Wanted::Trees(vec![child, burner.pid()]), Detail::Processes).unwrap();
    tree.read();
    let span = tree.take();
    assert_eq!((span.groups.len(), span.processes.len()), (1, 2));
}

#[test]
fn what_is_not_there_is_refused_in_one_line() {
    let refused = |wanted| CpuMeter::start(wanted, Detail::Processes).unwrap_err();
    let error = refused(Wanted::Only(vec![std::process::id(), u32::MAX]));
    assert_eq!(error.to_string(), "no process has the id 4294967295; `pgrep NAME` finds the ids of a name");
    assert!(matches!(refused(Wanted::Comm("no such name".to_owned())), CpuError::NoneNamed { .. }));
    let error = refused(Wanted::Cgroup("/no/such/group".to_owned())).to_string();
    assert!(error.starts_with("no control group `/no/such/group`; "), "{error}");
    let error = Wanted::unit("no-such-unit").unwrap_err().to_string();
    assert!(error.starts_with("no control group is named `no-such-unit.service`; "), "{error}");
    let mut burner = Burner::start();
    burner.does("last 1 1");
    let threads = std::fs::read_dir(format!("/proc/{}/task", burner.pid())).unwrap();
    let thread =
        threads.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).max().unwrap();
    match refused(Wanted::Only(vec![thread])) {
        CpuError::Thread { tid, process } => assert_eq!((tid, process), (thread, burner.pid())),
        other => panic!("{other}"),
    }
}

#[test]
fn all_processes_are_looked_at_and_ours_is_among_them() {
    let mut meter = CpuMeter::start(Wanted::All, Detail::Processes).unwrap();
    let begin = clock::thread_cpu();
    while clock::thread_cpu() < begin + Nanos::from_millis(30) {}
    meter.read();
    let (cost, span) = (meter.cost(), meter.take());
    let own = span.processes.iter().find(|process| process.pid == std::process::id()).unwrap();
    assert!(own.usage.run >= Nanos::from_millis(30), "{own:?}");
    assert!(span.processes.iter().any(|process| process.pid == 1 && process.end == End::Alive));
    assert!(cost > Nanos::ZERO && !meter.is_over());
}
