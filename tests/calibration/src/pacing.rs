//! When requests actually arrive: the server's account of each, compared with the schedule.

use std::fs;

use record::{Durations, Phase};
use tempfile::TempDir;
use units::Nanos;

use crate::drive::{Run, drive};
use crate::quiet;
use crate::serve::Serve;

const PERIOD: Nanos = Nanos::from_micros(200);
const REQUESTS: u64 = 10_000;

/// A run at 5,000/s with one pace, and how late each request arrived in the server's kernel.
struct Paced {
    run: Run,
    late: Vec<Nanos>,
}

impl Paced {
    fn run(pace: &str) -> Paced {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("arrivals");
        let serve = Serve::start(&["--arrivals", file.to_str().unwrap()]);
        let run = drive(&["--pace", pace, "-r", "5k/s", "-d", "2s", "-c", "64"], &serve.url("/plaintext"));
        serve.truth();
        let text = fs::read_to_string(&file).unwrap();
        let arrivals: Vec<Nanos> = text.lines().map(|line| Nanos(line.parse().unwrap())).collect();
        assert_eq!((run.scheduled(), arrivals.len() as u64), (REQUESTS, REQUESTS), "{}", run.line);
        let pairing = Nanos(run.recording.document.stamps.pairing_error_ns.unwrap());
        let mut late = Vec::new();
        for (arrival, n) in arrivals.into_iter().zip(0..) {
            let due = run.started() + Nanos(PERIOD.0 * n);
            // Requests may overtake each other on their connections, but of the first n at least one is due with or
            // after the n-th: in order of arrival none can arrive before its turn.
            assert!(arrival + pairing + pairing >= due, "{}: {n} was there before it was due", run.line);
            late.push(arrival.saturating_sub(due));
        }
        Paced { run, late }
    }

    /// The record's lateness is what the server saw: a request arrives after all phases up to `send`, and before its
    /// response ends `wait`. This holds for the sums, whatever overtook what and however noisy the host.
    fn check_admitted(&self) {
        let sum = |phases: &[Phase]| -> u128 {
            let found = phases.iter().filter_map(|&phase| self.run.recording.total.phase(phase));
            found.map(Durations::sum_ns).sum()
        };
        let sent = sum(&[Phase::ScheduleLag, Phase::PoolWait, Phase::Connect, Phase::Send]);
        let seen: u128 = self.late.iter().map(|late| u128::from(late.0)).sum();
        let pairing = u128::from(self.run.recording.document.stamps.pairing_error_ns.unwrap());
        let slack = 2 * pairing * u128::from(REQUESTS);
        let line = &self.run.line;
        println!("{line}: {sent} ns until sent, {seen} ns until the server has them, all together");
        assert!(sent <= seen + slack, "{line}: {sent} ns until sent, {seen} ns until seen");
        let most = sent + sum(&[Phase::Wait]);
        assert!(seen <= most + slack, "{line}: {seen} ns until seen, {most} ns until answered");
    }

    /// The minimum lateness within each of ten parts of the run: unaffected by the noise of the host.
    fn least(&self) -> Vec<Nanos> {
        let part = self.late.len() / 10;
        self.late.chunks(part).map(|part| *part.iter().min().unwrap()).collect()
    }
}

/// If this fails, a pacer sends ahead of its schedule, loses its position in it, or hides its lateness.
#[test]
fn no_pace_is_early_drifts_or_hides_that_it_is_late() {
    let _alone = quiet::alone();
    for (pace, batch) in [("precise", 0), ("balanced", 250), ("efficient", 1_000)] {
        let paced = Paced::run(pace);
        let line = &paced.run.line;
        let recorded = paced.run.recording.document.load.pace.as_ref().unwrap();
        assert_eq!((recorded.name.as_str(), recorded.batch_ns), (pace, batch * 1_000), "{line}");
        // Within any tenth of the run some request was on time except for a wake-up: a drift of one part in a
        // thousand would be 2 ms at the end.
        let least = paced.least();
        println!("{line}: least lateness in each tenth: {least:?}");
        assert!(least.iter().all(|&late| late < Nanos::from_millis(1)), "{line}: {least:?}");
        paced.check_admitted();
        let spins = paced.run.recording.total.worker_spin;
        assert_eq!(spins > Nanos::ZERO, pace == "precise", "{line}: awake for {spins}");
    }
}

/// The CPU time of a pacer that spins does not indicate a client without spare CPU time.
#[test]
fn staying_awake_is_not_being_busy() {
    let _alone = quiet::alone();
    let paced = Paced::run("precise");
    let findings = &paced.run.recording.document.verdict.as_ref().unwrap().findings;
    assert!(findings.iter().all(|finding| finding.check.name() != "worker_cpu"), "{findings:?}");
    let total = &paced.run.recording.total;
    assert!(total.worker_spin > total.worker_cpu_max, "{} {}", total.worker_spin, total.worker_cpu_max);
}
