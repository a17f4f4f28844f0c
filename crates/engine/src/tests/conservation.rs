//! Promises 1 and 2 over random runs: whatever the network does, every request ends exactly once, and in time.
//!
//! The simulation itself rejects a client that spins, and `simulate` checks both promises.

use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use record::{Durations, Failure, Interval, Outcome, Phase, Series};
use rustix::io::Errno;
use testkit::{
    Acks, Choke, Dial, LineProtocol, Lookup, Piece, Script, Service, Span, Text, Then, Turns, Way,
};
use units::Nanos;

use super::{Simulated, Watched, closed, ms, named, open, simulate, simulate_watched, sum, us};
use crate::plan::{Load, RunPlan};

fn short() -> impl Strategy<Value = Nanos> {
    prop_oneof![Just(Nanos::ZERO), (0u64..3_000).prop_map(us), (0u64..40).prop_map(ms)]
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![6 => Just(Then::Keep), 2 => Just(Then::Close), 1 => Just(Then::Reset), 1 => Just(Then::Hang)]
}

fn text() -> impl Strategy<Value = Vec<Text>> {
    let response = |word: &'static str| vec![Text::of(word), Text::Number, Text::of("\n")];
    prop_oneof![
        12 => Just(response("ok ")),
        1 => Just(response("bye ")),
        1 => Just(response("err ")),
        1 => Just(response("rest ")),
        1 => Just(vec![Text::of("ok ")]),
        1 => Just(vec![Text::Number, Text::of("\n")]),
        1 => Just(vec![Text::of("ok 0\nok 1\n")]),
        1 => Just(vec![Text::of("\0\u{7f}rubbish")]),
        1 => Just(Vec::new()),
    ]
}

fn service() -> impl Strategy<Value = Service> {
    let piece = (short(), text()).prop_map(|(after, text)| Piece { after, text });
    let early = prop_oneof![4 => Just(None), 1 => (1usize..40).prop_map(Some)];
    let well = short().prop_map(|after| Service::response(after, "ok"));
    let any = (early, short(), vec(piece, 0..3), then())
        .prop_map(|(early_bytes, after, pieces, then)| Service { early_bytes, after, pieces, then });
    prop_oneof![2 => well, 1 => any]
}

fn way() -> impl Strategy<Value = Way> {
    let acks = prop_oneof![Just(Acks::Prompt), Just(Acks::Never), Just(Acks::Unknown)];
    let lasts = prop_oneof![4 => short(), 1 => Just(Nanos::MAX)];
    let choke = (0u64..60, lasts).prop_map(|(after_bytes, lasts)| Choke { after_bytes, lasts });
    let idle = prop_oneof![3 => Just(None), 1 => short().prop_map(|after| Some(after + us(1)))];
    (short(), short(), acks, vec(choke, 0..3), idle).prop_map(
        |(there, back, acks, mut chokes, idle_close)| {
            chokes.sort_by_key(|choke| choke.after_bytes);
            Way { there, back, acks, chokes, idle_close, greeting: None }
        },
    )
}

fn dial() -> impl Strategy<Value = Dial> {
    let errno = prop_oneof![Just(Errno::CONNREFUSED), Just(Errno::HOSTUNREACH), Just(Errno::MFILE)];
    let errno = errno.prop_map(Errno::raw_os_error);
    prop_oneof![
        12 => (short(), way()).prop_map(|(after, way)| Dial::Stands { after, way }),
        1 => (short(), errno.clone()).prop_map(|(after, errno)| Dial::Fails { after, errno }),
        1 => errno.prop_map(|errno| Dial::FailsAtOnce { errno }),
        1 => Just(Dial::Silent),
    ]
}

fn lookup() -> impl Strategy<Value = Lookup> {
    let addresses = vec((1u8..4).prop_map(address), 0..4);
    prop_oneof![
        3 => (short(), addresses).prop_map(|(after, addresses)| Lookup::Finds { after, addresses }),
        1 => short().prop_map(|after| Lookup::Fails { after }),
    ]
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 80))
}

/// Up to three spans, in order and disjoint.
fn spans() -> impl Strategy<Value = Vec<Span>> {
    vec((0u64..200, 1u64..100), 0..3).prop_map(|gaps| {
        let mut at = Nanos::ZERO;
        let span = |(gap, length)| {
            let from = at + ms(gap);
            at = from + ms(length);
            Span { from, until: at }
        };
        gaps.into_iter().map(span).collect()
    })
}

fn script() -> impl Strategy<Value = Script> {
    let clock_cost = prop_oneof![Just(Nanos(1)), Just(Nanos(25)), Just(us(3))];
    let network = (vec(lookup(), 1..3), vec(dial(), 1..6), vec(dial(), 1..4));
    (vec(service(), 1..12), network, spans(), spans(), any::<bool>(), clock_cost).prop_map(
        |(services, (lookups, dials, dials_to_first), freezes, stalls, stamps, clock_cost)| Script {
            lookups: Turns::cycle(lookups),
            dials_to: vec![(address(1), Turns::cycle(dials_to_first))],
            freezes,
            stalls,
            stamps,
            clock_cost,
            ..Script::serving(Turns::cycle(services)).dialing(Turns::cycle(dials))
        },
    )
}

fn limit() -> impl Strategy<Value = Option<Nanos>> {
    prop_oneof![Just(None), (1u64..60).prop_map(|limit| Some(ms(limit)))]
}

