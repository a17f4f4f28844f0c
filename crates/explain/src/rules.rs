//! Sentences that name the cause with its figures. The rules are data: a condition and words.
//!
//! First the time of the scope is added up by place. A place with a sufficient share gets the first rule of the table
//! for this place whose segment is the largest and whose fact is true. The place with the most time is to blame, if it
//! is enough and clearly more than the next.

use std::collections::BTreeMap;

use findings::view::{Cell, Phrase, Value};
use serde::Serialize;
use units::{Nanos, percent};

use crate::ledger::Ledger;
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
    /// `{drops}`, `{pauses}`.
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
        "blocked-lock",
        Place::HandlerBlocked,
        &[Segment::Lock],
        Fact::Any,
        "The server waits for a lock: {lead} per request; blocked in total {mean}, {share}.",
    ),
    rule(
        "blocked-upstream",
        Place::HandlerBlocked,
        &[Segment::Upstream],
        Fact::Any,
        "The server waits for another server, or for a timer of its event loop: {lead} per request on another socket or polling; blocked in total {mean}, {share}.",
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
        "For {lead}, no thread of the server works on the request: it waits for a timer, a pool or another server; blocked in total {mean}, {share}.",
    ),
    rule(
        "blocked-other",
        Place::HandlerBlocked,
        &[],
        Fact::Any,
        "The server's handler sleeps or is blocked: {mean} per request, {share}; not on a disk, a lock or a socket.",
    ),
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

/// What is known in addition to the time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// `hog (pid 77), 41 ms in all`.
    pub(crate) culprit: Option<String>,
    /// `make (pid 78) with 3.2 s`.
    pub(crate) busiest: Option<String>,
    pub(crate) own_stall: Option<Nanos>,
    pub(crate) host_stall: Option<Nanos>,
    pub(crate) between: bool,
    /// Connections that listen queues of this host dropped while connects of the scope hung.
    pub(crate) listen_drops: u64,
    pub(crate) no_server: bool,
    /// The parts of the client's and the server's time in the scope that are within stalls of the host.
    pub(crate) client_stalled: u64,
    pub(crate) server_stalled: u64,
    /// The part of the server's time that is within pauses of its JVM; and a text: `3 pauses of up to 40 ms`.
    pub(crate) server_paused: u64,
    pub(crate) pauses: Option<String>,
    /// Waits for a connection in the scope, assigned to what occupied the connections.
    pub(crate) chained: Ledger,
    /// Whether the server's record has all requests: only then does an idle thread have no other request.
    pub(crate) all_kept: bool,
}

impl Facts {
    fn has(&self, fact: Fact) -> bool {
        match fact {
            Fact::Any => true,
            Fact::Culprit => self.culprit.is_some(),
            Fact::Busiest => self.busiest.is_some(),
            Fact::OwnStall => self.own_stall.is_some(),
            Fact::Between => self.between,
            Fact::ListenDrops => self.listen_drops > 0,
            Fact::NoServer => self.no_server,
        }
    }
}

/// One sentence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sentence {
    pub place: Place,
    /// The rule that made it.
    pub rule: &'static str,
    /// Share of the time to be explained, from 0 to 1.
    pub share: f64,
    pub text: String,
    /// The same with its figures.
    #[serde(skip)]
    pub finding: Phrase,
}

impl Sentence {
    /// Adds a sentence at the end.
    pub(crate) fn add(&mut self, more: Phrase) {
        self.finding = std::mem::take(&mut self.finding).then(" ", more);
        self.text = self.finding.to_string();
    }
}

/// The place that is to blame.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Blame {
    pub place: Place,
    /// Share of the time to be explained, from 0 to 1.
    pub share: f64,
    /// The time to be explained, in words.
    pub over: String,
    /// The length of that time, summed over all those requests.
    pub explained_ns: u64,
    pub rows: u64,
    /// The first sentence.
    pub sentence: String,
    /// The share of every place, by its word.
    pub places: BTreeMap<&'static str, f64>,
}

/// A place with a smaller share gets no sentence.
const MENTIONED: f64 = 0.1;

