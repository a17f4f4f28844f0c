//! The engine on real sockets, for what only events of the kernel can show.

use std::sync::Arc;

use record::Interval;
use schedule::Arrivals;
use testkit::{Action, LineProtocol, ScriptedServer};
use units::Nanos;

use crate::controls::Controls;
use crate::plan::tests::plan;
use crate::plan::{Load, Peer, Place};
use crate::run::{Listener, RunError, Started, run};

struct Sum(Interval);

impl Listener for Sum {
    fn started(&mut self, _: &Started) {}

    fn interval(&mut self, interval: &mut Interval) {
        self.0.merge(interval);
    }
}

/// The kernel may report the last bytes and the close in one event. If this fails, a response that ends with its
/// connection is noticed only at its timeout, and a fast server counts as one that never responds.
#[test]
fn a_close_that_comes_with_the_bytes_is_noticed() {
    let response = vec![
        Action::ReadUntil(b"\n".to_vec()),
        Action::Write(b"rest 0 and more".to_vec()),
        Action::ShutdownWrite,
    ];
    let server = ScriptedServer::start(vec![response]);
    let mut plan = plan();
    plan.peers = vec![Peer::at(Place::Address(server.address()))];
    plan.window = None;
    plan.request_limit = Some(200);
    let timeout = Nanos::from_secs(5);
    plan.pool.request_timeout = Some(timeout);
    let mut sum = Sum(Interval::default());
    run(&plan, &FirstOnly(LineProtocol::new(1)), &Controls::new(Arc::default()), &mut sum).unwrap();
    assert_eq!(sum.0.failures(), []);
    assert_eq!(sum.0.counts.ok, 200);
    // An unnoticed close is found when the timer has fired and the socket is read again.
    let longest = sum.0.response().and_then(record::Durations::max).unwrap();
    assert!(longest < timeout, "found by the timer only, after {longest}");
}

/// Every request is number 0, since a scripted server cannot count.
struct FirstOnly(LineProtocol);

impl codec::Protocol for FirstOnly {
    type Journey = u64;
    type Session = testkit::LineSession;

    fn session(&self, origin: codec::Origin) -> Self::Session {
        self.0.session(origin)
    }

    fn begin(&self, _: u64) -> u64 {
        0
    }

    fn route(&self, journey: &u64) -> codec::Route {
        self.0.route(journey)
    }

    fn kinds(&self) -> usize {
        1
    }
}

/// Panics when the fourth request is due.
struct Broken(LineProtocol);

impl codec::Protocol for Broken {
    type Journey = u64;
    type Session = testkit::LineSession;

    fn session(&self, origin: codec::Origin) -> Self::Session {
        self.0.session(origin)
    }

    fn begin(&self, n: u64) -> u64 {
        assert_ne!(n, 3, "planted");
        n
    }

    fn route(&self, journey: &u64) -> codec::Route {
        self.0.route(journey)
    }

    fn kinds(&self) -> usize {
        1
    }
}

/// If this fails, a run continues for hours without the share of a worker that failed.
#[test]
fn a_worker_that_breaks_ends_the_run() {
    let server = ScriptedServer::start(vec![vec![Action::Sleep(Nanos::from_secs(60))]]);
    let mut plan = plan();
    plan.peers = vec![Peer::at(Place::Address(server.address()))];
    plan.load = Load::Open(Arrivals::Constant("100/s".parse().unwrap()));
    plan.window = Some(Nanos::from_secs(60));
    (plan.workers, plan.pool.connections, plan.pool.users) = (2, 2, 2);
    let controls = Controls::new(Arc::default());
    let before = clock::now();
    let ended = run(&plan, &Broken(LineProtocol::new(1)), &controls, &mut Sum(Interval::default()));
    assert!(matches!(ended, Err(RunError::Worker(text)) if text.contains("planted")));
    assert!(controls.is_stopped());
    // A failure would be a hang: any duration below a minute shows that the run was ended.
    assert!(clock::now() - before < Nanos::from_secs(30));
}
