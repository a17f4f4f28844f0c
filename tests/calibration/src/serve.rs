//! `parallax serve` as a child process, and the truth that it reports.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use units::Nanos;

use crate::binary::{self, Core};

/// The reference server, until its truth is requested or it is dropped.
pub struct Serve {
    child: Child,
    out: BufReader<ChildStdout>,
    address: String,
    /// When the first planned freeze begins, on the monotonic clock.
    pub freeze_at: Option<Nanos>,
}

impl Serve {
    /// Starts it on a free port. When this returns it accepts connections.
    pub fn start(arguments: &[&str]) -> Serve {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0", "--json"];
        all.extend_from_slice(arguments);
        let mut child = binary::start(&all, Core::Last);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let line = read_line(&mut out);
        let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        let freeze_at = arguments.contains(&"--freeze").then(|| planned_begin(&read_line(&mut out)));
        Serve { child, out, address, freeze_at }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Stops it and returns its truth, which is final then.
    pub fn truth(mut self) -> Truth {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut text = String::new();
        self.out.read_to_string(&mut text).unwrap();
        let json = text.find('{').map(|at| &text[at..]).unwrap_or_else(|| panic!("no truth: {text}"));
        let truth: Truth = serde_json::from_str(json).unwrap();
        let requests = &truth.requests;
        assert_eq!(
            requests.carried + requests.read,
            requests.answered + requests.ended_by_fault + requests.abandoned + requests.in_flight,
            "the server itself has lost count"
        );
        truth
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_line(out: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// From `freeze at 4.00 s for 1.00 s, on the monotonic clock 123456789 ns`.
fn planned_begin(line: &str) -> Nanos {
    let number = line.rsplit_once("clock ").and_then(|(_, rest)| rest.strip_suffix(" ns"));
    Nanos(number.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{line}")))
}

/// The fields of the server's truth that the tests use.
#[derive(Debug, Deserialize)]
pub struct Truth {
    pub connections: Connections,
    pub requests: Requests,
    pub answers_by_status: BTreeMap<u16, u64>,
    pub faults: BTreeMap<String, u64>,
    pub freezes: Vec<Freeze>,
    /// From the arrival of a request in the server's kernel to the call that hands over its response.
    pub handed: Durations,
    /// The same, until that call returns.
    pub response: Durations,
}

#[derive(Debug, Deserialize)]
pub struct Connections {
    pub accepted: u64,
}

#[derive(Debug, Deserialize)]
pub struct Requests {
    pub read: u64,
    pub carried: u64,
    pub answered: u64,
    pub ended_by_fault: u64,
    pub abandoned: u64,
    pub in_flight: u64,
}

#[derive(Debug, Deserialize)]
pub struct Freeze {
    pub begin_ns: u64,
    pub end_ns: u64,
}

#[derive(Debug, Deserialize)]
pub struct Durations {
    pub count: u64,
    pub max_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
}

impl Durations {
    pub fn at(&self, per_mille: u64) -> u64 {
        let value = match per_mille {
            500 => self.p50_ns,
            900 => self.p90_ns,
            990 => self.p99_ns,
            _ => panic!("the truth does not tell {per_mille} per mille"),
        };
        value.unwrap()
    }
}

impl Truth {
    /// How often a fault occurred.
    pub fn faults_of(&self, name: &str) -> u64 {
        self.faults[name]
    }
}
