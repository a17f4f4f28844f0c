//! Sentences that name the culprit with the figure that proves it. The rules are data: a condition and words.
//!
//! First the time of the scope is summed by place. A place with a share gets the first rule of the table that is of
//! that place, whose segment leads within it and whose fact holds. Who has most of the time is to blame, if it is
//! enough and clearly more than the next.

use std::collections::BTreeMap;

use findings::view::{Cell, Phrase, Value};
use serde::Serialize;
use units::{Nanos, percent};

use crate::ledger::Ledger;
use crate::place::{Place, Segment};

/// What a rule may ask for beside the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    Any,
    /// Somebody is known who ran while the server's threads waited for a CPU.
    Culprit,
    /// Nobody is, but who used most CPU time on the host meanwhile.
    Busiest,
    /// The client's own meter stalled too.
    OwnStall,
    /// The client and the server were joined by time: something lies between them.
    Between,
    /// Listeners of this host turned connections away while connects hung.
    ListenDrops,
    /// There is no record of a server.
    NoServer,
}

/// A rule of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) place: Place,
    /// Which segment must have most of the place's time; empty for any.
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
        "The client stood still: {mean} per request, {share}, passed while it did not take requests up or read answers that had arrived; its own meter stalled for up to {stall} as well.",
    ),
    rule(
        "client-late-to-send",
        Place::Client,
        &[Segment::ScheduleLag],
        Fact::Any,
        "The load generator fell behind schedule by {mean} per request, {share}, of which schedule_lag {lead}; the server had not received them yet.",
    ),
    rule(
        "client-late-to-read",
        Place::Client,
        &[Segment::ClientLag],
        Fact::Any,
        "The client read answers late: {mean} per request, {share}, of which client_lag {lead} after they had arrived in its kernel.",
    ),
    rule(
        "host-stolen",
        Place::Platform,
        &[Segment::Stolen, Segment::BehindStolen],
        Fact::Any,
        "The server's host had its CPUs elsewhere: interrupts or the hypervisor took {mean} per request, {share}.",
    ),
    rule(
        "host-stalled",
        Place::Platform,
        &[],
        Fact::Any,
        "The host did not run: {mean} per request, {share}, lies within stalls that the hiccup record tells of, up to {stall} long.",
    ),
    rule(
        "runtime-paused",
        Place::Runtime,
        &[],
        Fact::Any,
        "The server's JVM stood still: {mean} per request, {share}, lies within {pauses}.",
    ),
    rule(
        "network-between",
        Place::Network,
        &[],
        Fact::Between,
        "The way between client and server is slow, with whatever lies on it (their connections have different ends): {mean} per request, {share}.",
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
        "TCP connects are slow: {lead} per request, {share} with the rest of the network's time; look for lost packets, or a full listen queue of the server.",
    ),
    rule(
        "network-both-ways",
        Place::Network,
        &[],
        Fact::Any,
        "The network is slow: {mean} per request, {share}, is neither the client's nor the server's.",
    ),
    rule(
        "listen-queue",
        Place::SocketQueue,
        &[Segment::Connect],
        Fact::ListenDrops,
        "The server does not accept: connects take {lead} per request, {share}, and meanwhile a listener of this host turned {drops} away.",
    ),
    rule(
        "socket-queue",
        Place::SocketQueue,
        &[],
        Fact::Any,
        "The server does not read: requests lay {mean} in its kernel, {share}, while the thread that was to read them worked on no other request.",
    ),
    rule(
        "cpu-behind",
        Place::HandlerCpu,
        &[Segment::BehindCpu],
        Fact::Any,
        "The server's thread works on other requests: each waits {lead} behind their CPU time, {mean} with its own, {share}.",
    ),
    rule(
        "cpu-yields",
        Place::HandlerCpu,
        &[Segment::Yielded],
        Fact::Any,
        "The server gives the CPU away by itself (sched_yield): {lead} per request, {share} with its work.",
    ),
    rule(
        "cpu-handler",
        Place::HandlerCpu,
        &[],
        Fact::Any,
        "The server works: {mean} per request on the CPU, {share}.",
    ),
    rule(
        "blocked-disk",
        Place::HandlerBlocked,
        &[Segment::Disk],
        Fact::Any,
        "The server waits for its disk: {lead} per request; blocked in all {mean}, {share}.",
    ),
    rule(
        "blocked-lock",
        Place::HandlerBlocked,
        &[Segment::Lock],
        Fact::Any,
        "The server waits for a lock of its own: {lead} per request; blocked in all {mean}, {share}.",
    ),
    rule(
        "blocked-upstream",
        Place::HandlerBlocked,
        &[Segment::Upstream],
        Fact::Any,
        "The server waits for another server: {lead} per request on another connection; blocked in all {mean}, {share}.",
    ),
    rule(
        "blocked-behind",
        Place::HandlerBlocked,
        &[Segment::BehindBlocked],
        Fact::Any,
        "The server's thread is blocked for other requests: each waits {lead} behind them, {mean} with its own waits, {share}.",
    ),
    rule(
        "blocked-loop",
        Place::HandlerBlocked,
        &[Segment::LoopWait],
        Fact::Any,
        "No thread of the server works on the request for {lead}: it waits for a timer, a pool or another server; in all {mean}, {share}.",
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
        "The server waits for a CPU: {mean} per request, {share}, ready to run while others ran, most of all {culprit}.",
    ),
    rule(
        "contention-busy",
        Place::CpuContention,
        &[],
        Fact::Busiest,
        "The server waits for a CPU: {mean} per request, {share}, ready to run while others ran; the most CPU time on this host had {busiest}.",
    ),
    rule(
        "contention",
        Place::CpuContention,
        &[],
        Fact::Any,
        "The server waits for a CPU: {mean} per request, {share}, ready to run while others ran.",
    ),
    rule(
        "throttled",
        Place::Throttled,
        &[],
        Fact::Any,
        "The server is out of its CPU quota: {mean} per request, {share}, in which its control group was throttled; raise cpu.max.",
    ),
    rule(
        "pool",
        Place::Pool,
        &[],
        Fact::Any,
        "Requests wait for a connection of the client's pool: {mean} per request, {share}. The pool is too small for this load, or the server too slow for this pool.",
    ),
    rule(
        "no-server",
        Place::Undecided,
        &[Segment::ServerAndNetwork],
        Fact::NoServer,
        "Server or network: {lead} per request, {share}; without a record of `parallax watch` they cannot be told apart.",
    ),
    rule(
        "not-seen",
        Place::Undecided,
        &[Segment::ServerAndNetwork],
        Fact::Any,
        "Server or network: {lead} per request, {share}, of requests that the server's observer did not see or keep.",
    ),
    rule(
        "no-arrival",
        Place::Undecided,
        &[Segment::ToServerAndQueue],
        Fact::Any,
        "The network, or a server that does not read: {lead} per request, {share}; without stamps of the arrival at the server they cannot be told apart.",
    ),
    rule(
        "waits-unseen",
        Place::Undecided,
        &[Segment::SocketQueue, Segment::LoopWait],
        Fact::Any,
        "Requests lie at the server for {lead} and nobody is seen to work on them; {mean} with the rest of what is undecided, {share}. Whether its thread was busy with requests that were not kept is known with `watch --requests all`.",
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
        "Connections are slow to be made ready (handshake, login): {mean} per request, {share}; keep them open, or look at the server's own record.",
    ),
];

