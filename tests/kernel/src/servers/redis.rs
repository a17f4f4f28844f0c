//! Redis: one thread, an event loop, and pipelines.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use super::{check_all_counted, check_missed, require, run};
use crate::support::quiet;
use crate::support::watched::{STARVED, Watching};
use crate::support::{leash, port, wait};
use testkit::leash::Leash;
use units::Nanos;

/// If this fails, a fast server outruns its observer, which must then estimate.
#[test]
fn redis_commands_in_pipelines_are_all_counted() {
    let _together = quiet::together();
    let redis = Redis::start();
    let port = redis.port.to_string();
    // Multiples of the pipelines: with others, redis-benchmark leaves before its last requests have their responses.
    for (pipeline, requests) in [("1", "20001"), ("16", "100000"), ("64", "300800"), ("512", "204800")] {
        let watching = Watching::start_with(&["--port", &port], "slowest=100");
        let before = redis.commands();
        let load = ["-p", &port, "-q", "-r", "1000", "-t", "set,get", "-n", requests, "-P", pipeline];
        run("redis-benchmark", &load);
        let counted = redis.commands() - before;
        let results = watching.finish_counting();
        // The first reading is in the second's count; the second is seen, too.
        check_all_counted(&format!("-P {pipeline}"), results.requests, counted + 1, &results);
    }
}

/// If this fails, a server with many clients has requests that nobody counts, or its observer grows without bound.
#[test]
fn redis_commands_of_5000_connections_are_all_counted() {
    let _together = quiet::together();
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let redis = Redis::start();
    let watching = Watching::start_with(&["--port", &redis.port.to_string()], "slowest=100");
    let before = redis.commands();
    let mut clients: Vec<TcpStream> = Vec::new();
    clients.resize_with(5_000, || TcpStream::connect((Ipv4Addr::LOCALHOST, redis.port)).unwrap());
    for _ in 0..2 {
        clients.iter_mut().for_each(|client| client.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap());
        for client in &mut clients {
            let mut response = [0; 7];
            client.read_exact(&mut response).unwrap();
            assert_eq!(&response, b"+PONG\r\n");
        }
    }
    drop(clients);
    let counted = redis.commands() - before;
    let results = watching.finish_counting();
    check_all_counted("5000 connections", results.requests, counted + 1, &results);
    assert_eq!(results.connections, 5_002, "with those of the two readings");
}

/// If this fails, the first requests of a connection pool that was filled before watching began are not counted.
#[test]
fn redis_commands_of_connections_that_were_idle_before_are_counted() {
    let _together = quiet::together();
    let redis = Redis::start();
    let connect = |_| TcpStream::connect((Ipv4Addr::LOCALHOST, redis.port)).unwrap();
    let mut clients: Vec<TcpStream> = (0..50).map(connect).collect();
    // Of these the server has read and written bytes before: their first certain boundary is the third command.
    let (used, idle) = clients.split_at_mut(10);
    used.iter_mut().for_each(ping);
    let before = redis.commands();
    let watching = Watching::start_with(&["--port", &redis.port.to_string()], "slowest=100");
    (0..3).for_each(|_| used.iter_mut().chain(idle.iter_mut()).for_each(ping));
    drop(clients);
    let counted = redis.commands() - before - 1;
    let results = watching.finish_counting();
    assert_eq!(counted, 150, "nobody else uses the server");
    check_all_counted("idle before", results.requests + results.losses.mid_connection, 151, &results);
    assert_eq!(results.losses.mid_connection, 20);
}

fn ping(client: &mut TcpStream) {
    client.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    let mut response = [0; 7];
    client.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"+PONG\r\n");
}

/// If this fails, requests whose events did not fit are not counted, or without saying how exactly.
#[test]
fn redis_commands_that_were_missed_are_counted() {
    let _together = quiet::together();
    let redis = Redis::start();
    let port = redis.port.to_string();
    for (pipeline, requests) in [("1", "100000"), ("16", "1000000"), ("64", "2000000"), ("512", "2048000")] {
        let watching = Watching::start(&["--ring", "1", "--port", &port]);
        let before = redis.commands();
        let load = ["-p", &port, "-q", "-t", "get", "-n", requests, "-P", pipeline];
        let output = watching.starved_during(STARVED, || run("redis-benchmark", &load));
        assert!(output.status.success());
        let counted = redis.commands() - before + 1;
        let watched = watching.finish();
        check_missed(&format!("-P {pipeline}"), watched.results.requests, counted, &watched.results);
    }
}

