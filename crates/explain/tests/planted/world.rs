//! A client's and a server's records of the same requests, with 50 ms planted in one place.

#![expect(clippy::unwrap_used, reason = "a panic here is the test failing")]

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;

use explain::{Client, HostRecord, Segment, Server};
use export::{requests, served};
use record::document::{
    ArrivalStamps, Document, Envelope, Host, Kept, Load, Model, RecordKind, Stamps, State, Subject, Time,
};
use record::observation::disturb::{Episode, RelayAddresses, Span};
use record::observation::jvm::{JvmResults, Pause};
use record::observation::watch::{Digest, PartsNs, WatchLine, WatchResults};
use record::observation::{
    DisturbResults, Observation, ObservationBody, ObservationWriter, read_observation,
};
use record::{Carried, FolderWriter, Interval, KeptRequest, Part, Phase, Protocol, Served, Timeline};
use record::{ClockReading, Event, TwoClocks};
use units::Nanos;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;

/// The client's zero on the monotonic clock; the server's observer began half a second earlier.
const ZERO: u64 = 5_000 * MS;
const WATCH_ZERO: u64 = 4_500 * MS;

/// Time between two requests.
const GAP: u64 = 25 * MS;

/// The place where requests take longer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Plant {
    Late,
    Pool,
    There,
    Queue,
    Part(Part),
    Back,
    Unread,
}

/// How long each request takes in each place.
#[derive(Debug, Clone, Copy)]
struct Times {
    late: u64,
    pool: u64,
    there: u64,
    queue: u64,
    parts: [u64; Part::COUNT],
    back: u64,
    unread: u64,
}

impl Times {
    fn usual() -> Times {
        let mut parts = [0; Part::COUNT];
        parts[Part::OnCpu as usize] = 200 * US;
        Times {
            late: 10 * US,
            pool: 5 * US,
            there: 30 * US,
            queue: 20 * US,
            parts,
            back: 40 * US,
            unread: 15 * US,
        }
    }

    fn with(plant: Plant, longer: u64) -> Times {
        let mut times = Times::usual();
        let place = match plant {
            Plant::Late => &mut times.late,
            Plant::Pool => &mut times.pool,
            Plant::There => &mut times.there,
            Plant::Queue => &mut times.queue,
            Plant::Part(part) => &mut times.parts[part as usize],
            Plant::Back => &mut times.back,
            Plant::Unread => &mut times.unread,
        };
        *place += longer;
        times
    }
}

pub struct World {
    plant: Plant,
    pub requests: Vec<KeptRequest>,
    pub served: Vec<Served>,
    /// Adds a record of `hiccup` with a stall of this cause where each request is late.
    pub hiccup: Option<&'static str>,
    /// The server has another boot, and so another clock,
    pub other_boot: bool,
    /// which was compared with the client's.
    pub clocks: Option<TwoClocks>,
}

/// Records read back.
pub struct Read {
    pub client: Client,
    pub servers: Vec<Server>,
    pub hosts: Vec<HostRecord>,
}

impl Read {
    /// Keeps one request in `of`, the same on both sides.
    pub fn keep_one_in(&mut self, of: usize) {
        let (kept, rows) = self.client.rows.as_mut().unwrap();
        *rows = rows.drain(..).step_by(of).collect();
        let count = rows.len();
        kept.kept = format!("slowest={count}");
        let server = &mut self.servers[0];
        server.served = server.served.drain(..).step_by(of).collect();
        let ObservationBody::Watch(results) = &mut server.observed.document.body else { unreachable!() };
        let kept = results.kept.as_mut().unwrap();
        (kept.requests, kept.rows) = (format!("slowest={count}"), count as u64);
    }
}

impl World {
    /// `count` requests over four connections, each 50 ms longer at `plant`.
    pub fn of(count: u64, plant: Plant) -> World {
        let mut world = World {
            plant,
            requests: Vec::new(),
            served: Vec::new(),
            hiccup: None,
            other_boot: false,
            clocks: None,
        };
        world.fill(count, |_| true);
        world
    }

