//! Redis: one thread, an event loop, and pipelines.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};

use tempfile::TempDir;

use super::{check_missed, check_reconciled, require, run};
use crate::support::quiet;
use crate::support::watched::Watching;
use crate::support::{leash, port};
use testkit::leash::Leash;

#[test]
fn redis_commands_in_pipelines_of_64_are_all_counted() {
    let _together = quiet::together();
    let redis = Redis::start();
    let watching = Watching::start(&["--port", &redis.port.to_string()]);
    let before = redis.commands();
    let port = redis.port.to_string();
    // Not a multiple of 64: the last pipelines are shorter.
    let load = ["-p", &port, "-c", "8", "-q", "-r", "1000"];
    run("redis-benchmark", &[&load[..], &["-t", "set,get", "-n", "100000", "-P", "64"]].concat());
    run("redis-benchmark", &[&load[..], &["-t", "get", "-n", "5000"]].concat());
    let counted = redis.commands() - before;
    let watched = watching.finish();
    assert!(counted >= 205_000, "{counted}");
    // The first reading is in the second's count; the second is seen, too.
    check_reconciled("redis", watched.results.requests, counted + 1, &watched.results);
}

/// If this fails, requests whose events did not fit are not counted, or without saying how exactly.
#[test]
fn redis_commands_that_were_missed_are_counted() {
    let _together = quiet::together();
    let redis = Redis::start();
    let port = redis.port.to_string();
    for (pipeline, requests) in [("1", "100000"), ("16", "400000"), ("64", "800000"), ("512", "800000")] {
        let watching = Watching::start(&["--ring", "1", "--port", &port]);
        let before = redis.commands();
        let load = ["-p", &port, "-q", "-t", "get", "-n", requests, "-P", pipeline];
        let output = watching.starved_during(|| run("redis-benchmark", &load));
        assert!(output.status.success());
        let counted = redis.commands() - before + 1;
        let watched = watching.finish();
        check_missed(&format!("-P {pipeline}"), watched.results.requests, counted, &watched.results);
    }
}

struct Redis {
    _process: Leash,
    _folder: TempDir,
    port: u16,
}

impl Redis {
    fn start() -> Redis {
        require("redis-server");
        require("redis-benchmark");
        let (folder, port) = (tempfile::tempdir().unwrap(), port::free());
        let (dir, number) = (folder.path().to_str().unwrap(), port.to_string());
        let command = ["redis-server", "--port", &number, "--bind", "127.0.0.1", "--dir", dir];
        let command = [&command[..], &["--save", "", "--appendonly", "no"]].concat();
        let mut process = leash::start(&command, &folder.path().join("output.log"));
        process.wait_for(port);
        Redis { _process: process, _folder: folder, port }
    }

    /// What it has executed so far, without the command that reads it.
    fn commands(&self) -> u64 {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.write_all(b"INFO stats\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        let text = lines.find_map(|line| line.strip_prefix("total_commands_processed:").map(str::to_owned));
        text.unwrap().trim().parse().unwrap()
    }
}
