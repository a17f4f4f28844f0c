//! Each fault of the server: the right outcome, phase and blame for every single request, and as many as the server
//! reports.

use crate::drive::{Run, drive};
use crate::expect::End;
use crate::quiet;
use crate::serve::{Serve, Truth};

const CLOSED: End = ("closed_before_response", "wait", "server");
const INCOMPLETE: End = ("incomplete_response", "receive", "server");
const RESET: End = ("reset", "wait", "server");
const RESET_WITHIN: End = ("reset", "receive", "server");
const MALFORMED: End = ("protocol_error", "receive", "server");
/// Its bytes were acknowledged: they arrived, and what is missing is the response.
const SILENCE: End = ("request_timeout", "wait", "server");

/// Closed and open loop; 100 requests each, so that opening one connection after the other takes little time.
const CLOSED_LOOP: &[&str] = &["-c", "4", "-n", "100"];
const OPEN_LOOP: &[&str] = &["-c", "4", "-r", "200/s", "-d", "500ms"];
const TWO_WORKERS: &[&str] = &["-c", "5", "-w", "2", "-n", "100"];
const REQUESTS: u64 = 100;

/// One request per connection at a time: nothing can come between a request and its fault.
#[track_caller]
fn check(fault: &str, end: End) {
    let _together = quiet::together();
    for load in [CLOSED_LOOP, OPEN_LOOP, TWO_WORKERS] {
        let (run, truth) = run(fault, load);
        run.expect(&[(end, REQUESTS)]);
        run.expect_exit(3);
        assert_eq!(truth.faults_of(fault), REQUESTS, "{}: {truth:?}", run.line);
        assert_eq!(truth.requests.read, run.recording.total.counts.sent, "{}", run.line);
    }
}

/// Four requests on a connection. The fault hits the first. Those after it lose their connection, sent or half sent. If
/// one of them arrived as the server closed, its kernel ends the connection with a reset instead of a close (RFC 9293,
/// 3.6.1): either outcome is then correct.
#[track_caller]
fn check_pipelined(fault: &str, hit: End) {
    let _together = quiet::together();
    for load in [CLOSED_LOOP, OPEN_LOOP, TWO_WORKERS] {
        let (run, truth) = run(fault, &[load, &["--pipeline", "4"]].concat());
        let faults = truth.faults_of(fault);
        let ends = run.ends();
        assert!(ends.keys().all(|&end| may_end(end, fault, hit)), "{}: {ends:?}", run.line);
        // The beginning of a response arrived for those that were hit, and for no others.
        let begun = ends.iter().filter(|((_, phase, _), _)| *phase == "receive").map(|(_, count)| count);
        let expected = if hit.1 == "receive" { faults } else { 0 };
        assert_eq!(begun.sum::<u64>(), expected, "{}: {ends:?}", run.line);
        assert_eq!(run.scheduled(), REQUESTS, "{}", run.line);
        assert!(faults <= truth.requests.read && truth.requests.read <= REQUESTS, "{}: {truth:?}", run.line);
        if load == CLOSED_LOOP {
            assert!(faults < REQUESTS, "{}: nothing was behind anything", run.line);
        }
        run.expect_exit(3);
    }
}

fn may_end(end: (&str, &str, &str), fault: &str, hit: End) -> bool {
    let resets = fault.starts_with("reset");
    match end {
        (_, _, blame) if blame != "server" => false,
        ("closed_before_response", "send" | "wait", _) => !resets,
        ("reset", "send" | "wait", _) => true,
        ("reset", "receive", _) => hit.1 == "receive",
        _ => end == hit,
    }
}

fn run(fault: &str, load: &[&str]) -> (Run, Truth) {
    let serve = Serve::start(&[]);
    let run = drive(load, &serve.url(&format!("/fault/{fault}")));
    (run, serve.truth())
}

#[test]
fn a_close_without_a_response() {
    check("close", CLOSED);
    check_pipelined("close", CLOSED);
}

