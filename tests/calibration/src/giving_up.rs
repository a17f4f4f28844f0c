//! Requests that got no response in time: at the pool, at the queue limit, at the end of the run.

use record::Outcome;
use record::document::QuantileValue;
use units::Nanos;

use crate::drive::{drive, value};
use crate::expect::{End, OK};
use crate::quiet;
use crate::serve::Serve;

const CHECKOUT: End = ("checkout_timeout", "pool_wait", "pool");
const QUEUE_FULL: End = ("queue_full", "pool_wait", "pool");
const IN_FLIGHT: End = ("in_flight", "wait", "undecided");
const NOT_SENT: End = ("not_sent", "pool_wait", "pool");

/// Two connections are busy for 1 s at a time; six virtual users wait 200 ms, give up, and try again.
#[test]
fn a_pool_that_has_no_connection_in_time() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    let load = ["-c", "2", "--users", "8", "--checkout-timeout", "200ms", "-n", "40"];
    let run = drive(&load, &serve.url("/delay/1"));
    let truth = serve.truth();
    run.expect(&[(OK, truth.requests.answered), (CHECKOUT, 40 - truth.requests.answered)]);
    run.expect_done();
    // No request that was given up has reached the server.
    assert_eq!(truth.requests.read, run.ok(), "{}", run.line);
    assert!(run.count_of(Outcome::CheckoutTimeout) >= 20, "{}: {} ok", run.line, run.ok());
    let ages = run.recording.total.failed(Outcome::CheckoutTimeout).unwrap();
    // A histogram returns the low end of a value's bucket, at 200 ms up to 131 us below it.
    let limit = Nanos(ages.histogram().lowest_equivalent(200_000_000));
    assert!(ages.min().unwrap() >= limit, "{}: given up before its time", run.line);
}

#[test]
fn an_open_loop_whose_pool_has_no_connection_in_time() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    let load = ["-c", "2", "-r", "40/s", "-n", "40", "--checkout-timeout", "200ms"];
    let run = drive(&load, &serve.url("/delay/1"));
    let answered = serve.truth().requests.answered;
    run.expect(&[(OK, answered), (CHECKOUT, 40 - answered)]);
}

/// Four may be in flight or queued; what is due beyond that is refused, and counted.
#[test]
fn a_queue_that_is_full() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    let run = drive(&["-c", "2", "--max-in-flight", "4", "-r", "40/s", "-n", "40"], &serve.url("/delay/1"));
    let truth = serve.truth();
    run.expect(&[(OK, truth.requests.answered), (QUEUE_FULL, 40 - truth.requests.answered)]);
    run.expect_done();
    assert_eq!(truth.requests.read, run.ok());
    assert!(run.count_of(Outcome::QueueFull) >= 30, "{}", run.line);
}

/// Four connections hold a request each that never gets a response; what was due after them was never sent.
#[test]
fn requests_in_flight_when_the_drain_is_over() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    let load = ["-c", "4", "-r", "100/s", "-d", "1s", "--timeout", "off", "--drain", "200ms"];
    let run = drive(&load, &serve.url("/fault/never"));
    run.expect(&[(IN_FLIGHT, 4), (NOT_SENT, 96)]);
    run.expect_exit(3);
    assert_eq!(serve.truth().faults_of("never"), 4);
    let ages = run.recording.total.failed(Outcome::InFlight).unwrap();
    // The four were due in the first 30 ms, and given up 1.2 s after the run's zero.
    assert!(ages.min().unwrap() >= Nanos::from_millis(1_169), "{:?}", ages.min());
}

#[test]
fn virtual_users_with_requests_in_flight_when_the_drain_is_over() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    let load = ["-c", "4", "--users", "6", "-d", "500ms", "--timeout", "off", "--drain", "100ms"];
    let run = drive(&load, &serve.url("/fault/never"));
    run.expect(&[(IN_FLIGHT, 4), (NOT_SENT, 2)]);
    run.expect_exit(3);
}

/// No response within the timeout, so no percentile is known, only a lower bound.
#[test]
fn percentiles_among_requests_without_a_response_are_lower_bounds() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    let load = ["-c", "50", "-n", "100", "--timeout", "300ms"];
    let run = drive(&load, &serve.url("/fault/never"));
    for q in [0.5, 0.9] {
        let QuantileValue::Above { ns } = value(&run.results().response, q) else {
            panic!("p{} of {}", q * 100.0, run.line);
        };
        assert!(ns >= 299_000_000, "{ns}");
    }
    let bound = run.stdout.lines().find(|line| line.contains("> 3"));
    assert!(bound.is_some(), "no lower bound is printed:\n{}", run.stdout);
    drop(serve);

    // A tenth gets no response: the median is known, p99 is not.
    let serve = Serve::start(&[]);
    let load = ["-c", "50", "-n", "1000", "--timeout", "300ms"];
    let run = drive(&load, &serve.url("/fault/never?p=0.1&seed=7"));
    let response = &run.results().response;
    assert!(matches!(value(response, 0.5), QuantileValue::Known { .. }), "{:?}", value(response, 0.5));
    let QuantileValue::Above { ns } = value(response, 0.99) else {
        panic!("{:?}", value(response, 0.99));
    };
    assert!(ns >= 299_000_000, "{ns}");
    assert!(run.stdout.contains("> 3"), "{}", run.stdout);
}
