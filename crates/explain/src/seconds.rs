//! The explanation per second, and sums of what a server did in a period.

use std::collections::BTreeMap;

use record::observation::watch::WatchLine;
use record::{Part, Phase, Second, Served};
use serde::Serialize;
use units::Nanos;

use crate::clocks::Clocks;
use crate::host::Surroundings;
use crate::inputs::{Client, Server};
use crate::ledger::Ledger;
use crate::place::Segment;

/// One interval of the client's run, and what the others saw in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SecondOf {
    /// Offset from the client's zero.
    pub start_ns: u64,
    pub length_ns: u64,
    pub ok: u64,
    pub failed: u64,
    /// Sums over its `ok` requests, by phase.
    pub phases_ns: BTreeMap<&'static str, u64>,
    /// What each server's observer saw; absent where it kept no requests of this time.
    pub servers: Vec<Option<ServerSums>>,
    /// How long the client's host was stalled, by a record of `hiccup`.
    pub stalled_ns: u64,
}

/// What a server did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ServerSums {
    pub requests: u64,
    pub socket_queue_ns: Option<u64>,
    /// In the order of [`Part::ALL`].
    pub parts_ns: [u64; Part::COUNT],
}

impl ServerSums {
    pub(crate) fn add(&mut self, served: &Served) {
        self.requests += 1;
        if let Some(queue) = served.socket_queue() {
            self.socket_queue_ns = Some(self.socket_queue_ns.unwrap_or(0).saturating_add(queue.0));
        }
        for (sum, part) in self.parts_ns.iter_mut().zip(&served.parts) {
            *sum = sum.saturating_add(part.0);
        }
    }

    pub(crate) fn add_line(&mut self, line: &WatchLine) {
        self.requests = self.requests.saturating_add(line.requests);
        if let Some(queue) = line.socket_queue_ns {
            self.socket_queue_ns = Some(self.socket_queue_ns.unwrap_or(0).saturating_add(queue));
        }
        let parts = <[Nanos; Part::COUNT]>::from(line.parts_ns);
        for (sum, part) in self.parts_ns.iter_mut().zip(parts) {
            *sum = sum.saturating_add(part.0);
        }
    }

    /// Divides `undivided` of `requests` requests in `ledger` like the average request of this server; what is not the
    /// server's time is the network's. The sum is exact.
    pub(crate) fn divide(&self, undivided: u64, requests: u64, ledger: &mut Ledger) {
        let of_requests = |ns: u64| u128::from(ns) * u128::from(requests) / u128::from(self.requests.max(1));
        let mut all: Vec<(Segment, u128)> = Part::ALL
            .iter()
            .map(|&part| (Segment::of_part(part), of_requests(self.parts_ns[part as usize])))
            .collect();
        all.push((Segment::SocketQueue, of_requests(self.socket_queue_ns.unwrap_or(0))));
        let server: u128 = all.iter().map(|(_, ns)| ns).sum();
        let window = u128::from(undivided);
        let mut left = undivided;
        for (segment, ns) in all {
            // Scaled down if the client's window is smaller than what the server did.
            let ns = if server > window { ns * window / server } else { ns };
            let ns = u64::try_from(ns).unwrap_or(u64::MAX).min(left);
            ledger.put(segment, ns);
            left -= ns;
        }
        let rest = if self.socket_queue_ns.is_some() { Segment::Network } else { Segment::ToServerAndQueue };
        ledger.put(rest, left);
    }
}

/// Whether an instant on a server's clock is within a period of the client's run.
pub(crate) fn in_period(at: Nanos, clocks: &Clocks, (from, to): (u64, u64)) -> bool {
    let at = i128::from(at.0) - clocks.zero;
    (i128::from(from)..i128::from(to)).contains(&at)
}

pub(crate) fn seconds(
    client: &Client,
    servers: &[Server],
    clocks: &[Clocks],
    surroundings: &Surroundings,
) -> Vec<SecondOf> {
    let by_server: Vec<Vec<ServerSums>> =
        servers.iter().zip(clocks).map(|(server, clocks)| spread(server, clocks, &client.seconds)).collect();
    let of = |(index, second): (usize, &Second)| {
        let phase = |phase: Phase| {
            let sum = second.sums_ns.get(&format!("phase-{}", phase.name()))?;
            Some((phase.name(), *sum))
        };
        let from = client.zero().saturating_add(second.start_ns);
        SecondOf {
            start_ns: second.start_ns,
            length_ns: second.length_ns,
            ok: second.ok,
            failed: second.failed,
            phases_ns: Phase::ALL.into_iter().filter_map(phase).collect(),
            servers: by_server
                .iter()
                .map(|sums| sums.get(index).copied().filter(|sums| sums.requests > 0))
                .collect(),
            stalled_ns: surroundings.stalled(from, from.saturating_add(second.length_ns)),
        }
    };
    client.seconds.iter().enumerate().map(of).collect()
}

/// A server's sums by the interval of the client in which its requests were done.
fn spread(server: &Server, clocks: &Clocks, seconds: &[Second]) -> Vec<ServerSums> {
    let mut sums = vec![ServerSums::default(); seconds.len()];
    for served in &server.served {
        let Ok(at) = u64::try_from(i128::from(served.done.0) - clocks.zero) else { continue };
        let Some(index) = seconds.partition_point(|second| second.start_ns <= at).checked_sub(1) else {
            continue;
        };
        // Requests done after the run belong to none of its seconds.
        if at - seconds[index].start_ns < seconds[index].length_ns {
            sums[index].add(served);
        }
    }
    sums
}
