//! What precedes the run's zero, and how connections are opened, paced and replaced.

use record::{Outcome, Phase};
use testkit::{Dial, LineProtocol, Script, Service, Then, Turns};
use units::Nanos;

use super::{Watched, check_rank, closed, endings, ms, open, simulate, simulate_watched};
use crate::plan::RunPlan;

fn warmed(plan: RunPlan, warmup: Nanos) -> RunPlan {
    RunPlan { warmup: Some(warmup), ..plan }
}

/// If this fails, a cold server's first second is in the percentiles although a warm-up was requested.
#[test]
fn a_warm_up_is_counted_apart_and_leaves_its_connections_open() {
    let script = Script::answering_after(ms(1));
    let plan = warmed(closed(3, 3, 30), ms(10));
    let run = simulate(&plan, &script);
    let warmup = run.warmup.unwrap();
    // Three users, a request per millisecond each.
    assert_eq!(endings(&warmup), "30 ok");
    assert_eq!(warmup.counts.connections_opened, 3);
    assert_eq!((endings(&run.total).as_str(), run.total.counts.connections_opened), ("30 ok", 0));
    assert!(run.total.phase(Phase::Connect).is_none());
}

/// If this fails, requests that queued up behind a cold server delay those that are measured.
#[test]
fn the_backlog_of_a_warm_up_is_not_part_of_the_run() {
    // The first ten responses take 50 ms each, on one connection: 500 ms of work for 100 ms of load.
    let cold = vec![Service::response(ms(50), "ok"); 10];
    let script = Script::serving(Turns::first(cold, Service::response(ms(1), "ok")));
    let mut plan = warmed(open("100/s", 20), ms(100));
    plan.pool.users = 1_000;
    let run = simulate(&plan, &script);
    assert_eq!(endings(&run.warmup.unwrap()), "10 ok");
    check_rank(run.total.response().unwrap(), 20, ms(1));
}

#[test]
fn what_a_warm_up_cannot_finish_is_counted_and_its_connection_is_replaced() {
    let hung = vec![Service::nothing(Nanos::ZERO, Then::Hang)];
    let script = Script::serving(Turns::first(hung, Service::response(ms(1), "ok")));
    let mut plan = warmed(closed(2, 2, 10), ms(10));
    plan.drain = Some(ms(20));
    let run = simulate(&plan, &script);
    assert_eq!(endings(&run.warmup.unwrap()), "10 ok; 1 in_flight/wait/undecided");
    assert_eq!((endings(&run.total).as_str(), run.total.counts.connections_opened), ("10 ok", 1));
}

/// If this fails, a run inserts the rows of its warm-up again, or reads exactly what that has brought into caches.
#[test]
fn the_run_continues_with_the_numbers_of_its_warm_up() {
    let watched = Watched::new(LineProtocol::new(1));
    let mut plan = warmed(closed(2, 2, 6), ms(3));
    plan.workers = 2;
    let run = simulate_watched(&plan, &Script::answering_after(ms(1)), &watched);
    let mut numbers = run.encoded;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..12).collect::<Vec<u64>>());
}

#[test]
fn idle_connections_are_opened_before_the_run_and_carry_nothing() {
    let mut plan = closed(2, 2, 10);
    (plan.pool.idle, plan.workers) = (70, 2);
    let run = simulate(&plan, &Script::answering_after(ms(1)));
    assert_eq!((run.idle.wanted, run.idle.opened, run.idle.lost), (70, 70, 0));
    assert_eq!(run.dials, 72);
    assert_eq!((endings(&run.total).as_str(), run.total.counts.connections_opened), ("10 ok", 2));
}

/// If this fails, a run against a server that lets few connections in waits for thousands of failures, or hangs.
#[test]
fn idle_connections_that_cannot_be_opened_are_counted_and_end() {
    let refused = Dial::Fails { after: ms(1), errno: rustix::io::Errno::CONNREFUSED.raw_os_error() };
    let stands = vec![Dial::stands(Nanos::ZERO); 5];
    let mut plan = closed(1, 1, 1);
    plan.pool.idle = 40;
    let run = simulate(&plan, &Script::answering_after(ms(1)).dialing(Turns::first(stands, refused.clone())));
    assert_eq!((run.idle.wanted, run.idle.opened), (40, 5));
    assert_eq!(run.idle.failure.unwrap().0.outcome, Outcome::ConnectRefused);
    let run = simulate(&plan, &Script::answering_after(ms(1)).dialing(Turns::always(refused)));
    assert_eq!((run.idle.opened, run.dials), (0, 33));
}

#[test]
fn a_connection_is_replaced_after_its_number_of_requests() {
    for (users, pipeline) in [(1, 1), (4, 4)] {
        let mut plan = closed(1, users, 100);
        plan.pool.requests_per_connection = Some(10);
        let watched = Watched::new(LineProtocol::new(pipeline));
        let run = simulate_watched(&plan, &Script::answering_after(ms(1)), &watched);
        assert_eq!(endings(&run.total), "100 ok", "{pipeline}");
        assert_eq!((run.total.counts.connections_opened, run.dials), (10, 10), "{pipeline}");
        assert_eq!(run.total.counts.idle_closes, 0);
    }
}

/// If this fails, a storm of connections is faster than what was requested, or its wait is in no phase.
#[test]
fn connections_are_opened_at_their_rate_and_requests_wait_for_that_in_the_pool() {
    let mut plan = closed(5, 5, 5);
    plan.pool.connect_gap = ms(10);
    let run = simulate(&plan, &Script::answering_after(ms(100)));
    assert_eq!(endings(&run.total), "5 ok");
    let waits = run.total.phase(Phase::PoolWait).unwrap();
    (1..=5).for_each(|rank| check_rank(waits, rank, ms(10 * (rank - 1))));
    // A request does not wait for a new connection if another one becomes free.
    let mut plan = closed(5, 5, 100);
    plan.pool.connect_gap = ms(1_000);
    let run = simulate(&plan, &Script::answering_after(ms(1)));
    assert_eq!((endings(&run.total).as_str(), run.dials), ("100 ok", 1));
}

/// If this fails, a run without room to wait hangs, or requests wait longer than their limit.
#[test]
fn a_request_that_waits_for_a_permit_has_a_checkout_timeout() {
    let mut plan = closed(3, 3, 3);
    (plan.pool.connect_gap, plan.pool.checkout_timeout) = (ms(40), Some(ms(50)));
    let run = simulate(&plan, &Script::answering_after(ms(200)));
    assert_eq!(endings(&run.total), "2 ok; 1 checkout_timeout/pool_wait/pool");
}

#[test]
fn replacements_keep_the_rate_too() {
    let mut plan = closed(1, 1, 6);
    (plan.pool.connect_gap, plan.pool.requests_per_connection) = (ms(10), Some(2));
    let run = simulate(&plan, &Script::answering_after(ms(1)));
    assert_eq!((endings(&run.total).as_str(), run.dials), ("6 ok", 3));
    check_rank(run.total.phase(Phase::PoolWait).unwrap(), 6, ms(8));
}
