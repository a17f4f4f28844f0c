//! Each way a request can end, planted: the outcome, phase and blame of every request of a run.

use std::net::SocketAddr;

use rustix::io::Errno;
use testkit::{Acks, Dial, LineProtocol, Lookup, Piece, Script, Service, Span, Text, Then, Turns, Way};
use units::Nanos;

use super::{closed, endings, ms, named, open, simulate, simulate_lines, us};
use crate::pacer::Pace;
use crate::plan::RunPlan;

#[track_caller]
fn check(plan: &RunPlan, script: &Script, expected: &str) {
    assert_eq!(endings(&simulate(plan, script).total), expected);
}

fn always(service: Service) -> Script {
    Script::serving(Turns::always(service))
}

fn dialing(dial: Dial) -> Script {
    Script::answering_after(ms(1)).dialing(Turns::always(dial))
}

fn never() -> Service {
    Service::nothing(Nanos::ZERO, Then::Hang)
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 80))
}

#[test]
fn an_answer_says_how_it_went() {
    for (word, ending) in [
        ("ok", "3 ok"),
        ("err", "3 app_error/receive/server"),
        ("bad", "3 app_error/receive/client"),
        ("chk", "3 check_failed/receive/server"),
        ("gibberish", "3 protocol_error/receive/server"),
    ] {
        check(&closed(1, 1, 3), &always(Service::response(ms(1), word)), ending);
    }
}

/// If this fails, it depends on chance whether a server that sends more than it announced has good responses.
#[test]
fn bytes_after_the_response_are_always_the_same_failure() {
    for plan in [closed(1, 1, 5), closed(4, 2, 5), open("100/s", 5)] {
        let text = vec![Text::of("ok "), Text::Number, Text::of("\nmore")];
        let longer = always(Service::pieces(ms(1), vec![Piece { after: Nanos::ZERO, text }]));
        let total = simulate(&plan, &longer).total;
        assert_eq!(endings(&total), "5 protocol_error/receive/server");
        let reasons: Vec<_> = total.reasons().iter().map(|((_, why), n)| (why.as_ref(), *n)).collect();
        assert_eq!(reasons, [("bytes after the response", 5)]);
    }
}

/// Bytes that come 3 ms after the response meet the next request of a closed loop, which fails; in an open loop they
/// find the connection idle, which ends it, and no request fails. If this fails, such a connection ends without a trace.
#[test]
fn bytes_that_come_later_count_to_the_request_that_is_on_the_connection_then() {
    let piece = |ns, text| Piece { after: ms(ns), text };
    let answer = vec![Text::of("ok "), Text::Number, Text::of("\n")];
    let pieces = vec![piece(0, answer), piece(3, vec![Text::of("more\n")])];
    let longer = always(Service::pieces(ms(1), pieces));
    let total = simulate(&closed(1, 1, 6), &longer).total;
    assert_eq!(endings(&total), "3 ok; 3 protocol_error/receive/server");
    assert_eq!(total.counts.idle_closes, 0);
    let run = simulate(&open("100/s", 6), &longer);
    assert_eq!(endings(&run.total), "6 ok");
    assert_eq!((run.dials, run.total.counts.idle_closes), (6, 5));
}

/// The server closes after each response without announcing it. If this fails, requests assigned to a connection at the
/// moment it ended, of which not one byte was sent, are counted as failures of the server.
#[test]
fn a_request_that_was_never_offered_gets_another_connection() {
    let closing = always(Service::response(ms(1), "ok").then(Then::Close));
    check(&closed(1, 1, 20), &closing, "20 ok");
    check(&closed(3, 7, 50), &closing, "50 ok");
    assert_eq!(simulate(&closed(1, 1, 20), &closing).dials, 20);
    // If no virtual user is waiting, the close is noticed before the next request is due.
    check(&open("100/s", 10), &closing, "10 ok");
}

#[test]
fn what_waits_in_vain_for_the_pool() {
    let mut plan = open("100/s", 6);
    plan.pool.users = 3;
    plan.window = Some(ms(100));
    let hung = always(never());
    check(&plan, &hung, "1 in_flight/wait/undecided; 2 not_sent/pool_wait/pool; 3 queue_full/pool_wait/pool");
    plan.pool.checkout_timeout = Some(ms(25));
    // The second and third are due at 10 and 20, and time out at 35 and 45. The fourth, due at 30, finds the queue
    // full. The fifth, due at 40, takes the second's place, and the sixth the third's.
    check(
        &plan,
        &hung,
        "1 in_flight/wait/undecided; 1 queue_full/pool_wait/pool; 4 checkout_timeout/pool_wait/pool",
    );
}