fn plan() -> impl Strategy<Value = RunPlan> {
    let rate = prop_oneof![Just(None), Just(Some("100/s")), Just(Some("1000/s")), Just(Some("10k/s"))];
    let sizes = (1u64..4, 1u64..9, 1u64..21, 1u64..400);
    let ends = (50u64..400, prop_oneof![Just(0u64), 1u64..200], any::<bool>());
    (rate, sizes, (limit(), limit(), limit()), ends).prop_map(|(rate, sizes, limits, ends)| {
        let (workers, connections, users, count) = sizes;
        let (window, drain, by_name) = ends;
        let mut plan = rate.map_or(closed(1, 1, count), |rate| open(rate, count));
        plan = if by_name { named(&plan) } else { plan };
        plan.workers = workers.min(connections).min(users);
        (plan.pool.connections, plan.pool.users) = (connections, users);
        (plan.pool.checkout_timeout, plan.pool.connect_timeout, plan.pool.request_timeout) = limits;
        (plan.window, plan.drain, plan.interval) = (Some(ms(window)), Some(ms(drain)), ms(150));
        plan
    })
}

fn lines() -> impl Strategy<Value = LineProtocol> {
    (1usize..5, prop_oneof![Just(0usize), 1usize..40])
        .prop_map(|(pipeline, padding)| LineProtocol { pipeline, padding })
}

/// What must hold for any run.
fn check(plan: &RunPlan, script: &Script, lines: LineProtocol, stop_at: Option<u64>) {
    let watched = Watched::stopping_at(lines, stop_at);
    let run = simulate_watched(plan, script, &watched);
    let Simulated { total, intervals, elapsed, mut encoded, .. } = run;
    assert_eq!(failures(&total, |failure| failure.outcome == Outcome::Unknown), 0);
    if let (Load::Open(arrivals), None) = (&plan.load, stop_at) {
        let due = arrivals.count_before(plan.window.unwrap()).min(plan.request_limit.unwrap());
        assert_eq!(total.counts.scheduled, due, "an open loop does not depend on the server");
    }
    // A request assigned to a connection that had ended is encoded again for another; it is sent at most once.
    encoded.sort_unstable();
    encoded.dedup();
    assert!(encoded.last().is_none_or(|&last| last < plan.request_limit.unwrap()));
    assert!(encoded.len() as u64 <= total.counts.scheduled);
    assert!(total.counts.sent <= encoded.len() as u64);
    // A stall may be in progress at the end of the drain, and a few steps of the clock follow.
    let asleep = script.stalls.last().map_or(Nanos::ZERO, |stall| stall.until);
    let latest = asleep.max(plan.window.unwrap() + plan.drain.unwrap()) + ms(20);
    assert!(elapsed <= latest, "the run ended after {elapsed}, not by {latest}");
    assert!(intervals.windows(2).all(|pair| pair[0].index < pair[1].index), "intervals out of order");
    for interval in &intervals {
        assert!(interval.counts.outstanding <= plan.pool.users, "more under way than users");
    }
    if script.stalls.is_empty() {
        check_limits(plan, &total);
    }
    let merged: u64 = intervals.iter().map(|interval| interval.counts.scheduled).sum();
    assert_eq!(merged, total.counts.scheduled);
}

/// Responses are within the timeouts, if the client was running to enforce them.
fn check_limits(plan: &RunPlan, total: &Interval) {
    // Histograms round by up to a thousandth; a turn of the loop costs a few readings of the clock.
    let slack = ms(1);
    let longest = |series| total.series(series).and_then(Durations::max).unwrap_or_default();
    for (limit, series) in [
        (plan.pool.checkout_timeout, Series::Phase(Phase::PoolWait)),
        (plan.pool.connect_timeout, Series::Phase(Phase::Connect)),
        (plan.pool.request_timeout, Series::Service),
    ] {
        let limit = limit.unwrap_or(Nanos::MAX).saturating_add(slack);
        assert!(longest(series) <= limit, "{series:?} of {}, the limit is {limit}", longest(series));
    }
}

fn failures(total: &Interval, which: impl Fn(&Failure) -> bool) -> u64 {
    total.failures().iter().filter(|(failure, _)| which(failure)).map(|(_, count)| count).sum()
}

proptest! {
    #[test]
    fn every_request_ends_exactly_once(plan in plan(), script in script(), lines in lines()) {
        check(&plan, &script, lines, None);
    }

    #[test]
    fn so_it_does_when_the_run_is_told_to_stop(
        plan in plan(), script in script(), lines in lines(), stop_at in 0u64..100
    ) {
        check(&plan, &script, lines, Some(stop_at));
    }
}

proptest! {
    /// If this fails, time is attributed to the wrong party.
    #[test]
    fn the_servers_time_is_the_servers_whatever_the_client_does(
        afters in vec((0u64..50_000).prop_map(us), 1..9),
        there in short(), back in short(), connect in short(), stalls in spans(),
        (connections, users, count) in (1u64..9, 1u64..21, 1u64..300)
    ) {
        let way = Way { there, back, ..Way::default() };
        let services = afters.iter().map(|&after| Service::response(after, "ok")).collect();
        let script = Script { stalls, ..Script::serving(Turns::cycle(services)) }
            .dialing(Turns::always(Dial::Stands { after: connect, way }));
        let run = simulate(&closed(connections, users, count), &script);
        prop_assert_eq!(run.total.counts.ok, count);
        let served: u64 = afters.iter().cycle().take(count as usize).map(|after| after.0).sum();
        let sum_of = |phase| run.total.phase(phase).map_or(0, sum);
        prop_assert_eq!(sum_of(Phase::Wait), u128::from(served + count * (there + back).0));
        prop_assert_eq!(sum_of(Phase::Send) + sum_of(Phase::Receive), 0);
        if script.stalls.is_empty() {
            let opened = u128::from(run.total.counts.connections_opened);
            prop_assert_eq!(sum_of(Phase::Connect), opened * u128::from(connect.0));
            prop_assert_eq!(sum_of(Phase::ScheduleLag) + sum_of(Phase::ClientLag), 0);
        }
    }
}
