//! `parallax drive` as a child process, and the record it leaves. Every run that ends here is checked for what must
//! hold in every run.

use std::io::Read;
use std::process::Child;

use record::document::{Distribution, QuantileValue, Results, State, VerdictWord};
use record::{Durations, Outcome, Phase, Recording};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use units::Nanos;

use crate::binary::{self, Core};

/// Longer than any run here, on any host: a client that has not ended by then hangs.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// A running client.
pub struct Driving {
    child: Child,
    folder: TempDir,
    line: String,
}

/// A run that has ended.
pub struct Run {
    pub line: String,
    pub exit: i32,
    pub stdout: String,
    pub recording: Recording,
}

/// Runs `drive` to its end.
pub fn drive(arguments: &[&str], url: &str) -> Run {
    Driving::start(arguments, url).finish()
}

impl Driving {
    pub fn start(arguments: &[&str], url: &str) -> Driving {
        let folder = TempDir::new().unwrap();
        let mut all = vec!["drive", "--quiet", "-o", folder.path().to_str().unwrap()];
        all.extend_from_slice(arguments);
        all.push(url);
        let child = binary::start(&all, Core::First);
        Driving { child, folder, line: format!("{} {url}", arguments.join(" ")) }
    }

    /// Stops the client (SIGSTOP) for `length` or a little longer.
    pub fn stop_for(&self, length: Nanos) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).unwrap();
        clock::sleep_until(clock::now() + length);
        kill_process(pid, Signal::CONT).unwrap();
    }

    pub fn finish(mut self) -> Run {
        let exit = self.wait();
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let recording = record::read(self.folder.path());
        let recording = recording.unwrap_or_else(|error| panic!("{}: {error}\n{stderr}", self.line));
        let run = Run { line: self.line, exit, stdout, recording };
        run.check_laws();
        run
    }

    fn wait(&mut self) -> i32 {
        let deadline = clock::now() + PATIENCE;
        while clock::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or_else(|| panic!("{}: {status}", self.line));
            }
            clock::sleep_until(clock::now() + Nanos::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        panic!("{}: did not end within {PATIENCE}", self.line);
    }
}

impl Run {
    pub fn results(&self) -> &Results {
        self.recording.document.results.as_ref().unwrap()
    }

    pub fn verdict(&self) -> VerdictWord {
        self.recording.document.verdict.as_ref().unwrap().word
    }

    pub fn scheduled(&self) -> u64 {
        self.recording.total.counts.scheduled
    }

    pub fn ok(&self) -> u64 {
        self.recording.total.counts.ok
    }

    /// The start of the run on the monotonic clock.
    pub fn started(&self) -> Nanos {
        Nanos(self.recording.document.time.started_monotonic_ns)
    }

    pub fn count_of(&self, outcome: Outcome) -> u64 {
        let rows = self.results().outcomes.iter().filter(|row| row.outcome == outcome.name());
        rows.map(|row| row.count).sum()
    }

    pub fn phase(&self, phase: Phase) -> &Durations {
        self.recording.total.phase(phase).unwrap_or_else(|| panic!("{}: no {}", self.line, phase.name()))
    }

    pub fn service(&self) -> &Durations {
        self.recording.total.service().unwrap()
    }

    /// Checks what must hold in every run, whatever happened in it.
    fn check_laws(&self) {
        let (line, document, total) = (&self.line, &self.recording.document, &self.recording.total);
        assert_eq!(document.state, State::Finished, "{line}");
        let totals = &self.results().totals;
        let outcomes: u64 = self.results().outcomes.iter().map(|row| row.count).sum();
        assert_eq!(outcomes, totals.scheduled, "{line}: scheduled = the sum of all outcomes");
        assert_eq!(total.ended(), total.counts.scheduled, "{line}: the same from the series");
        assert_eq!((totals.scheduled, totals.ok), (total.counts.scheduled, total.counts.ok), "{line}");
        assert_eq!(self.count_of(Outcome::Unknown), 0, "{line}: every end has a name");
        let phases = Phase::ALL.into_iter().filter_map(|phase| total.phase(phase));
        let sum: u128 = phases.map(Durations::sum_ns).sum();
        let response = total.response().map_or(0, Durations::sum_ns);
        assert_eq!(sum, response, "{line}: the phases sum to the response, to the nanosecond");
    }
}

/// A quantile as it is printed.
#[track_caller]
pub fn known(distribution: &Distribution, q: f64) -> Nanos {
    match value(distribution, q) {
        QuantileValue::Known { ns, .. } => Nanos(ns),
        other => panic!("p{} is {other:?}", q * 100.0),
    }
}

pub fn value(distribution: &Distribution, q: f64) -> QuantileValue {
    distribution.quantiles.iter().find(|quantile| quantile.q == q).unwrap().value
}

/// The smallest value with at least the share `per_mille` of all at or below it.
pub fn quantile(durations: &Durations, per_mille: u64) -> Nanos {
    durations.at_rank((durations.count() * per_mille).div_ceil(1_000).max(1)).unwrap()
}
