//! Whether the servers of a run can be reached, as reported in its intervals.

use record::Reach;
use rustix::io::Errno;
use testkit::{Dial, Lookup, Script, Service, Then, Turns};
use units::Nanos;

use super::{closed, ms, named, open, simulate};
use crate::plan::RunPlan;

/// The `reach` of each interval that ended before the run did; `plan` is run for 4 seconds.
fn reach(plan: &RunPlan, script: &Script) -> Vec<Reach> {
    let plan = RunPlan { window: Some(ms(4_000)), request_limit: None, ..plan.clone() };
    let run = simulate(&plan, script);
    run.intervals.iter().take(3).map(|interval| interval.reach).collect()
}

fn dialing(dials: Turns<Dial>) -> Script {
    Script::answering_after(ms(1)).dialing(dials)
}

fn refused() -> Dial {
    Dial::Fails { after: ms(10), errno: Errno::CONNREFUSED.raw_os_error() }
}

const FAILING: [Reach; 3] = [Reach::Failing; 3];
const POSSIBLE: [Reach; 3] = [Reach::Possible; 3];

#[test]
fn servers_that_never_let_a_connection_open_are_failing_from_the_first_second_on() {
    assert_eq!(reach(&closed(2, 4, 1), &dialing(Turns::always(refused()))), FAILING);
    assert_eq!(reach(&open("50/s", 1), &dialing(Turns::always(refused()))), FAILING);
    let lookups = Turns::always(Lookup::Fails { after: ms(20) });
    let nameless = Script { lookups, ..Script::answering_after(ms(1)) };
    assert_eq!(reach(&named(&closed(2, 2, 1)), &nameless), FAILING);
    let mut crew = closed(5, 5, 1);
    crew.workers = 3;
    assert_eq!(reach(&crew, &dialing(Turns::always(refused()))), FAILING);
}

/// If this fails, a run against a slow server is aborted.
#[test]
fn a_connection_that_waits_for_its_response_is_a_possible_one() {
    let slow = Script::answering_after(ms(3_500));
    assert_eq!(reach(&closed(1, 1, 1), &slow), POSSIBLE);
    // One of two connections is refused again and again, the other waits.
    let one = slow.dialing(Turns::first(vec![Dial::stands(Nanos::ZERO)], refused()));
    assert_eq!(reach(&closed(2, 2, 1), &one), POSSIBLE);
    let hung = Script::serving(Turns::always(Service::nothing(Nanos::ZERO, Then::Hang)));
    assert_eq!(reach(&closed(1, 1, 1), &hung), POSSIBLE);
}

/// If this fails, a run whose server restarts is aborted.
#[test]
fn one_response_is_enough_for_the_whole_run() {
    let then_down = Script::serving(Turns::always(Service::response(ms(1), "ok").then(Then::Close)))
        .dialing(Turns::first(vec![Dial::stands(Nanos::ZERO)], refused()));
    assert_eq!(reach(&closed(1, 1, 1), &then_down), POSSIBLE);
}

#[test]
fn attempts_that_have_not_ended_say_nothing_yet() {
    let mut plan = closed(1, 1, 1);
    plan.pool.connect_timeout = Some(ms(1_500));
    let silent = dialing(Turns::always(Dial::Silent));
    assert_eq!(reach(&plan, &silent), [Reach::Possible, Reach::Unknown, Reach::Failing]);
}