#[test]
fn a_body_shorter_than_announced() {
    check("short-body", INCOMPLETE);
    check_pipelined("short-body", INCOMPLETE);
}

#[test]
fn a_reset_without_a_response() {
    check("reset", RESET);
    check_pipelined("reset", RESET);
}

#[test]
fn a_reset_within_the_body() {
    check("reset-body", RESET_WITHIN);
    check_pipelined("reset-body", RESET_WITHIN);
}

#[test]
fn bytes_that_are_not_a_response() {
    check("garbage", MALFORMED);
    check_pipelined("garbage", MALFORMED);
}

#[test]
fn headers_without_end() {
    check("header-flood", MALFORMED);
    check_pipelined("header-flood", MALFORMED);
}

#[test]
fn a_head_cut_short() {
    check("half-head", INCOMPLETE);
    check_pipelined("half-head", INCOMPLETE);
}

#[test]
fn a_chunked_body_that_breaks_off_in_nonsense() {
    check("chunk-garbage", MALFORMED);
    check_pipelined("chunk-garbage", MALFORMED);
}

#[test]
fn no_response_at_all() {
    let _together = quiet::together();
    for load in [&["-c", "8", "-n", "16"][..], &["-c", "8", "-r", "20/s", "-n", "16"]] {
        for pipeline in ["1", "4"] {
            let more = ["--timeout", "300ms", "--pipeline", pipeline];
            let (run, truth) = run("never", &[load, &more].concat());
            run.expect(&[(SILENCE, 16)]);
            run.expect_exit(3);
            // After a request that never gets a response, none is begun: those are abandoned.
            let faults = truth.faults_of("never");
            assert_eq!(truth.requests.read, 16, "{}: {truth:?}", run.line);
            assert_eq!(faults + truth.requests.abandoned, 16, "{}: {truth:?}", run.line);
            assert!(pipeline == "4" || faults == 16, "{}: {truth:?}", run.line);
            let ages = run.recording.total.failed(record::Outcome::RequestTimeout).unwrap();
            // Requests behind another on its connection are given up with it, the younger ones before their time.
            let age = if pipeline == "1" { ages.min() } else { ages.max() };
            assert!(age.unwrap().0 >= 299_000_000, "{}: given up before its time", run.line);
        }
    }
}

/// An error response is a response: blamed on the side that the status names, with the connection kept.
#[test]
fn statuses_that_are_errors() {
    let _together = quiet::together();
    for (status, end) in [
        ("500", ("app_error", "receive", "server")),
        ("503", ("app_error", "receive", "server")),
        ("404", ("app_error", "receive", "client")),
        ("429", ("app_error", "receive", "client")),
    ] {
        for load in [CLOSED_LOOP, OPEN_LOOP, &["-c", "4", "-n", "100", "--pipeline", "4"]] {
            check_response(&format!("/status/{status}"), load, status.parse().unwrap(), end);
        }
    }
}

#[test]
fn checks_that_do_not_hold() {
    let _together = quiet::together();
    let end = ("check_failed", "receive", "server");
    let digest = "0".repeat(64);
    for check in [
        &["--expect-body-contains", "Good-bye"][..],
        &["--expect-status", "204"],
        &["--expect-sha256", &digest],
    ] {
        for load in [CLOSED_LOOP, OPEN_LOOP, &["-c", "4", "-n", "100", "--pipeline", "4"]] {
            check_response("/plaintext", &[load, check].concat(), 200, end);
        }
    }
}

/// Every request gets a response with `status`, and ends like this.
#[track_caller]
fn check_response(path: &str, load: &[&str], status: u16, end: End) {
    let serve = Serve::start(&[]);
    let run = drive(load, &serve.url(path));
    run.expect(&[(end, REQUESTS)]);
    run.expect_exit(3);
    let truth = serve.truth();
    assert_eq!(truth.answers_by_status[&status], REQUESTS, "{}", run.line);
    assert_eq!(truth.connections.accepted, run.recording.total.counts.connections_opened, "{}", run.line);
}