/// A place is to blame if it has at least this share of the time.
const LEADS: f64 = 0.4;

/// A place is to blame if it also has this many times as much as the next one.
const CLEARLY: f64 = 1.2;

/// The time of a place, its leading segment and that segment's time.
type Time = (u64, Option<Segment>, u64);

type ByPlace = BTreeMap<Place, Time>;

/// The sentences for `sums`, the place with the most time first, and the blame. `rows` is the number of requests.
pub(crate) fn judge(over: &str, sums: &Ledger, rows: u64, facts: &Facts) -> (Blame, Vec<Sentence>) {
    let total = sums.sum();
    let places = by_place(sums, facts);
    let share = |ns: u64| if total == 0 { 0.0 } else { ns as f64 / total as f64 };
    let mut ranked: Vec<_> = places.iter().map(|(place, time)| (*place, *time)).collect();
    ranked.sort_by_key(|(_, (ns, ..))| std::cmp::Reverse(*ns));
    let sentences: Vec<_> = ranked
        .iter()
        .filter(|(_, (ns, ..))| share(*ns) >= MENTIONED)
        .filter_map(|&(place, (ns, lead, lead_ns))| {
            let rule = RULES.iter().find(|rule| {
                let leads = rule.lead.is_empty() || lead.is_some_and(|lead| rule.lead.contains(&lead));
                rule.place == place && leads && facts.has(rule.fact)
            })?;
            let mean = |ns: u64| Cell::from(Nanos(ns.checked_div(rows).unwrap_or(0)));
            let stall = if place == Place::Platform { facts.host_stall } else { facts.own_stall };
            let words = rule.words.replace("{share}", "{share} of the time of {over}");
            let figures = [
                ("share", Value::Share(share(ns)).into()),
                ("over", over.into()),
                ("mean", mean(ns)),
                ("lead", mean(lead_ns)),
                ("drops", Value::Count(facts.listen_drops).into()),
                ("culprit", facts.culprit.as_deref().unwrap_or_default().into()),
                ("busiest", facts.busiest.as_deref().unwrap_or_default().into()),
                ("pauses", facts.pauses.as_deref().unwrap_or("its pauses").into()),
                ("stall", stall.unwrap_or_default().into()),
            ];
            let finding = phrase(&words, figures);
            let finding = match held_up(chained(place, facts), ns, rows) {
                Some(held_up) => finding.then(" ", held_up),
                None => finding,
            };
            let text = finding.to_string();
            Some(Sentence { place, rule: rule.id, share: share(ns), text, finding })
        })
        .collect();
    let blamed = blamed(&ranked, total);
    let place = blamed.unwrap_or(Place::Undecided);
    let own = sentences.iter().find(|sentence| sentence.place == place).filter(|_| blamed.is_some());
    let blame = Blame {
        place,
        share: places.get(&place).map_or(0.0, |time| share(time.0)),
        over: over.to_owned(),
        explained_ns: total,
        rows,
        sentence: own.map_or_else(|| undecided(&ranked, total, over), |own| own.text.clone()),
        places: ranked.iter().map(|(place, (ns, ..))| (place.name(), share(*ns))).collect(),
    };
    (blame, sentences)
}

fn chained(place: Place, facts: &Facts) -> u64 {
    let of_place = Segment::ALL.into_iter().filter(|&segment| place_of(segment, facts) == place);
    of_place.fold(0, |sum, segment| sum.saturating_add(facts.chained.get(segment)))
}

/// How much of the place's time is waits for connections. Without this addition a figure would not agree with the table,
/// which lists such waits under the pool.
fn held_up(chained: u64, ns: u64, rows: u64) -> Option<Phrase> {
    if u128::from(chained) * 10 < u128::from(ns) || chained == 0 {
        return None;
    }
    let mean = Nanos(chained.min(ns).checked_div(rows).unwrap_or(0));
    Some(phrase(
        "{held_up} of that is waiting for connections that were occupied because of it.",
        [("held_up", mean.into())],
    ))
}

