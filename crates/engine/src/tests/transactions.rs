//! Transactions over a toy protocol with a login: phases of the opening, leases, retries and journeys, to the
//! nanosecond.

use codec::ConnectionUse;
use record::{Interval, Journey, Outcome};
use testkit::{Dial, Piece, Script, Service, Text, Then, Transactions, Turns, Way};

use super::*;

/// Responds to each line: rounds of the opening after 1 to 16 ms, statements after 2 ms.
fn server(line: &str) -> Service {
    let number = line.split(' ').next().unwrap();
    match line.strip_prefix(number).unwrap().trim() {
        "tls?" => Service::raw(ms(1), "tls yes\n", Then::Keep),
        "handshake" => Service::raw(ms(2), "secured\n", Then::Keep),
        "login" => Service::raw(ms(4), "notice be patient\nprove it\n", Then::Keep),
        "proof" => Service::raw(ms(8), "welcome\nnotice you have mail\n", Then::Keep),
        "prepare" => Service::response(ms(16), "prepared"),
        "read try 0" => {
            let text = |word| vec![Text::of(word), Text::of(" "), Text::Number, Text::of("\n")];
            let noticed = vec![Text::of("notice in between\n")];
            let piece = |after, text| Piece { after, text };
            Service::pieces(
                ms(2),
                vec![
                    piece(ms(0), text("row")),
                    piece(ms(1), noticed),
                    piece(ms(1), text("ok")),
                    piece(ms(0), vec![Text::of("notice behind it\n")]),
                ],
            )
        }
        _ => Service::response(ms(2), "ok"),
    }
}

/// The greeting comes 32 ms after the connection, which takes 64 ms.
fn greeting(text: &'static str, then: Then) -> Turns<Dial> {
    let way = Way { greeting: Some(Service::raw(ms(32), text, then)), ..Way::default() };
    Turns::always(Dial::Stands { after: ms(64), way })
}

fn script(by_text: fn(&str) -> Service) -> Script {
    Script::by_text(by_text).dialing(greeting("hello\n", Then::Keep))
}

fn run(plan: &RunPlan, script: &Script, transactions: &Transactions) -> Simulated {
    let run = simulate_protocol(plan, script, transactions, &Controls::default());
    check_journeys(&run.total);
    run
}

/// If this fails, units of a journey vanish, or end twice.
#[track_caller]
fn check_journeys(total: &Interval) {
    let Some(journey) = total.journeys().first() else { return assert_eq!(total.ended(), 0) };
    assert_eq!(journey.begun, journey.ok + journey.failed + journey.cut);
    assert_eq!(journey.response().map_or(0, Durations::count), journey.ok);
    assert_eq!(journey.failed_ages().map_or(0, Durations::count), journey.failed);
    assert_eq!(journey.retries, total.counts.retries);
}

fn journey(total: &Interval) -> &Journey {
    &total.journeys()[0]
}

/// Begun, ok, failed, cut, retries.
fn units(total: &Interval) -> [u64; 5] {
    let journey = journey(total);
    [journey.begun, journey.ok, journey.failed, journey.cut, journey.retries]
}

#[track_caller]
fn check_phases(total: &Interval, expected: &[(Phase, u64)]) {
    let expected: Vec<(Phase, f64)> = expected.iter().map(|&(phase, ms)| (phase, ms as f64 * 1e3)).collect();
    assert_eq!(phase_sums_us(total), expected);
}

fn sent(transactions: &Transactions) -> Vec<String> {
    std::mem::take(&mut *transactions.sent.lock().unwrap())
}

/// If this fails, a login over TLS counts as the handshake, or the exchange before the handshake belongs to no phase.
#[test]
fn each_phase_of_the_opening_has_its_own_stamp() {
    let transactions = Transactions { tls: true, ..Transactions::default() };
    let run = run(&closed(1, 1, 1), &script(server), &transactions);
    assert_eq!((endings(&run.total).as_str(), units(&run.total)), ("3 ok", [1, 1, 0, 0, 0]));
    check_phases(
        &run.total,
        &[
            (Phase::ScheduleLag, 0),
            (Phase::PoolWait, 0),
            (Phase::Connect, 64),
            // The greeting, the request for TLS and the handshake.
            (Phase::Tls, 32 + 1 + 2),
            // Both rounds.
            (Phase::Auth, 4 + 8),
            (Phase::Send, 0),
            // Three statements, and one preparation.
            (Phase::Wait, 3 * 2 + 16),
            // From the row to the end of the response.
            (Phase::Receive, 2),
            (Phase::ClientLag, 0),
        ],
    );
    let whole = journey(&run.total).response().unwrap();
    assert_eq!((whole.count(), sum(whole)), (1, u128::from(ms(64 + 32 + 1 + 2 + 4 + 8 + 6 + 16 + 2).0)));
}

