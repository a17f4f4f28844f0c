//! The server freezes for a second within a steady run: which requests are held back, and for how long, can be
//! calculated.

use testkit::trials;
use units::Nanos;

use crate::drive::{Driving, Run, known};
use crate::quiet;
use crate::serve::{Serve, Truth};
use crate::theory::{self, Plan};

const RATE: u64 = 1_000;
const CONNECTIONS: usize = 32;
const DELAY: Nanos = Nanos::from_millis(1);
const MOST_TRIALS: usize = 5;
/// The shortest time from a client's process start to the start of its run: the engine begins 5 ms after its workers.
const START: Nanos = Nanos::from_millis(5);

/// If this fails, a second without any response counts as a handful of slow requests, and p99 does not show it.
#[test]
fn a_freeze_in_the_middle_delays_every_request_that_was_due() {
    check(10, Nanos::from_secs(5), &[(950, 500), (990, 900), (999, 990)]);
}

/// If this fails, slow servers hide at the end of a run: wrk2 and others forget what is in flight then.
#[test]
fn a_freeze_in_the_last_second_delays_every_request_that_was_due() {
    let frozen = check(10, Nanos::from_secs(9), &[(950, 500), (990, 900), (999, 990)]);
    let (begin, _) = frozen.plan.freeze;
    // A host that starts processes slowly makes the freeze come earlier in the run, never later than 9 s.
    assert!(begin > Nanos::from_millis(8_500) && begin <= Nanos::from_secs(9), "the freeze began at {begin}");
}

/// If this fails, responses after the last request was due do not count.
///
/// 500 of 3,000 are held back, from 1 s down to half of it: q is at 1 s - (1 - q) 3 s.
#[test]
fn a_freeze_beyond_the_last_due_request_counts_in_full() {
    let frozen = check(3, Nanos::from_millis(2_500), &[(950, 850), (990, 970)]);
    assert!(frozen.plan.freeze.1 > Nanos::from_secs(3), "the freeze ended at {}", frozen.plan.freeze.1);
}

/// Repeats the run until one agrees: within 2 % of the calculation, and of the plain figures in per mille and ms.
///
/// Other work on this host after the pool's capacity was measured makes these figures longer. It cannot make them
/// shorter than the plain ones: that is wrong in any trial. Nor does it excuse an instrument that always exaggerates:
/// one trial must hold in full.
fn check(secs: u64, at: Nanos, plain: &[(usize, u64)]) -> Frozen {
    let _alone = quiet::alone();
    let mut reported = Vec::new();
    for trial in 1..=MOST_TRIALS {
        let frozen = Frozen::run(secs, at);
        if let Some(excuse) = frozen.came_otherwise() {
            reported.push(excuse);
            continue;
        }
        let response = frozen.against_paper(plain).chain(frozen.against_plain(plain));
        let wrong: Vec<String> = response.chain(frozen.of_service()).flat_map(Seen::check).collect();
        if wrong.is_empty() {
            trials::report(trial, MOST_TRIALS);
            return frozen;
        }
        println!("{}: {wrong:?}", frozen.run.line);
        reported.extend(wrong);
    }
    trials::report(MOST_TRIALS, MOST_TRIALS);
    panic!("no trial of {MOST_TRIALS} held: {reported:?}");
}

/// A percentile with its bounds.
struct Seen {
    what: String,
    seen: Nanos,
    low: Nanos,
    high: Nanos,
    floor: Nanos,
}

impl Seen {
    /// A message when the percentile is out of bounds.
    ///
    /// # Panics
    ///
    /// When it is below a floor that no noise can break.
    fn check(self) -> Option<String> {
        let Seen { what, seen, low, high, floor } = self;
        assert!(seen >= floor, "{what}: {seen} is below {floor}");
        (seen < low || seen > high).then(|| format!("{what}: {seen} is not within {low} and {high}"))
    }
}

/// How long a request of a closed loop over this pool holds its connection on this host now: the number of connections
/// divided by the throughput. Independent of the phases that the freeze tests.
fn turn() -> Nanos {
    let serve = Serve::start(&[]);
    let connections = CONNECTIONS.to_string();
    let load = ["-c", &connections, "-w", "1", "-n", "20000"];
    let run = Driving::start(&load, &serve.url("/delay?us=1000")).finish();
    assert_eq!(run.ok(), 20_000, "{}", run.line);
    let elapsed = run.recording.document.time.elapsed_ns.unwrap();
    Nanos(elapsed * CONNECTIONS as u64 / 20_000).max(DELAY)
}

/// A run with a freeze of one second, and its calculation.
struct Frozen {
    run: Run,
    plan: Plan,
}

