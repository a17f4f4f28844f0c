//! What else happened on the hosts: stalls (from `hiccup`), CPU use (from `cpu`), planted disturbances (from
//! `disturb`), and pauses of JVMs.
//!
//! Lines are read as far as they have the expected fields: a line of another version yields less, and is not an error.

use std::collections::BTreeMap;

use record::Observed;
use record::observation::disturb::{RelayAddresses, Span};
use record::observation::{ObservationBody, ObservationKind};
use serde::Serialize;
use serde_json::Value;
use units::Nanos;

use crate::clocks::same_boot;
use crate::inputs::Client;
use crate::runtime::Runtime;
use crate::stalls::{self, Meters, Stall, Stalls};

/// A record of `hiccup`, `cpu`, `disturb` or a JVM, and how its times map to the client's.
#[derive(Debug)]
pub struct HostRecord {
    pub observed: Observed,
    /// The directory, for messages.
    pub name: String,
}

/// What the records of the hosts say of the client's period, on its clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Surroundings {
    /// Stalls of this host that a record of `hiccup` tells of, of all its meters at once, and the longest.
    pub stalls: u64,
    pub longest_stall_ns: u64,
    /// The processes that used most CPU time, by records of `cpu`.
    pub busiest: Vec<Busy>,
    /// Disturbances in effect during this period; those that were planned and not carried out do not count.
    pub disturbances: u64,
    /// The same, according to their records.
    pub planted: Vec<Planted>,
    /// When JVMs were stalled, according to their own records.
    pub runtimes: Vec<Runtime>,
    #[serde(skip)]
    pub(crate) stall_spans: Stalls,
    /// Records of another host or boot, of which nothing is used.
    #[serde(skip)]
    pub(crate) ignored: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Busy {
    pub pid: u64,
    pub name: String,
    pub cpu_ns: u64,
}

/// What a record of `disturb` did in the client's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Planted {
    /// `pause`, `cpu`, `memory`, `disk` or `net`.
    pub means: String,
    /// What was done to whom, for people.
    pub what: String,
    /// Who was disturbed, where it is one process.
    pub pid: Option<u32>,
    /// Between which addresses connections were disturbed, where it was a relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayAddresses>,
    pub times: u64,
    /// For how long of the run it was in effect.
    pub in_effect_ns: u64,
}

/// How many processes are named.
const BUSIEST: usize = 5;

impl Surroundings {
    /// From the records of the client's own host; `from` and `to` bound its run.
    pub(crate) fn of(client: &Client, records: &[HostRecord], from: u64, to: u64) -> Surroundings {
        let mut found = Surroundings::default();
        let mut used: BTreeMap<(u64, String), u64> = BTreeMap::new();
        for record in records {
            let observed = &record.observed;
            let (own, other) = (&client.document, &observed.document);
            let Some(later) = same_boot((&own.host, &own.time), (&other.host, &other.time)) else {
                found.ignored.push(record.name.clone());
                continue;
            };
            let zero = i128::from(other.time.started_monotonic_ns) - later;
            let Ok(zero) = u64::try_from(zero) else { continue };
            let mut meters = Meters::of(observed);
            let inside = |start: u64, end: u64| start < to && end > from;
            for line in &observed.lines {
                let start = zero.saturating_add(line.start.0);
                if !inside(start, start.saturating_add(line.length.0)) {
                    continue;
                }
                let Ok(fields) = line.fields::<Value>() else { continue };
                match observed.document.body.kind() {
                    ObservationKind::Hiccup => meters.add(&fields, zero),
                    ObservationKind::Cpu => add_use(&fields, &mut used),
                    _ => {}
                }
            }
            found.stall_spans.add(&meters);
            found.runtimes.extend(Runtime::of(observed, zero, (from, to)));
            if let Some(planted) = planted(observed, zero, (from, to)) {
                found.disturbances = found.disturbances.saturating_add(planted.times);
                found.planted.push(planted);
            }
        }
        let during: Vec<Stall> = stalls::within(&found.stall_spans.all, from, to).copied().collect();
        found.stalls = during.len() as u64;
        found.longest_stall_ns = during.iter().map(|stall| stall.to - stall.from).max().unwrap_or(0);
        let mut busiest: Vec<_> =
            used.into_iter().map(|((pid, name), cpu_ns)| Busy { pid, name, cpu_ns }).collect();
        busiest.sort_by_key(|busy| std::cmp::Reverse(busy.cpu_ns));
        busiest.truncate(BUSIEST);
        found.busiest = busiest;
        found
    }

    /// The longest stall of the host not caused by a process on it that overlaps `from..to`.
    pub(crate) fn longest(&self, from: u64, to: u64) -> Option<Nanos> {
        stalls::within(&self.stall_spans.by_platform, from, to)
            .map(|stall| Nanos(stall.to - stall.from))
            .max()
    }

    /// How much of `from..to` the host was stalled, whatever the cause.
    pub(crate) fn stalled(&self, from: u64, to: u64) -> u64 {
        stalls::overlap(&self.stall_spans.all, from, to)
    }

    /// How much of `from..to` it was stalled from outside, which excuses every thread that was ready to run.
    pub(crate) fn excused(&self, from: u64, to: u64) -> u64 {
        stalls::overlap(&self.stall_spans.by_platform, from, to)
    }
}

/// The actual episodes of `disturb` within `from..to`.
fn planted(observed: &Observed, zero: u64, (from, to): (u64, u64)) -> Option<Planted> {
    let ObservationBody::Disturb(results) = &observed.document.body else { return None };
    let episodes = observed.events.iter().filter_map(|event| event.disturbance.as_ref());
    let stretch = |(real, intended): (&Span, &Span)| {
        // One that was not seen to end has ended as planned at the latest: if `disturb` is killed, its guard ends it.
        let planned =
            || Some(intended.end_ns?.saturating_sub(intended.begin_ns).saturating_add(real.begin_ns));
        let until = real.end_ns.or_else(planned).map_or(u64::MAX, |end| zero.saturating_add(end));
        Stall { from: zero.saturating_add(real.begin_ns), to: until }
    };
    let spans = episodes.filter_map(|episode| Some((episode.real.as_ref()?, &episode.intended)));
    let real: Vec<Stall> = spans.map(stretch).collect();
    let times = real.iter().filter(|one| one.from < to && one.to > from).count() as u64;
    let planted = || Planted {
        means: results.means.clone(),
        what: results.what.clone(),
        pid: results.pid,
        relay: results.relay.clone(),
        times,
        in_effect_ns: stalls::overlap(&stalls::merged(real), from, to),
    };
    (times > 0).then(planted)
}

fn add_use(fields: &Value, used: &mut BTreeMap<(u64, String), u64>) {
    for process in fields.get("processes").and_then(Value::as_array).into_iter().flatten() {
        let (Some(pid), Some(name), Some(run)) = (
            process.get("pid").and_then(Value::as_u64),
            process.get("name").and_then(Value::as_str),
            process.pointer("/used/run_ns").and_then(Value::as_u64),
        ) else {
            continue;
        };
        let sum = used.entry((pid, name.to_owned())).or_default();
        *sum = sum.saturating_add(run);
    }
}
