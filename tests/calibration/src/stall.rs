//! The client is stopped for 300 ms in mid-run: the client's own phases show it, the server's do not, and the verdict
//! reports it.

use record::Phase;
use record::document::VerdictWord;
use testkit::trials;
use units::Nanos;

use crate::drive::{Driving, Run, quantile};
use crate::quiet;
use crate::serve::{Serve, Truth};

const STOP: Nanos = Nanos::from_millis(300);
/// Minimum of the 300 ms that must show: the rest is the delivery of the signals, and the 2 ms of the response.
const SHOWN: Nanos = Nanos::from_millis(250);
/// Maximum number of pairs of an undisturbed run and one with a stop.
const MOST_TRIALS: usize = 8;
/// Number of undisturbed runs from which on their median means something.
const FEWEST_TRIALS: usize = 3;

/// If this fails, a garbage collection or a busy host of the client is counted as a slow server.
///
/// At 1,000 per second and 2 ms there are always two requests in flight, and one about to become due.
#[test]
fn a_stopped_client_blames_itself_in_an_open_loop() {
    let _alone = quiet::alone();
    compare(&["-c", "16", "-r", "1000/s", "-d", "3s"], |run| {
        let lag = run.phase(Phase::ScheduleLag).max().unwrap();
        assert!(lag >= SHOWN, "{}: schedule_lag is at most {lag}", run.line);
    });
}

/// In a closed loop the intended start of a request is when its virtual user is free, so there is no schedule to fall
/// behind: the stop shows in responses that were not read.
#[test]
fn a_stopped_client_blames_itself_in_a_closed_loop() {
    let _alone = quiet::alone();
    compare(&["-c", "4", "-d", "3s"], |_| {});
}

/// What must hold for every run with a stop is checked on every one. How the two p99 of `wait` compare is as noisy as
/// the host: a busy one moves either of them by more than the 20 %. So runs with and without a stop alternate, and
/// one of up to eight must agree with the median of the undisturbed ones. That is enough: a client that counted its
/// own stop as the server's would do so in each.
fn compare(load: &[&str], also: impl Fn(&Run)) {
    let mut undisturbed = Vec::new();
    let mut stopped = Vec::new();
    for trial in 1..=MOST_TRIALS {
        undisturbed.push(wait_p99(&run(load, None).0));
        let (run, truth) = run(load, Some(STOP));
        check_stopped(&run, &truth);
        also(&run);
        stopped.push(wait_p99(&run));
        undisturbed.sort_unstable();
        let usual = undisturbed[undisturbed.len() / 2];
        let agrees = |p99: &Nanos| p99.0.abs_diff(usual.0) * 5 <= usual.0;
        println!("{}: p99 of wait: undisturbed {undisturbed:?}, stopped {stopped:?}", run.line);
        if trial >= FEWEST_TRIALS && stopped.iter().any(agrees) {
            return trials::report(trial, MOST_TRIALS);
        }
    }
    trials::report(MOST_TRIALS, MOST_TRIALS);
    panic!(
        "no run with a stop kept p99 of wait within 20 %: undisturbed {undisturbed:?}, stopped {stopped:?}"
    );
}

fn check_stopped(run: &Run, truth: &Truth) {
    let line = &run.line;
    let lag = run.phase(Phase::ClientLag).max().unwrap();
    assert!(lag >= SHOWN, "{line}: client_lag is at most {lag}");
    let stall = run.recording.total.worker_stall_max;
    assert!(stall >= SHOWN, "{line}: the longest stall of a worker is {stall}");
    let response = run.recording.total.response().unwrap().max().unwrap();
    assert!(response >= SHOWN, "{line}: a caller felt {response} at most");
    assert_ne!(run.verdict(), VerdictWord::Valid, "{line}: {}", run.stdout);
    // The longest wait is the server's own time, plus the transit of a packet: no part of the stop.
    let wait = run.phase(Phase::Wait).max().unwrap();
    let server = Nanos(truth.response.max_ns.unwrap());
    assert!(
        wait < server + Nanos::from_millis(100),
        "{line}: wait is {wait}, the server took {server} at most"
    );
}

/// A run with responses after 2 ms, stopped for a while in its middle or not.
fn run(load: &[&str], stop: Option<Nanos>) -> (Run, Truth) {
    let serve = Serve::start(&[]);
    let driving = Driving::start(load, &serve.url("/delay?us=2000"));
    if let Some(length) = stop {
        clock::sleep_until(clock::now() + Nanos::from_millis(1_500));
        driving.stop_for(length);
    }
    let run = driving.finish();
    assert_eq!(run.ok(), run.scheduled(), "{}", run.line);
    (run, serve.truth())
}

fn wait_p99(run: &Run) -> Nanos {
    quantile(run.phase(Phase::Wait), 990)
}
