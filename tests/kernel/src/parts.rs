//! Every part of a request's time, compared with the account of the server that spent it.

use record::{Part, Served};
use units::Nanos;

use crate::judge::{self, check_parts, join, totals};
use crate::support::cores::Core;
use crate::support::group::Group;
use crate::support::hog::{Hog, overlap};
use crate::support::planted::Plan;
use crate::support::quiet::{self, Verdict};
use crate::support::tolerance::{error, is_close, promised};
use crate::support::watched::Watching;

/// At most three waits per request: one begins for the observer when the thread is being woken, and for the kernel's
/// own count some 3 us later, when it is in the queue. Ten of these are more than the guaranteed 20 us.
const KINDS: [&str; 4] = [
    "/burn=4ms,sleep=1ms,lock=3ms",
    "/pipe=2ms,socket=2ms,burn=1ms",
    "/fsync,fault=64,burn=1ms",
    "/burn=300us",
];

/// Burnt, slept, locked, waited for a pipe, a socket and a disk: each part is what was planted.
#[test]
fn each_part_is_what_was_planted() {
    quiet::in_trials(all_kinds);
}

fn all_kinds() -> Verdict {
    let server = Plan::of("threads").start();
    let _awake = Hog::that_keeps_awake();
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    let before = quiet::stolen_ticks();
    for _ in 0..40 {
        KINDS.iter().for_each(|path| drop(client.http(path)));
    }
    let (watched, accounts) = (watching.finish(), server.accounts());
    // Each CPU counts a tick when it is full.
    let taken = Nanos::from_millis(10 * (quiet::stolen_ticks() - before + 2));
    assert!(watched.sum(Part::Stolen) <= taken, "{} of {taken}", watched.sum(Part::Stolen));
    let joined = join(&accounts, &watched.served);
    joined.check_count(160, &watched.losses());
    KINDS.iter().try_for_each(|path| check_parts(path, &joined.of(path), false))?;
    // Not the disk: all of its time is less than what the hypervisor takes from a single request.
    for part in [Part::OnCpu, Part::Lock, Part::Network, Part::Other] {
        let (seen, truth) = totals(&joined.pairs, part);
        println!("{}: {seen} for {truth}, {:+.2} %", part.name(), error(seen.0, truth.0));
        // Half of what is guaranteed for a single request, for each of the forty that have the part.
        let slack = Nanos((truth.0 / 100).max(40 * 10_000));
        quiet::ensure(is_close(seen, truth, slack), || format!("{}: {seen} for {truth}", part.name()))?;
    }
    Ok(())
}

/// While a hog has the server's CPU for half the time, work stays the same and the rest is run-queue latency.
#[test]
fn hogged_requests_wait_and_do_not_work_more() {
    quiet::in_trials(hogged);
}

fn hogged() -> Verdict {
    let server = Plan::of("threads").start();
    let _hog = Hog::start("hog-parts", Core::Last, 0, None);
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    (0..40).for_each(|_| drop(client.http("/burn=4ms,sleep=1ms,lock=2ms,burn=4ms")));
    let (watched, accounts) = (watching.finish(), server.accounts());
    let joined = join(&accounts, &watched.served);
    joined.check_count(40, &watched.losses());
    assert!(watched.sum(Part::RunQueue) > Nanos::from_millis(100), "{}", watched.sum(Part::RunQueue));
    assert_eq!((watched.sum(Part::Yielded), watched.sum(Part::Throttled)), (Nanos::ZERO, Nanos::ZERO));
    assert!(watched.results.preempted >= 20, "{} of 40 were preempted", watched.results.preempted);
    check_parts("hogged", &joined.pairs, false)
}

/// Three hogs with the weights 1024, 526 and 272: the one that took most is named first, and each with the time it had.
#[test]
fn pre_emptors_are_ranked_by_the_time_they_took() {
    quiet::in_trials(ranked);
}