/// If this fails, the rate of a server that is slower within windows is underestimated. Six watches, of which four must
/// have the truth in their interval of 95 %: fewer do in one of 500.
#[test]
fn the_rate_of_redis_under_a_budget_follows_from_what_it_read() {
    let _together = quiet::together();
    let held = (0..6).filter(|&seed| has_its_rate(seed)).count();
    assert!(held >= 4, "the rate was in the interval in {held} of 6");
}

fn has_its_rate(seed: u64) -> bool {
    let redis = Redis::start();
    let is_over = AtomicBool::new(false);
    // From before the watch until after it: when each command had its response.
    let load = || {
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, redis.port)).unwrap();
        client.set_nodelay(true).unwrap();
        let mut times = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            ping(&mut client);
            times.push(clock::now());
        }
        times
    };
    let (results, from, until, times) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
        let (port, seed) = (redis.port.to_string(), seed.to_string());
        let options = ["--port", &port, "--budget", "2%", "--cycle", "100ms", "--seed", &seed];
        let watching = Watching::start_with(&options, "slowest=100");
        let series = watching.folder().join("series.ndjson");
        let windows = || fs::read_to_string(&series).map_or(0, |text| text.matches("from_ns").count());
        assert!(wait::until(Nanos::from_secs(60), || windows() >= 16));
        let (results, from, until) = watching.finish_timed();
        is_over.store(true, Ordering::Relaxed);
        let times: Vec<Nanos> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        (results, from, until, times)
    });
    let windows = results.windows.expect("it has a budget");
    assert_eq!((windows.rate_by_time.as_deref(), windows.bytes_read.is_some()), (None, true), "{windows:?}");
    let rate = windows.rate_per_s.expect("there are windows enough");
    let within = times.iter().filter(|&&at| (from..until).contains(&at)).count();
    let truth = within as f64 / (until - from).as_secs_f64();
    println!("{rate:?}, in truth {truth:.1}; {} seen; {windows:?}", results.requests);
    (rate.low.unwrap()..=rate.high.unwrap()).contains(&truth)
}

pub(super) struct Redis {
    _process: Leash,
    _folder: TempDir,
    pub(super) port: u16,
    process_id: u64,
}

impl Redis {
    pub(super) fn start() -> Redis {
        Redis::start_with(&[])
    }

    pub(super) fn start_with(options: &[&str]) -> Redis {
        require("redis-server");
        require("redis-benchmark");
        let (folder, port) = (tempfile::tempdir().unwrap(), port::free());
        let (dir, number) = (folder.path().to_str().unwrap(), port.to_string());
        let command = ["redis-server", "--port", &number, "--bind", "127.0.0.1", "--dir", dir];
        let command = [&command[..], &["--save", "", "--appendonly", "no"], options].concat();
        let mut process = leash::start(&command, &folder.path().join("output.log"));
        process.wait_for(port);
        let mut redis = Redis { _process: process, _folder: folder, port, process_id: 0 };
        redis.process_id = redis.number("INFO server", "process_id:");
        redis
    }

    pub(super) fn pid(&self) -> u64 {
        self.process_id
    }

    /// What it has executed so far, without the command that reads it. The write of that command's response has
    /// returned, so a watch has seen it.
    pub(super) fn commands(&self) -> u64 {
        let commands = self.number("INFO stats", "total_commands_processed:");
        let stat = format!("/proc/{}/stat", self.process_id);
        let is_asleep = || fs::read_to_string(&stat).unwrap().contains(") S ");
        assert!(wait::until(Nanos::from_secs(20), is_asleep), "the server does not wait for more");
        commands
    }

    fn number(&self, command: &str, name: &str) -> u64 {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        let text = lines.find_map(|line| line.strip_prefix(name).map(str::to_owned));
        text.unwrap().trim().parse().unwrap()
    }
}
