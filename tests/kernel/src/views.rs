//! What a DBA reads: slow requests with their reasons, clients and connections, filters, and what a scraper gets.
//! The truth is the planted server's own account.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;

use kernel::account::Account;
use record::Part;
use record::document::QuantileValue;
use record::observation::watch::WatchResults;
use units::Nanos;

use crate::judge::{expected, join};
use crate::support::planted::Plan;
use crate::support::watched::Watching;
use crate::support::{binary, port, quiet, wait};

const SLOW: Nanos = Nanos::from_millis(5);

/// Requests of five kinds over 5 ms and one below; how many there are of each.
const KINDS: [(&str, usize); 6] = [
    ("/burn=9ms", 8),
    ("/sleep=8ms", 8),
    ("/lock=8ms", 8),
    ("/socket=8ms", 8),
    ("/pipe=8ms", 8),
    ("/burn=300us", 60),
];

/// The part that the server's account says is the largest.
fn largest(account: &Account) -> &'static str {
    let parts = expected(account);
    Part::ALL.into_iter().rev().max_by_key(|&part| parts[part as usize]).unwrap().name()
}

/// If this fails, a slow request is missing, or is explained by something that it did not wait for.
#[test]
fn every_slow_request_has_its_reason() {
    let _alone = quiet::alone();
    let server = Plan::of("threads").start();
    let watching = Watching::of(&server);
    let mut client = server.new_client();
    for (path, count) in KINDS {
        (0..count).for_each(|_| drop(client.http(path)));
    }
    let (watched, folder) = watching.finish_and_keep();
    let accounts = server.accounts();
    join(&accounts, &watched.served).check_count(100, &watched.losses());
    let slow = watched.results.slow.unwrap();
    let is_slow = |account: &&Account| account.written_ns - account.read_ns > SLOW.0;
    let mut truth: BTreeMap<&str, u64> = BTreeMap::new();
    accounts.iter().filter(is_slow).for_each(|account| *truth.entry(largest(account)).or_default() += 1);
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for reason in &slow.reasons {
        *seen.entry(reason.part.as_str()).or_default() += reason.requests;
    }
    println!("{seen:?} for {truth:?}: {:?}", slow.reasons);
    assert_eq!(slow.requests, truth.values().sum::<u64>());
    // Two parts of one request may be as good as equal: one in twenty may be off.
    let off: u64 = seen.iter().map(|(part, n)| n.saturating_sub(truth.get(part).copied().unwrap_or(0))).sum();
    assert!(off <= 2, "{seen:?} for {truth:?}");
    assert_eq!(slow.slowest.len() as u64, slow.requests);
    let whats = |part: &str| -> Vec<&str> {
        let of_part = slow.reasons.iter().filter(|reason| reason.part == part);
        of_part.filter_map(|reason| reason.what.as_deref()).collect()
    };
    assert!(whats("lock").contains(&"futex"), "{:?}", whats("lock"));
    assert!(whats("other").iter().any(|what| what.contains("nanosleep")), "{:?}", whats("other"));
    assert!(whats("other").iter().any(|what| what.contains("read pipe:")), "{:?}", whats("other"));
    assert!(!whats("network").is_empty(), "{:?}", slow.reasons);
    let text = report(folder.path(), &["--where", "mean > 5ms and count >= 8", "--sort", "max"]);
    assert!(text.contains("requests over 5.00 ms: 40 of 100 (40.0 %)"), "{text}");
    assert!(text.contains("do not meet `mean > 5ms and count >= 8`"), "{text}");
}

/// The report of a record, with these options.
fn report(folder: &std::path::Path, options: &[&str]) -> String {
    let output = Command::new(binary::parallax()).arg("report").arg(folder).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn clients_connections_and_filters_are_those_of_the_servers_account() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let all = Watching::of(&server);
    let only = Watching::start(&["-p", &server.pid().to_string(), "--statement", "GET /burn*"]);
    let other = Watching::start(&["-p", &server.pid().to_string(), "--peer", "192.0.2.1"]);
    let mut clients = [server.new_client(), server.new_client(), server.new_client()];
    for (n, client) in clients.iter_mut().enumerate() {
        (0..20 * (n + 1)).for_each(|_| drop(client.http("/burn=100us,answer=100")));
        client.http("/sleep=100us");
    }
    let (all, only, other) = (all.finish(), only.finish(), other.finish());
    drop(clients);
    let accounts = server.accounts();
    let results = &all.results;
    assert_eq!(results.peers.len(), 1);
    let peer = &results.peers[0];
    let sum = |of: fn(&Account) -> u64| accounts.iter().map(of).sum::<u64>();
    let seen = (peer.usage.requests, peer.usage.request_bytes, peer.usage.response_bytes);
    let truth = (123, sum(|account| account.request_bytes), sum(|account| account.response_bytes));
    assert_eq!((peer.address.as_deref(), seen), (Some("127.0.0.1"), truth));
    for connection in &results.busiest_connections {
        let port: u16 = connection.peer.as_deref().unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        let own: Vec<&Account> = accounts.iter().filter(|account| account.peer_port == port).collect();
        assert_eq!(connection.usage.requests, own.len() as u64);
        let bytes: u64 = own.iter().map(|account| account.response_bytes).sum();
        assert_eq!(connection.usage.response_bytes, bytes);
    }
    assert_eq!(results.busiest_connections.len(), 3);
    assert_eq!((only.results.requests, only.results.left_out), (120, 3));
    assert_eq!((other.results.requests, other.results.left_out), (0, 123));
    check_times(results);
}