fn ranked() -> Verdict {
    let server = Plan::of("threads").start();
    let hogs = [("hog-most", 0), ("hog-middle", 3), ("hog-least", 6)]
        .map(|(name, niceness)| Hog::start(name, Core::Last, niceness, None));
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    (0..5).for_each(|_| drop(client.http("/burn=150ms")));
    let watched = watching.finish();
    let mut most = Vec::new();
    let took: Vec<(&str, u32, Nanos)> = hogs
        .into_iter()
        .map(|hog| {
            let (name, pid, stretches) = (hog.name, hog.pid(), hog.stretches());
            // From its arrival: the thread is woken then, and may wait for the CPU.
            let from = |one: &Served| one.arrived.unwrap().0;
            let within = watched.served.iter().map(|one| overlap(&stretches, from(one), one.done.0).0);
            let within = Nanos(within.sum());
            if name == "hog-most" {
                most = stretches;
            }
            (name, pid, within)
        })
        .collect();
    quiet::ensure(took.is_sorted_by(|one, next| one.2 > next.2), || {
        format!("the hogs did not rank as planned: {took:?}")
    })?;
    let pids: Vec<u32> = took.iter().map(|&(_, pid, _)| pid).collect();
    let named: Vec<_> = watched.results.preemptors.iter().filter(|one| pids.contains(&one.pid)).collect();
    for (one, (name, pid, truth)) in named.iter().zip(&took) {
        println!("{name}: {} for {truth}, {:+.2} %", Nanos(one.time_ns), error(one.time_ns, truth.0));
        assert_eq!((one.comm.as_str(), one.pid), (*name, *pid), "{named:#?}");
        quiet::ensure(error(one.time_ns, truth.0).abs() <= 5.0, || {
            format!("{name}: {} for {truth}", Nanos(one.time_ns))
        })?;
        assert!(one.count > 0);
    }
    assert_eq!(named.len(), 3, "{:#?}", watched.results.preemptors);
    // Other processes of this host may have taken more from a single request, but none took more than its culprit.
    for one in &watched.served {
        let (culprit, hog) = (one.culprit.as_ref().unwrap(), overlap(&most, one.read.0, one.done.0));
        let least = Nanos(hog.0 - hog.0 / 20);
        quiet::ensure(culprit.time >= least, || {
            format!("request {}: {culprit:?}, and hog-most took {hog}", one.n)
        })?;
    }
    Ok(())
}

/// A thread that yields, one that is preempted, and one whose group has used up its quota: a thousand requests, and
/// none is mistaken for another kind.
#[test]
fn throttling_yielding_and_pre_emption_are_never_confused() {
    quiet::in_trials(|| pushed_off(400));
    quiet::in_trials(|| giving_away(300));
    quiet::in_trials(|| held_back(300));
}

fn pushed_off(requests: usize) -> Verdict {
    let server = Plan::of("threads").start();
    let _hog = Hog::start("hog-pushes", Core::Last, 0, None);
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    (0..requests).for_each(|_| drop(client.http("/burn=1ms")));
    let (watched, accounts) = (watching.finish(), server.accounts());
    let joined = join(&accounts, &watched.served);
    joined.check_count(requests, &watched.losses());
    assert!(watched.results.preempted > 0, "nobody was pushed off in {requests} requests");
    for one in &watched.served {
        let others = (one.part(Part::Yielded), one.part(Part::Throttled));
        assert_eq!(others, (Nanos::ZERO, Nanos::ZERO), "{one:?}");
    }
    check_parts("pushed off", &joined.pairs, false)
}

