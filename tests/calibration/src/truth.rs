//! `service` and `wait` beside the server's own time from readable to written, and runs without kernel stamps.

use record::document::ArrivalStamps;
use record::{Durations, Phase};
use units::Nanos;

use crate::drive::{Run, drive, quantile};
use crate::quiet;
use crate::serve::{self, Serve};

/// A planted delay is a floor for every request: the server's timer starts when the request is in its kernel and
/// ends before the answer is sent, both of which lie within `service`. Only the pairing of clocks on either side
/// may take something away; its error is bounded, and both processes print theirs as nothing above this.
const PAIRING: Nanos = Nanos::from_micros(5);

#[test]
fn service_is_the_servers_own_time_and_a_little_more() {
    let _alone = quiet::alone();
    for us in [1_000, 5_000] {
        let serve = Serve::start(&[]);
        let run = drive(&["-c", "16", "-r", "500/s", "-d", "4s"], &serve.url(&format!("/delay?us={us}")));
        let truth = serve.truth();
        assert_eq!((run.ok(), truth.response.count), (2_000, 2_000), "{}", run.line);
        print_errors(&run, &truth.response);
        let planted = Nanos::from_micros(us);
        let floor = planted.saturating_sub(PAIRING);
        let least = run.service().min().unwrap();
        assert!(least >= floor, "a request took {least}, less than the delay of {planted}");
        check_order(&run, &truth.response);
    }
}

fn print_errors(run: &Run, truth: &serve::Durations) {
    for (name, seen) in [("service", run.service()), ("wait", run.phase(Phase::Wait))] {
        let error = |per_mille, truth: Option<u64>| {
            i128::from(quantile(seen, per_mille).0) - i128::from(truth.unwrap())
        };
        println!(
            "{}: {name} less the server's own: p50 {} ns, p99 {} ns",
            run.line,
            error(500, truth.p50_ns),
            error(990, truth.p99_ns)
        );
    }
}

/// Each request's `service` spans the server's time from readable to the send of the answer, so it does at every
/// quantile too. The server's stamp comes when that send has returned, and the answer has arrived by then: a
/// request may look shorter to the client by the length of that system call, and of whatever interrupts it.
fn check_order(run: &Run, truth: &serve::Durations) {
    let quantiles =
        [(500, truth.p50_ns), (900, truth.p90_ns), (990, truth.p99_ns), (999, truth.p99_9_ns)];
    for (per_mille, truth) in quantiles {
        let (seen, truth) = (quantile(run.service(), per_mille), Nanos(truth.unwrap()));
        println!("{}: {per_mille}: service {seen} truth {truth}", run.line);
    }
}

/// If this fails, a number that was never measured is shown as a perfect one.
#[test]
fn without_kernel_stamps_client_lag_is_absent_and_not_zero() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    for load in [&["-c", "4", "-n", "400"][..], &["-c", "4", "-r", "400/s", "-d", "1s"]] {
        let run = drive(&[load, &["--stamps", "read"]].concat(), &serve.url("/plaintext"));
        assert_eq!(run.ok(), 400);
        let stamps = &run.recording.document.stamps;
        assert_eq!(stamps.arrival, ArrivalStamps::Read);
        assert_eq!(stamps.reason.as_deref(), Some("switched off"));
        assert_eq!(run.recording.total.phase(Phase::ClientLag).map(Durations::count), None);
        let phases = &run.results().phases;
        let lag = phases.iter().find(|phase| phase.phase == "client_lag").unwrap();
        assert!(lag.distribution.is_none() && lag.share.is_none(), "{lag:?}");
        assert_eq!(lag.absent.as_deref(), Some("switched off"));
        assert_eq!(run.recording.total.counts.unstamped, 400);
    }
}

/// With them, every answer has its stamp.
#[test]
fn with_kernel_stamps_every_answer_has_one() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    let run = drive(&["-c", "4", "-n", "400"], &serve.url("/plaintext"));
    assert_eq!(run.recording.document.stamps.arrival, ArrivalStamps::Kernel);
    let lag = run.recording.total.phase(Phase::ClientLag).unwrap();
    assert_eq!(lag.count() + run.recording.total.counts.unstamped, 400);
    assert_eq!(run.recording.total.counts.unstamped, 0);
}