    pub fn plant_only(&mut self, which: impl Fn(u64) -> bool) {
        let count = self.requests.len() as u64;
        self.fill(count, which);
    }

    fn fill(&mut self, count: u64, which: impl Fn(u64) -> bool) {
        (self.requests, self.served) = (Vec::new(), Vec::new());
        for n in 0..count {
            let times = Times::with(self.plant, if which(n) { 50 * MS } else { 0 });
            let (request, served) = pair(n, ZERO + n * GAP, &times, (n % 4) as u32);
            self.requests.push(request);
            self.served.push(served);
        }
    }

    /// One thread of a server that works `work` for each request, and four virtual users without think time.
    pub fn one_thread(count: u64, work: u64) -> World {
        let mut world = World::of(0, Plant::Queue);
        for n in 0..count {
            let mut times = Times::usual();
            times.parts[Part::OnCpu as usize] = work;
            let turn = work + 10 * US;
            // Its turn comes after the three before it.
            let due = (ZERO + n * turn).saturating_sub(3 * turn).max(ZERO);
            times.queue = ZERO + n * turn - due;
            let (request, served) = pair(n, due, &times, 0);
            world.requests.push(request);
            world.served.push(served);
        }
        world
    }

    /// `count` requests that became due within a stall of the client, and then had to share one connection, each for
    /// `turn`.
    pub fn burst(count: u64, stall: u64, turn: u64) -> World {
        let mut world = World::of(0, Plant::Late);
        for n in 0..count {
            let due = n * stall / count;
            let mut times = Times { late: stall - due, pool: n * turn, ..Times::usual() };
            times.parts[Part::OnCpu as usize] = turn / 2;
            let (request, served) = pair(4 * n, ZERO + due, &times, 0);
            world.requests.push(request);
            world.served.push(served);
        }
        world
    }

    /// One request per millisecond over one connection, each held for a tenth of that; every hundredth is blocked for
    /// `stall` at the server, and those due in the meantime wait for the connection.
    pub fn stalled(count: u64, stall: u64) -> World {
        let mut world = World::of(0, Plant::Queue);
        let mut free = ZERO;
        for n in 0..count {
            let mut times = Times { late: 0, ..Times::usual() };
            times.parts[Part::OnCpu as usize] = 10 * US;
            if n % 100 == 0 {
                times.parts[Part::Lock as usize] = stall;
            }
            let due = ZERO + n * MS;
            times.pool = free.saturating_sub(due);
            let (request, served) = pair(4 * n, due, &times, 0);
            free = request.ended.0;
            world.requests.push(request);
            world.served.push(served);
        }
        world
    }

    /// The server is on another host, whose clock is ahead by 100 s and gains 50 us per second; it was compared with
    /// the client's by exchanges of length `exchange`.
    pub fn on_another_host(mut self, exchange: u64) -> World {
        for served in &mut self.served {
            *served = served.clone().later((ahead(served.read.0) - served.read.0) as i64);
        }
        let reading = |at: u64| {
            // All of the exchange was on the way there.
            let reported = Nanos(ahead(at + exchange));
            ClockReading::of(Nanos(at), reported, Nanos(at + exchange)).unwrap()
        };
        let readings = (0..20).map(|second| reading(ZERO + second * 1_000 * MS));
        self.clocks = Some(TwoClocks::new(Some("this".to_owned()), readings.collect()));
        self.other_boot = true;
        self
    }

    /// The usual time of a request in a segment.
    pub fn usual(segment: Segment) -> u64 {
        match segment {
            Segment::ScheduleLag => 10 * US,
            Segment::PoolWait => 5 * US,
            Segment::ToServer => 30 * US,
            Segment::SocketQueue => 20 * US,
            Segment::OnCpu => 200 * US,
            Segment::ToClient => 40 * US,
            Segment::ClientLag => 15 * US,
            _ => 0,
        }
    }

