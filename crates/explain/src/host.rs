//! What else happened on the hosts: stalls by a record of `hiccup`, CPU use by one of `cpu`, planted disturbances.
//!
//! Their lines are read as far as they have the fields that are looked for: a line of another version tells less, and
//! is no error.

use std::collections::BTreeMap;

use record::observation::ObservationKind;
use record::{Event, Observed};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use units::Nanos;

use crate::clocks::same_boot;
use crate::explanation::Client;

/// A record of `hiccup`, `cpu` or `disturb`, and where its times lie on the client's.
#[derive(Debug)]
pub struct HostRecord {
    pub observed: Observed,
    /// For people: the folder.
    pub name: String,
}

/// One stretch in which a host stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stall {
    /// On the client's monotonic clock.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// By hypervisor, interrupts or the kernel itself: whoever ran had no part in it.
    pub(crate) of_platform: bool,
}

/// What the records of the hosts say of the client's period, on its clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Surroundings {
    /// Stalls of this host that a record of `hiccup` tells of, and the longest.
    pub stalls: u64,
    pub longest_stall_ns: u64,
    /// The processes that used most CPU time, by records of `cpu`.
    pub busiest: Vec<Busy>,
    /// Disturbances that were planted meanwhile.
    pub disturbances: u64,
    #[serde(skip)]
    pub(crate) told: Vec<Stall>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Busy {
    pub pid: u64,
    pub name: String,
    pub cpu_ns: u64,
}

/// How many processes are named.
const BUSIEST: usize = 5;

impl Surroundings {
    /// Of the records of the client's own host; `from` and `to` are its run.
    pub(crate) fn of(client: &Client, records: &[HostRecord], from: u64, to: u64) -> Surroundings {
        let mut found = Surroundings::default();
        let mut used: BTreeMap<(u64, String), u64> = BTreeMap::new();
        for record in records {
            let observed = &record.observed;
            let (own, other) = (&client.document, &observed.document);
            let Some(later) = same_boot((&own.host, &own.time), (&other.host, &other.time)) else { continue };
            let zero = i128::from(other.time.started_monotonic_ns) - later;
            let Ok(zero) = u64::try_from(zero) else { continue };
            let inside = |start: u64, end: u64| start < to && end > from;
            for line in &observed.lines {
                let start = zero.saturating_add(line.start.0);
                if !inside(start, start.saturating_add(line.length.0)) {
                    continue;
                }
                let Ok(fields) = line.fields::<Value>() else { continue };
                match observed.document.kind {
                    ObservationKind::Hiccup => found.told.extend(stalls(&fields, zero)),
                    ObservationKind::Cpu => add_use(&fields, &mut used),
                    _ => {}
                }
            }
            if observed.document.kind == ObservationKind::Disturb {
                let planted = observed.events.iter().filter(|event| event.kind == "disturb");
                let at = |event: &Event| zero.saturating_add(event.at_ns);
                let during = planted.filter(|event| inside(at(event), at(event).saturating_add(1)));
                found.disturbances += during.count() as u64;
            }
        }
        found.told.retain(|stall| stall.from < to && stall.to > from);
        found.told = merged(found.told);
        found.stalls = found.told.len() as u64;
        found.longest_stall_ns = found.told.iter().map(|stall| stall.to - stall.from).max().unwrap_or(0);
        let mut busiest: Vec<_> =
            used.into_iter().map(|((pid, name), cpu_ns)| Busy { pid, name, cpu_ns }).collect();
        busiest.sort_by_key(|busy| std::cmp::Reverse(busy.cpu_ns));
        busiest.truncate(BUSIEST);
        found.busiest = busiest;
        found
    }

    /// The longest stall that lies within `from..to` in part.
    pub(crate) fn longest(&self, from: u64, to: u64) -> Option<Nanos> {
        let first = self.told.partition_point(|stall| stall.to <= from);
        let stalls = self.told[first..].iter().take_while(|stall| stall.from < to);
        stalls.map(|stall| Nanos(stall.to - stall.from)).max()
    }

    /// How much of `from..to` the host stood still; `of_platform`: by nobody's doing on it.
    pub(crate) fn stalled(&self, from: u64, to: u64, of_platform: bool) -> u64 {
        let first = self.told.partition_point(|stall| stall.to <= from);
        let stalls = self.told[first..].iter().take_while(|stall| stall.from < to);
        let counted = stalls.filter(|stall| stall.of_platform || !of_platform);
        counted.map(|stall| stall.to.min(to) - stall.from.max(from)).sum()
    }
}

/// The stalls of a line of `hiccup`, but those in which the meter itself was stopped.
fn stalls(fields: &Value, zero: u64) -> Vec<Stall> {
    let of = |value: &Value, name: &str| value.pointer(name).and_then(Value::as_u64).unwrap_or(0);
    let told = fields.get("stalls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let stalls = told.iter().filter_map(|stall| {
        let length = of(stall, "/length_ns");
        let cause = |name: &str| of(stall, &format!("/causes_ns/{name}"));
        let by_platform = cause("stolen").saturating_add(cause("unknown"));
        let from = zero.saturating_add(of(stall, "/at_ns"));
        let is_stopped = cause("stopped") > length / 2;
        let of_platform = by_platform > length / 2;
        (!is_stopped && length > 0).then(|| Stall { from, to: from.saturating_add(length), of_platform })
    });
    stalls.collect()
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

/// In order and without overlap: meters on several CPUs see the same stall.
fn merged(mut stalls: Vec<Stall>) -> Vec<Stall> {
    stalls.sort_by_key(|stall| (stall.from, stall.to));
    let mut merged: Vec<Stall> = Vec::with_capacity(stalls.len());
    for stall in stalls {
        match merged.last_mut() {
            Some(last) if stall.from < last.to => {
                last.to = last.to.max(stall.to);
                last.of_platform |= stall.of_platform;
            }
            _ => merged.push(stall),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stalls_of_several_meters_count_once_and_a_stopped_meter_tells_nothing() {
        let line = json!({ "stalls": [
            { "at_ns": 100, "length_ns": 50, "causes_ns": { "stolen": 50 } },
            { "at_ns": 120, "length_ns": 60, "causes_ns": { "run_queue": 60 } },
            { "at_ns": 500, "length_ns": 40, "causes_ns": { "stopped": 40 } },
            { "at_ns": 600, "length_ns": 10, "causes_ns": { "run_queue": 10 } },
        ]});
        let told = merged(stalls(&line, 1_000));
        let surroundings = Surroundings { told, ..Surroundings::default() };
        assert_eq!(surroundings.told.len(), 2);
        assert_eq!(surroundings.stalled(0, 5_000, false), 80 + 10);
        assert_eq!(surroundings.stalled(0, 5_000, true), 80);
        assert_eq!(surroundings.stalled(1_130, 1_140, false), 10);
        assert!(stalls(&json!({ "stalls": 7 }), 0).is_empty());
    }
}
