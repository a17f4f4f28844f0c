//! httpbin under gunicorn: a real application with real delays; the only tests here that assert times.

use units::Nanos;

use crate::support::python::Httpbin;
use crate::support::run::{drive, number, quantile};
use crate::support::turn;

#[track_caller]
fn check_within(what: &str, value: Nanos, low: Nanos, high: Nanos) {
    assert!((low..=high).contains(&value), "{what} is {value}, not within {low} and {high}");
}

/// If this fails, the wait for a pool looks like the server's time: 4 s for a response that takes 2 s.
///
/// Four virtual users share two connections, so each response of 2 s is preceded by another's 2 s on the same
/// connection. Only the first two of the twenty find a connection free. The margins are what httpbin itself adds to its
/// sleep (milliseconds); the response time includes both parts of it.
#[test]
fn the_wait_for_the_pool_is_separate_from_the_response() {
    let _turn = turn::alone();
    let httpbin = Httpbin::start();
    let run = drive(&["-c", "2", "--users", "4", "-n", "20", &httpbin.url("/delay/2")]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 20"]);
    let ms = Nanos::from_millis;
    let results = &run.json["results"];
    let pool = quantile(&run.phase("pool_wait")["distribution"], 0.5);
    check_within("p50 of pool_wait", pool, ms(1_900), ms(2_100));
    check_within("p50 of service", quantile(&results["service"], 0.5), ms(2_000), ms(2_100));
    check_within("p50 of response", quantile(&results["response"], 0.5), ms(3_900), ms(4_200));
}

/// A body that drips for 1 s in ten pieces is received for that long: nine pauses of 0.1 s, and httpbin's own tenth.
#[test]
fn a_dripping_body_is_received_for_as_long_as_it_drips() {
    let _turn = turn::alone();
    let httpbin = Httpbin::start();
    let url = httpbin.url("/drip?duration=1&numbytes=10&code=200&delay=0");
    let run = drive(&["-c", "2", "-n", "8", &url]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 8"]);
    assert_eq!(run.total("body_bytes"), 80);
    let receive = quantile(&run.phase("receive")["distribution"], 0.5);
    check_within("p50 of receive", receive, Nanos::from_millis(850), Nanos::from_millis(1_200));
}

#[test]
fn the_kinds_of_responses_of_an_application_are_understood() {
    let _turn = turn::together();
    let httpbin = Httpbin::start();
    for (path, reported, code, body_bytes) in [
        ("/status/500", "app_error server 20", "500 20", Some(0)),
        ("/status/404", "app_error client 20", "404 20", Some(0)),
        ("/base64/SGVsbG8gd29ybGQ=", "ok - 20", "200 20", Some(220)),
        // Chunked.
        ("/stream-bytes/5000?chunk_size=333", "ok - 20", "200 20", Some(100_000)),
        ("/gzip", "ok - 20", "200 20", None),
        // Successful, and not followed.
        ("/redirect/1", "ok - 20", "302 20", None),
        ("/status/204", "ok - 20", "204 20", Some(0)),
    ] {
        let run = drive(&["-c", "2", "-n", "20", &httpbin.url(path)]);
        assert_eq!(
            (run.reported(), run.codes()),
            (vec![reported.to_owned()], vec![code.to_owned()]),
            "{path}"
        );
        if let Some(body_bytes) = body_bytes {
            assert_eq!(run.total("body_bytes"), body_bytes, "{path}");
        }
    }
}

/// httpbin's /bytes gives gunicorn something it does not accept: the header is sent, then the connection is closed.
///
/// If this fails, a close that comes together with the last bytes goes unnoticed until the timeout.
#[test]
fn a_response_that_breaks_off_is_incomplete_at_once() {
    let _turn = turn::together();
    let httpbin = Httpbin::start();
    let run = drive(&["-c", "2", "-n", "100", "--timeout", "10s", &httpbin.url("/bytes/1000")]);
    assert_eq!(run.reported(), ["incomplete_response server 100"]);
    let longest = number(&run.json, "/results/failed/incomplete_response/max_ns");
    assert!(longest < Nanos::from_secs(10).0, "noticed by the timeout only");
}

#[test]
fn what_is_sent_is_what_the_application_gets() {
    let _turn = turn::together();
    let httpbin = Httpbin::start();
    let url = httpbin.url("/anything?q=a%20b");
    for expected in
        ["\"X-Mine\":\"one, two\"", "\"data\":\"h\\u00e9llo\"", "\"method\":\"PUT\"", "\"q\":\"a b\""]
    {
        let mut arguments =
            vec!["-c", "1", "-n", "4", "-X", "PUT", "-b", "h\u{e9}llo", "-H", "X-Mine: one, two"];
        arguments.extend(["--expect-body-contains", expected, &url]);
        assert_eq!(drive(&arguments).reported(), ["ok - 4"], "{expected}");
    }
}