#[test]
fn without_tls_the_whole_opening_is_a_login() {
    let run_with = |tls, script: &Script| {
        let transactions = Transactions { tls, ..Transactions::default() };
        run(&closed(1, 1, 1), script, &transactions).total
    };
    let not_asked = run_with(false, &script(server));
    let refused = run_with(
        true,
        &script(|line| match line {
            "0 tls?" => Service::raw(ms(1), "tls no\n", Then::Keep),
            line => server(line),
        }),
    );
    for (total, auth) in [(not_asked, 32 + 12), (refused, 32 + 1 + 12)] {
        assert_eq!(total.phase(Phase::Tls).map(sum), None);
        assert_eq!(total.phase(Phase::Auth).map(sum), Some(u128::from(ms(auth).0)));
    }
}

/// If this fails, a report states that a login failed but not why, although the server reported the reason.
#[test]
fn a_failed_login_is_told_in_the_servers_words() {
    for (tls, greeting_text, words) in [
        (false, "hello\n", "wrong password for eve"),
        (true, "denied too many connections\n", "too many connections"),
    ] {
        let script = Script::by_text(|line| match line {
            "0 proof" => Service::raw(ms(8), "denied wrong password for eve\n", Then::Close),
            line => server(line),
        })
        .dialing(greeting(greeting_text, Then::Keep));
        let transactions = Transactions { tls, ..Transactions::default() };
        let run = run(&closed(1, 1, 1), &script, &transactions);
        assert_eq!(endings(&run.total), "1 auth_failed/auth/server");
        let reason = format!("login refused: {words}");
        assert_eq!(run.total.reasons(), [((Outcome::AuthFailed, reason.into()), 1)]);
        assert_eq!(units(&run.total), [1, 0, 1, 0, 0]);
    }
}

/// If this fails, transactions of several virtual users are mixed on one connection.
#[test]
fn a_lease_keeps_others_off_its_connection_and_waits_for_the_pool_once() {
    for room in [1, 4] {
        let transactions = Transactions { think: ms(10), room, ..Transactions::default() };
        let run = run(&closed(1, 2, 4), &script(server), &transactions);
        assert_eq!((endings(&run.total).as_str(), units(&run.total)), ("12 ok", [4, 4, 0, 0, 0]));
        let order: Vec<String> = sent(&transactions)
            .iter()
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, what)| what.contains("try"))
            .map(|(n, _)| n.to_owned())
            .collect();
        assert!(order.chunks(3).all(|unit| unit.iter().all(|n| *n == unit[0])), "room {room}: {order:?}");
        // One wait per transaction, and one preparation of the connection.
        assert_eq!(run.total.phase(Phase::PoolWait).unwrap().count(), 4);
        assert_eq!(run.dials, 1);
        // A transaction has two pauses, three statements of 2 ms and 2 ms for a row; the first also opens and prepares.
        let (opening, transaction) = (64 + 32 + 12 + 16, 20 + 6 + 2);
        assert_eq!(run.elapsed, ms(opening + 4 * transaction));
    }
}

/// If this fails, a deadlock looks like an error that the user saw, or is not visible.
#[test]
fn a_retry_counts_from_the_first_intended_start() {
    let transactions = Transactions { retries: 2, backoff: ms(5), ..Transactions::default() };
    let by_text: fn(&str) -> Service = |line| match line {
        "0 commit try 0" | "0 commit try 1" => Service::response(ms(2), "deadlock"),
        line => server(line),
    };
    let run = run(&closed(1, 1, 1), &script(by_text), &transactions);
    assert_eq!(endings(&run.total), "7 ok; 2 app_error/receive/server");
    assert_eq!(units(&run.total), [1, 1, 0, 0, 2]);
    assert_eq!(run.total.codes(), [(units::Code::new(b"40001/1213").unwrap(), 2)]);
    // The lease continues over the retries.
    assert_eq!(run.total.phase(Phase::PoolWait).unwrap().count(), 1);
    let response = sum(journey(&run.total).response().unwrap());
    // The first try's read includes 2 ms for a row; prepared once.
    assert_eq!(response, u128::from(ms(64 + 32 + 12 + 16 + 2 + 9 * 2 + 2 * 5).0));
}

#[test]
fn retries_have_an_end() {
    let transactions = Transactions { retries: 3, ..Transactions::default() };
    let by_text: fn(&str) -> Service = |line| match line {
        line if line.contains("commit") => Service::response(ms(2), "deadlock"),
        line => server(line),
    };
    let run = run(&closed(1, 1, 2), &script(by_text), &transactions);
    assert_eq!(units(&run.total), [2, 0, 2, 0, 6]);
    assert_eq!(endings(&run.total), "16 ok; 8 app_error/receive/server");
}