    /// Writes the records and reads them back.
    pub fn write(&self) -> Read {
        let folder = tempfile::tempdir().unwrap();
        let (client, watch) = (folder.path().join("client"), folder.path().join("watch"));
        self.write_client(&client);
        self.write_watch(&watch);
        let hosts = if let Some(cause) = self.hiccup {
            vec![self.write_hiccup(&folder.path().join("hiccup"), cause)]
        } else {
            Vec::new()
        };
        let mut rows = Vec::new();
        let file = File::open(client.join("requests.parquet")).unwrap();
        let kept = requests::read(file, u64::MAX, |row| rows.push(row)).unwrap();
        let recording = record::read(&client).unwrap();
        let observed = read_observation(&watch).unwrap();
        let mut at_server = Vec::new();
        let zero = Nanos(observed.document.time.started_monotonic_ns);
        let file = File::open(watch.join("served.parquet")).unwrap();
        served::read(file, u64::MAX, zero, |request| at_server.push(request)).unwrap();
        let server =
            Server { observed, served: at_server, clocks: self.clocks.clone(), name: "watch".to_owned() };
        Read {
            client: Client::new(recording, Some((kept, rows)), "client".to_owned()),
            servers: vec![server],
            hosts,
        }
    }

    /// Episodes of a relay, in milliseconds from the record's zero; `None` is an episode that did not happen.
    pub fn write_disturb(&self, real: &[Option<(u64, u64)>]) -> HostRecord {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disturb");
        let (listen, target) = ("127.0.0.1:4000".to_owned(), "127.0.0.1:5000".to_owned());
        let what = format!("relaying {listen} to {target}");
        let relay = Some(RelayAddresses { listen, target });
        let results = DisturbResults { means: "net".to_owned(), what, relay, ..DisturbResults::default() };
        let document = observation(ObservationBody::Disturb(results));
        ObservationWriter::create(&path, &document).unwrap();
        let mut observed = read_observation(&path).unwrap();
        let event = |(n, real): (usize, &Option<(u64, u64)>)| {
            let real = real.map(|(from, to)| Span { begin_ns: from * MS, end_ns: Some(to * MS) });
            let intended = Span { begin_ns: 0, end_ns: None };
            let disturbance = Episode { n: n as u64, intended, real, facts: BTreeMap::new(), note: None };
            let at_ns = real.map_or(1_000 * MS, |real| real.begin_ns);
            Event { disturbance: Some(disturbance), ..Event::new(at_ns, "disturb", "net".to_owned()) }
        };
        observed.events = real.iter().enumerate().map(event).collect();
        HostRecord { observed, name: "disturb".to_owned() }
    }

    /// The record of a JVM that was stalled for 50 ms from the read of each of these requests.
    pub fn write_jvm(&self, pid: u32, served: &[&Served]) -> HostRecord {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jvm");
        let results = JvmResults { vm: "HotSpot".to_owned(), ..JvmResults::default() };
        let mut document = observation(ObservationBody::Jvm(results));
        document.host.pid = Some(pid);
        let zero = document.time.started_monotonic_ns;
        let mut writer = ObservationWriter::create(&path, &document).unwrap();
        for request in served {
            let begin_ns = request.read.0 - zero;
            let cause = Some("G1 Evacuation Pause".to_owned());
            let pause = Pause { begin_ns, end_ns: begin_ns + 50 * MS, cause };
            let event = Event::new(begin_ns, "pause", "stood still".to_owned());
            writer.event(&Event { pause: Some(pause), ..event }).unwrap();
        }
        HostRecord { observed: read_observation(&path).unwrap(), name: "jvm".to_owned() }
    }

