//! Each rule has a case here that triggers it, and a test checks that none is missing.

use Segment as S;

use super::*;

/// The name of the first rule triggered by these milliseconds of one request, the place to blame, and the sentence.
fn first(times: &[(Segment, u64)], facts: &Facts) -> (&'static str, Place, String) {
    let mut sums = Ledger::default();
    times.iter().for_each(|&(segment, ms)| sums.put(segment, ms * 1_000_000));
    let (blame, sentences) = judge("all requests with a response", &sums, 1, facts);
    assert!(!sentences[0].text.contains(['{', '}']), "{}", sentences[0].text);
    (sentences[0].rule, blame.place, blame.sentence)
}

fn all_kept() -> Facts {
    Facts { all_kept: true, ..Facts::default() }
}

/// A rule, the milliseconds that trigger it, and the facts it requires.
type Case = (&'static str, Vec<(Segment, u64)>, Facts);

fn cases() -> Vec<Case> {
    let none = all_kept;
    let culprit = || Facts { culprit: Some("hog (pid 77), 41 ms in all".to_owned()), ..none() };
    let busiest = || Facts { busiest: Some("make (pid 78) with 3.2 s".to_owned()), ..none() };
    let own_stall = || Facts { own_stall: Some(Nanos::from_millis(50)), ..none() };
    let host_stall =
        || Facts { host_stall: Some(Nanos::from_millis(60)), client_stalled: 45_000_000, ..none() };
    let owner = || Facts { owner: Some("worker (tid 80)".to_owned()), ..none() };
    let upstream = || Facts { upstream: Some("10.0.0.9:3306".to_owned()), ..none() };
    let stop = || Facts { stop: Some("SIGSTOP".to_owned()), ..none() };
    let paused = || Facts { server_paused: 45_000_000, pauses: Some("2 pauses".to_owned()), ..none() };
    vec![
        ("client-stalled", vec![(S::ScheduleLag, 50), (S::OnCpu, 5)], own_stall()),
        ("client-late-to-send", vec![(S::ScheduleLag, 30), (S::ClientLag, 20), (S::OnCpu, 5)], none()),
        ("client-late-to-read", vec![(S::ScheduleLag, 20), (S::ClientLag, 30)], none()),
        ("host-stolen", vec![(S::Stolen, 50), (S::OnCpu, 5)], none()),
        ("host-stalled", vec![(S::ClientLag, 50), (S::OnCpu, 5)], host_stall()),
        ("runtime-paused", vec![(S::Lock, 50), (S::OnCpu, 5)], paused()),
        ("network-between", vec![(S::ToClient, 50)], Facts { between: true, ..none() }),
        ("network-there", vec![(S::ToServer, 50), (S::ToClient, 1)], none()),
        ("network-held-back", vec![(S::HeldBack, 40), (S::ToServer, 1)], none()),
        ("network-back", vec![(S::ToClient, 50), (S::SocketQueue, 1)], none()),
        ("network-lookup", vec![(S::Resolve, 50)], none()),
        ("network-connect", vec![(S::Connect, 50)], none()),
        ("network-both-ways", vec![(S::Network, 50), (S::OnCpu, 20)], none()),
        ("listen-queue", vec![(S::Connect, 50)], Facts { listen_drops: 3, ..none() }),
        ("socket-queue", vec![(S::SocketQueue, 50), (S::OnCpu, 1)], none()),
        ("cpu-behind", vec![(S::BehindCpu, 50), (S::OnCpu, 10), (S::SocketQueue, 10)], none()),
        ("cpu-yields", vec![(S::Yielded, 50), (S::OnCpu, 10)], none()),
        ("cpu-handler", vec![(S::OnCpu, 50), (S::RunQueue, 10)], none()),
        ("blocked-disk", vec![(S::Disk, 50), (S::Lock, 10)], none()),
        ("blocked-lock-of", vec![(S::Lock, 50), (S::Disk, 10)], owner()),
        ("blocked-lock", vec![(S::Lock, 50), (S::Disk, 10)], none()),
        ("blocked-timer", vec![(S::Timer, 50), (S::Lock, 10)], owner()),
        ("blocked-thread-of", vec![(S::OtherThread, 50)], owner()),
        ("blocked-polling", vec![(S::Polling, 50)], owner()),
        ("blocked-behind", vec![(S::BehindBlocked, 50)], none()),
        ("blocked-loop", vec![(S::LoopWait, 50), (S::OnCpu, 1)], none()),
        ("blocked-other", vec![(S::OtherBlocked, 50)], none()),
        ("upstream-at", vec![(S::Upstream, 50), (S::Timer, 10)], upstream()),
        ("upstream", vec![(S::Upstream, 50)], none()),
        ("stopped-by", vec![(S::QueueStopped, 30), (S::Stopped, 20), (S::Timer, 10)], stop()),
        ("stopped", vec![(S::Stopped, 50)], none()),
        ("contention-by", vec![(S::RunQueue, 48), (S::OnCpu, 12)], culprit()),
        ("contention-busy", vec![(S::RunQueue, 48)], busiest()),
        ("contention", vec![(S::QueueRunQueue, 50)], none()),
        ("throttled", vec![(S::Throttled, 50)], none()),
        ("pool", vec![(S::PoolWait, 50), (S::OnCpu, 20)], none()),
        ("no-server", vec![(S::ServerAndNetwork, 50)], Facts { no_server: true, ..none() }),
        ("not-seen", vec![(S::ServerAndNetwork, 50)], none()),
        ("no-arrival", vec![(S::ToServerAndQueue, 50)], none()),
        ("waits-unseen", vec![(S::SocketQueue, 50), (S::OnCpu, 1)], Facts::default()),
        ("sending", vec![(S::Send, 50)], none()),
        ("opening", vec![(S::Tls, 50), (S::Auth, 10)], none()),
    ]
}

#[test]
fn each_rule_speaks_when_its_time_has_come() {
    let mut spoken = Vec::new();
    for (id, times, facts) in cases() {
        let (rule, place, _) = first(&times, &facts);
        assert_eq!(rule, id, "{times:?}");
        let expected = RULES.iter().find(|rule| rule.id == id).unwrap().place;
        assert_eq!(place, expected, "{id}");
        spoken.push(id);
    }
    let all: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(spoken, all);
}

#[test]
fn a_sentence_names_the_culprit_with_the_figure_that_proves_it() {
    let facts = Facts { culprit: Some("hog (pid 77), 41 ms in all".to_owned()), ..Facts::default() };
    let (_, _, sentence) = first(&[(S::RunQueue, 48), (S::OnCpu, 12)], &facts);
    assert_eq!(
        sentence,
        "The server waits for a CPU: 48.0 ms per request, 80.0 % of the time of all requests with a response, ready to \
         run while other processes ran, most of all hog (pid 77), 41 ms in all."
    );
}

#[test]
fn where_no_place_has_clearly_most_nobody_is_blamed() {
    let none = all_kept();
    for times in [
        vec![(S::OnCpu, 50), (S::Disk, 48)],
        vec![(S::OnCpu, 35), (S::Disk, 25), (S::ToClient, 20), (S::SocketQueue, 20)],
    ] {
        let (_, place, sentence) = first(&times, &none);
        assert_eq!(place, Place::Undecided);
        assert!(sentence.starts_with("No single place is to blame"), "{sentence}");
    }
    let (blame, sentences) = judge("nothing", &Ledger::default(), 0, &none);
    assert_eq!((blame.place, sentences.len()), (Place::Undecided, 0));
}

#[test]
fn a_stall_of_the_host_excuses_its_client() {
    let facts =
        Facts { client_stalled: 10_000_000, host_stall: Some(Nanos::from_millis(10)), ..Facts::default() };
    // A stall of a fifth of the lateness does not.
    assert_eq!(first(&[(S::ClientLag, 50)], &facts).1, Place::Client);
}

/// If this fails, a server's own work is excused by a stall that may have hit its network or its disk.
#[test]
fn what_a_stall_excuses_of_the_server_each_of_its_places_gives_by_its_time() {
    let mut sums = Ledger::default();
    for (segment, ms) in [(S::OnCpu, 40), (S::Disk, 40), (S::ToClient, 20)] {
        sums.put(segment, ms * 1_000_000);
    }
    let facts = Facts { server_stalled: 50_000_000, ..all_kept() };
    let shares = judge("these", &sums, 1, &facts).0.places;
    let expected = [("platform", 0.5), ("handler_cpu", 0.2), ("handler_blocked", 0.2), ("network", 0.1)];
    assert_eq!(shares, expected.into());
}

/// If this fails, a JVM's pause is attributed to the network, or to a host that was stalled.
#[test]
fn a_pause_takes_what_is_left_after_the_hosts_stalls_and_nothing_of_the_network() {
    let mut sums = Ledger::default();
    for (segment, ms) in [(S::Lock, 60), (S::ToClient, 40)] {
        sums.put(segment, ms * 1_000_000);
    }
    let facts = Facts { server_paused: 90_000_000, ..all_kept() };
    let shares = judge("these", &sums, 1, &facts).0.places;
    assert_eq!(shares, [("runtime", 0.6), ("network", 0.4)].into());
    let facts = Facts { server_stalled: 50_000_000, ..facts };
    let shares = judge("these", &sums, 1, &facts).0.places;
    assert_eq!(shares, [("platform", 0.5), ("runtime", 0.3), ("network", 0.2)].into());
}

/// If this fails, a sentence has more time in a part than in the whole.
#[test]
fn what_a_stall_excuses_is_no_longer_told_of_the_client() {
    let facts = Facts { client_stalled: 30_000_000, ..Facts::default() };
    let mut sums = Ledger::default();
    sums.put(S::ClientLag, 50_000_000);
    let (_, sentences) = judge("these", &sums, 1, &facts);
    let client = sentences.iter().find(|sentence| sentence.place == Place::Client).unwrap();
    assert!(
        client
            .text
            .contains("20.0 ms per request, 40.0 % of the time of these, of which 20.0 ms is client_lag"),
        "{client:?}"
    );
}

/// An imported record may contain anything.
#[test]
fn sums_beyond_all_bounds_are_told_as_far_as_they_go() {
    let all = u64::MAX;
    let facts = Facts { client_stalled: all, server_stalled: all, server_paused: all, ..Facts::default() };
    for facts in [Facts::default(), facts] {
        let (blame, _) = judge("these", &Ledger([u64::MAX; Segment::COUNT]), 1, &facts);
        assert!(blame.share <= 1.0, "{blame:?}");
    }
}

/// If this fails, any host that does something else now and then is said to have too few CPUs.
#[test]
fn contention_is_claimed_against_the_threads_own_share_only() {
    for (waited, is_claimed) in [(24, false), (26, true)] {
        let mut sums = Ledger::default();
        sums.put(S::OnCpu, 40_000_000);
        sums.put(S::BehindCpu, 10_000_000);
        sums.put(S::RunQueue, waited * 1_000_000);
        let (_, sentences) = judge("all requests with a response", &sums, 1, &all_kept());
        let claims = sentences.iter().any(|sentence| sentence.place == Place::CpuContention);
        assert_eq!(claims, is_claimed, "{waited} of {}", 50 + waited);
    }
}
