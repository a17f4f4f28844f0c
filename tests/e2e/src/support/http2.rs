//! Node's HTTP/2 server and nghttp2's, and what they saw: the other side of a run over HTTP/2.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use units::Nanos;

use super::certificates::Certificates;
use super::leash::Leash;
use super::nginx::fetch;
use super::run::number;
use super::{binary, port, wait};

/// What a server saw.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    /// Connections that requested something.
    pub connections: u64,
    pub requests: u64,
    /// Maximum number of requests in flight at once.
    pub most_at_once: u64,
}

/// Node's server, from `tests/e2e/http2.mjs`.
pub struct Node {
    _process: Leash,
    _folder: TempDir,
    pub clear: u16,
    pub secure: u16,
    truth: u16,
}

impl Node {
    /// Allows a client this many concurrent streams.
    pub fn start(certificates: &Certificates, streams: u64) -> Node {
        let found = Command::new("node").arg("--version").output();
        assert!(found.is_ok(), "no node here: run scripts/setup test");
        let folder = tempfile::tempdir().unwrap();
        let (clear, secure, truth) = (port::free(), port::free(), port::free());
        let script = binary::root().join("tests/e2e/http2.mjs");
        let numbers = [clear, secure, truth].map(|port| port.to_string());
        let (key, certificate) = (certificates.path("server.key"), certificates.path("server.pem"));
        let mut command = vec!["node", script.to_str().unwrap()];
        command.extend(numbers.iter().map(String::as_str));
        let streams = streams.to_string();
        command.extend([key.as_str(), &certificate, &streams]);
        let mut process = Leash::start(&command, &folder.path().join("output.log"));
        process.wait_for(truth);
        Node { _process: process, _folder: folder, clear, secure, truth }
    }

    /// What it saw since it was started.
    pub fn seen(&self) -> Seen {
        let truth: Value = serde_json::from_slice(&fetch(self.truth, "/")).unwrap();
        let of = |name: &str| number(&truth, name);
        Seen { connections: of("/connections"), requests: of("/requests"), most_at_once: of("/most_at_once") }
    }
}

/// nghttp2's `nghttpd`, which serves `/page` with `hello`.
pub struct Nghttpd {
    _process: Leash,
    folder: TempDir,
    pub port: u16,
}

impl Nghttpd {
    /// Over TLS with `certificates`, otherwise without. Allows a client this many concurrent streams.
    pub fn start(certificates: Option<&Certificates>, streams: u64) -> Nghttpd {
        let found = Command::new("nghttpd").arg("--version").output();
        assert!(found.is_ok(), "no nghttpd here: run scripts/setup test");
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("www")).unwrap();
        fs::write(folder.path().join("www/page"), "hello").unwrap();
        let (port, streams) = (port::free(), streams.to_string());
        let root = folder.path().join("www").to_str().unwrap().to_owned();
        let number = port.to_string();
        let mut command = vec!["nghttpd", "-v", "-a", "127.0.0.1", "-d", &root, "-m", &streams];
        let pair = certificates.map(|of| [of.path("server.key"), of.path("server.pem")]);
        match &pair {
            None => command.extend(["--no-tls", &number]),
            Some([key, certificate]) => command.extend([&number, key.as_str(), certificate]),
        }
        let mut process = Leash::start(&command, &folder.path().join(LOG));
        process.wait_for(port);
        Nghttpd { _process: process, folder, port }
    }

    /// What it saw since it was started, once it has logged the end of `requests` of them.
    pub fn seen(&self, requests: u64) -> Seen {
        let log = || fs::read_to_string(self.folder.path().join(LOG)).unwrap();
        let ended = || log().lines().filter(|line| line.ends_with(" closed")).count() as u64;
        let all = wait::until(Nanos::from_secs(10), || ended() >= requests);
        assert!(all, "nghttpd logged the end of {} requests, not of {requests}", ended());
        let mut at_once = BTreeMap::<&str, u64>::new();
        let mut seen = Seen { connections: 0, requests: 0, most_at_once: 0 };
        let log = log();
        for line in log.lines() {
            // As in `[id=2] [  0.571] recv (stream_id=1) :method: GET` and `[id=2] [  0.571] stream_id=1 closed`.
            let Some((connection, message)) = line.split_once("] ") else { continue };
            if message.contains(" recv (stream_id=") && message.contains(" :method: ") {
                let open = at_once.entry(connection).or_default();
                *open += 1;
                seen.requests += 1;
                seen.most_at_once = seen.most_at_once.max(*open);
            } else if message.ends_with(" closed") && message.contains("stream_id=") {
                *at_once.entry(connection).or_default() -= 1;
            }
        }
        seen.connections = at_once.len() as u64;
        seen
    }
}

const LOG: &str = "output.log";