/// `words` with the `figures` for which it has placeholders.
pub(crate) fn phrase<const N: usize>(words: &str, figures: [(&str, Cell); N]) -> Phrase {
    let used = figures.into_iter().filter(|(name, _)| words.contains(&format!("{{{name}}}")));
    used.fold(Phrase::new(words), |phrase, (name, figure)| phrase.with(name, figure))
}

fn blamed(ranked: &[(Place, Time)], total: u64) -> Option<Place> {
    let (place, (most, ..)) = ranked.first()?;
    let next = ranked.get(1).map_or(0, |(_, (ns, ..))| *ns);
    let is_clear = *most as f64 >= LEADS * total as f64 && *most as f64 >= CLEARLY * next as f64;
    (is_clear && *most > 0).then_some(*place)
}

fn undecided(ranked: &[(Place, Time)], total: u64, over: &str) -> String {
    let share = |ns: u64| percent(ns as f64 / total.max(1) as f64);
    match ranked {
        [(one, (most, ..)), (other, (next, ..)), ..] if total > 0 => format!(
            "No single place is to blame for the time of {over}: {} has {}, {} has {}.",
            one.name(),
            share(*most),
            other.name(),
            share(*next)
        ),
        _ => format!("There is no time to explain in {over}."),
    }
}

/// The time of each place, and its largest segment.
fn by_place(sums: &Ledger, facts: &Facts) -> ByPlace {
    let mut places = ByPlace::new();
    for segment in Segment::ALL {
        let ns = sums.get(segment);
        if ns == 0 {
            continue;
        }
        let place = place_of(segment, facts);
        let (sum, lead, most) = places.entry(place).or_default();
        *sum = sum.saturating_add(ns);
        if ns > *most {
            (*lead, *most) = (Some(segment), ns);
        }
    }
    give_up(&mut places, &[Place::Client], facts.client_stalled, Place::Platform);
    let server =
        [Place::HandlerCpu, Place::HandlerBlocked, Place::SocketQueue, Place::Network, Place::Undecided];
    give_up(&mut places, &server, facts.server_stalled, Place::Platform);
    // The network continues during a pause, and a thread that waits for a CPU is not paused.
    let paused = [Place::HandlerCpu, Place::HandlerBlocked, Place::SocketQueue, Place::Undecided];
    give_up(&mut places, &paused, facts.server_paused, Place::Runtime);
    places.retain(|_, (ns, ..)| *ns > 0);
    places
}

/// The place to which a segment is attributed, given the facts.
fn place_of(segment: Segment, facts: &Facts) -> Place {
    match segment {
        // A listen queue that overflows is a server that does not accept.
        Segment::Connect if facts.listen_drops > 0 => Place::SocketQueue,
        // The thread may have worked on requests that were not kept.
        Segment::SocketQueue | Segment::LoopWait if !facts.all_kept => Place::Undecided,
        segment => segment.place(),
    }
}

/// Moves `stalled` of the time of `from` to `to`, which kept them from running. Each gives the same share of its time,
/// because it is unknown which of them was affected.
fn give_up(places: &mut ByPlace, from: &[Place], stalled: u64, to: Place) {
    let all: u128 = from.iter().filter_map(|place| places.get(place)).map(|(ns, ..)| u128::from(*ns)).sum();
    let stalled = u128::from(stalled).min(all);
    let mut moved = 0u64;
    for place in from {
        let Some((ns, _, most)) = places.get_mut(place) else { continue };
        // At most `ns`, because `stalled` is at most the sum of all.
        let some = (u128::from(*ns) * stalled / all.max(1)) as u64;
        *ns -= some;
        // It is unknown from which segment the time was taken: the segment has at most what is left of all.
        *most = (*most).min(*ns);
        moved = some.saturating_add(moved);
    }
    if moved > 0 {
        let (sum, lead, most) = places.entry(to).or_default();
        *sum = sum.saturating_add(moved);
        if moved > *most {
            (*lead, *most) = (None, moved);
        }
    }
}

#[cfg(test)]
mod tests;
