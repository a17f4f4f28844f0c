//! What each pace does to the phases, in simulated time, where every wake-up is on time.

use record::Phase;
use testkit::Script;
use units::Nanos;

use super::{check_rank, ms, open, simulate, us};
use crate::pacer::Pace;
use crate::plan::RunPlan;

/// 10,000/s over ten connections, for 10 ms.
fn dense(pace: Pace) -> RunPlan {
    let mut plan = open("10000/s", 100);
    (plan.pool.connections, plan.pool.users) = (50, 1_000);
    plan.pace = pace;
    plan
}

/// Responds 40 us after the request. Each lag is given as median, p99 and maximum, in microseconds.
#[track_caller]
fn check(pace: Pace, schedule_lag: [u64; 3], client_lag: [u64; 3]) {
    let total = simulate(&dense(pace), &Script::answering_after(us(40))).total;
    assert_eq!(total.counts.ok, 100);
    for (phase, expected) in [(Phase::ScheduleLag, schedule_lag), (Phase::ClientLag, client_lag)] {
        let lag = total.phase(phase).unwrap();
        let ranks = [50, 99, 100].map(|rank| lag.at_rank(rank).unwrap().0 / 1_000);
        assert_eq!(ranks, expected, "{pace:?}: {phase:?}");
    }
    // However late the client is on either side, the server's time is the same.
    check_rank(total.service().unwrap(), 1, us(40));
    check_rank(total.service().unwrap(), 100, us(40));
}

#[test]
fn precise_is_late_by_nothing() {
    check(Pace::Precise, [0, 0, 0], [0, 0, 0]);
}

/// Requests due every 100 us leave every 250 us: late by 0, 50, 100, 150 and 200 us, equally many of each. Responses
/// that arrive 40 us later are read at the next wake-up.
#[test]
fn balanced_is_late_by_its_batch_at_either_end_and_says_so() {
    check(Pace::Balanced, [100, 200, 200], [210, 210, 210]);
}

/// They leave every millisecond, late by 0, 100, …, 900 us; responses that arrive 40 us later are read at the next
/// wake-up.
#[test]
fn efficient_is_late_by_its_batch_at_either_end_and_says_so() {
    check(Pace::Efficient, [400, 900, 900], [960, 960, 960]);
}

/// If this fails, a slow schedule pays for batches that it does not fill.
#[test]
fn a_thin_schedule_costs_no_pace_anything() {
    for pace in Pace::ALL {
        let mut plan = open("100/s", 10);
        plan.pace = pace;
        let total = simulate(&plan, &Script::answering_after(us(40))).total;
        check_rank(total.response().unwrap(), 10, us(40));
    }
    assert!(Pace::ALL.iter().all(|pace| pace.batch() <= ms(1)) && Pace::Precise.batch() == Nanos::ZERO);
}
