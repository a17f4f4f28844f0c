//! Sums by user, peer, connection and wait; and a day of them, simulated.

use record::{Part, Protocol, Rows, Sleep};

use super::*;

/// A request that was on a CPU for `response`.
pub(super) fn served(n: u64, response: Nanos) -> Served {
    let mut parts = [Nanos::ZERO; Part::COUNT];
    parts[Part::OnCpu as usize] = response;
    Served {
        connection: n,
        peer: Some(SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 40_000))),
        local: None,
        n: 0,
        arrived: None,
        read: Nanos(1_000_000_000),
        socket_run_queue: Nanos::ZERO,
        socket_throttled: Nanos::ZERO,
        first_sent: Nanos(1_000_000_000) + response,
        done: Nanos(1_000_000_000) + response,
        parts,
        preempted: Nanos::ZERO,
        preemptions: 0,
        culprit: None,
        sleep: None,
        contended: Nanos::ZERO,
        socket_contended: Nanos::ZERO,
        waits: None,
        pid: 10,
        tid: 11,
        hand_offs: 0,
        protocol: Protocol::Mysql,
        digest: 0,
        session: 0,
        rows: None,
        status: None,
        class: None,
        statements: 1,
        request_bytes: 10,
        response_bytes: 100,
    }
}

/// No percentiles: they are not what is tested here.
fn no_times(compact: &record::Compact) -> record::observation::watch::Times {
    let none = record::document::QuantileValue::TooFew { needed: 6 };
    let max_ns = compact.max().map_or(0, |max| max.0);
    record::observation::watch::Times { p50: none, p95: none, p99: none, max_ns }
}

#[test]
fn requests_are_summed_by_user_peer_connection_and_wait() {
    let mut usages = Usages::new(Nanos::from_millis(5));
    for n in 0..10 {
        let rows = (n < 4).then_some(Rows { sent: n, affected: 1 });
        let call = u16::try_from(libc::SYS_futex).unwrap();
        let sleep = (n % 2 == 0).then_some(Sleep { call, fd: None, time: Nanos(n) });
        let session = u32::from(n >= 7) * 2;
        let one = Served { connection: n % 3, rows, sleep, session, ..served(n % 2, Nanos(100 + n)) };
        usages.add(&one, None);
    }
    let sessions = usages.sessions(|id| (Some(format!("user{id}")), None), &no_times);
    let counts: Vec<u64> =
        sessions.iter().map(|row| row.usage.as_ref().map_or(0, |usage| usage.requests)).collect();
    assert_eq!(counts, [7, 0, 3]);
    let rows = sessions[0].usage.as_ref().unwrap().rows.unwrap();
    assert_eq!((rows.requests, rows.sent, rows.affected), (4, 6, 4));
    let peers = usages.peers(&no_times);
    let seen: Vec<_> =
        peers.iter().map(|row| (row.address.as_deref().unwrap(), row.usage.requests)).collect();
    assert_eq!(seen, [("10.0.0.1", 5), ("10.0.0.0", 5)]);
    let connections = usages.connections(&no_times);
    assert_eq!(connections.iter().map(|row| row.usage.requests).sum::<u64>(), 10);
    assert_eq!(connections.len(), 3);
    let waits = usages.waits();
    assert_eq!((waits.len(), waits[0].call.as_str(), waits[0].requests), (1, "futex", 5));
    assert_eq!((waits[0].sum_ns, waits[0].max_ns), (20, 8));
}

/// Memory of this process, in pages.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

/// If this fails, a watch that runs as a service fills the host's memory. A day of seconds, each with requests of new
/// connections, new peers and new statements. For 19 hours memory grows by some 8 %, from 13 to 14 MB: the entries that
/// stay in the tables get values of ever more lengths, until each has all of them.
#[test]
fn memory_stops_growing_within_a_day() {
    let mut usages = Usages::new(Nanos::from_millis(5));
    let mut sums = DigestSums::default();
    let mut digests = dissect::Digests::default();
    let mut after_20_hours = 0;
    let mut requests = 0;
    for second in 0..86_400_u64 {
        for n in 0..5 {
            let id = second * 5 + n;
            let text = format!("select c{id} from t{id}");
            let statement = digests.statement(dissect::Dialect::MySql, text.as_bytes(), false);
            // From 1 us to 1 s, so that every histogram gets every octave.
            let response = Nanos(1_000 << (id % 20));
            let sleep = Some(Sleep { call: (id % 400) as u16, fd: Some(3), time: Nanos(1) });
            let session = (id % 1_024) as u32;
            let one = Served { digest: statement.0, session, sleep, ..served(id, response) };
            let target: Arc<str> = format!("/data/{id}").into();
            usages.add(&one, Some(&target));
            sums.add(&one);
            requests += 1;
        }
        if second == 72_000 {
            after_20_hours = resident();
        }
    }
    let grown = resident() as f64 / after_20_hours as f64;
    println!("resident after 20 hours and at the end: {after_20_hours} and {} pages: {grown:.3}", resident());
    assert!(grown <= 1.01, "{grown}");
    let listed: u64 = usages.peers(&no_times).iter().map(|row| row.usage.requests).sum();
    let connections: u64 = usages.connections(&no_times).iter().map(|row| row.usage.requests).sum();
    let waits: u64 = usages.waits().iter().map(|row| row.requests).sum();
    let statements: u64 = sums.rows(|_| "", &no_times).iter().map(|row| row.count).sum();
    assert_eq!([listed, connections, waits, statements], [requests; 4]);
}
