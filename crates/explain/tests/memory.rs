//! The memory that `explain` uses for records of the size that it still reads, from strangers.

#![expect(clippy::unwrap_used, reason = "a panic here is the test failing")]

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use explain::{Client, MOST_REQUESTS, Server};
use export::{requests, served};
use record::{Carried, KeptRequest, Owner, Part, Phase, Protocol, Served, Stop, TwoClocks, Waits};
use record::{Culprit, Timeline};
use units::Nanos;

/// What the requests of a client and of a server may use, one of each: 2,181 bytes when all are on connections of their
/// own, with everything that a server's observer can keep. With [`MOST_REQUESTS`] of both, 1.3 GiB: see LIMITS.md.
const BYTES_PER_PAIR: u64 = 2_300;

/// How a stranger's requests are numbered and spread over connections.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Every request on a connection of its own.
    Scattered,
    /// All on one connection, and all with the same number.
    Alike,
}

/// If this fails, records that a stranger has made use more memory than the host has, or more time than anybody waits.
#[test]
fn a_pair_of_requests_uses_a_bounded_amount_of_memory() {
    for shape in [Shape::Scattered, Shape::Alike] {
        // The difference, because the record itself takes some megabytes.
        let (few, many) = (peak(10_000, shape), peak(30_000, shape));
        let per_pair = (many - few) / 20_000;
        let all = units::Bytes(per_pair * MOST_REQUESTS);
        assert!(per_pair <= BYTES_PER_PAIR, "{shape:?}: {per_pair} bytes for each pair, {all} in all");
    }
}

/// Bytes in use at most, while so many pairs are read and explained.
fn peak(pairs: u64, shape: Shape) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let (client, server) = write(folder.path(), pairs, shape);
    let open = |path| Some(File::open(path).unwrap());
    let used = allocation_counter::measure(|| {
        let recording = record::read(&seed("drive")).unwrap();
        let client = Client::read(recording, open(&client), String::new()).unwrap();
        let observed = record::read_observation(&seed("watch")).unwrap();
        let clocks = TwoClocks::read(&seed("watch")).unwrap();
        let server = Server::read(observed, open(&server), clocks, String::new()).unwrap();
        let explanation = explain::explain(&client, vec![server], &[]);
        assert_eq!(explanation.join.rows, pairs);
        assert!(explanation.join.by_ends > 0, "{:?}", explanation.join);
    });
    used.bytes_max
}

/// Records of one run, whose requests are replaced here.
fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../run/tests/hostile/seeds").join(name)
}

/// The zero of the client's record, on the monotonic clock of both.
fn zero() -> Nanos {
    Nanos(record::read(&seed("drive")).unwrap().document.time.started_monotonic_ns)
}

fn write(folder: &Path, pairs: u64, shape: Shape) -> (PathBuf, PathBuf) {
    let (client, server) = (folder.join("requests.parquet"), folder.join("served.parquet"));
    let zero = zero();
    let run = requests::Run {
        zero,
        started: "2026-11-25T00:00:00Z".to_owned(),
        kept: "all".to_owned(),
        targets: (0..pairs).map(|n| format!("GET /a/path/of/one/target/{n}")).collect(),
    };
    let mut writer = requests::Writer::new(File::create(&client).unwrap(), &run).unwrap();
    let kept: Vec<KeptRequest> = (0..pairs).map(|n| kept(zero, n, shape)).collect();
    writer.write(&kept).unwrap();
    writer.finish().unwrap();
    let observed = record::read_observation(&seed("watch")).unwrap();
    let record = served::Record {
        zero: Nanos(observed.document.time.started_monotonic_ns),
        started: run.started,
        kept: run.kept,
    };
    let mut writer = served::Writer::new(File::create(&server).unwrap(), &record).unwrap();
    writer.write((0..pairs).map(|n| request(zero, n, shape))).unwrap();
    writer.finish().unwrap();
    (client, server)
}

/// The client's end of a request's connection, and the request's number on it.
fn place(n: u64, shape: Shape) -> (SocketAddr, u64) {
    match shape {
        Shape::Scattered => (SocketAddr::from((Ipv4Addr::from_bits(0x7f00_0001 + n as u32), 40_000)), n),
        Shape::Alike => (SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000)), 7),
    }
}

/// Request `n` is due `n` µs after the start, and takes 100 µs.
fn kept(zero: Nanos, n: u64, shape: Shape) -> KeptRequest {
    let due = zero + Nanos::from_micros(n);
    let mut timeline = Timeline::due(due);
    for (phase, us) in [
        (Phase::ScheduleLag, 10),
        (Phase::PoolWait, 20),
        (Phase::Send, 30),
        (Phase::Wait, 80),
        (Phase::Receive, 90),
        (Phase::ClientLag, 100),
    ] {
        timeline.end(phase, due + Nanos::from_micros(us));
    }
    let (local, nth) = place(n, shape);
    KeptRequest {
        n,
        kind: n as u16,
        connection: Some(n as u32),
        carried: Some(Carried { local, server: SERVER, nth }),
        ended: timeline.last(),
        timeline,
        failure: None,
        code: Some(units::Code::status(200)),
    }
}

const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 80);

/// The same request at the server, with everything that can be kept of it.
fn request(zero: Nanos, n: u64, shape: Shape) -> Served {
    let at = |us: u64| zero + Nanos::from_micros(n + us);
    let (peer, number) = place(n, shape);
    let mut parts = [Nanos::ZERO; Part::COUNT];
    parts[Part::OnCpu as usize] = Nanos::from_micros(20);
    parts[Part::Lock as usize] = Nanos::from_micros(10);
    let comm = || "x".repeat(15);
    let waits = Waits {
        stopped_unread: Nanos::ZERO,
        stopped: Nanos(6),
        stop: Some(Stop::Freezer),
        timer: Nanos(7),
        upstream: Nanos(8),
        upstream_at: Some(SERVER),
        owner: Some(Owner { tid: 12, comm: comm(), digest: Some(3), time: Nanos(30) }),
        held_back: true,
    };
    Served {
        connection: n,
        peer: Some(peer),
        local: Some(SERVER),
        n: number,
        arrived: Some(at(40)),
        read: at(45),
        socket_run_queue: Nanos::ZERO,
        socket_throttled: Nanos::ZERO,
        first_sent: at(70),
        done: at(75),
        parts,
        preempted: Nanos::ZERO,
        preemptions: 1,
        culprit: Some(Culprit { pid: 9, comm: comm(), time: Nanos(9) }),
        contended: Nanos::ZERO,
        socket_contended: Nanos::ZERO,
        waits: Some(Box::new(waits)),
        pid: 10,
        tid: 11,
        hand_offs: 0,
        protocol: Protocol::Http1,
        digest: 0,
        session: 0,
        rows: None,
        sleep: None,
        status: Some(200),
        class: None,
        request_bytes: 100,
        statements: 1,
        response_bytes: 200,
    }
}
