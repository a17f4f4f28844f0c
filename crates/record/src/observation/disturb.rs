//! What `disturb` records: which disturbances were made, and when.
//!
//! Wire types only; the verb fills them, `report` and `explain` read them. The episodes are in `events.ndjson`, each as
//! one event of the kind `disturb`; the series of such a record has no lines.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::Event;

/// The `kind` of the events that have an [`Episode`].
pub const EVENT: &str = "disturb";

/// The `kind` of an event that says that an [`Episode`] has begun. Its end is in an event of the kind [`EVENT`], unless
/// the process was killed.
pub const BEGUN: &str = "disturb_begun";

/// Removes the begins of episodes whose end is known too, and adds up what a process that was killed could not.
pub(super) fn settle(results: &mut DisturbResults, events: &mut Vec<Event>) {
    let over: BTreeSet<u64> = events.iter().filter(|event| event.kind == EVENT).filter_map(number).collect();
    events.retain(|event| event.kind != BEGUN || number(event).is_none_or(|n| !over.contains(&n)));
    if results.over.is_some() {
        return;
    }
    let episodes: Vec<&Episode> = events.iter().filter_map(|event| event.disturbance.as_ref()).collect();
    results.episodes = episodes.len() as u64;
    results.skipped = episodes.iter().filter(|episode| episode.real.is_none()).count() as u64;
    let real = episodes.iter().filter_map(|episode| episode.real);
    let lengths = real.filter_map(|real| Some(real.end_ns?.saturating_sub(real.begin_ns)));
    results.disturbed_ns = lengths.fold(0, u64::saturating_add);
}

fn number(event: &Event) -> Option<u64> {
    event.disturbance.as_ref().map(|episode| episode.n)
}

/// What `disturb` did, over the whole record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct DisturbResults {
    /// `pause`, `cpu`, `memory`, `disk` or `net`.
    pub means: String,
    /// What was done to whom, for people; one line.
    pub what: String,
    /// Who was disturbed, where it is one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Between which addresses connections were disturbed, where it is a relay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayAddresses>,
    /// What the begins of the episodes were drawn from.
    pub seed: u64,
    /// How many were due, as far as the run went.
    pub episodes: u64,
    /// How many of those were not done; their events say why.
    pub skipped: u64,
    /// How long it was disturbed, over all episodes.
    pub disturbed_ns: u64,
    /// Why the run was over; absent while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
}

/// The two ends of a relay, each `host:port`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct RelayAddresses {
    /// Where clients connect.
    pub listen: String,
    /// Where their connections are forwarded to.
    pub target: String,
}

impl RelayAddresses {
    /// Parses the text of a record of version 1.0, which contains the addresses nowhere else: `…, relaying A to B`.
    pub(super) fn of_1_0(what: &str) -> Option<RelayAddresses> {
        let (listen, target) = what.rsplit_once("relaying ")?.1.split_once(" to ")?;
        let is_address = |text: &str| text.parse::<SocketAddr>().is_ok();
        let addresses = || RelayAddresses { listen: listen.to_owned(), target: target.to_owned() };
        (is_address(listen) && is_address(target)).then(addresses)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// All that was planned has been.
    Schedule,
    /// Ended by hand.
    Stopped,
    /// Who was disturbed had ended.
    VictimGone,
    /// Something went wrong; an event of the kind `warning` says what.
    Broken,
}

/// One disturbance: what was intended, and what was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Episode {
    /// Its number in the schedule, from 0.
    pub n: u64,
    pub intended: Span,
    /// When it really was; left out if it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<Span>,
    /// Its figures, each with the unit in its name: `cpu_ns`, `fsyncs`, `relayed_bytes`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, u64>,
    /// What was not as intended, as text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A span of time, as offsets from the record's zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Span {
    pub begin_ns: u64,
    /// Left out if it was to last until somebody ended it, and if the real end is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, n: u64, end_ns: Option<u64>) -> Event {
        let real = Span { begin_ns: 10, end_ns };
        let episode = Episode { n, intended: real, real: Some(real), facts: BTreeMap::new(), note: None };
        Event { disturbance: Some(episode), ..Event::new(10, kind, "pause".to_owned()) }
    }

    /// If this fails, the record of a `disturb` that was killed does not say that its victim was stopped then.
    #[test]
    fn what_has_begun_and_not_ended_stays() {
        let mut events = vec![event(BEGUN, 0, None), event(EVENT, 0, Some(30)), event(BEGUN, 1, None)];
        let mut results = DisturbResults::default();
        settle(&mut results, &mut events);
        let left: Vec<_> = events.iter().map(|event| (event.kind.as_str(), number(event))).collect();
        assert_eq!(left, [(EVENT, Some(0)), (BEGUN, Some(1))]);
        assert_eq!((results.episodes, results.skipped, results.disturbed_ns), (2, 0, 20));
    }
}
