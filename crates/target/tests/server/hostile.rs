//! Clients that break every rule, all at once and in no order. Checks the counts, not the responses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use target::{Options, Server};
use units::Nanos;

use crate::client::Client;

/// If this fails, a client can make the server miscount, or stop.
#[test]
fn every_request_is_counted_once_whatever_clients_do() {
    let server = Server::start(Options { threads: 2, ..Options::default() }).unwrap();
    let mut dice = Dice(20);
    for _ in 0..150 {
        let mut stream = TcpStream::connect(server.local_addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1 + dice.below(8)))).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(8))).unwrap();
        let bytes: Vec<u8> = (0..=dice.below(12)).flat_map(|_| dice.request()).collect();
        // Errors are expected: the server may close or reset at any point.
        let size = [61, 700, 8_000, 80_000][dice.below(4) as usize];
        for (index, part) in bytes.chunks(size).enumerate() {
            let _ = stream.write_all(part);
            if index < 10 && dice.below(4) == 0 {
                let _ = stream.read(&mut [0; 999]);
            }
        }
        if dice.below(3) == 0 {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let _ = stream.read(&mut [0; 9_999]);
        if dice.below(20) == 0 {
            assert!(server.truth().is_conserved());
        }
    }
    assert_eq!(Client::connect(server.local_addr()).get("/plaintext").status, 200);
    let patience = clock::now() + Nanos::from_secs(10);
    while server.truth().in_flight() > 0 {
        assert!(clock::now() < patience, "{}", server.truth().to_json());
    }
    let truth = server.stop();
    assert!(truth.is_conserved() && truth.responses() > 100, "{}", truth.to_json());
    assert_eq!(truth.response().count(), truth.responses());
    let ends = truth.connections();
    let ended = ends.closed_by_peer + ends.closed_by_server + ends.reset_by_peer + ends.reset_by_server;
    assert_eq!((ended, ends.open), (ends.accepted, 0));
}

/// Numbers that are the same in each run (Knuth's generator; nothing here needs better).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn request(&mut self) -> Vec<u8> {
        let target = TARGETS[self.below(TARGETS.len() as u64) as usize];
        let version = self.below(8).min(1);
        match self.below(10) {
            0 => b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n"
                .iter()
                .copied()
                .chain(std::iter::repeat_n(b'x', 50_000))
                .collect(),
            1 => b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5\r\nhello\r\n0\r\n\r\n"
                .to_vec(),
            2 if self.below(4) == 0 => (0..40).map(|_| self.below(256) as u8).collect(),
            3 => format!("HEAD {target} HTTP/1.{version}\r\nHost: a\r\n\r\n").into_bytes(),
            4 => format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").into_bytes(),
            _ => format!("GET {target} HTTP/1.{version}\r\nHost: a\r\n\r\n").into_bytes(),
        }
    }
}

const TARGETS: [&str; 24] = [
    "/",
    "/plaintext",
    "/plaintext?x=y",
    "/json",
    "/delay?us=300",
    "/delay?us=100&jitter_us=500",
    "/delay/0.02",
    "/status/204",
    "/status/103",
    "/bytes/300000",
    "/bytes/70000?chunked=1",
    "/drip?bytes=50&over_ms=5",
    "/nothing",
    "/truth",
    "/delay?us=-1",
    "/fault/close?p=0.3",
    "/fault/reset?p=0.3",
    "/fault/reset-body?p=0.3",
    "/fault/never?p=0.3",
    "/fault/garbage?p=0.3",
    "/fault/header-flood?p=0.3",
    "/fault/half-head?p=0.3",
    "/fault/chunk-garbage?p=0.3",
    "/fault/freeze?ms=1",
];
