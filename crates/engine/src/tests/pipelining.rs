//! Several requests on one connection, and requests that are sent in parts.

use record::Phase;
use rustix::io::Errno;
use testkit::{Choke, Dial, LineProtocol, Piece, Script, Service, Text, Then, Turns, Way};
use units::Nanos;

use super::{closed, endings, ms, open, simulate, simulate_lines, sum};
use crate::plan::RunPlan;

const FOUR: LineProtocol = LineProtocol { pipeline: 4, padding: 0 };

fn ok(after: Nanos) -> Service {
    Service::response(after, "ok")
}

#[track_caller]
fn check(plan: &RunPlan, services: Vec<Service>, expected: &str) {
    let script = Script::serving(Turns::first(services, ok(ms(1))));
    assert_eq!(endings(&simulate_lines(plan, &script, FOUR).total), expected);
}

/// The session refuses a response with another request's number, so `ok` implies the right order.
#[test]
fn answers_come_in_the_order_of_the_requests() {
    let script = Script::answering_after(ms(10));
    let run = simulate_lines(&closed(1, 4, 8), &script, FOUR);
    assert_eq!(endings(&run.total), "8 ok");
    assert_eq!(run.dials, 1);
    // The server handles one request at a time: 10, 20, 30, 40 for the first four, and 40 for each later one.
    assert_eq!(run.total.response().map(sum), Some((10 + 20 + 30 + 40 + 4 * 40) * 1_000_000));
}

/// If this fails, requests after a broken one are counted twice, or not at all.
#[test]
fn a_connection_that_breaks_takes_each_request_with_it_once() {
    for (service, ending) in [
        (Service::nothing(ms(1), Then::Close), "6 ok; 4 closed_before_response/wait/server"),
        (
            Service::raw(ms(1), "ok", Then::Close),
            "6 ok; 1 incomplete_response/receive/server; 3 closed_before_response/wait/server",
        ),
        (Service::nothing(ms(1), Then::Reset), "6 ok; 4 reset/wait/server"),
        (
            Service::raw(ms(1), "rubbish\n", Then::Keep),
            "6 ok; 1 protocol_error/receive/server; 3 closed_before_response/wait/server",
        ),
        (Service::response(ms(1), "bye").then(Then::Close), "7 ok; 3 closed_before_response/wait/server"),
    ] {
        let mut plan = open("1000000000/s", 10);
        plan.pool.users = 10;
        // Four leave together, and the fifth after the first response; the second fails.
        check(&plan, vec![ok(ms(1)), service], ending);
    }
}

#[test]
fn a_timeout_of_the_oldest_is_one_of_all() {
    let mut plan = closed(1, 3, 3);
    plan.pool.request_timeout = Some(ms(100));
    let services = vec![Service::nothing(ms(0), Then::Hang)];
    check(&plan, services, "3 request_timeout/wait/server");
}

fn choked(chokes: Vec<Choke>) -> Script {
    let way = Way { chokes, ..Way::default() };
    Script::answering_after(ms(5)).dialing(Turns::always(Dial::Stands { after: ms(1), way }))
}

#[test]
fn sending_lasts_until_the_last_byte_is_accepted() {
    let lines = LineProtocol { pipeline: 1, padding: 100 };
    let twice = vec![Choke { after_bytes: 10, lasts: ms(2) }, Choke { after_bytes: 60, lasts: ms(3) }];
    let total = simulate_lines(&closed(1, 1, 1), &choked(twice), lines).total;
    assert_eq!(total.phase(Phase::Send).map(sum), Some(5_000_000));
    assert_eq!(total.phase(Phase::Wait).map(sum), Some(5_000_000));
}

/// If this fails, a request of which the kernel accepted nothing counts as sent.
#[test]
fn a_request_is_sent_when_its_first_byte_is_accepted() {
    // Each request has two bytes. The kernel takes two requests, then nothing until the run has ended.
    let script = choked(vec![Choke { after_bytes: 4, lasts: Nanos::MAX }]);
    let mut plan = open("1000/s", 4);
    (plan.pool.users, plan.window) = (4, Some(ms(10)));
    let total = simulate_lines(&plan, &script, FOUR).total;
    assert_eq!(endings(&total), "2 ok; 2 not_sent/send/undecided");
    assert_eq!(total.counts.sent, 2);
}