/// If this fails, `--max-in-flight` does not limit an open loop that has more connections.
#[test]
fn no_more_requests_are_under_way_than_callers() {
    let mut plan = open("100/s", 6);
    (plan.pool.users, plan.pool.connections) = (2, 8);
    check(&plan, &always(never()), "2 in_flight/wait/undecided; 4 queue_full/pool_wait/pool");
}

#[test]
fn a_name_that_cannot_be_looked_up() {
    let script = Script { lookups: Turns::always(Lookup::Fails { after: ms(2) }), ..always(never()) };
    check(&named(&closed(2, 2, 6)), &script, "6 resolve_failed/resolve/network");
    let nothing = Lookup::Finds { after: ms(2), addresses: Vec::new() };
    let script = Script { lookups: Turns::always(nothing), ..always(never()) };
    check(&named(&closed(2, 2, 6)), &script, "6 resolve_failed/resolve/network");
}

#[test]
fn each_error_of_connect_has_its_blame() {
    for (errno, ending) in [
        (Errno::CONNREFUSED, "connect_refused/connect/server"),
        (Errno::TIMEDOUT, "connect_timeout/connect/undecided"),
        (Errno::CONNRESET, "connect_failed/connect/server"),
        (Errno::AGAIN, "connect_failed/connect/server"),
        (Errno::HOSTUNREACH, "connect_failed/connect/network"),
        (Errno::NETUNREACH, "connect_failed/connect/network"),
        (Errno::MFILE, "connect_failed/connect/client"),
        (Errno::ADDRNOTAVAIL, "connect_failed/connect/client"),
        (Errno::ACCESS, "connect_failed/connect/client"),
        (Errno::PROTO, "connect_failed/connect/undecided"),
    ] {
        let errno = errno.raw_os_error();
        let expected = format!("4 {ending}");
        check(&closed(2, 2, 4), &dialing(Dial::Fails { after: ms(1), errno }), &expected);
        check(&closed(2, 2, 4), &dialing(Dial::FailsAtOnce { errno }), &expected);
    }
}

#[test]
fn a_connect_that_nobody_answers() {
    let mut plan = closed(1, 1, 3);
    plan.pool.connect_timeout = Some(ms(100));
    check(&plan, &dialing(Dial::Silent), "3 connect_timeout/connect/undecided");
    (plan.pool.connect_timeout, plan.window) = (None, Some(ms(300)));
    check(&plan, &dialing(Dial::Silent), "1 not_sent/connect/undecided");
}

fn two_addresses(first: Dial) -> Script {
    let addresses = vec![address(1), address(2)];
    Script {
        lookups: Turns::always(Lookup::Finds { after: ms(1), addresses }),
        dials_to: vec![(address(1), Turns::always(first))],
        // Each connection carries one request, so each request opens one.
        ..always(Service::response(ms(1), "bye").then(Then::Close))
    }
}

#[test]
fn the_second_address_is_tried_when_the_first_refuses() {
    let refused = Dial::Fails { after: ms(1), errno: Errno::CONNREFUSED.raw_os_error() };
    let run = simulate(&named(&closed(1, 1, 10)), &two_addresses(refused));
    assert_eq!(endings(&run.total), "10 ok");
    assert_eq!(run.dials, 11, "the address that answered is kept");
}

/// If this fails, connections that are opened at the same time try the refusing address twice, and never the other.
#[test]
fn connections_that_open_together_all_find_the_second_address() {
    for spread in 0..4 {
        let refusals = (0..4)
            .map(|k| Dial::Fails { after: ms(1 + k * spread), errno: Errno::CONNREFUSED.raw_os_error() });
        let mut script = two_addresses(Dial::Silent);
        script.dials_to[0].1 = Turns::cycle(refusals.collect());
        let run = simulate(&named(&closed(4, 4, 40)), &script);
        assert_eq!(endings(&run.total), "40 ok", "refusals {spread} ms apart");
        assert_eq!(run.dials, 44, "refusals {spread} ms apart: once found, the address is kept");
    }
}

#[test]
fn all_addresses_refuse() {
    let refused = Dial::Fails { after: ms(1), errno: Errno::CONNREFUSED.raw_os_error() };
    let script = two_addresses(refused.clone()).dialing(Turns::always(refused));
    check(&named(&closed(2, 2, 6)), &script, "6 connect_refused/connect/server");
}

