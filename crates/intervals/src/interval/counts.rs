//! The plain counters of an interval.

/// Plain counters of one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests that became due.
    pub scheduled: u64,
    /// Requests whose first byte was handed to the kernel.
    pub sent: u64,
    pub ok: u64,
    /// Requests in flight or queued at the interval's end.
    pub outstanding: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Bytes of responses' bodies.
    pub body_bytes: u64,
    pub connections_opened: u64,
    /// Connections that ended while no request was on them: the peer closed them, or sent bytes after a response.
    pub idle_closes: u64,
    /// `ok` responses without a kernel timestamp: their `client_lag` is absent, and contained in `wait` and `receive`.
    pub unstamped: u64,
    /// Kernel timestamps that were moved by more than a microsecond to keep the edges in order.
    pub stamps_moved: u64,
    /// Connections that could not be opened because this process had no descriptor left.
    pub out_of_descriptors: u64,
    /// Connections that could not be opened because this host had no local port left for them.
    pub out_of_ports: u64,
    /// Requests whose transaction was retried because the server reported that it may succeed then. Each has its own
    /// outcome and is counted in `scheduled`.
    pub retries: u64,
}

impl Counts {
    pub(super) fn merge(&mut self, other: &Counts) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.ok += other.ok;
        self.outstanding += other.outstanding;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.body_bytes += other.body_bytes;
        self.connections_opened += other.connections_opened;
        self.idle_closes += other.idle_closes;
        self.unstamped += other.unstamped;
        self.stamps_moved += other.stamps_moved;
        self.out_of_descriptors += other.out_of_descriptors;
        self.out_of_ports += other.out_of_ports;
        self.retries += other.retries;
    }
}
