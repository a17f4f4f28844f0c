//! `service` and `wait` beside the server's own time from readable to written, and runs without kernel stamps.

use record::document::ArrivalStamps;
use record::{Durations, Phase};
use units::Nanos;

use crate::drive::{Run, drive, quantile};
use crate::quiet;
use crate::serve::{self, Serve};

#[test]
fn service_is_the_servers_own_time_and_a_little_more() {
    let _alone = quiet::alone();
    for us in [1_000, 5_000] {
        let serve = Serve::start(&[]);
        let run = drive(&["-c", "16", "-r", "500/s", "-d", "4s"], &serve.url(&format!("/delay?us={us}")));
        let truth = serve.truth();
        assert_eq!((run.ok(), truth.response.count), (2_000, 2_000), "{}", run.line);
        print_errors(&run, &truth.response);
        check_floor(&run, Nanos::from_micros(us));
        check_median(&run, &truth.response);
    }
}

/// A planted delay is a floor for every request: the server's timer starts when the request is in its kernel and
/// ends before the answer is sent, both of which lie within `service`. Only the pairing of clocks may take
/// something away, on either side by its bound, and the three digits of a histogram.
fn check_floor(run: &Run, planted: Nanos) {
    let pairing = run.recording.document.stamps.pairing_error_ns.unwrap();
    let floor = planted.0 - planted.0 / 500 - 2 * pairing;
    let least = run.service().min().unwrap();
    println!("{}: the shortest service is {least}, clocks paired to {pairing} ns", run.line);
    assert!(least.0 >= floor, "a request took {least}, less than the delay of {planted}");
}

/// To be read with `--show-output`.
fn print_errors(run: &Run, truth: &serve::Durations) {
    let quantiles = [(500, truth.p50_ns), (900, truth.p90_ns), (990, truth.p99_ns), (999, truth.p99_9_ns)];
    for (name, seen) in [("service", run.service()), ("wait", run.phase(Phase::Wait))] {
        let errors = quantiles
            .map(|(per_mille, truth)| i128::from(quantile(seen, per_mille).0) - i128::from(truth.unwrap()));
        println!("{}: {name} less the server's own at p50, p90, p99, p99.9: {errors:?} ns", run.line);
    }
    println!("{}: send p50 {}", run.line, quantile(run.phase(Phase::Send), 500));
}

/// `service` is the server's time, plus the way of the request up to its arrival, less what was left of the
/// server's system call when the answer had arrived. On loopback each of the two lies within one call that sends
/// (the packet is delivered inside it), and `send` says how long such a call takes here: so the two medians differ
/// by no more than that, and by what three digits leave open.
fn check_median(run: &Run, truth: &serve::Durations) {
    let (seen, truth) = (quantile(run.service(), 500), truth.p50_ns.unwrap());
    let call = quantile(run.phase(Phase::Send), 500);
    let allowed = call.0 + truth / 500;
    assert!(
        seen.0.abs_diff(truth) <= allowed,
        "{}: service {seen}, the server {truth} ns, a call {call}",
        run.line
    );
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
