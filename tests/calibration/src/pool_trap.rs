//! The pool trap: four virtual users, two connections, 200 ms. A timer around the pool measures 400 ms.

use std::io::Read;

use record::Phase;
use units::Nanos;

use crate::binary::{self, Core};
use crate::drive::{drive, quantile};
use crate::quiet;
use crate::serve::Serve;

/// If this fails, the wait for a pool is taken for a slow server.
#[test]
fn the_wait_for_a_connection_is_separate_from_the_request() {
    let _alone = quiet::alone();
    let serve = Serve::start(&[]);
    let run = drive(&["-c", "2", "--users", "4", "-n", "40"], &serve.url("/delay/0.2"));
    run.expect_done();
    assert_eq!(run.ok(), 40);
    let median = |durations| quantile(durations, 500);
    let response = run.recording.total.response().unwrap();
    for (name, seen, planted_ms) in [
        ("pool_wait", median(run.phase(Phase::PoolWait)), 200),
        ("service", median(run.service()), 200),
        ("response", median(response), 400),
    ] {
        println!("{name} p50 {seen}, planted {planted_ms} ms");
        let planted = Nanos::from_millis(planted_ms);
        assert!(
            seen.0.abs_diff(planted.0) * 20 <= planted.0,
            "{name} p50 is {seen}, not {planted} within 5 %"
        );
    }
}

#[test]
fn the_demo_prints_the_three_numbers() {
    let _alone = quiet::alone();
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["demo", "--fast", "-o", folder.path().to_str().unwrap()];
    let mut child = binary::start(&arguments, Core::First);
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    for (message, planted_ms) in
        [("reported by an interceptor", 400), ("the request itself", 200), ("waiting for one of", 200)]
    {
        let line =
            text.lines().find(|line| line.contains(message)).unwrap_or_else(|| panic!("{message}:\n{text}"));
        let number = line.split(message).next().unwrap().trim().replace(' ', "");
        let seen: Nanos = number.parse().unwrap_or_else(|_| panic!("{line}"));
        let planted = Nanos::from_millis(planted_ms);
        assert!(seen.0.abs_diff(planted.0) * 20 <= planted.0, "{line}");
    }
}