    fn write_client(&self, path: &Path) {
        let mut writer = FolderWriter::create(path, &document()).unwrap();
        let last = self.requests.iter().map(|request| request.ended.0 - ZERO).max().unwrap_or(0);
        for index in 0..=last / (1_000 * MS) {
            let mut interval = Interval::default();
            (interval.index, interval.start) = (index, Nanos(index * 1_000 * MS));
            interval.length = Nanos::from_secs(1);
            let ended = |request: &&KeptRequest| (request.ended.0 - ZERO) / (1_000 * MS) == index;
            for request in self.requests.iter().filter(ended) {
                interval.record_ok(&request.timeline);
                interval.counts.scheduled += 1;
                interval.counts.sent += 1;
            }
            writer.append(&interval, None).unwrap();
        }
        let run = requests::Run {
            zero: Nanos(ZERO),
            started: time(ZERO).started,
            kept: "all".to_owned(),
            targets: vec!["GET /".to_owned()],
        };
        let file = File::create_new(path.join("requests.parquet")).unwrap();
        let mut writer = requests::Writer::new(file, &run).unwrap();
        writer.write(&self.requests).unwrap();
        writer.finish().unwrap();
    }

    fn write_watch(&self, path: &Path) {
        let mut parts_ns = PartsNs::default();
        self.served.iter().for_each(|served| parts_ns.add(&served.parts));
        let digest = Digest {
            count: self.served.len() as u64,
            parts_ns,
            ..Digest::named("GET /".to_owned(), Protocol::Http1)
        };
        let requests = self.served.len() as u64;
        let kept = Kept { requests: "all".to_owned(), rows: requests, lost: 0 };
        let results =
            WatchResults { digests: vec![digest], kept: Some(kept), requests, ..WatchResults::default() };
        let body = ObservationBody::Watch(Box::new(results));
        let mut document = observation(body);
        if self.other_boot {
            document.host.boot_id = Some("other".to_owned());
        }
        let zero = if self.clocks.is_some() { ahead(WATCH_ZERO) } else { WATCH_ZERO };
        document.time.started_monotonic_ns = zero;
        let mut writer = ObservationWriter::create(path, &document).unwrap();
        for (index, of) in self.served.chunks(40).enumerate() {
            let mut line = WatchLine { requests: of.len() as u64, ..WatchLine::default() };
            of.iter().for_each(|served| line.parts_ns.add(&served.parts));
            line.socket_queue_ns = Some(of.iter().map(|served| served.socket_queue().unwrap().0).sum());
            let start = Nanos(500 * MS + index as u64 * 1_000 * MS);
            writer.append(&line, start, Nanos::from_secs(1), &[]).unwrap();
        }
        let record = served::Record {
            zero: Nanos(zero),
            started: document.time.started.clone(),
            kept: "all".to_owned(),
        };
        let file = File::create_new(path.join("served.parquet")).unwrap();
        let mut kept = served::Writer::new(file, &record).unwrap();
        kept.write(self.served.iter().cloned()).unwrap();
        kept.finish().unwrap();
        document.state = State::Finished;
        writer.finish(&document).unwrap();
    }

    /// A stall from each response's arrival until the client has read it; or before it, if the way back is long.
    fn write_hiccup(&self, path: &Path, cause: &str) -> HostRecord {
        let document = observation(ObservationBody::Hiccup(Box::default()));
        let mut writer = ObservationWriter::create(path, &document).unwrap();
        let stalls = self.requests.iter().map(|request| {
            let lag = request.phase(Phase::ClientLag).unwrap().0;
            let arrived = request.ended.0 - lag - WATCH_ZERO;
            let (at, lag) =
                if self.plant == Plant::Back { (arrived - 50 * MS, 50 * MS) } else { (arrived, lag) };
            serde_json::json!({ "at_ns": at, "length_ns": lag, "causes_ns": { cause: lag } })
        });
        let line = serde_json::json!({ "stalls": stalls.collect::<Vec<_>>() });
        writer.append(&line, Nanos::ZERO, Nanos::from_secs(60), &[]).unwrap();
        HostRecord { observed: read_observation(path).unwrap(), name: "hiccup".to_owned() }
    }
}

/// Converts an instant of the client's clock to that of the other host.
fn ahead(at: u64) -> u64 {
    at + 100_000 * MS + at / 20_000
}

