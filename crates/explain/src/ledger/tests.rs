//! Tests of the ledger: whatever the records contain, it sums to the response time to the nanosecond.

use proptest::prelude::*;
use record::{Owner, Waits};

use super::*;
use crate::fixture::{row, served};

/// A row that waits `wait` ms and does nothing else.
fn waits(wait: u64) -> Row {
    let mut lengths = [None; Phase::COUNT];
    lengths[Phase::Wait as usize] = Some(wait * 1_000_000);
    row(0, lengths)
}

fn at(served: &Served, zero: Option<u64>) -> AtServer<'_> {
    about(served, zero.map(|zero| OneClock { zero, error: 0 }))
}

fn about(served: &Served, clock: Option<OneClock>) -> AtServer<'_> {
    AtServer { served, behind: Behind::default(), clock, loopback: false }
}

#[track_caller]
fn check(ledger: Ledger, expected: &[(Segment, u64)]) {
    let found: Vec<_> = Segment::ALL
        .into_iter()
        .filter(|&segment| ledger.get(segment) > 0)
        .map(|segment| (segment, ledger.get(segment) / 1_000_000))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn one_clock_divides_the_way_there_from_the_way_back() {
    use Segment::{OnCpu, ServerAndNetwork, SocketQueue, ToClient, ToServer};
    let request = served(10, 30, 60);
    let divided = Ledger::divided(&waits(100), &at(&request, Some(0)));
    check(divided, &[(ToServer, 10), (SocketQueue, 20), (OnCpu, 30), (ToClient, 40)]);
    check(Ledger::of(&waits(100)), &[(ServerAndNetwork, 100)]);
    // A response arrives before the server's write has returned.
    let divided = Ledger::divided(&waits(50), &at(&request, Some(0)));
    check(divided, &[(ToServer, 10), (SocketQueue, 20), (OnCpu, 20)]);
}

#[test]
fn two_clocks_leave_the_network_undivided() {
    use Segment::{Network, OnCpu, SocketQueue};
    let request = served(1_010, 1_030, 1_060);
    check(
        Ledger::divided(&waits(100), &at(&request, None)),
        &[(SocketQueue, 20), (OnCpu, 30), (Network, 50)],
    );
}

/// If this fails, the error between two clocks is reported as time of the network, or subtracted from the server's
/// time.
#[test]
fn a_clock_that_is_known_within_an_error_divides_what_it_can() {
    use Segment::{Network, OnCpu, SocketQueue, ToClient, ToServer};
    let about_ms = |error: u64| Some(OneClock { zero: 0, error: error * 1_000_000 });
    let request = served(10, 30, 60);
    let divided = Ledger::divided(&waits(100), &about(&request, about_ms(5)));
    check(divided, &[(ToServer, 10), (SocketQueue, 20), (OnCpu, 30), (ToClient, 40)]);
    let divided = Ledger::divided(&waits(100), &about(&request, about_ms(6)));
    check(divided, &[(SocketQueue, 20), (OnCpu, 30), (Network, 50)]);
    // According to its timestamps the request arrived before it was sent: it arrived at once, and lengths are kept.
    let early = OneClock { zero: 12_000_000, error: 2_000_000 };
    let divided = Ledger::divided(&waits(100), &about(&request, Some(early)));
    check(divided, &[(SocketQueue, 20), (OnCpu, 30), (ToClient, 50)]);
}

#[test]
fn without_a_stamp_of_the_arrival_the_queue_is_not_told_from_the_network() {
    use Segment::{OnCpu, SocketQueue, ToClient, ToServerAndQueue};
    let request = Served { arrived: None, ..served(10, 30, 60) };
    let here = at(&request, Some(0));
    check(Ledger::divided(&waits(60), &here), &[(ToServerAndQueue, 30), (OnCpu, 30)]);
    let here = AtServer { loopback: true, ..here };
    check(Ledger::divided(&waits(70), &here), &[(SocketQueue, 30), (OnCpu, 30), (ToClient, 10)]);
}

#[test]
fn a_reader_without_a_cpu_is_no_reader_that_does_not_read() {
    use Segment::{OnCpu, OwnRunQueue, QueueRunQueue, QueueThrottled, SocketQueue};
    let request = Served {
        socket_run_queue: Nanos::from_millis(10),
        socket_contended: Nanos::from_millis(8),
        socket_throttled: Nanos::from_millis(5),
        ..served(0, 20, 60)
    };
    let divided = Ledger::divided(&waits(60), &at(&request, Some(0)));
    let expected = [(SocketQueue, 5), (QueueRunQueue, 8), (QueueThrottled, 5), (OnCpu, 40), (OwnRunQueue, 2)];
    check(divided, &expected);
}

/// If this fails, what is known of a wait is lost, or counted twice.
#[test]
fn a_wait_goes_to_what_ended_it() {
    use Segment::{HeldBack, Lock, OnCpu, OtherThread, Polling, QueueStopped, Stopped, Timer, Upstream};
    let mut request = served(0, 20, 120);
    request.parts[Part::OnCpu as usize] = Nanos::from_millis(10);
    request.parts[Part::Network as usize] = Nanos::from_millis(60);
    request.parts[Part::Lock as usize] = Nanos::from_millis(30);
    let owner = Owner { tid: 1, comm: "worker".to_owned(), digest: None, time: Nanos::from_millis(35) };
    request.waits = Some(Box::new(Waits {
        stopped_unread: Nanos::from_millis(20),
        stopped: Nanos::from_millis(4),
        timer: Nanos::from_millis(15),
        upstream: Nanos::from_millis(25),
        owner: Some(owner),
        held_back: true,
        ..Waits::default()
    }));
    let divided = Ledger::divided(&waits(160), &at(&request, Some(0)));
    let expected = [
        (QueueStopped, 20),
        (OnCpu, 10),
        (Lock, 30),
        (Upstream, 25),
        (Timer, 15),
        (Stopped, 4),
        (OtherThread, 5),
        (Polling, 11),
        (HeldBack, 40),
    ];
    check(divided, &expected);
}

prop_compose! {
    fn any_served()(
        instants in proptest::collection::vec(0u64..1 << 34, 3),
        cuts in proptest::collection::vec(0u64..1 << 34, Part::COUNT),
        stamped in any::<bool>(),
        waited in 0u64..1 << 34,
    ) -> Served {
        let mut instants = instants;
        instants.sort_unstable();
        let [arrived, read, done] = [instants[0], instants[1], instants[2]];
        let mut request = served(0, 0, 0);
        request.arrived = stamped.then_some(Nanos(arrived));
        (request.read, request.first_sent, request.done) = (Nanos(read), Nanos(done), Nanos(done));
        let queued = if stamped { read - arrived } else { 0 };
        request.socket_run_queue = Nanos(waited.min(queued));
        request.socket_throttled = Nanos(cuts[0].min(queued - request.socket_run_queue.0));
        let mut left = done - read;
        for (part, cut) in request.parts.iter_mut().zip(cuts) {
            *part = Nanos(cut.min(left));
            left -= part.0;
        }
        request.parts[Part::LoopWait as usize] += Nanos(left);
        request.contended = Nanos(waited.min(request.part(Part::RunQueue).0));
        request.socket_contended = Nanos(waited.min(request.socket_run_queue.0) / 2);
        request.waits = (waited % 2 == 0).then(|| {
            let asleep = (done - read) / 2;
            Box::new(Waits {
                stopped_unread: Nanos(queued / 3),
                timer: Nanos(waited.min(asleep)),
                upstream: Nanos(asleep - waited.min(asleep)),
                held_back: waited % 4 == 0,
                ..Waits::default()
            })
        });
        request
    }
}

proptest! {
    /// If this fails, time is lost or invented between the client's record and the server's.
    #[test]
    fn every_ledger_sums_to_the_response(
        intended in 0u64..1 << 30,
        lengths in proptest::collection::vec(proptest::option::of(0u64..1 << 33), Phase::COUNT),
        others in proptest::collection::vec(any_served(), 1..6),
        zero in proptest::option::of(0u64..1 << 33),
        error in prop_oneof![Just(0), 0u64..1 << 20],
        loopback in any::<bool>(),
    ) {
        let row = row(intended, lengths.try_into().unwrap());
        prop_assert_eq!(Ledger::of(&row).sum(), row.response.0);
        prop_assert!(others.iter().all(Served::is_lawful));
        let threads = crate::queued_behind::Threads::new(&others);
        for (place, served) in others.iter().enumerate() {
            let behind = threads.behind(place);
            let clock = zero.map(|zero| OneClock { zero, error });
            let divided = Ledger::divided(&row, &AtServer { served, behind, clock, loopback });
            prop_assert_eq!(divided.sum(), row.response.0);
        }
    }
}