impl Frozen {
    /// Drives for `secs`; the freeze begins `at` after the start of the run, or a little earlier.
    fn run(secs: u64, at: Nanos) -> Frozen {
        let turn = turn();
        let first = format!("{}ms", (at.0 / 1_000_000) + 500);
        let schedule =
            ["--freeze", "1s", "--freeze-every", "1h", "--freeze-first", &first, "--freeze-count", "1"];
        let serve = Serve::start(&schedule);
        let begin = serve.freeze_at.unwrap();
        clock::sleep_until(begin - at - START);
        let (rate, duration) = (format!("{RATE}/s"), format!("{secs}s"));
        let connections = CONNECTIONS.to_string();
        let load = ["-c", &connections, "-w", "1", "-r", &rate, "-d", &duration];
        let run = Driving::start(&load, &serve.url("/delay?us=1000")).finish();
        let truth = serve.truth();
        let requests = secs * RATE;
        // Every request got its response eventually: the freeze delayed requests, it failed none.
        assert_eq!((run.scheduled(), run.ok()), (requests, requests), "{}", run.line);
        assert_eq!(truth.requests.answered, requests, "{}", run.line);
        let plan = Plan {
            rate_per_s: RATE,
            requests,
            connections: CONNECTIONS,
            delay: DELAY,
            turn,
            freeze: offsets(&truth, run.started()),
        };
        Frozen { run, plan }
    }

    /// Within 2 % of the calculation for the freeze as it happened and a pool of this size.
    fn against_paper(&self, plain: &[(usize, u64)]) -> impl Iterator<Item = Seen> {
        let responses = self.plan.responses();
        plain.iter().map(move |&(per_mille, _)| {
            let (seen, theory) = (self.seen(per_mille), theory::quantile(&responses, per_mille));
            let error = (seen.0 as f64 - theory.0 as f64) * 100.0 / theory.0 as f64;
            let what = format!("freeze at {}, {per_mille} per mille, on paper {theory}", self.plan.freeze.0);
            println!("{what} with turns of {}: {seen}, {error:+.3} %", self.plan.turn);
            let slack = Nanos(theory.0 / 50);
            Seen { what, seen, low: theory - slack, high: theory + slack, floor: Nanos::ZERO }
        })
    }

    /// The plain formula, F - (1 - q) T, ignores the pool: the drain of the backlog is added at most.
    fn against_plain(&self, plain: &[(usize, u64)]) -> impl Iterator<Item = Seen> {
        let drain = self.plan.drain();
        plain.iter().map(move |&(per_mille, ms)| {
            let (seen, plain) = (self.seen(per_mille), Nanos::from_millis(ms));
            let slack = Nanos(plain.0 / 50);
            let what = format!("{per_mille} per mille, plainly {plain}, drain {drain}");
            let low = plain - slack;
            Seen { what, seen, low, high: plain + slack + drain, floor: low }
        })
    }

    /// Service time, request by request, looks fine: at most one request per connection was with the server while it
    /// was frozen, and none of the others shows the freeze. A client that reports only this reports no freeze.
    fn of_service(&self) -> [Seen; 2] {
        let service = self.run.service();
        let others = service.at_rank(service.count() - CONNECTIONS as u64).unwrap();
        let (held, most) = (service.max().unwrap(), Nanos::from_millis(980));
        let brief = Nanos::from_millis(100);
        // A client that was late in sending requests that the freeze held back is noise too: no floor.
        let seen = |what: &str, seen, (low, high)| {
            let (what, floor) = (what.to_owned(), Nanos::ZERO);
            Seen { what, seen, low, high, floor }
        };
        [
            seen("service of the others", others, (Nanos::ZERO, brief)),
            seen("service of those held", held, (most, Nanos::MAX)),
        ]
    }

    /// A stall of the host made the freeze different from the planted one: nothing follows from that.
    fn came_otherwise(&self) -> Option<String> {
        let (begin, end) = self.plan.freeze;
        let length = end - begin;
        (length.0.abs_diff(1_000_000_000) > 5_000_000).then(|| format!("the freeze lasted {length}"))
    }

    /// The percentile as printed in the report.
    fn seen(&self, per_mille: usize) -> Nanos {
        known(&self.run.results().response, per_mille as f64 / 1_000.0)
    }
}

/// The freeze as it happened, as offsets from the start of the run. Both processes use the same monotonic clock.
fn offsets(truth: &Truth, zero: Nanos) -> (Nanos, Nanos) {
    let [freeze] = &truth.freezes[..] else { panic!("{:?}", truth.freezes) };
    (Nanos(freeze.begin_ns) - zero, Nanos(freeze.end_ns) - zero)
}