fn giving_away(requests: usize) -> Verdict {
    let server = Plan::of("threads").start();
    // It has to get the CPU back soon.
    let _hog = Hog::start("hog-takes", Core::Last, 10, None);
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    (0..requests).for_each(|_| drop(client.http("/burn=100us,yield=3,burn=100us")));
    let (watched, accounts) = (watching.finish(), server.accounts());
    let joined = join(&accounts, &watched.served);
    joined.check_count(requests, &watched.losses());
    assert!(watched.sum(Part::Yielded) > Nanos::from_millis(1), "{}", watched.sum(Part::Yielded));
    for (account, one) in &joined.pairs {
        assert_eq!(one.part(Part::Throttled), Nanos::ZERO, "{one:?}");
        // No other wait is counted as one of these; one of these may have been a preemption, within the step.
        let (seen, truth) = (one.part(Part::Yielded), account.delayed_in(&["yield"]));
        assert!(seen <= truth + promised(truth) + SLICE, "{seen} for {truth}: {account:?} {one:?}");
    }
    let (seen, truth) = totals(&joined.pairs, Part::Yielded);
    println!("yielded {seen} of {truth} waited in steps that yield");
    assert!(seen.0 * 10 >= truth.0 * 9, "{seen} of {truth}");
    check_parts("giving away", &joined.pairs, false)
}

/// The shortest time that a hog has a CPU here: `base_slice_ns` of the scheduler is 0.7 ms or more.
const SLICE: Nanos = Nanos::from_micros(500);

fn held_back(requests: usize) -> Verdict {
    let group = Group::with_quota(Nanos::from_millis(2), Nanos::from_millis(8));
    let server = Plan::of("threads").start();
    server.join(&group);
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    let before = group.throttled();
    (0..requests).for_each(|_| drop(client.http("/burn=1500us")));
    let by_group = group.throttled() - before;
    let (watched, accounts) = (watching.finish(), server.accounts());
    let joined = join(&accounts, &watched.served);
    joined.check_count(requests, &watched.losses());
    let (throttled, waited) = (watched.sum(Part::Throttled), judge::totals(&joined.pairs, Part::RunQueue).1);
    println!("throttled {throttled} of {waited} waited; the group says {by_group}");
    // The group is throttled between requests too; and after the quota is refilled, its thread waits for whatever has
    // the CPU then.
    assert!(throttled <= by_group + promised(by_group), "{throttled} of {by_group}");
    assert!(throttled.0 * 10 >= by_group.0 * 9, "{throttled} of {by_group}");
    for one in &watched.served {
        assert_eq!(one.part(Part::Yielded), Nanos::ZERO, "{one:?}");
    }
    check_parts("held back", &joined.pairs, true)
}

/// Bytes that arrived and were not read yet are queued before the request, and are not part of it.
#[test]
fn time_in_the_sockets_queue_is_in_front_of_the_request() {
    quiet::in_trials(late_reads);
}

fn late_reads() -> Verdict {
    let late = Nanos::from_millis(20);
    let server = Plan { late_read: late, ..Plan::of("threads") }.start();
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    let mut sent = Vec::new();
    for _ in 0..20 {
        let before = clock::now();
        client.send_http(&["/burn=1ms"]);
        sent.push(before..=clock::now());
        client.http_answer();
    }
    let (watched, accounts) = (watching.finish(), server.accounts());
    let joined = join(&accounts, &watched.served);
    joined.check_count(20, &watched.losses());
    let queues: Vec<Nanos> = watched.served.iter().map(|one| one.socket_queue().unwrap()).collect();
    println!("in the queue: {queues:?}");
    assert!(queues.iter().all(|&queue| queue >= late), "read before it was");
    // On this host bytes arrive within the call that sends them.
    for ((account, one), sent) in joined.pairs.iter().zip(sent) {
        assert!(sent.contains(&one.arrived.unwrap()), "sent {sent:?}: {one:?}");
        assert!(one.read.0 <= account.read_ns, "{account:?} {one:?}");
    }
    check_parts("late reads", &joined.pairs, false)
}

/// If this fails, a socket queue that is reported too short is not flagged.
#[test]
fn arrivals_that_are_joined_are_counted() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    // Far more pieces than are remembered, all of them while nothing reads.
    client.send_http(&["/sleep=200ms"]);
    client.send_http_in_pieces("/burn=10us", 30);
    (0..2).for_each(|_| drop(client.http_answer()));
    let watched = watching.finish();
    assert_eq!(watched.served.len(), 2, "{}", watched.losses());
    let inexact = watched.results.inexact;
    assert!(inexact.joined_arrivals > 0, "{inexact:?}");
}
