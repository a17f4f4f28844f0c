//! Freezes on schedule, compared with the clock that both sides share.

use target::{Freeze, Options, Server};
use units::Nanos;

use crate::client::{Client, get};

fn frozen(length: Nanos, every: Nanos, first: Nanos, threads: usize) -> Server {
    let freeze = Some(Freeze { length, every, first, count: Some(2) });
    Server::start(Options { freeze, threads, ..Options::default() }).unwrap()
}

/// The purpose of this server: a stall of known begin and end, to test an instrument with.
#[test]
fn a_request_sent_during_a_freeze_gets_its_response_after_it() {
    let ms = Nanos::from_millis;
    // Long enough that a client on a busy machine does not sleep through it.
    let server = frozen(ms(600), ms(800), ms(100), 1);
    let planned = server.freeze_schedule(9);
    assert_eq!(planned.len(), 2);
    assert_eq!(planned[0].0, server.started() + ms(100));
    assert_eq!(planned[1], (planned[0].0 + ms(800), planned[0].1 + ms(800)));
    let mut before = Client::connect(server.local_addr());
    before.get("/plaintext");
    let mut waited_ns = 0;
    for (begin, end) in planned {
        clock::sleep_until(begin + ms(20));
        before.send(get("/plaintext"));
        // The kernel keeps accepting, and timestamping what arrives.
        let mut during = Client::connect(server.local_addr());
        during.send(get("/plaintext"));
        let sent = clock::now();
        waited_ns += 2 * u128::from(end.saturating_sub(sent).0);
        assert_eq!((before.response().status, during.response().status), (200, 200));
        assert!(sent < end && clock::now() >= end, "sent {sent:?}, answered {:?}, end {end:?}", clock::now());
    }
    let truth = server.stop();
    assert_eq!(truth.freezes().len(), 2);
    for freeze in truth.freezes() {
        assert!(freeze.begin >= freeze.planned_begin && freeze.end >= freeze.planned_end);
    }
    assert_eq!((truth.responses(), truth.unstamped()), (5, 0));
    // Four of five waited in the kernel, and the truth counts from their arrival there.
    assert!(waited_ns > 0 && truth.response().durations().sum_ns() >= waited_ns, "{waited_ns}");
}

#[test]
fn every_thread_freezes() {
    let ms = Nanos::from_millis;
    let server = frozen(ms(20), ms(50), ms(10), 2);
    let (_, end) = server.freeze_schedule(2)[1];
    clock::sleep_until(end + ms(5));
    let truth = server.truth();
    let seen: Vec<_> = truth.freezes().iter().map(|freeze| freeze.index).collect();
    assert_eq!(seen, [Some(0), Some(0), Some(1), Some(1)]);
}

#[test]
fn stopping_does_not_wait_for_a_freeze() {
    let server = frozen(Nanos::from_secs(30), Nanos::from_secs(60), Nanos::ZERO, 1);
    let began = clock::now();
    let truth = server.stop();
    assert!(clock::now() - began < Nanos::from_secs(5));
    assert!(truth.freezes().len() <= 1);
}
