//! How a run ends: with its window, with its drain, or by an order. No request that was due is lost.

use record::Phase;
use testkit::{LineProtocol, Script, Service, Then, Turns};
use units::Nanos;

use super::{Watched, closed, endings, ms, open, simulate, simulate_watched};
use crate::controls::Order;
use crate::plan::{PoolPlan, RunPlan};

#[test]
fn a_closed_loop_asks_for_nothing_after_its_window() {
    let plan = RunPlan { window: Some(ms(95)), ..closed(1, 1, 1_000_000) };
    let run = simulate(&plan, &Script::answering_after(ms(10)));
    assert_eq!(endings(&run.total), "10 ok");
    assert_eq!(run.elapsed, ms(100));
    // Responses of the drain are distinguished: the window's end is a boundary.
    let ends: Vec<_> = run.intervals.iter().map(|interval| (interval.start, interval.counts.ok)).collect();
    assert_eq!(ends, [(ms(0), 9), (ms(95), 1)]);
}

#[test]
fn the_drain_has_an_end() {
    let plan = RunPlan { window: Some(ms(95)), drain: Some(ms(20)), ..closed(2, 4, 1_000_000) };
    let run = simulate(&plan, &Script::serving(Turns::always(Service::nothing(Nanos::ZERO, Then::Hang))));
    assert_eq!(endings(&run.total), "2 in_flight/wait/undecided; 2 not_sent/pool_wait/pool");
    assert_eq!(run.elapsed, ms(115));
}

#[test]
fn a_number_of_requests_has_a_drain_only_when_it_is_given() {
    let hang = Script::serving(Turns::always(Service::nothing(Nanos::ZERO, Then::Hang)));
    let mut plan = RunPlan { window: None, drain: Some(ms(20)), ..closed(1, 2, 2) };
    let run = simulate(&plan, &hang);
    assert_eq!(endings(&run.total), "1 in_flight/wait/undecided; 1 not_sent/pool_wait/pool");
    assert_eq!(run.elapsed, ms(20));
    (plan.drain, plan.pool.request_timeout) = (None, Some(ms(500)));
    let run = simulate(&plan, &hang);
    assert_eq!(endings(&run.total), "2 request_timeout/wait/server");
    assert_eq!(run.elapsed, ms(1_000));
}

#[test]
fn a_run_that_is_told_to_stop_keeps_what_it_has() {
    let mut plan = open("1000/s", 1_000_000);
    (plan.pool.users, plan.pool.connections) = (100, 100);
    let watched = Watched::stopping_at(LineProtocol::new(1), Some(50));
    let run = simulate_watched(&plan, &Script::answering_after(ms(20)), &watched);
    // Stopped while the request due at 50 ms was being encoded: its connection was open, so it was sent.
    assert_eq!(endings(&run.total), "31 ok; 20 in_flight/wait/undecided");
    assert_eq!(run.elapsed, ms(50));
}

#[test]
fn a_run_that_is_told_to_stop_before_its_start_ends() {
    let watched = Watched::new(LineProtocol::new(1));
    watched.log.controls.stop();
    let run = simulate_watched(&closed(1, 1, 10), &Script::answering_after(ms(20)), &watched);
    assert_eq!((run.total.counts.scheduled, run.elapsed), (0, Nanos::ZERO));
}

/// If this fails, a pause loses requests, or workers disagree on when it was.
#[test]
fn a_paused_run_sends_its_whole_schedule_later() {
    let mut plan = open("1000/s", 100);
    plan.workers = 3;
    (plan.pool.users, plan.pool.connections) = (7, 5);
    let watched = Watched::new(LineProtocol::new(1));
    watched.log.controls.order_at(Order::Pause, ms(30)).unwrap();
    watched.log.controls.order_at(Order::Resume, ms(80)).unwrap();
    let mut run = simulate_watched(&plan, &Script::answering_after(ms(2)), &watched);
    run.encoded.sort_unstable();
    assert_eq!(run.encoded, (0..100).collect::<Vec<_>>());
    assert_eq!(endings(&run.total), "100 ok");
    assert_eq!(run.elapsed, ms(99 + 50 + 2));
    assert_eq!(watched.log.controls.window(&plan), Some(ms(150)));
    let lag = run.total.phase(Phase::ScheduleLag).unwrap();
    assert!(lag.max().unwrap() <= ms(1), "what was not due did not wait");
}

/// If this fails, a user who ends a run with a key loses the requests in progress, as with a signal.
#[test]
fn a_run_that_is_ended_well_waits_for_what_is_under_way() {
    let plan = RunPlan { window: Some(ms(1_000)), ..open("1000/s", 1_000_000) };
    let plan = RunPlan { pool: PoolPlan { users: 100, connections: 100, ..plan.pool }, ..plan };
    let watched = Watched::new(LineProtocol::new(1));
    watched.log.controls.order_at(Order::End, ms(40)).unwrap();
    let run = simulate_watched(&plan, &Script::answering_after(ms(20)), &watched);
    assert_eq!(endings(&run.total), "40 ok");
    assert!(run.elapsed < ms(100), "{}", run.elapsed);
    assert_eq!(watched.log.controls.window(&plan), Some(ms(40)));
}

#[test]
fn an_ended_runs_drain_is_the_plans() {
    let plan = RunPlan { window: Some(ms(1_000)), drain: Some(ms(20)), ..closed(2, 2, 1_000_000) };
    let watched = Watched::new(LineProtocol::new(1));
    watched.log.controls.order_at(Order::End, ms(40)).unwrap();
    let hang = Script::serving(Turns::always(Service::nothing(Nanos::ZERO, Then::Hang)));
    let run = simulate_watched(&plan, &hang, &watched);
    assert_eq!(endings(&run.total), "2 in_flight/wait/undecided");
    assert_eq!(run.elapsed, ms(60));
}

#[test]
fn every_request_belongs_to_one_worker() {
    let mut plan = open("1000/s", 100);
    plan.workers = 3;
    (plan.pool.users, plan.pool.connections) = (7, 5);
    let mut run = simulate(&plan, &Script::answering_after(ms(2)));
    run.encoded.sort_unstable();
    assert_eq!(run.encoded, (0..100).collect::<Vec<_>>());
    assert_eq!(endings(&run.total), "100 ok");
}
