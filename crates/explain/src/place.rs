//! The vocabulary: into which segments the time of a request is divided, and which place answers for each.

use record::{Part, Phase};
use serde::Serialize;

/// Who is to blame. One word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The load client itself was late.
    Client,
    /// The way between the two.
    Network,
    /// The server did not read what had arrived.
    SocketQueue,
    /// The server's own work.
    HandlerCpu,
    /// The server waited: for a disk, a lock, another server, a timer.
    HandlerBlocked,
    /// Others had the CPUs that the server wanted.
    CpuContention,
    /// The server had used up its CPU quota.
    Throttled,
    /// The client's connections were all in use.
    Pool,
    /// A host did not run at all.
    Platform,
    /// The server's runtime did not let it run: a pause of its JVM.
    Runtime,
    /// The records do not report.
    Undecided,
}

impl Place {
    /// The word used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Client => "client",
            Place::Network => "network",
            Place::SocketQueue => "socket_queue",
            Place::HandlerCpu => "handler_cpu",
            Place::HandlerBlocked => "handler_blocked",
            Place::CpuContention => "cpu_contention",
            Place::Throttled => "throttled",
            Place::Pool => "pool",
            Place::Platform => "platform",
            Place::Runtime => "runtime",
            Place::Undecided => "undecided",
        }
    }
}

/// A segment of a request's response. Exclusive, in the order of time as far as there is one; together they are
/// the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Segment {
    ScheduleLag,
    PoolWait,
    /// Waits for a connection in the burst that a late client makes of what became due in the meantime.
    PoolAfterLag,
    Resolve,
    Connect,
    Tls,
    Auth,
    Send,
    /// Client sent → in the server's kernel.
    ToServer,
    /// Client sent → read by the server, where the arrival there has no stamp.
    ToServerAndQueue,
    /// In the server's kernel → read, while nobody was in the way.
    SocketQueue,
    /// Likewise, while the thread that read it was ready and waited for a CPU.
    QueueRunQueue,
    /// Likewise, while that thread was out of its CPU quota.
    QueueThrottled,
    /// Read or not yet, while its thread worked on other requests.
    BehindCpu,
    /// Likewise, while its thread was blocked for other requests.
    BehindBlocked,
    /// Likewise, while its thread waited for a CPU with other requests.
    BehindRunQueue,
    /// Likewise, while its thread was out of its CPU quota with other requests.
    BehindThrottled,
    /// Likewise, while interrupts or the hypervisor had its thread's CPU.
    BehindStolen,
    OnCpu,
    Stolen,
    RunQueue,
    Yielded,
    Throttled,
    Disk,
    Lock,
    /// The server waited for another server.
    Upstream,
    OtherBlocked,
    /// No thread worked on it, and its thread on nothing else that was seen.
    LoopWait,
    /// Server done → in the client's kernel.
    ToClient,
    /// Both ways together, where the two hosts' clocks are not one.
    Network,
    /// Server and network undivided: nothing is known of this request at the server.
    ServerAndNetwork,
    ClientLag,
}

impl Segment {
    pub const COUNT: usize = 32;

    pub const ALL: [Segment; Segment::COUNT] = [
        Segment::ScheduleLag,
        Segment::PoolWait,
        Segment::PoolAfterLag,
        Segment::Resolve,
        Segment::Connect,
        Segment::Tls,
        Segment::Auth,
        Segment::Send,
        Segment::ToServer,
        Segment::ToServerAndQueue,
        Segment::SocketQueue,
        Segment::QueueRunQueue,
        Segment::QueueThrottled,
        Segment::BehindCpu,
        Segment::BehindBlocked,
        Segment::BehindRunQueue,
        Segment::BehindThrottled,
        Segment::BehindStolen,
        Segment::OnCpu,
        Segment::Stolen,
        Segment::RunQueue,
        Segment::Yielded,
        Segment::Throttled,
        Segment::Disk,
        Segment::Lock,
        Segment::Upstream,
        Segment::OtherBlocked,
        Segment::LoopWait,
        Segment::ToClient,
        Segment::Network,
        Segment::ServerAndNetwork,
        Segment::ClientLag,
    ];

