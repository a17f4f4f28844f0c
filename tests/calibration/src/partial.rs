//! Faults on a share of the requests: as many failures as the server planted, to the request.

use crate::drive::drive;
use crate::expect::{End, OK};
use crate::quiet;
use crate::serve::Serve;

#[track_caller]
fn check(fault: &str, end: End, more: &[&str]) {
    let _together = quiet::together();
    for load in [&["-c", "31", "-n", "1000"][..], &["-c", "31", "-r", "500/s", "-n", "1000"]] {
        let serve = Serve::start(&[]);
        let url = serve.url(&format!("/fault/{fault}?p=0.1&seed=7"));
        let run = drive(&[load, more].concat(), &url);
        let truth = serve.truth();
        let faults = truth.faults_of(fault);
        // The draws have a fixed seed: 1,000 of them always have the same count.
        assert!((80..120).contains(&faults), "{}: {faults} faults of 1,000", run.line);
        run.expect(&[(end, faults), (OK, 1_000 - faults)]);
        run.expect_done();
        assert_eq!(truth.requests.answered, run.ok(), "{}", run.line);
        assert_eq!(truth.requests.read, 1_000, "{}", run.line);
    }
}

#[test]
fn a_tenth_is_closed_on() {
    check("close", ("closed_before_response", "wait", "server"), &[]);
}

#[test]
fn a_tenth_is_cut_short() {
    check("short-body", ("incomplete_response", "receive", "server"), &[]);
}

#[test]
fn a_tenth_is_reset() {
    check("reset", ("reset", "wait", "server"), &[]);
}

#[test]
fn a_tenth_is_garbage() {
    check("garbage", ("protocol_error", "receive", "server"), &[]);
}

#[test]
fn a_tenth_never_gets_a_response() {
    check("never", ("request_timeout", "wait", "server"), &["--timeout", "500ms"]);
}
