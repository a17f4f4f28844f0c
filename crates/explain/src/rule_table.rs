//! The rules that make sentences, as data: a condition and words. `rules` applies them.

use crate::place::{Place, Segment};

/// What a rule can require in addition to the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    Any,
    /// It is known which process ran while the server's threads waited for a CPU.
    Culprit,
    /// It is only known which process used the most CPU time on the host at that time.
    Busiest,
    /// The client's own meter was stalled too.
    OwnStall,
    /// Client and server were joined by time alone: there is something between them, such as a relay.
    Between,
    /// Listen queues of this host dropped connections while connects hung.
    ListenDrops,
    /// There is no record of a server.
    NoServer,
    /// It is known which thread ended the waits.
    Owner,
    /// It is known which other server was waited for.
    Upstream,
    /// It is known what stopped the server.
    Stop,
}

/// A rule of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) place: Place,
    /// The segment that must have most of the place's time; empty for any.
    pub(crate) lead: &'static [Segment],
    pub(crate) fact: Fact,
    /// `{share}`, `{mean}` per request, `{lead}` of the leading segment per request, `{culprit}`, `{busiest}`, `{stall}`,
    /// `{drops}`, `{pauses}`, `{owner}`, `{upstream}`, `{stop}`.
    pub(crate) words: &'static str,
}

const fn rule(
    id: &'static str,
    place: Place,
    lead: &'static [Segment],
    fact: Fact,
    words: &'static str,
) -> Rule {
    Rule { id, place, lead, fact, words }
}