/// If this fails, a packet lost in the network and a server that does not respond are distinguished without evidence,
/// or are not distinguished although there is evidence.
#[test]
fn silence_is_the_servers_fault_only_if_the_request_got_there() {
    let mut plan = closed(1, 1, 3);
    plan.pool.request_timeout = Some(ms(100));
    for (acks, blame) in [(Acks::Prompt, "server"), (Acks::Never, "undecided"), (Acks::Unknown, "undecided")]
    {
        let way = Way { acks, ..Way::default() };
        let script = always(never()).dialing(Turns::always(Dial::Stands { after: ms(1), way }));
        check(&plan, &script, &format!("3 request_timeout/wait/{blame}"));
    }
    let half = Service::raw(ms(1), "ok", Then::Hang);
    check(&plan, &always(half), "3 request_timeout/receive/server");
}

/// If this fails, a surplus response is taken as the response to the next request, and the server seems to take no
/// time.
#[test]
fn an_answer_from_before_its_request_is_none() {
    let mut refused = 0;
    // A second response to the first request, around the moment at which the second request is due.
    for early_us in 0..60 {
        let response = |after, text| Piece { after, text: vec![Text::of(text)] };
        let pieces = vec![response(ms(1), "ok 0\n"), response(ms(9).saturating_sub(us(early_us)), "ok 1\n")];
        let services = Turns::first(vec![Service::pieces(ms(0), pieces)], Service::response(ms(1), "ok"));
        let script = Script { clock_cost: us(5), ..Script::serving(services) };
        let total = simulate(&open("100/s", 2), &script).total;
        assert_eq!(total.counts.stamps_moved, 0, "{early_us} us early: {}", endings(&total));
        refused += u64::from(endings(&total) == "1 ok; 1 protocol_error/wait/server");
    }
    assert!(refused > 0, "none of them came in that moment");
}

#[test]
fn a_connection_that_ends_before_its_time() {
    for (service, ending) in [
        (Service::nothing(ms(1), Then::Close), "closed_before_response/wait/server"),
        (Service::raw(ms(1), "ok", Then::Close), "incomplete_response/receive/server"),
        (Service::nothing(ms(1), Then::Reset), "reset/wait/server"),
        (Service::raw(ms(1), "ok", Then::Reset), "reset/receive/server"),
    ] {
        check(&closed(1, 1, 3), &always(service), &format!("3 {ending}"));
    }
}

/// The last bytes and the close arrive together, and one event reports both.
#[test]
fn an_answer_that_ends_with_the_connection() {
    let text = Text::of("rest ");
    let piece = testkit::Piece { after: Nanos::ZERO, text: vec![text, Text::Number, Text::of("\nmore")] };
    let service = Service::pieces(ms(1), vec![piece]).then(Then::Close);
    let run = simulate(&closed(1, 1, 3), &always(service));
    assert_eq!(endings(&run.total), "3 ok");
    assert_eq!(run.elapsed, ms(3), "nothing waits for an event that has been told already");
    // No timestamp exists for the arrival of a close, so none is missing, and `client_lag` is absent.
    assert_eq!(run.total.counts.unstamped, 0);
    assert!(run.total.phase(record::Phase::ClientLag).is_none());
}

/// The close arrives together with the response before it, which did not announce it.
#[test]
fn a_connection_closed_behind_its_answer_carries_no_request() {
    let script = always(Service::response(ms(1), "ok").then(Then::Close));
    let mut plan = open("100/s", 5);
    plan.pool.users = 5;
    let run = simulate(&plan, &script);
    assert_eq!(endings(&run.total), "5 ok");
    assert_eq!((run.total.counts.idle_closes, run.dials), (5, 5));
}

#[test]
fn an_idle_connection_may_be_closed_at_any_time() {
    let way = Way { idle_close: Some(ms(3)), ..Way::default() };
    let script = Script::answering_after(ms(1)).dialing(Turns::always(Dial::Stands { after: ms(0), way }));
    let run = simulate(&open("100/s", 5), &script);
    assert_eq!(endings(&run.total), "5 ok");
    assert_eq!((run.total.counts.idle_closes, run.dials), (4, 5));
}

/// The request and the server's close cross in the network.
#[test]
fn a_request_that_meets_a_close_on_the_way() {
    let way = Way { there: ms(2), back: ms(2), idle_close: Some(ms(5)), ..Way::default() };
    let script = Script::answering_after(ms(0)).dialing(Turns::always(Dial::Stands { after: ms(0), way }));
    // The response leaves at 4; the server is idle from 2 to 7; the close arrives at 9. The second is sent at 8.
    check(&open("125/s", 2), &script, "1 ok; 1 closed_before_response/wait/server");
}