/// What is known beside the time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// `hog (pid 77), 41 ms in all`.
    pub(crate) culprit: Option<String>,
    /// `make (pid 78) with 3.2 s`.
    pub(crate) busiest: Option<String>,
    pub(crate) own_stall: Option<Nanos>,
    pub(crate) host_stall: Option<Nanos>,
    pub(crate) between: bool,
    /// Connections that listeners of this host turned away while connects of the scope hung.
    pub(crate) listen_drops: u64,
    pub(crate) no_server: bool,
    /// Of the scope's time: what of the client's lies within stalls of its host, and what of the server's does.
    pub(crate) client_stalled: u64,
    pub(crate) server_stalled: u64,
    /// Likewise, what of the server's lies within pauses of its JVM; and which these are: `3 pauses of up to 40 ms`.
    pub(crate) server_paused: u64,
    pub(crate) pauses: Option<String>,
    /// Of the scope's time: waits for a connection, put where it was held up.
    pub(crate) chained: Ledger,
    /// Every request of the servers was kept: a thread that is seen to do nothing for others did nothing for them.
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
    /// Of the time that was to be explained, between 0 and 1.
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

/// Whose fault it was.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Blame {
    pub place: Place,
    /// Of the time that was to be explained, between 0 and 1.
    pub share: f64,
    /// Which time that is, for people.
    pub over: String,
    /// Its length, of all those requests.
    pub explained_ns: u64,
    pub rows: u64,
    /// The first sentence.
    pub sentence: String,
    /// The share of every place, by its word.
    pub places: BTreeMap<&'static str, f64>,
}

