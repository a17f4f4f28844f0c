//! The planted capacity over real sockets: one for all threads and connections, exactly on its schedule.

use target::{Options, RouteKind, Server};
use units::Nanos;

use crate::client::{Client, get};

/// If this fails, a search is measured against a capacity that the server does not have.
#[test]
fn all_threads_and_connections_share_one_capacity() {
    let server = Server::start(Options { threads: 2, ..Options::default() }).unwrap();
    // Eight connections are spread over both threads, with a probability of 127 in 128.
    let mut clients: Vec<_> = (0..8).map(|_| Client::connect(server.local_addr())).collect();
    let begin = clock::now();
    for client in &mut clients {
        client.send(get("/capacity?rate=200/s").repeat(5));
    }
    for client in &mut clients {
        (0..5).for_each(|_| assert_eq!(client.response().status, 200));
    }
    let took = clock::now() - begin;
    // The first is released at once and the last one 39 slots later, 5 ms each: by the schedule never earlier.
    assert!(took >= Nanos::from_millis(195), "{took}");
    let truth = server.stop();
    assert_eq!((truth.requests_of(RouteKind::Capacity), truth.responses_with(200)), (40, 40));
    let admissions = truth.capacity();
    assert_eq!((admissions.at_once, admissions.held), (1, 39), "{admissions:?}");
    // Held responses are delayed on purpose, so the truth contains how late this server itself was.
    assert_eq!(truth.lateness().count(), 39);
}

#[test]
fn a_request_without_a_slot_is_refused_or_slowed_as_asked() {
    let server = Server::start(Options::default()).unwrap();
    let mut client = Client::connect(server.local_addr());
    let statuses: Vec<_> =
        (0..3).map(|_| client.get("/capacity?rate=1/h&burst=2&over=refuse").status).collect();
    assert_eq!(statuses, [200, 200, 503]);
    let begin = clock::now();
    for _ in 0..2 {
        assert_eq!(client.get("/capacity?rate=1/h&over=slow&ms=20").status, 200);
    }
    assert!(clock::now() - begin >= Nanos::from_millis(20));
    let truth = server.stop();
    let admissions = truth.capacity();
    assert_eq!((admissions.at_once, admissions.refused, admissions.slowed), (3, 1, 1), "{admissions:?}");
    assert!(truth.is_conserved());
}