/// If this fails, a client that slept through the end of the run sends what was due, only to abort it.
#[test]
fn a_client_that_sleeps_through_the_end_has_not_sent() {
    let mut plan = open("100/s", 100);
    (plan.window, plan.drain, plan.pool.users) = (Some(ms(100)), Some(ms(50)), 20);
    let script = Script {
        stalls: vec![Span { from: ms(55), until: Nanos::from_secs(3) }],
        ..Script::answering_after(ms(1))
    };
    check(&plan, &script, "6 ok; 4 not_sent/schedule_lag/client");
}

/// If this fails, the pool is blamed for timeouts that passed while this client was not running.
#[test]
fn what_ran_out_while_the_client_slept_is_the_clients() {
    let mut plan = closed(1, 3, 6);
    plan.pool.checkout_timeout = Some(ms(300));
    let script =
        Script { stalls: vec![Span { from: ms(10), until: ms(1_010) }], ..Script::answering_after(ms(20)) };
    let run = simulate(&plan, &script);
    // The first in the queue gets the connection freed by the response in the kernel; the second has timed out.
    assert_eq!(endings(&run.total), "5 ok; 1 checkout_timeout/pool_wait/client");
    // At least: from the moment at which it would have checked again at the latest.
    assert!((ms(940)..=ms(1_000)).contains(&run.total.worker_stall_max), "{}", run.total.worker_stall_max);
}

/// If this fails, the pool is blamed for requests that a stalled client could not pick up.
#[test]
fn what_found_the_queue_full_after_a_sleep_is_the_clients() {
    let mut plan = open("100/s", 100);
    plan.pool.users = 3;
    let script =
        Script { stalls: vec![Span { from: ms(205), until: ms(755) }], ..Script::answering_after(ms(1)) };
    // Of the 55 due during the stall, three are picked up.
    check(&plan, &script, "48 ok; 52 queue_full/pool_wait/client");
    // The requests due before the stall found no room because of the pool.
    let hung = Script { stalls: vec![Span { from: ms(45), until: ms(795) }], ..always(never()) };
    let mut plan = RunPlan { window: Some(ms(900)), drain: Some(ms(1)), ..plan };
    plan.pool.users = 2;
    check(
        &plan,
        &hung,
        "1 in_flight/wait/undecided; 1 not_sent/pool_wait/pool; 13 queue_full/pool_wait/pool; \
         75 queue_full/pool_wait/client",
    );
}

#[test]
fn a_client_that_runs_has_no_stall() {
    let run = simulate(&open("100/s", 50), &Script::answering_after(ms(700)));
    assert_eq!(run.total.worker_stall_max, Nanos::ZERO);
}

/// A name with a silent address before one that responds.
#[test]
fn a_silent_address_leaves_time_for_the_next() {
    let mut plan = named(&closed(1, 1, 2));
    plan.pool.connect_timeout = Some(ms(1_000));
    let both = Lookup::Finds { after: ms(1), addresses: vec![address(1), address(2)] };
    let script = Script {
        lookups: Turns::always(both),
        ..Script::answering_after(ms(1)).dialing(Turns::first(vec![Dial::Silent], Dial::stands(ms(2))))
    };
    let run = simulate(&plan, &script);
    assert_eq!(endings(&run.total), "2 ok");
    assert_eq!(run.total.phase(record::Phase::Connect).unwrap().sum_ns(), 502_000_000);
}

#[test]
fn a_limit_beyond_all_time_is_no_limit() {
    let mut plan = closed(1, 2, 4);
    plan.pool.checkout_timeout = Some(Nanos::MAX);
    (plan.pool.connect_timeout, plan.pool.request_timeout) = (Some(Nanos::MAX), Some(Nanos::MAX));
    check(&plan, &Script::answering_after(ms(1)), "4 ok");
}

/// If this fails, a request waits in the queue while a connection has room.
#[test]
fn a_request_does_not_queue_beside_a_connection_with_room() {
    let failing = Dial::FailsAtOnce { errno: Errno::MFILE.raw_os_error() };
    let mut plan = open("1000000000/s", 20);
    plan.pool.users = 100;
    plan.pace = Pace::Precise;
    let script = dialing(failing);
    let run = simulate_lines(&plan, &script, LineProtocol::new(1));
    assert_eq!(endings(&run.total), "20 connect_failed/connect/client");
    assert_eq!(run.elapsed, Nanos(19));
}