/// A place with less of the time than this is not spoken of.
const WORTH_TELLING: f64 = 0.1;

/// A place is to blame when it has this much of the time.
const LEADS: f64 = 0.4;

/// And this many times as much as the next.
const CLEARLY: f64 = 1.2;

/// The time of a place, its leading segment and that segment's time.
type Time = (u64, Option<Segment>, u64);

type ByPlace = BTreeMap<Place, Time>;

/// The sentences on `sums`, the place with most first, and who is to blame. `rows` is how many requests it is of.
pub(crate) fn judge(over: &str, sums: &Ledger, rows: u64, facts: &Facts) -> (Blame, Vec<Sentence>) {
    let total = sums.sum();
    let places = by_place(sums, facts);
    let share = |ns: u64| if total == 0 { 0.0 } else { ns as f64 / total as f64 };
    let mut ranked: Vec<_> = places.iter().map(|(place, told)| (*place, *told)).collect();
    ranked.sort_by_key(|(_, (ns, ..))| std::cmp::Reverse(*ns));
    let sentences: Vec<_> = ranked
        .iter()
        .filter(|(_, (ns, ..))| share(*ns) >= WORTH_TELLING)
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
        share: places.get(&place).map_or(0.0, |told| share(told.0)),
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

/// Without it a figure could not be found in the table, where waits for a connection are what they are.
fn held_up(chained: u64, ns: u64, rows: u64) -> Option<Phrase> {
    if u128::from(chained) * 10 < u128::from(ns) || chained == 0 {
        return None;
    }
    let mean = Nanos(chained.min(ns).checked_div(rows).unwrap_or(0));
    Some(phrase("{held_up} of that are waits for connections that it held up.", [("held_up", mean.into())]))
}

/// `words` with those of `figures` that it has places for.
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
            "No one place is to blame for the time of {over}: {} has {}, {} has {}.",
            one.name(),
            share(*most),
            other.name(),
            share(*next)
        ),
        _ => format!("There is no time to explain in {over}."),
    }
}

/// The time of each place, and what leads within it.
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
    // The network goes on in a pause, and who waits for a CPU is not paused.
    let paused = [Place::HandlerCpu, Place::HandlerBlocked, Place::SocketQueue, Place::Undecided];
    give_up(&mut places, &paused, facts.server_paused, Place::Runtime);
    places.retain(|_, (ns, ..)| *ns > 0);
    places
}

/// Who answers for a segment, with what is known beside the time.
fn place_of(segment: Segment, facts: &Facts) -> Place {
    match segment {
        // A listen queue that overflows is a server that does not accept.
        Segment::Connect if facts.listen_drops > 0 => Place::SocketQueue,
        // The thread may have worked on requests that were not kept.
        Segment::SocketQueue | Segment::LoopWait if !facts.all_kept => Place::Undecided,
        segment => segment.place(),
    }
}

/// `stalled` of the time of `from` is that of `to`, which kept them from running. Each gives as much of its time, for
/// which of them it hit is not told.
fn give_up(places: &mut ByPlace, from: &[Place], stalled: u64, to: Place) {
    let all: u128 = from.iter().filter_map(|place| places.get(place)).map(|(ns, ..)| u128::from(*ns)).sum();
    let stalled = u128::from(stalled).min(all);
    let mut moved = 0u64;
    for place in from {
        let Some((ns, _, most)) = places.get_mut(place) else { continue };
        // No more than `ns`, as `stalled` is no more than all.
        let some = (u128::from(*ns) * stalled / all.max(1)) as u64;
        *ns -= some;
        // Which segment was taken from is not told: no more of it is left than of all.
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