/// p99 of 120 requests has no interval, p50 has one.
fn check_times(results: &WatchResults) {
    let burnt = results.digests.iter().find(|digest| digest.count == 120).unwrap();
    let times = burnt.times.unwrap();
    assert!(matches!(times.p99, QuantileValue::TooFew { needed: 368 }), "{times:?}");
    let QuantileValue::Known { ns, low_ns, high_ns } = times.p50 else { panic!("{times:?}") };
    assert!(low_ns <= ns && high_ns.is_some_and(|high| ns <= high) && ns <= times.max_ns, "{times:?}");
}

/// If this fails, a dashboard shows other figures than the record.
#[test]
fn a_scrape_has_the_figures_of_the_record() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let port = port::free();
    let pid = server.pid().to_string();
    let watching = Watching::start(&["-p", &pid, "-i", "100ms", "--self", "--prometheus", &port.to_string()]);
    let mut client = server.new_client();
    (0..100).for_each(|_| drop(client.http("/burn=200us")));
    (0..10).for_each(|_| drop(client.http("/sleep=6ms")));
    let mut scraped = String::new();
    let is_whole = || {
        scraped = scrape(port, "127.0.0.1");
        value(&scraped, "parallax_watch_requests_total") == Some(110.0)
    };
    assert!(wait::until(Nanos::from_secs(20), is_whole), "{scraped}");
    assert!(scrape(port, "evil.example").starts_with("HTTP/1.1 403"), "{scraped}");
    let results = watching.finish().results;
    let of = |name: &str| value(&scraped, name).unwrap_or_else(|| panic!("no {name} in {scraped}"));
    let response = results.response.as_ref().unwrap();
    assert_eq!(of("parallax_watch_response_seconds_count"), 110.0);
    let close = |name: &str, ns: u64| assert!((of(name) - ns as f64 / 1e9).abs() < 1e-9, "{name}: {ns}");
    close("parallax_watch_response_seconds_sum", response.sum_ns);
    close("parallax_watch_part_seconds_total{part=\"on_cpu\"}", results.parts_ns.on_cpu);
    close("parallax_watch_part_seconds_total{part=\"other\"}", results.parts_ns.other);
    for digest in results.digests.iter().filter(|digest| digest.count > 0) {
        let labels = format!("{{statement=\"{}\"}}", digest.text);
        assert_eq!(of(&format!("parallax_watch_statement_requests_total{labels}")), digest.count as f64);
        close(&format!("parallax_watch_statement_seconds_total{labels}"), digest.sum_ns);
    }
    let slow = results.slow.unwrap();
    assert_eq!(of("parallax_watch_slow_requests_total{over=\"0.005\"}"), slow.requests as f64);
    assert_eq!(of("parallax_watch_lost_total{cause=\"ring_full\"}"), results.losses.ring_full as f64);
    for name in ["own_cpu_seconds_total", "program_seconds_total", "resident_bytes"] {
        assert!(of(&format!("parallax_watch_{name}")) > 0.0, "{name}");
    }
}

/// The response of the endpoint to a request under this name.
fn scrape(port: u16, host: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The value of a series.
fn value(scraped: &str, series: &str) -> Option<f64> {
    scraped.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// If this fails, a watch that was killed has lost its statements.
#[test]
fn a_killed_watch_keeps_its_tables() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let watching = Watching::start(&["-p", &server.pid().to_string(), "-i", "200ms"]);
    let mut client = server.new_client();
    (0..50).for_each(|_| drop(client.http("/burn=100us")));
    let is_saved = || {
        let text = std::fs::read_to_string(watching.folder().join("run.json")).unwrap();
        text.contains("GET /burn")
    };
    assert!(wait::until(Nanos::from_secs(20), is_saved), "the tables are not written");
    let folder = watching.kill();
    let text = report(folder.path(), &[]);
    assert!(text.contains("50 requests") && text.contains("GET /burn"), "{text}");
}