    /// The name in JSON, and what people read next to it.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Segment::ScheduleLag => ("schedule_lag", "client late to start it"),
            Segment::PoolWait => ("pool_wait", "waits for a connection"),
            Segment::PoolAfterLag => ("pool_after_lag", "waits for one because the client was late"),
            Segment::Resolve => ("resolve", "name lookup"),
            Segment::Connect => ("connect", "TCP connect"),
            Segment::Tls => ("tls", "TLS handshake"),
            Segment::Auth => ("auth", "login"),
            Segment::Send => ("send", "handed to the kernel"),
            Segment::ToServer => ("to_server", "network, to the server"),
            Segment::ToServerAndQueue => ("to_server_and_queue", "network and socket queue"),
            Segment::SocketQueue => ("socket_queue", "arrived, not read"),
            Segment::QueueRunQueue => ("queue_run_queue", "not read: reader waits for a CPU"),
            Segment::QueueThrottled => ("queue_throttled", "not read: reader is throttled"),
            Segment::BehindCpu => ("behind_cpu", "waits for others' work on its thread"),
            Segment::BehindBlocked => ("behind_blocked", "waits for others that are blocked"),
            Segment::BehindRunQueue => ("behind_run_queue", "waits for others in the run queue"),
            Segment::BehindThrottled => ("behind_throttled", "waits for others that are throttled"),
            Segment::BehindStolen => ("behind_stolen", "waits for others: stolen CPU time"),
            Segment::OnCpu => ("on_cpu", "the server works on it"),
            Segment::Stolen => ("stolen", "interrupts, hypervisor"),
            Segment::RunQueue => ("run_queue", "ready, but waits for a CPU"),
            Segment::Yielded => ("yielded", "gave up the CPU"),
            Segment::Throttled => ("throttled", "out of CPU quota"),
            Segment::Disk => ("disk", "blocked on a disk"),
            Segment::Lock => ("lock", "blocked on a lock"),
            Segment::Upstream => ("upstream", "blocked on another connection"),
            Segment::OtherBlocked => ("other_blocked", "blocked: sleep, pipe, unknown"),
            Segment::LoopWait => ("loop_wait", "no thread works on it"),
            Segment::ToClient => ("to_client", "network, to the client"),
            Segment::Network => ("network", "network, both ways"),
            Segment::ServerAndNetwork => ("server_and_network", "not seen at the server"),
            Segment::ClientLag => ("client_lag", "client late to read it"),
        }
    }

    /// The name used in JSON.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// The meaning in a few words, for the table of a report.
    pub const fn meaning(self) -> &'static str {
        self.words().1
    }

    /// Who answers for it, as long as no other record says more.
    pub const fn place(self) -> Place {
        match self {
            Segment::ScheduleLag | Segment::PoolAfterLag | Segment::ClientLag => Place::Client,
            Segment::PoolWait => Place::Pool,
            Segment::Resolve
            | Segment::Connect
            | Segment::ToServer
            | Segment::ToClient
            | Segment::Network => Place::Network,
            Segment::SocketQueue => Place::SocketQueue,
            Segment::OnCpu | Segment::BehindCpu | Segment::Yielded => Place::HandlerCpu,
            Segment::Disk
            | Segment::Lock
            | Segment::Upstream
            | Segment::OtherBlocked
            | Segment::LoopWait
            | Segment::BehindBlocked => Place::HandlerBlocked,
            Segment::RunQueue | Segment::QueueRunQueue | Segment::BehindRunQueue => Place::CpuContention,
            Segment::Throttled | Segment::QueueThrottled | Segment::BehindThrottled => Place::Throttled,
            Segment::Stolen | Segment::BehindStolen => Place::Platform,
            Segment::Tls
            | Segment::Auth
            | Segment::Send
            | Segment::ToServerAndQueue
            | Segment::ServerAndNetwork => Place::Undecided,
        }
    }

    pub(crate) const fn of_phase(phase: Phase) -> Segment {
        match phase {
            Phase::ScheduleLag => Segment::ScheduleLag,
            Phase::PoolWait => Segment::PoolWait,
            Phase::Resolve => Segment::Resolve,
            Phase::Connect => Segment::Connect,
            Phase::Tls => Segment::Tls,
            Phase::Auth => Segment::Auth,
            Phase::Send => Segment::Send,
            Phase::Wait | Phase::Receive => Segment::ServerAndNetwork,
            Phase::ClientLag => Segment::ClientLag,
        }
    }

    pub(crate) const fn of_part(part: Part) -> Segment {
        match part {
            Part::OnCpu => Segment::OnCpu,
            Part::Stolen => Segment::Stolen,
            Part::RunQueue => Segment::RunQueue,
            Part::Yielded => Segment::Yielded,
            Part::Throttled => Segment::Throttled,
            Part::Disk => Segment::Disk,
            Part::Lock => Segment::Lock,
            Part::Network => Segment::Upstream,
            Part::Other => Segment::OtherBlocked,
            Part::LoopWait => Segment::LoopWait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_in_order_and_have_names_of_their_own() {
        let mut names: Vec<_> = Segment::ALL.iter().map(|segment| segment.name()).collect();
        assert!(Segment::ALL.iter().enumerate().all(|(i, segment)| *segment as usize == i));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Segment::COUNT);
        let place = serde_json::to_value(Place::CpuContention).unwrap();
        assert_eq!(place, Place::CpuContention.name());
    }
}