pub(crate) const RULES: &[Rule] = &[
    rule(
        "client-stalled",
        Place::Client,
        &[],
        Fact::OwnStall,
        "The load generator was stalled: for {mean} per request, {share}, it neither started requests nor read responses that had arrived; its own meter was stalled as well, for up to {stall}.",
    ),
    rule(
        "client-late-to-send",
        Place::Client,
        &[Segment::ScheduleLag],
        Fact::Any,
        "The load generator fell behind schedule by {mean} per request, {share}, of which {lead} is schedule_lag; the server had not received the requests yet.",
    ),
    rule(
        "client-late-to-read",
        Place::Client,
        &[Segment::ClientLag],
        Fact::Any,
        "The load generator read responses late: {mean} per request, {share}, of which {lead} is client_lag, the time after they had arrived in its kernel.",
    ),
    rule(
        "host-stolen",
        Place::Platform,
        &[Segment::Stolen, Segment::BehindStolen],
        Fact::Any,
        "The server's host lost CPU time: interrupts or the hypervisor took {mean} per request, {share}.",
    ),
    rule(
        "host-stalled",
        Place::Platform,
        &[],
        Fact::Any,
        "The host was stalled: {mean} per request, {share}, is within stalls of up to {stall} in the hiccup record.",
    ),
    rule(
        "runtime-paused",
        Place::Runtime,
        &[],
        Fact::Any,
        "The server's JVM was paused: {mean} per request, {share}, is within {pauses}.",
    ),
    rule(
        "network-between",
        Place::Network,
        &[],
        Fact::Between,
        "The path between client and server is slow: {mean} per request, {share}. It includes a relay or address translation, because the two ends of the connections differ.",
    ),
    rule(
        "network-there",
        Place::Network,
        &[Segment::ToServer],
        Fact::Any,
        "The network to the server is slow: {mean} per request, {share}, of which {lead} from sent to arrived in the server's kernel.",
    ),
    rule(
        "network-held-back",
        Place::Network,
        &[Segment::HeldBack],
        Fact::Any,
        "The end of the response is held back for {lead} per request, {share} with the rest of the network's time: the server wrote it in pieces without TCP_NODELAY, so its kernel waits until the client acknowledges the piece before (Nagle's algorithm), which the client's kernel delays (delayed ACK, 40 ms on Linux). Set TCP_NODELAY at the server, or write the response at once.",
    ),
    rule(
        "network-back",
        Place::Network,
        &[Segment::ToClient],
        Fact::Any,
        "The network from the server is slow: {mean} per request, {share}, of which {lead} from the server's last write to the client's kernel.",
    ),
    rule(
        "network-lookup",
        Place::Network,
        &[Segment::Resolve],
        Fact::Any,
        "Name lookups are slow: {lead} per request, {share} with the rest of the network's time.",
    ),
    rule(
        "network-connect",
        Place::Network,
        &[Segment::Connect],
        Fact::Any,
        "TCP connects are slow: {lead} per request, {share} with the rest of the network's time; check for lost packets, and for a full listen queue at the server.",
    ),
    rule(
        "network-both-ways",
        Place::Network,
        &[],
        Fact::Any,
        "The network is slow: {mean} per request, {share}, was spent neither in the client nor in the server.",
    ),
    rule(
        "listen-queue",
        Place::SocketQueue,
        &[Segment::Connect],
        Fact::ListenDrops,
        "The server does not accept connections fast enough: connects take {lead} per request, {share}, and in that time {drops} connections were dropped by a full listen queue on this host.",
    ),
    rule(
        "socket-queue",
        Place::SocketQueue,
        &[],
        Fact::Any,
        "The server reads late: requests waited {mean} in its socket buffers, {share}, while the thread that reads them worked on no other request.",
    ),
    rule(
        "cpu-behind",
        Place::HandlerCpu,
        &[Segment::BehindCpu],
        Fact::Any,
        "The server's thread works on other requests: each request waits {lead} for their CPU time; with its own CPU time {mean}, {share}.",
    ),
    rule(
        "cpu-yields",
        Place::HandlerCpu,
        &[Segment::Yielded],
        Fact::Any,
        "The server gives up the CPU voluntarily (sched_yield): {lead} per request, {share} with its work.",
    ),
    rule(
        "cpu-handler",
        Place::HandlerCpu,
        &[],
        Fact::Any,
        "The server's own work: {mean} of CPU time per request, {share}.",
    ),
    rule(
        "blocked-disk",
        Place::HandlerBlocked,
        &[Segment::Disk],
        Fact::Any,
        "The server waits for its disk: {lead} per request; blocked in total {mean}, {share}.",
    ),
    rule(
        "blocked-lock-of",
        Place::HandlerBlocked,
        &[Segment::Lock],
        Fact::Owner,
        "The server waits for a lock: {lead} per request, most of all until {owner} released it; blocked in total {mean}, {share}.",
    ),
    rule(
        "blocked-lock",
        Place::HandlerBlocked,
        &[Segment::Lock],
        Fact::Any,
        "The server waits for a lock: {lead} per request; blocked in total {mean}, {share}.",
    ),
    rule(
        "blocked-timer",
        Place::HandlerBlocked,
        &[Segment::Timer],
        Fact::Any,
        "The server sleeps by its own timer: {lead} per request; blocked in total {mean}, {share}.",
    ),
    rule(
        "blocked-thread-of",
        Place::HandlerBlocked,
        &[Segment::OtherThread],
        Fact::Owner,
        "The server waits for another of its threads: {lead} per request, most of all until {owner} woke it; blocked in total {mean}, {share}.",
    ),
    rule(
        "blocked-polling",
        Place::HandlerBlocked,
        &[Segment::Polling, Segment::OtherThread],
        Fact::Any,
        "The server polls, or waits on a socket: {lead} per request, and what ended that is not known; blocked in total {mean}, {share}.",
    ),
    rule(
        "blocked-behind",
        Place::HandlerBlocked,
        &[Segment::BehindBlocked],
        Fact::Any,
        "The server's thread is blocked by other requests: each request waits {lead} for them; with its own waits {mean}, {share}.",
    ),
    rule(
        "blocked-loop",
        Place::HandlerBlocked,
        &[Segment::LoopWait],
        Fact::Any,
        "For {lead}, no thread of the server works on the request: and what it waits for was not seen; blocked in total {mean}, {share}.",
    ),
    rule(
        "blocked-other",
        Place::HandlerBlocked,
        &[],
        Fact::Any,
        "The server's handler sleeps or is blocked: {mean} per request, {share}; not on a disk, a lock or a socket.",
    ),
    rule(
        "upstream-at",
        Place::Upstream,
        &[],
        Fact::Upstream,
        "The server waits for another server: {mean} per request, {share}, from its request to the answer, most of all from {upstream}. Look there.",
    ),
    rule(
        "upstream",
        Place::Upstream,
        &[],
        Fact::Any,
        "The server waits for another server: {mean} per request, {share}, from its request to the answer, over Unix sockets.",
    ),
    rule(
        "stopped-by",
        Place::Stopped,
        &[],
        Fact::Stop,
        "The server was stopped: {mean} per request, {share}, by {stop}.",
    ),
    rule("stopped", Place::Stopped, &[], Fact::Any, "The server was stopped: {mean} per request, {share}."),
    rule(
        "contention-by",
        Place::CpuContention,
        &[],
        Fact::Culprit,
        "The server waits for a CPU: {mean} per request, {share}, ready to run while other processes ran, most of all {culprit}.",
    ),
    rule(
        "contention-busy",
        Place::CpuContention,
        &[],
        Fact::Busiest,
        "The server waits for a CPU: {mean} per request, {share}, ready to run while other processes ran; the process with the most CPU time on this host was {busiest}.",
    ),
    rule(
        "contention",
        Place::CpuContention,
        &[],
        Fact::Any,
        "The server waits for a CPU: {mean} per request, {share}, ready to run while other processes ran.",
    ),
    rule(
        "throttled",
        Place::Throttled,
        &[],
        Fact::Any,
        "The server's control group was throttled by its CPU quota: {mean} per request, {share}; raise cpu.max.",
    ),
    rule(
        "pool",
        Place::Pool,
        &[],
        Fact::Any,
        "Requests wait for a connection of the client's pool: {mean} per request, {share}. The pool is too small for this load, or the server is too slow for this pool.",
    ),
    rule(
        "no-server",
        Place::Undecided,
        &[Segment::ServerAndNetwork],
        Fact::NoServer,
        "Server or network: {lead} per request, {share}; without a record of `parallax watch` they cannot be separated.",
    ),
    rule(
        "not-seen",
        Place::Undecided,
        &[Segment::ServerAndNetwork],
        Fact::Any,
        "Server or network: {lead} per request, {share}; `parallax watch` did not see or keep these requests at the server.",
    ),
    rule(
        "no-arrival",
        Place::Undecided,
        &[Segment::ToServerAndQueue],
        Fact::Any,
        "The network, or a server that reads late: {lead} per request, {share}; without arrival timestamps at the server they cannot be separated.",
    ),
    rule(
        "waits-unseen",
        Place::Undecided,
        &[Segment::SocketQueue, Segment::LoopWait],
        Fact::Any,
        "Requests wait at the server for {lead} while none of its threads is seen to work on them; {mean} with the rest of the undecided time, {share}. The threads may have been busy with requests that were not kept: use `watch --requests all`.",
    ),
    rule(
        "sending",
        Place::Undecided,
        &[Segment::Send],
        Fact::Any,
        "The client's kernel takes requests slowly: {lead} per request, {share}; the network is slow or the server does not read.",
    ),
    rule(
        "opening",
        Place::Undecided,
        &[],
        Fact::Any,
        "Opening connections is slow (handshake, login): {mean} per request, {share}; keep connections open, or look at the server.",
    ),
];
