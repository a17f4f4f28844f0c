//! `parallax watch` as a child process, and the record it leaves. Every record that is read here is checked for what
//! must hold in every record.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use record::document::State;
use record::observation::watch::{Inexact, Losses, WatchLine};
use record::observation::{Observation, ObservationBody, Observed, WatchResults, read_observation};
use record::{Part, Served};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use units::Nanos;

use super::binary;
use super::cores::{self, AHEAD, Core};
use super::planted::Planted;
use super::wait;

/// How long an observer is stopped at a time, so that a server fills its lanes also on a busy host.
pub const STARVED: Nanos = Nanos::from_millis(400);

/// Longer than any observer here needs to begin or end, on any host.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// An observer that has begun.
pub struct Watching {
    child: Child,
    folder: TempDir,
    line: String,
}

/// The results of the watch.
pub struct Watched {
    pub document: Observation,
    pub results: WatchResults,
    /// All requests, by connection and order.
    pub served: Vec<Served>,
}

impl Watching {
    /// Watches a process and keeps every request.
    pub fn of(server: &Planted) -> Watching {
        Watching::start(&["-p", &server.pid().to_string()])
    }

    pub fn start(arguments: &[&str]) -> Watching {
        Watching::start_with(arguments, "all")
    }

    /// Watches and keeps these requests.
    pub fn start_with(arguments: &[&str], requests: &str) -> Watching {
        require_what_is_needed();
        let folder = TempDir::new().unwrap();
        let mut command = Command::new(binary::parallax());
        command.args(["watch", "--requests", requests, "-o"]).arg(folder.path()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).env("NO_COLOR", "1");
        let child = cores::start(&mut command, Core::First, AHEAD);
        let mut watching = Watching { child, folder, line: arguments.join(" ") };
        watching.wait_for_begin();
        watching
    }

    /// Waits until the record exists, which is when the programs are attached.
    fn wait_for_begin(&mut self) {
        let run = self.folder.path().join("run.json");
        wait::until(PATIENCE, || run.exists() || self.child.try_wait().unwrap().is_some());
        if !run.exists() {
            let _ = self.child.kill();
            let message = self.message();
            panic!("watch {} does not begin: {message}", self.line);
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The results directory.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `load` while the observer is stopped for such times with 100 ms between, so that its lanes overflow.
    pub fn starved_during<T: Send>(&self, stopped: Nanos, load: impl FnOnce() -> T + Send) -> T {
        let signal = |signal| kill_process(Pid::from_child(&self.child), signal).unwrap();
        std::thread::scope(|scope| {
            let load = scope.spawn(load);
            while !load.is_finished() {
                signal(Signal::STOP);
                wait::pause(stopped);
                signal(Signal::CONT);
                wait::pause(Nanos::from_millis(100));
            }
            load.join().unwrap()
        })
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends it, as Ctrl-C does.
    pub fn finish(self) -> Watched {
        self.finish_and_keep().0
    }

    /// Kills it; returns the directory with what it left.
    pub fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, TempDir::new().unwrap())
    }

    /// Ends it, as Ctrl-C does: its results, without the requests one by one.
    pub fn finish_counting(mut self) -> WatchResults {
        self.end().1
    }

    /// The same, with the times of its begin and its end.
    pub fn finish_timed(mut self) -> (WatchResults, Nanos, Nanos) {
        let (observed, results) = self.end();
        let time = &observed.document.time;
        let from = Nanos(time.started_monotonic_ns);
        (results, from, from + Nanos(time.elapsed_ns.expect("it has ended")))
    }

    fn end(&mut self) -> (Observed, WatchResults) {
        // If it has ended by itself it is already reaped; its process ID may then belong to another process.
        if !self.has_ended() {
            kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        }
        let status = self.child.wait().unwrap();
        let message = self.message();
        assert!(status.success(), "watch {}: {status}: {message}", self.line);
        let observed = read_observation(self.folder.path()).unwrap();
        let ObservationBody::Watch(results) = observed.document.body.clone() else {
            panic!("a record of watch has another kind: {:?}", observed.document.kind);
        };
        check_lines(&observed, &results);
        (observed, *results)
    }

    /// As [`Watching::finish`], with the results directory.
    pub fn finish_and_keep(mut self) -> (Watched, TempDir) {
        let (observed, results) = self.end();
        let zero = Nanos(observed.document.time.started_monotonic_ns);
        let mut served = super::served::read(self.folder.path(), zero);
        served.sort_by_key(|served| (served.connection, served.n));
        let watched = Watched { document: observed.document, results, served };
        watched.check_laws();
        (watched, std::mem::replace(&mut self.folder, TempDir::new().unwrap()))
    }

    fn message(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A test that cannot run here fails and reports what is missing.
fn require_what_is_needed() {
    assert!(rustix::process::geteuid().is_root(), "tests of watch need root: run them as root");
    let btf = std::path::Path::new("/sys/kernel/btf/vmlinux");
    assert!(btf.exists(), "tests of watch need {} (a kernel with CONFIG_DEBUG_INFO_BTF)", btf.display());
}

impl Watched {
    pub fn sum(&self, part: Part) -> Nanos {
        Nanos(self.served.iter().map(|served| served.part(part).0).sum())
    }

    pub fn losses(&self) -> String {
        format!("{:?}", self.results.losses)
    }

    /// What must hold for every record, whatever was watched.
    fn check_laws(&self) {
        assert_eq!(self.document.state, State::Finished);
        for served in &self.served {
            assert!(served.is_lawful(), "residual {} ns: {served:?}", served.residual());
        }
        let mut next: BTreeMap<u64, u64> = BTreeMap::new();
        for served in &self.served {
            let n = next.entry(served.connection).or_default();
            let is_all = self.results.losses.ring_full == 0 && self.results.windows.is_none();
            let follows = if is_all { served.n == *n } else { served.n >= *n };
            assert!(follows, "requests of a connection are numbered without a gap: {} after {n}", served.n);
            *n = served.n + 1;
        }
        let losses = self.losses();
        assert_eq!(self.results.requests, self.served.len() as u64, "all were kept; {losses}");
        for (part, (_, total)) in Part::ALL.into_iter().zip(totals(&self.results)) {
            assert_eq!(self.sum(part).0, total, "{}: requests and results differ", part.name());
        }
    }
}

/// The lines of the series sum to the totals.
fn check_lines(observed: &Observed, results: &WatchResults) {
    let (mut requests, mut losses, mut inexact) = (0, Losses::default(), Inexact::default());
    for line in &observed.lines {
        let line: WatchLine = line.fields().unwrap();
        requests += line.requests;
        losses.add(&line.losses);
        inexact.add(&line.inexact);
    }
    assert_eq!((requests, losses, inexact), (results.requests, results.losses, results.inexact));
}

fn totals(results: &WatchResults) -> Vec<(Part, u64)> {
    let parts: [Nanos; Part::COUNT] = results.parts_ns.into();
    Part::ALL.into_iter().zip(parts.map(|part| part.0)).collect()
}
