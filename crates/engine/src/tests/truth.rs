//! The length of every phase is planted; the engine must measure it to the nanosecond.

use std::sync::Arc;

use codec::web::{Checks, Request, Url, Web, WebSettings};
use record::{Lag, Phase, Series};
use testkit::{Choke, Dial, LineProtocol, Lookup, Piece, Script, Service, Span, Text, Then, Turns, Way};
use units::Nanos;

use super::{
    check_rank, closed, endings, ms, named, open, phase_sums_us, simulate, simulate_lines, simulate_protocol,
    sum, us,
};
use crate::controls::Controls;
use crate::plan::{Load, RunPlan};

/// `ok <n>` in two pieces, 2 ms apart, 5 ms after the request.
fn two_pieces() -> Service {
    let first = Piece { after: Nanos::ZERO, text: vec![Text::of("ok ")] };
    let second = Piece { after: ms(2), text: vec![Text::Number, Text::of("\n")] };
    Service::pieces(ms(5), vec![first, second])
}

/// Lookup 1 ms, connect 3 ms, a write interrupted for 4 ms, 100 us to the server, 200 us back.
fn slow_way(script: Script) -> Script {
    let way = Way {
        there: us(100),
        back: us(200),
        chokes: vec![Choke { after_bytes: 10, lasts: ms(4) }],
        ..Way::default()
    };
    let addresses = vec![([127, 0, 0, 1], 80).into()];
    Script {
        lookups: Turns::always(Lookup::Finds { after: ms(1), addresses }),
        dials: Turns::always(Dial::Stands { after: ms(3), way }),
        ..script
    }
}

/// If this fails, time is attributed to the wrong phase.
#[test]
fn every_phase_is_what_was_planted() {
    // Due at 0, while the client does not run until 0.5; looked up at 1.5; connected at 4.5; sent from then until 8.5;
    // at the server at 8.6; first piece back at 13.8, second at 15.8; read at 22.8.
    let mut script = slow_way(Script::serving(Turns::always(two_pieces())));
    script.stalls = vec![Span { from: ms(0), until: us(500) }, Span { from: ms(14), until: us(22_800) }];
    let lines = LineProtocol { padding: 20, ..LineProtocol::new(1) };
    let run = simulate_lines(&named(&open("1/s", 1)), &script, lines);
    assert_eq!(
        phase_sums_us(&run.total),
        [
            (Phase::ScheduleLag, 500.0),
            (Phase::PoolWait, 0.0),
            (Phase::Resolve, 1_000.0),
            (Phase::Connect, 3_000.0),
            (Phase::Send, 4_000.0),
            (Phase::Wait, 5_300.0),
            (Phase::Receive, 2_000.0),
            (Phase::ClientLag, 7_000.0),
        ]
    );
    assert_eq!(run.total.response().map(sum), Some(22_800_000));
    assert_eq!(run.total.service().map(sum), Some(11_300_000));
}

#[test]
fn a_connection_is_paid_for_once() {
    let script = Script::answering_after(ms(5)).dialing(Turns::always(Dial::stands(ms(3))));
    let total = simulate(&closed(1, 1, 2), &script).total;
    assert_eq!(
        total.phase(Phase::Connect).map(|connect| (connect.count(), sum(connect))),
        Some((1, 3_000_000))
    );
    assert_eq!(total.phase(Phase::Resolve).map(sum), None, "an address needs no lookup");
    assert_eq!(total.response().map(sum), Some(13_000_000));
    assert_eq!(total.counts.connections_opened, 1);
}

/// If this fails, "we could not see it" is printed as "it took no time".
#[test]
fn without_kernel_stamps_the_clients_lag_is_absent_not_zero() {
    let stalls = vec![Span { from: ms(4), until: ms(9) }];
    let script = Script { stamps: false, stalls, ..Script::answering_after(ms(5)) };
    let total = simulate(&closed(1, 1, 1), &script).total;
    assert!(total.phase(Phase::ClientLag).is_none());
    assert_eq!(total.counts.unstamped, 1);
    // The stall is hidden in `wait`; this is why the count is in the record.
    assert_eq!(total.phase(Phase::Wait).map(sum), Some(9_000_000));
}

/// The error of an interceptor around a pool: it reports 4 s for a server that takes 2 s.
#[test]
fn the_wait_for_a_pool_is_not_the_servers() {
    let total = simulate(&closed(2, 4, 20), &Script::answering_after(Nanos::from_secs(2))).total;
    let series = |phase| total.phase(phase).unwrap();
    let (response, service) = (total.response().unwrap(), total.service().unwrap());
    let two = Nanos::from_secs(2);
    check_rank(series(Phase::PoolWait), 10, two);
    check_rank(service, 1, two);
    check_rank(service, 20, two);
    check_rank(response, 2, two);
    check_rank(response, 3, Nanos::from_secs(4));
    check_rank(response, 20, Nanos::from_secs(4));
    assert_eq!(sum(series(Phase::PoolWait)), 18 * 2_000_000_000);
    assert_eq!(sum(series(Phase::Wait)), 20 * 2_000_000_000);
    assert_eq!(sum(response), (2 * 2 + 18 * 4) * 1_000_000_000);
}

/// 1000/s for 10 s over one connection that takes any number of requests.
fn ten_seconds(script: &Script) -> super::Simulated {
    let mut plan = open("1000/s", 1_000_000);
    plan.pool.users = 5_000;
    let run = simulate_lines(&plan, script, LineProtocol::new(5_000));
    assert_eq!(endings(&run.total), "10000 ok");
    run
}