/// The same request as its client and the server's kernel saw it.
fn pair(n: u64, due: u64, times: &Times, thread: u32) -> (KeptRequest, Served) {
    let local = SocketAddr::from(([10, 0, 0, 1], 41_000 + (n % 4) as u16));
    let server = SocketAddr::from(([10, 0, 0, 2], 80));
    let picked_up = due + times.late;
    let sent = picked_up + times.pool;
    let arrived = sent + times.there;
    let read = arrived + times.queue;
    let done = read + times.parts.iter().sum::<u64>();
    let back = done + times.back;
    let ended = back + times.unread;
    let mut timeline = Timeline::due(Nanos(due));
    for (phase, at) in [
        (Phase::ScheduleLag, picked_up),
        (Phase::PoolWait, sent),
        (Phase::Send, sent),
        (Phase::Wait, back),
        (Phase::Receive, back),
        (Phase::ClientLag, ended),
    ] {
        timeline.end(phase, Nanos(at));
    }
    let request = KeptRequest {
        n,
        kind: 0,
        connection: Some((n % 4) as u32),
        carried: Some(Carried { local, server, nth: n / 4 }),
        timeline,
        ended: Nanos(ended),
        failure: None,
        code: Some(units::Code::status(200)),
    };
    let served = Served {
        connection: n % 4,
        peer: Some(local),
        local: Some(server),
        n: n / 4,
        arrived: Some(Nanos(arrived)),
        read: Nanos(read),
        socket_run_queue: Nanos::ZERO,
        socket_throttled: Nanos::ZERO,
        first_sent: Nanos(done),
        done: Nanos(done),
        parts: times.parts.map(Nanos),
        preempted: Nanos::ZERO,
        preemptions: 0,
        culprit: None,
        contended: Nanos(times.parts[Part::RunQueue as usize]),
        socket_contended: Nanos::ZERO,
        waits: None,
        pid: 10,
        tid: 10 + thread,
        hand_offs: 0,
        protocol: Protocol::Http1,
        digest: 0,
        session: 0,
        rows: None,
        sleep: None,
        status: Some(200),
        class: None,
        request_bytes: 90,
        statements: 1,
        response_bytes: 300,
    };
    (request, served)
}

fn host() -> Host {
    Host { name: Some("one".to_owned()), boot_id: Some("this".to_owned()), ..Host::default() }
}

fn time(zero: u64) -> Time {
    let ms = 250 + zero / MS;
    let started = format!("2026-01-31T12:00:{:02}.{:03}Z", ms / 1_000, ms % 1_000);
    Time { started, started_monotonic_ns: zero, elapsed_ns: None, window_ns: None }
}

fn document() -> Document {
    Document {
        envelope: Envelope { time: time(ZERO), host: host(), ..Envelope::new(RecordKind::Drive, "0.1.0") },
        thresholds: Vec::new(),
        subject: Subject {
            url: "http://127.0.0.1/".to_owned(),
            protocol: "http/1.1".to_owned(),
            request_kinds: 1,
            targets: Vec::new(),
            journeys: Vec::new(),
            address: None,
        },
        load: Load {
            model: Model::Open,
            rate_per_s: Some(40.0),
            arrivals: None,
            think: None,
            pace: None,
            callers: 4,
            connections: 4,
            pipeline: 1,
            workers: 1,
            duration_ns: None,
            request_limit: None,
            warmup: None,
            idle_connections: None,
            requests_per_connection: None,
            changes: Vec::new(),
        },
        stamps: Stamps {
            arrival: ArrivalStamps::Kernel,
            reason: None,
            pairing_error_ns: Some(100),
            wall_clock_steps: 0,
        },
        server_account: None,
        results: None,
    }
}

fn observation(body: ObservationBody) -> Observation {
    let mut observation = Observation::new("0.1.0", body);
    (observation.time, observation.host) = (time(WATCH_ZERO), host());
    observation
}
