//! The vocabulary: the segments of a request's time, and the place that each is attributed to.

use record::{Part, Phase};
use serde::Serialize;

units::named_enum! {
    /// Who is to blame. One word for programs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum Place {
        /// The load client itself was late.
        Client = "client",
        /// The way between the two.
        Network = "network",
        /// The server did not read what had arrived.
        SocketQueue = "socket_queue",
        /// The server's own work.
        HandlerCpu = "handler_cpu",
        /// The server waited: for a disk, a lock, a timer.
        HandlerBlocked = "handler_blocked",
        /// The server waited for another server that it had asked.
        Upstream = "upstream",
        /// The server was stopped by a signal or frozen.
        Stopped = "stopped",
        /// Others had the CPUs that the server wanted.
        CpuContention = "cpu_contention",
        /// The server had used up its CPU quota.
        Throttled = "throttled",
        /// The client's connections were all in use.
        Pool = "pool",
        /// A host did not run at all.
        Platform = "platform",
        /// The server's runtime did not let it run: a pause of its JVM.
        Runtime = "runtime",
        /// The records do not report.
        Undecided = "undecided",
    }
}

units::named_enum! {
    /// A segment of a request's response time. Segments are exclusive, in order of time as far as there is one, and sum
    /// to the response time.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Segment {
        ScheduleLag = "schedule_lag",
        PoolWait = "pool_wait",
        /// Waits for a connection in the burst that a late client makes of requests that became due in the meantime.
        PoolAfterLag = "pool_after_lag",
        Resolve = "resolve",
        Connect = "connect",
        Tls = "tls",
        Auth = "auth",
        Send = "send",
        /// Client sent → in the server's kernel.
        ToServer = "to_server",
        /// Client sent → read by the server, if the arrival there has no timestamp.
        ToServerAndQueue = "to_server_and_queue",
        /// In the server's kernel → read, while nothing else was in the way.
        SocketQueue = "socket_queue",
        /// Likewise, while the thread that read it was ready and waited for a CPU.
        QueueRunQueue = "queue_run_queue",
        /// Likewise, while that thread was out of its CPU quota.
        QueueThrottled = "queue_throttled",
        /// Likewise, while that thread was stopped.
        QueueStopped = "queue_stopped",
        /// Read or not yet, while its thread worked on other requests.
        BehindCpu = "behind_cpu",
        /// Likewise, while its thread was blocked for other requests.
        BehindBlocked = "behind_blocked",
        /// Likewise, while its thread waited for a CPU with other requests.
        BehindRunQueue = "behind_run_queue",
        /// Likewise, while its thread was out of its CPU quota with other requests.
        BehindThrottled = "behind_throttled",
        /// Likewise, while interrupts or the hypervisor had its thread's CPU.
        BehindStolen = "behind_stolen",
        OnCpu = "on_cpu",
        Stolen = "stolen",
        RunQueue = "run_queue",
        /// Ready to run while no other process had the CPU: it was being woken, or waited for its own threads.
        OwnRunQueue = "own_run_queue",
        Yielded = "yielded",
        Throttled = "throttled",
        Disk = "disk",
        Lock = "lock",
        /// It waited for the answer of another server that it had asked.
        Upstream = "upstream",
        /// Its thread slept until a timer that it had set itself.
        Timer = "timer",
        /// Its thread was stopped.
        Stopped = "stopped",
        /// Its thread slept until another thread of the server woke it, not for a lock.
        OtherThread = "other_thread",
        /// Its thread slept on a socket or polled, and it is not known for what.
        Polling = "polling",
        OtherBlocked = "other_blocked",
        /// No thread worked on it, and its thread did nothing else that was seen.
        LoopWait = "loop_wait",
        /// Server done → in the client's kernel.
        ToClient = "to_client",
        /// The same, of a response whose end the server's kernel held back until the client had acknowledged its
        /// beginning.
        HeldBack = "held_back",
        /// Both directions together, if the offset between the two hosts' clocks is unknown.
        Network = "network",
        /// Server and network undivided: this request was not found at the server.
        ServerAndNetwork = "server_and_network",
        ClientLag = "client_lag",
    }
}

impl Segment {
    /// Explanation of the name, for reports.
    pub const fn meaning(self) -> &'static str {
        match self {
            Segment::ScheduleLag => "client late to start it",
            Segment::PoolWait => "waits for a connection",
            Segment::PoolAfterLag => "waits for one because the client was late",
            Segment::Resolve => "name lookup",
            Segment::Connect => "TCP connect",
            Segment::Tls => "TLS handshake",
            Segment::Auth => "login",
            Segment::Send => "handed to the kernel",
            Segment::ToServer => "network, to the server",
            Segment::ToServerAndQueue => "network and socket queue",
            Segment::SocketQueue => "arrived, not read",
            Segment::QueueRunQueue => "not read: reader waits for a CPU",
            Segment::QueueThrottled => "not read: reader is throttled",
            Segment::QueueStopped => "not read: reader is stopped",
            Segment::BehindCpu => "waits for others' work on its thread",
            Segment::BehindBlocked => "waits for others that are blocked",
            Segment::BehindRunQueue => "waits for others in the run queue",
            Segment::BehindThrottled => "waits for others that are throttled",
            Segment::BehindStolen => "waits for others: stolen CPU time",
            Segment::OnCpu => "the server works on it",
            Segment::Stolen => "interrupts, hypervisor",
            Segment::RunQueue => "ready, but others have the CPU",
            Segment::OwnRunQueue => "ready: being woken, or own threads",
            Segment::Yielded => "gave up the CPU",
            Segment::Throttled => "out of CPU quota",
            Segment::Disk => "blocked on a disk",
            Segment::Lock => "blocked on a lock",
            Segment::Upstream => "another server that it has asked",
            Segment::Timer => "sleeps by its own timer",
            Segment::Stopped => "stopped by a signal, or frozen",
            Segment::OtherThread => "another thread of the server",
            Segment::Polling => "on a socket, or polling",
            Segment::OtherBlocked => "blocked: sleep, pipe, unknown",
            Segment::LoopWait => "no thread works on it",
            Segment::ToClient => "network, to the client",
            Segment::HeldBack => "held back for an acknowledgment",
            Segment::Network => "network, both ways",
            Segment::ServerAndNetwork => "server and network, undivided",
            Segment::ClientLag => "client late to read it",
        }
    }

    /// The place it is attributed to, unless another record contains more.
    pub const fn place(self) -> Place {
        match self {
            Segment::ScheduleLag | Segment::PoolAfterLag | Segment::ClientLag => Place::Client,
            Segment::PoolWait => Place::Pool,
            Segment::Resolve
            | Segment::Connect
            | Segment::ToServer
            | Segment::ToClient
            | Segment::HeldBack
            | Segment::Network => Place::Network,
            Segment::SocketQueue => Place::SocketQueue,
            Segment::OnCpu | Segment::BehindCpu | Segment::Yielded | Segment::OwnRunQueue => {
                Place::HandlerCpu
            }
            Segment::Upstream => Place::Upstream,
            Segment::Stopped | Segment::QueueStopped => Place::Stopped,
            Segment::Disk
            | Segment::Lock
            | Segment::Timer
            | Segment::OtherThread
            | Segment::Polling
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
            Part::Network => Segment::Polling,
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