/// A server that freezes for F within T delays F/T of the requests; the quantile q is F − (1 − q)·T.
#[track_caller]
fn check_freeze_of_a_second(script: &Script) {
    let total = ten_seconds(script).total;
    let response = total.response().unwrap();
    for (rank, expected) in [(9_000, 0), (9_500, 500), (9_900, 900), (9_990, 990), (10_000, 1_000)] {
        check_rank(response, rank, ms(expected));
    }
    // 1 ms, 2 ms, … 1000 ms, each to the nanosecond.
    assert_eq!(sum(response), 500_500 * 1_000_000);
    assert_eq!(total.phase(Phase::Wait).map(sum), Some(500_500 * 1_000_000));
}

/// If this fails, a frozen server looks fast: coordinated omission.
#[test]
fn a_frozen_server_shows_in_full() {
    let freezes = vec![Span { from: Nanos::from_secs(3), until: Nanos::from_secs(4) }];
    check_freeze_of_a_second(&Script { freezes, ..Script::answering_after(Nanos::ZERO) });
}

#[test]
fn a_freeze_in_the_last_second_shows_in_full() {
    let freezes = vec![Span { from: Nanos::from_secs(9), until: Nanos::from_secs(10) }];
    check_freeze_of_a_second(&Script { freezes, ..Script::answering_after(Nanos::ZERO) });
}

#[test]
fn a_freeze_over_the_windows_end_is_waited_for() {
    let freezes = vec![Span { from: ms(9_500), until: ms(10_500) }];
    let run = ten_seconds(&Script { freezes, ..Script::answering_after(Nanos::ZERO) });
    assert_eq!(run.elapsed, ms(10_500));
    // The requests due in the last half second: 501 ms, 502 ms, … 1000 ms.
    assert_eq!(run.total.response().map(sum), Some((501..=1_000).sum::<u128>() * 1_000_000));
    let last = run.intervals.last().unwrap();
    assert_eq!((last.start, last.length, last.counts.ok), (Nanos::from_secs(10), ms(500), 500));
}

/// If this fails, the server is blamed for a client that was not running.
#[test]
fn a_stalled_client_blames_itself() {
    let stalls = vec![Span { from: Nanos::from_secs(3), until: ms(3_300) }];
    // 20 ms to the server, so that it keeps up although it handles one request at a time.
    let way = Way { there: ms(20), ..Way::default() };
    let dials = Turns::always(Dial::Stands { after: ms(0), way });
    let total = ten_seconds(&Script { stalls, dials, ..Script::answering_after(ms(0)) }).total;
    // Due at 3.000, 3.001, … 3.299 and sent at 3.300.
    let late: u128 = (1..=300).sum();
    assert_eq!(total.phase(Phase::ScheduleLag).map(sum), Some(late * 1_000_000));
    // The responses arrive at 3.000, … 3.019 and are read at 3.300. One read takes all of them, and the kernel reports
    // the arrival of the last, 3.019: how long the earlier ones waited beyond 20 ms cannot be seen.
    let lag = total.phase(Phase::ClientLag).map(sum).unwrap();
    assert!(lag >= 20 * 281 * 1_000_000, "{lag}");
}

/// If this fails, a burst that is sent late and refused leaves no trace of its lateness.
#[test]
fn what_is_sent_late_and_refused_was_late_all_the_same() {
    let mut plan = open("100/s", 30);
    plan.pool.users = 30;
    let stalls = vec![Span { from: ms(95), until: ms(200) }];
    let script = Script { stalls, ..Script::serving(Turns::always(Service::response(us(100), "err"))) };
    let total = simulate(&plan, &script).total;
    assert_eq!(endings(&total), "30 app_error/receive/server");
    let lag = total.series(Series::FailedLag(Lag::Schedule)).unwrap();
    // Due at 100, 110, … 190 and picked up at 200; all others on time.
    assert_eq!((lag.count(), sum(lag)), (30, (1..=10).sum::<u128>() * 10_000_000));
    assert_eq!(total.series(Series::FailedLag(Lag::Client)).unwrap().count(), 30);
}

#[test]
fn a_clock_that_costs_something_loses_nothing() {
    let script = Script { clock_cost: Nanos(25), ..Script::answering_after(us(70)) };
    let mut plan = RunPlan { load: Load::Closed, ..closed(3, 5, 5_000) };
    plan.interval = ms(10);
    let run = simulate(&plan, &script);
    assert_eq!(endings(&run.total), "5000 ok");
    assert!(run.intervals.len() > 2);
}

/// The engine knows no protocol: with a real one, it measures the same truth.
#[test]
fn http_is_measured_alike() {
    let url = Url::parse("http://127.0.0.1:80/").unwrap();
    let http = Web::turns(&[Request::get(url)], &Checks::default(), WebSettings::default()).unwrap();
    let head = Piece { after: Nanos::ZERO, text: vec![Text::of("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n")] };
    let rest = Piece { after: ms(2), text: vec![Text::of("\r\nbody")] };
    let service = Service::pieces(ms(5), vec![head, rest]);
    let close = Service::raw(ms(1), "HTTP/1.1 200 OK\r\n\r\nuntil the end", Then::Close);
    let script = Script::serving(Turns::cycle(vec![service, close]));
    let run = simulate_protocol(&closed(1, 1, 4), &script, &http, &Controls::new(Arc::default()));
    assert_eq!(endings(&run.total), "4 ok");
    assert_eq!(run.total.codes(), [(units::Code::status(200), 4)]);
    assert_eq!(run.total.phase(Phase::Wait).map(sum), Some(12_000_000));
    assert_eq!(run.total.phase(Phase::Receive).map(sum), Some(4_000_000));
    assert_eq!(run.total.counts.body_bytes, 2 * 4 + 2 * 13);
}
