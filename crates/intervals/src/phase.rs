//! The ten phases of a request, and the eleven edges between them.

units::named_enum! {
    /// The time between two consecutive [`Edge`]s of a request, in the order in which a request passes them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Phase {
        /// Intended start → the client picked it up.
        ScheduleLag = "schedule_lag",
        /// Picked up → got a connection or stream (connection checkout).
        PoolWait = "pool_wait",
        /// Name lookup, if a new connection needs one.
        Resolve = "resolve",
        /// TCP connect, if the connection is new.
        Connect = "connect",
        /// TLS handshake, if the connection is new.
        Tls = "tls",
        /// Start-up and login of a database protocol, if the connection is new.
        Auth = "auth",
        /// First byte handed to the kernel → last byte accepted by it.
        Send = "send",
        /// Sent → first byte of the response has arrived in this host's kernel.
        Wait = "wait",
        /// First byte arrived → last byte arrived in the kernel.
        Receive = "receive",
        /// Last byte in the kernel → the client has read it.
        ClientLag = "client_lag",
    }
}

impl Phase {
    /// What the time of this phase is attributed to.
    pub const fn belongs_to(self) -> &'static str {
        match self {
            Phase::ScheduleLag | Phase::ClientLag => "client",
            Phase::PoolWait => "pool",
            Phase::Resolve => "network",
            Phase::Auth => "server",
            Phase::Connect | Phase::Tls | Phase::Send => "network or server",
            Phase::Wait | Phase::Receive => "server and network",
        }
    }

    /// The edge where this phase ends. It begins at the edge before.
    pub const fn end(self) -> Edge {
        Edge::ALL[self as usize + 1]
    }
}

/// A moment in the life of a request. Phase number *i* is between edges *i* and *i + 1*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Edge {
    /// The intended start; in a closed loop, when the virtual user became free.
    Intended,
    /// The client picked it up.
    PickedUp,
    /// It got a connection.
    Assigned,
    /// The name lookup is finished.
    Resolved,
    /// The TCP connection is established.
    Connected,
    /// The TLS handshake is done.
    Secured,
    /// The connection is ready; its first byte is handed to the kernel.
    Ready,
    /// The kernel has accepted its last byte.
    Sent,
    /// The response's first byte is in this host's kernel.
    FirstArrived,
    /// The response's last byte is in this host's kernel.
    LastArrived,
    /// The client has read the complete response.
    Read,
}

impl Edge {
    pub const COUNT: usize = 11;

    pub const ALL: [Edge; Edge::COUNT] = [
        Edge::Intended,
        Edge::PickedUp,
        Edge::Assigned,
        Edge::Resolved,
        Edge::Connected,
        Edge::Secured,
        Edge::Ready,
        Edge::Sent,
        Edge::FirstArrived,
        Edge::LastArrived,
        Edge::Read,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_edges_line_up() {
        for (i, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, i);
            assert_eq!(phase.end() as usize, i + 1);
            assert_eq!(Phase::from_name(phase.name()), Some(phase));
        }
        for (i, edge) in Edge::ALL.into_iter().enumerate() {
            assert_eq!(edge as usize, i);
        }
    }
}
