//! Sentences that name the cause with its figures, by the rules of [`crate::rule_table`].
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
use crate::rule_table::{Fact, RULES};

/// What is known in addition to the time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// `hog (pid 77), 41 ms in all`.
    pub(crate) culprit: Option<String>,
    /// `make (pid 78) with 3.2 s`.
    pub(crate) busiest: Option<String>,
    /// `worker (tid 80), which served "COMMIT"`.
    pub(crate) owner: Option<String>,
    /// `10.0.0.9:3306`.
    pub(crate) upstream: Option<String>,
    /// `SIGSTOP`.
    pub(crate) stop: Option<String>,
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
            Fact::Owner => self.owner.is_some(),
            Fact::Upstream => self.upstream.is_some(),
            Fact::Stop => self.stop.is_some(),
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
        .filter(|(place, _)| *place != Place::CpuContention || lacks_cpu(sums))
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
                ("owner", facts.owner.as_deref().unwrap_or_default().into()),
                ("upstream", facts.upstream.as_deref().unwrap_or_default().into()),
                ("stop", facts.stop.as_deref().unwrap_or_default().into()),
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

/// Whether the server's threads had a CPU for less than two thirds of the time in which they wanted one. On a host that
/// does something else now and then, they wait for a moment, and nobody has to look for a culprit.
fn lacks_cpu(sums: &Ledger) -> bool {
    let all = |segments: &[Segment]| segments.iter().map(|&one| u128::from(sums.get(one))).sum::<u128>();
    let waited = all(&[Segment::RunQueue, Segment::QueueRunQueue, Segment::BehindRunQueue]);
    waited * 2 >= all(&[Segment::OnCpu, Segment::BehindCpu])
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
