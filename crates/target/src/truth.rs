//! What the server did, for tests that measure against it.

use units::Nanos;

use crate::capacity::Admissions;
use crate::distribution::Distribution;
use crate::document;
use crate::fault::Fault;
use crate::freeze::FreezeRecord;
use crate::route::RouteKind;
use crate::tally::Tally;

/// Everything a server did between two instants, all threads together.
///
/// Requests to `/truth` and `/truth/reset` are not in it; their connections are. With several threads each adds its
/// part when its loop gets to it, so the parts may be some microseconds apart.
#[derive(Debug, Clone)]
pub struct Truth {
    started: Nanos,
    taken: Nanos,
    thread_count: usize,
    tally: Tally,
}

/// Connections, each counted once by how it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Connections {
    /// All accepted since counting began.
    pub accepted: u64,
    /// Open now, whenever they were accepted.
    pub open: u64,
    /// Accepted above the limit, and rejected with a 503.
    pub refused: u64,
    /// Ended by a FIN of the client.
    pub closed_by_peer: u64,
    /// Ended by a FIN of the server.
    pub closed_by_server: u64,
    /// Ended by a reset of the client.
    pub reset_by_peer: u64,
    /// Ended by a reset of the server.
    pub reset_by_server: u64,
    /// How often the kernel refused to accept a connection: out of descriptors or memory.
    pub accept_errors: u64,
}

impl Connections {
    pub(crate) fn merge(&mut self, other: &Connections) {
        self.accepted += other.accepted;
        self.open += other.open;
        self.refused += other.refused;
        self.closed_by_peer += other.closed_by_peer;
        self.closed_by_server += other.closed_by_server;
        self.reset_by_peer += other.reset_by_peer;
        self.reset_by_server += other.reset_by_server;
        self.accept_errors += other.accept_errors;
    }
}

impl Truth {
    pub(crate) fn new(started: Nanos, taken: Nanos, thread_count: usize, mut tally: Tally) -> Truth {
        tally.freezes.sort_by_key(|freeze| (freeze.begin, freeze.thread));
        tally.arrivals.sort();
        Truth { started, taken, thread_count, tally }
    }

    /// When the server started, on the monotonic clock; the zero of its freeze schedule.
    pub fn started(&self) -> Nanos {
        self.started
    }

    /// When counting began: the start, or the last reset.
    pub fn since(&self) -> Nanos {
        self.tally.since
    }

    /// When the parts were collected.
    pub fn taken(&self) -> Nanos {
        self.taken
    }

    /// The number of threads of the server.
    pub fn thread_count(&self) -> usize {
        self.thread_count
    }

    /// The connections, by how they ended.
    pub fn connections(&self) -> Connections {
        self.tally.connections
    }

    /// Complete requests that were read.
    pub fn requests(&self) -> u64 {
        self.tally.requests.iter().sum()
    }

    /// Complete requests to one kind of route.
    pub fn requests_of(&self, kind: RouteKind) -> u64 {
        self.tally.requests[kind.index()]
    }

    /// Responses whose last byte the kernel has accepted.
    pub fn responses(&self) -> u64 {
        self.tally.responses.iter().sum()
    }

    /// Responses with this status.
    pub fn responses_with(&self, status: u16) -> u64 {
        self.tally.responses.get(usize::from(status)).copied().unwrap_or(0)
    }

    /// How often a fault occurred.
    pub fn faults_of(&self, fault: Fault) -> u64 {
        self.tally.faults[fault.index()]
    }

    /// What happened to requests to a planted capacity.
    pub fn capacity(&self) -> Admissions {
        self.tally.capacity
    }

    /// Connections refused with `status`: they sent something other than a request, too much, or too slowly.
    pub fn refusals_with(&self, status: u16) -> u64 {
        self.tally.refusals.get(&status).copied().unwrap_or(0)
    }

    /// Requests that a fault left without a response.
    pub fn ended_by_fault(&self) -> u64 {
        self.tally.ended_by_fault
    }

    /// Requests whose connection ended before their response was written.
    pub fn abandoned(&self) -> u64 {
        self.tally.abandoned
    }

    /// Requests read and without a response yet.
    pub fn in_flight(&self) -> u64 {
        self.tally.in_flight
    }

    /// Requests that were in flight at the last reset.
    pub fn carried(&self) -> u64 {
        self.tally.carried
    }

    /// Bytes of complete requests.
    pub fn bytes_read(&self) -> u64 {
        self.tally.bytes_read
    }

    /// Bytes that the kernel accepted.
    pub fn bytes_written(&self) -> u64 {
        self.tally.bytes_written
    }

    /// When each request arrived in this host's kernel, in order: the first
    /// [`Options::arrivals_kept`](crate::Options::arrivals_kept) of them.
    pub fn arrivals(&self) -> &[Nanos] {
        self.tally.arrivals.kept()
    }

    /// From the arrival of a request's last byte in the kernel to the call that handed the last byte of its response
    /// to the kernel. That byte left between this and [`response`](Truth::response).
    pub fn handed(&self) -> &Distribution {
        &self.tally.handed
    }

    /// From the arrival of a request's last byte in the kernel to the acceptance of the last byte of its response.
    /// Includes requested delays. Responses only: no refusals, no faults.
    pub fn response(&self) -> &Distribution {
        &self.tally.response
    }

    /// From the intended instant of a delayed response to the acceptance of its last byte: the server's own lateness.
    /// The intended instant is never before that of the response ahead of it in the pipeline.
    pub fn lateness(&self) -> &Distribution {
        &self.tally.lateness
    }

    /// Requests whose arrival the kernel did not stamp; they count from when they were read.
    pub fn unstamped(&self) -> u64 {
        self.tally.unstamped
    }

    /// Requests that were read together with later bytes. The kernel timestamps the last byte of a read, so `response`
    /// may be too short for these, by the time between the arrivals.
    pub fn pipelined(&self) -> u64 {
        self.tally.pipelined
    }

    /// How often a thread found that the wall clock was set; timestamps taken across such a step may be off by it.
    pub fn clock_steps(&self) -> u64 {
        self.tally.clock_steps
    }

    /// Every freeze of every thread, ordered by begin.
    pub fn freezes(&self) -> &[FreezeRecord] {
        &self.tally.freezes
    }

    /// Freezes that are not listed because the list was full.
    pub fn freezes_unlisted(&self) -> u64 {
        self.tally.freezes_unlisted
    }

    /// Whether every request is accounted for exactly once.
    pub fn is_conserved(&self) -> bool {
        self.carried() + self.requests()
            == self.responses() + self.ended_by_fault() + self.abandoned() + self.in_flight()
    }

    /// The JSON document that `/truth` responds with.
    pub fn to_json(&self) -> String {
        document::render(self, &self.tally)
    }
}
