//! What the server did, for those who measure against it.

use units::Nanos;

use crate::capacity::Admissions;
use crate::distribution::Distribution;
use crate::document;
use crate::fault::Fault;
use crate::freeze::FreezeRecord;
use crate::route::Kind;
use crate::tally::Tally;

/// Everything a server did between two instants, all threads together.
///
/// Requests to `/truth` and `/truth/reset` are not in it; their connections are. With several threads each
/// adds its part when its loop gets to it, so the parts may be some microseconds apart.
#[derive(Debug, Clone)]
pub struct Truth {
    started: Nanos,
    taken: Nanos,
    thread_count: usize,
    tally: Tally,
}

/// Connections, each counted once for how it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Connections {
    pub accepted: u64,
    /// Now, whenever they were accepted.
    pub open: u64,
    /// Accepted over the limit, and turned away with a 503.
    pub refused: u64,
    pub closed_by_peer: u64,
    pub closed_by_server: u64,
    pub reset_by_peer: u64,
    pub reset_by_server: u64,
    /// Times that the kernel would not accept: out of descriptors or memory.
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

    /// From when on it counts: the start, or the last reset.
    pub fn since(&self) -> Nanos {
        self.tally.since
    }

    /// When it was put together.
    pub fn taken(&self) -> Nanos {
        self.taken
    }

    pub fn thread_count(&self) -> usize {
        self.thread_count
    }

    pub fn connections(&self) -> Connections {
        self.tally.connections
    }

    /// Whole requests that were read.
    pub fn requests(&self) -> u64 {
        self.tally.requests.iter().sum()
    }

    pub fn requests_of(&self, kind: Kind) -> u64 {
        self.tally.requests[kind.index()]
    }

    /// Answers whose last byte the kernel has accepted.
    pub fn answers(&self) -> u64 {
        self.tally.answers.iter().sum()
    }

    pub fn answers_with(&self, status: u16) -> u64 {
        self.tally.answers.get(usize::from(status)).copied().unwrap_or(0)
    }

    /// Times a fault occurred.
    pub fn faults_of(&self, fault: Fault) -> u64 {
        self.tally.faults[fault.index()]
    }

    /// What became of the requests to a planted capacity.
    pub fn capacity(&self) -> Admissions {
        self.tally.capacity
    }

    /// Connections that sent something other than a request, or too much, or too slowly.
    pub fn refusals_with(&self, status: u16) -> u64 {
        self.tally.refusals.get(&status).copied().unwrap_or(0)
    }

    /// Requests that a fault left without an answer.
    pub fn ended_by_fault(&self) -> u64 {
        self.tally.ended_by_fault
    }

    /// Requests whose connection went before their answer was written.
    pub fn abandoned(&self) -> u64 {
        self.tally.abandoned
    }

    /// Requests read and not yet answered.
    pub fn in_flight(&self) -> u64 {
        self.tally.in_flight
    }

    /// Requests that were in flight at the last reset.
    pub fn carried(&self) -> u64 {
        self.tally.carried
    }

    /// Bytes of whole requests.
    pub fn bytes_read(&self) -> u64 {
        self.tally.bytes_read
    }

    /// Bytes that the kernel accepted.
    pub fn bytes_written(&self) -> u64 {
        self.tally.bytes_written
    }

    /// When each request arrived in this host's kernel, in order, as far as
    /// [`Options::arrivals_kept`](crate::Options::arrivals_kept) goes.
    pub fn arrivals(&self) -> &[Nanos] {
        self.tally.arrivals.kept()
    }

    /// From the arrival of a request's last byte in the kernel to the call that handed its answer's last byte to
    /// it. That byte left between this and [`response`](Truth::response).
    pub fn handed(&self) -> &Distribution {
        &self.tally.handed
    }

    /// From the arrival of a request's last byte in the kernel to the acceptance of its answer's last byte.
    /// Includes delays that were asked for. Answers only: no refusals, no faults.
    pub fn response(&self) -> &Distribution {
        &self.tally.response
    }

    /// From the instant a delayed answer was meant for to the acceptance of its last byte: the server's own
    /// lateness. An answer is not meant for before the one ahead of it in the pipeline.
    pub fn lateness(&self) -> &Distribution {
        &self.tally.lateness
    }

    /// Requests whose arrival the kernel did not stamp; they count from when they were read.
    pub fn unstamped(&self) -> u64 {
        self.tally.unstamped
    }

    /// Requests that came in one read with later bytes. The kernel stamps the last byte of a read, so for
    /// these `response` may be too short by as much as the later bytes came later.
    pub fn pipelined(&self) -> u64 {
        self.tally.pipelined
    }

    /// Times a thread saw the wall clock set; stamps taken across it may be off by the step.
    pub fn clock_steps(&self) -> u64 {
        self.tally.clock_steps
    }

    /// Every freeze of every thread, by its begin.
    pub fn freezes(&self) -> &[FreezeRecord] {
        &self.tally.freezes
    }

    /// Freezes that were not listed because the list was full.
    pub fn freezes_unlisted(&self) -> u64 {
        self.tally.freezes_unlisted
    }

    /// Whether every request is accounted for exactly once.
    pub fn is_conserved(&self) -> bool {
        self.carried() + self.requests()
            == self.answers() + self.ended_by_fault() + self.abandoned() + self.in_flight()
    }

    /// The document that `/truth` answers with.
    pub fn to_json(&self) -> String {
        document::render(self, &self.tally)
    }
}