/// If this fails, the next user's statements run in a transaction that somebody else left open.
#[test]
fn a_connection_with_an_open_transaction_is_not_given_to_another() {
    let by_text: fn(&str) -> Service = |line| match line {
        "0 read try 0" => Service::response(ms(2), "error"),
        line => server(line),
    };
    let transactions = Transactions::default();
    let run = run(&closed(1, 1, 2), &script(by_text), &transactions);
    assert_eq!(endings(&run.total), "4 ok; 1 app_error/receive/client");
    assert_eq!((units(&run.total), run.dials), ([2, 1, 1, 0, 0], 2));
    // What was prepared on the first connection was lost with it.
    let prepared = sent(&transactions).iter().filter(|line| line.ends_with("prepare")).count();
    assert_eq!(prepared, 2);
}

/// If this fails, a request is sent on a connection other than its transaction's, or vanishes.
#[test]
fn a_close_within_a_lease_fails_the_request_that_comes_next() {
    let by_text: fn(&str) -> Service = |line| match line {
        "0 begin try 0" => Service::raw(ms(2), "ok 0\ngoing shutting down\n", Then::Close),
        line => server(line),
    };
    for (retries, ending, whole) in [
        (0, "4 ok; 1 closed_before_response/send/server", [2, 1, 1, 0, 0]),
        (1, "7 ok; 1 closed_before_response/send/server", [2, 2, 0, 0, 1]),
    ] {
        let transactions = Transactions { think: ms(10), retries, ..Transactions::default() };
        let run = run(&closed(1, 1, 2), &script(by_text), &transactions);
        assert_eq!((endings(&run.total).as_str(), units(&run.total), run.dials), (ending, whole, 2));
        assert_eq!(run.total.counts.idle_closes, 1);
    }
}

#[test]
fn a_server_that_ends_a_connection_within_a_statement_says_why() {
    let by_text: fn(&str) -> Service = |line| match line {
        "0 commit try 0" => Service::raw(ms(2), "going shutting down\n", Then::Close),
        line => server(line),
    };
    let run = run(&closed(1, 1, 1), &script(by_text), &Transactions::default());
    assert_eq!(endings(&run.total), "2 ok; 1 closed_before_response/wait/server");
    let reason = "the server ended the connection: shutting down";
    assert_eq!(run.total.reasons(), [((Outcome::ClosedBeforeResponse, reason.into()), 1)]);
}

#[test]
fn a_timeout_within_a_lease_ends_it() {
    let by_text: fn(&str) -> Service = |line| match line {
        "0 read try 0" => Service::nothing(ms(0), Then::Keep),
        line => server(line),
    };
    let mut plan = closed(1, 2, 2);
    plan.pool.request_timeout = Some(ms(50));
    let run = run(&plan, &script(by_text), &Transactions::default());
    assert_eq!(endings(&run.total), "4 ok; 1 request_timeout/wait/server");
    assert_eq!((units(&run.total), run.dials), ([2, 1, 1, 0, 0], 2));
}

/// If this fails, a transaction in progress at the end of the run is counted twice or not at all.
#[test]
fn the_end_of_the_run_cuts_transactions_wherever_they_are() {
    let transactions = Transactions { think: ms(40), ..Transactions::default() };
    for window in [0, 70, 100, 110, 130, 150, 160, 200, 300] {
        for drain in [0, 3, 30, 500] {
            for (connections, users) in [(1, 1), (1, 3), (2, 3)] {
                let mut plan = closed(connections, users, 1_000);
                (plan.window, plan.drain) = (Some(ms(window)), Some(ms(drain)));
                run(&plan, &script(server), &transactions);
                let mut plan = open("100/s", 1_000);
                (plan.pool.connections, plan.pool.users) = (connections, users);
                (plan.window, plan.drain) = (Some(ms(window)), Some(ms(drain)));
                run(&plan, &script(server), &transactions);
            }
        }
    }
}

/// If this fails, a transaction that holds a connection is refused room for its own next statement.
#[test]
fn a_transaction_that_pauses_keeps_its_place() {
    let transactions = Transactions { think: ms(40), ..Transactions::default() };
    let mut plan = open("100/s", 30);
    (plan.pool.connections, plan.pool.users) = (1, 1);
    plan.window = None;
    let run = run(&plan, &script(server), &transactions);
    let journey = journey(&run.total);
    assert_eq!(run.total.counts.ok, 3 * journey.ok, "{}", endings(&run.total));
    assert!(journey.ok > 0 && journey.ok + journey.failed == 30);
}

/// Steps without a lease use any connection, and each waits for the pool.
#[test]
fn without_a_lease_each_request_waits_for_the_pool() {
    let transactions = Transactions { connection: ConnectionUse::Any, ..Transactions::default() };
    let run = run(&closed(1, 2, 4), &script(server), &transactions);
    assert_eq!((endings(&run.total).as_str(), units(&run.total)), ("12 ok", [4, 4, 0, 0, 0]));
    assert_eq!(run.total.phase(Phase::PoolWait).unwrap().count(), 12);
}
