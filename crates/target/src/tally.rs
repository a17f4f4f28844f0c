//! The counts of one thread. Owned by its loop, so counting costs no more than an addition.

use std::collections::BTreeMap;

use units::Nanos;

use crate::arrivals::Arrivals;
use crate::capacity::Admissions;
use crate::distribution::Distribution;
use crate::fault::Fault;
use crate::freeze::FreezeRecord;
use crate::route::RouteKind;
use crate::truth::Connections;

/// The counts of one thread, or of several merged.
///
/// At every moment `carried + requests = answers + ended_by_fault + abandoned + in_flight`.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    /// The last reset, or the start.
    pub since: Nanos,
    pub connections: Connections,
    pub requests: [u64; RouteKind::COUNT],
    pub faults: [u64; Fault::COUNT],
    pub capacity: Admissions,
    /// Indexed by status.
    pub responses: Box<[u64]>,
    pub refusals: BTreeMap<u16, u64>,
    pub ended_by_fault: u64,
    pub abandoned: u64,
    pub in_flight: u64,
    pub carried: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub arrivals: Arrivals,
    pub handed: Distribution,
    pub response: Distribution,
    pub lateness: Distribution,
    pub unstamped: u64,
    pub pipelined: u64,
    pub clock_steps: u64,
    pub freezes: Vec<FreezeRecord>,
    pub freezes_unlisted: u64,
}

impl Tally {
    pub(crate) fn new(since: Nanos) -> Tally {
        Tally {
            since,
            connections: Connections::default(),
            requests: [0; RouteKind::COUNT],
            faults: [0; Fault::COUNT],
            capacity: Admissions::default(),
            responses: vec![0; STATUSES].into_boxed_slice(),
            refusals: BTreeMap::new(),
            ended_by_fault: 0,
            abandoned: 0,
            in_flight: 0,
            carried: 0,
            bytes_read: 0,
            bytes_written: 0,
            arrivals: Arrivals::default(),
            handed: Distribution::default(),
            response: Distribution::default(),
            lateness: Distribution::default(),
            unstamped: 0,
            pipelined: 0,
            clock_steps: 0,
            freezes: Vec::new(),
            freezes_unlisted: 0,
        }
    }

    /// Starts counting from zero. Open connections and requests without a response carry over.
    pub(crate) fn reset(&mut self, now: Nanos) {
        let (open, in_flight) = (self.connections.open, self.in_flight);
        let arrivals = std::mem::take(&mut self.arrivals).emptied();
        *self = Tally::new(now);
        self.arrivals = arrivals;
        self.connections.open = open;
        self.in_flight = in_flight;
        self.carried = in_flight;
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        self.since = self.since.max(other.since);
        self.connections.merge(&other.connections);
        add_each(&mut self.requests, &other.requests);
        add_each(&mut self.faults, &other.faults);
        self.capacity.merge(&other.capacity);
        add_each(&mut self.responses, &other.responses);
        for (&status, count) in &other.refusals {
            *self.refusals.entry(status).or_default() += count;
        }
        self.ended_by_fault += other.ended_by_fault;
        self.abandoned += other.abandoned;
        self.in_flight += other.in_flight;
        self.carried += other.carried;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.arrivals.merge(&other.arrivals);
        self.handed.merge(&other.handed);
        self.response.merge(&other.response);
        self.lateness.merge(&other.lateness);
        self.unstamped += other.unstamped;
        self.pipelined += other.pipelined;
        self.clock_steps += other.clock_steps;
        self.freezes.extend_from_slice(&other.freezes);
        self.freezes_unlisted += other.freezes_unlisted;
    }

    pub(crate) fn record_freeze(&mut self, record: FreezeRecord) {
        if self.freezes.len() < MOST_FREEZES {
            self.freezes.push(record);
        } else {
            self.freezes_unlisted += 1;
        }
    }
}

fn add_each(into: &mut [u64], from: &[u64]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into += from;
    }
}

/// One above the highest status.
const STATUSES: usize = 600;
/// More than a day of one freeze per second; beyond it they are only counted, so that memory is bounded.
const MOST_FREEZES: usize = 100_000;