#[test]
fn an_answer_to_half_a_request_ends_its_connection() {
    let lines = LineProtocol { pipeline: 2, padding: 100 };
    let early = Service { early_bytes: Some(10), ..Service::response(ms(1), "ok") };
    let script = choked(vec![Choke { after_bytes: 50, lasts: ms(20) }]);
    let script = Script { services: Turns::first(vec![early], ok(ms(1))), ..script };
    let run = simulate_lines(&closed(1, 2, 4), &script, lines);
    // How the server would interpret the rest of the bytes is unknown, so the next request leaves on another
    // connection.
    assert!(endings(&run.total).starts_with("3 ok; 1 closed_before_response"), "{}", endings(&run.total));
    assert_eq!(run.dials, 2);
}

/// If this fails, a response that begins before its request is completely sent is timestamped twice.
#[test]
fn an_answer_may_begin_before_its_request_has_left() {
    let text = |text| vec![Text::of(text)];
    let first = Piece { after: ms(1), text: text("ok ") };
    let last = Piece { after: ms(9), text: vec![Text::Number, Text::of("\n")] };
    // The number is written as text, because by the time of the last piece the server has dropped the request.
    let last = Piece { text: text("0\n"), ..last };
    let early = Service { early_bytes: Some(10), ..Service::pieces(ms(0), vec![first, last]) };
    let lines = LineProtocol { pipeline: 1, padding: 100 };
    let script = choked(vec![Choke { after_bytes: 50, lasts: ms(4) }]);
    let script = Script { services: Turns::first(vec![early], ok(ms(1))), ..script };
    let total = simulate_lines(&closed(1, 1, 1), &script, lines).total;
    let phases = [Phase::Connect, Phase::Send, Phase::Wait, Phase::Receive];
    // Connected at 1, response from 2 to 11; the last byte was accepted at 5.
    let planted = [1, 1, 0, 9].map(|ms| Some(ms * 1_000_000));
    assert_eq!(phases.map(|phase| total.phase(phase).map(sum)), planted);
}

#[test]
fn a_long_answer_is_read_in_turns() {
    let long = "long ".repeat(200_000).leak();
    let text = vec![Text::of("ok "), Text::Number, Text::of(" "), Text::of(long), Text::of("\n")];
    let service = Service::pieces(ms(1), vec![Piece { after: ms(1), text }]);
    let total = simulate(&closed(2, 2, 4), &Script::serving(Turns::always(service))).total;
    assert_eq!(endings(&total), "4 ok");
    assert!(total.counts.bytes_received > 4_000_000);
}

#[test]
fn a_failed_connect_takes_all_that_wait_for_it() {
    let refused = Dial::Fails { after: ms(1), errno: Errno::CONNREFUSED.raw_os_error() };
    let script = Script::answering_after(ms(1)).dialing(Turns::first(vec![refused], Dial::stands(ms(1))));
    let run = simulate_lines(&closed(1, 3, 9), &script, FOUR);
    assert_eq!(endings(&run.total), "6 ok; 3 connect_refused/connect/server");
}

/// If this fails, a surplus response makes requests look answered that were never sent.
#[test]
fn nothing_answers_a_request_that_has_not_been_sent() {
    let twice = Service::raw(ms(1), "ok 0\nok 1\n", Then::Keep);
    let script = choked(vec![Choke { after_bytes: 2, lasts: ms(20) }]);
    let script = Script { services: Turns::first(vec![twice], ok(ms(1))), ..script };
    let run = simulate_lines(&closed(1, 2, 2), &script, FOUR);
    assert_eq!(endings(&run.total), "1 ok; 1 protocol_error/send/server");
}

/// If this fails, a peer that does not read is blamed on the pool.
#[test]
fn what_the_kernel_does_not_take_yet_is_being_sent() {
    // The second of two two-byte requests is accepted 3 ms late.
    let script = choked(vec![Choke { after_bytes: 2, lasts: ms(3) }]);
    let total = simulate_lines(&closed(1, 2, 2), &script, FOUR).total;
    assert_eq!(total.phase(Phase::Send).map(sum), Some(3_000_000));
    assert_eq!(total.phase(Phase::PoolWait).map(sum), Some(0));
}

#[test]
fn a_request_that_the_kernel_never_takes_times_out() {
    let mut plan = closed(1, 1, 2);
    plan.pool.request_timeout = Some(ms(100));
    let script = choked(vec![Choke { after_bytes: 0, lasts: Nanos::MAX }]);
    let run = simulate_lines(&plan, &script, FOUR);
    assert_eq!(endings(&run.total), "2 request_timeout/send/undecided");
    assert_eq!(run.elapsed, ms(202));
}
