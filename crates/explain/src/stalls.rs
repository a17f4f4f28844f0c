//! When a host was stalled, from the meters of a record of `hiccup`: when all of them stalled at once.
//!
//! One stalled meter shows only that its CPU did not run it; another program may have been running there.

use std::collections::BTreeMap;

use record::Observed;
use serde_json::Value;

/// One period, on the client's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// When a host was stalled; in order and without overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Stalls {
    pub(crate) all: Vec<Stall>,
    /// Not caused by a process on the host.
    pub(crate) by_platform: Vec<Stall>,
}

impl Stalls {
    /// Adds the stalls of the meters of another record.
    pub(crate) fn add(&mut self, meters: &Meters) {
        self.all = merged([self.all.as_slice(), &meters.at_once(|_| true)].concat());
        // If several CPUs stall at once and the kernel's accounts show no reason, no task of the host caused it.
        let is_by_platform = |stall: &MeterStall| stall.stolen || (stall.unexplained && meters.count > 1);
        self.by_platform = merged([self.by_platform.as_slice(), &meters.at_once(is_by_platform)].concat());
    }
}

/// The meters of one record.
#[derive(Debug)]
pub(crate) struct Meters {
    count: usize,
    /// By CPU; `None` for a meter that is not pinned.
    stalls_by_meter: BTreeMap<Option<u64>, Vec<MeterStall>>,
}

#[derive(Debug, Clone, Copy)]
struct MeterStall {
    stall: Stall,
    /// Caused mostly by the hypervisor.
    stolen: bool,
    /// Caused mostly by the hypervisor or by something that the kernel does not report.
    unexplained: bool,
}

impl Meters {
    /// The number of meters, whether they stalled or not: each has a log.
    pub(crate) fn of(observed: &Observed) -> Meters {
        let count = observed.logs.keys().filter(|log| log.starts_with("hiccup-cpu")).count().max(1);
        Meters { count, stalls_by_meter: BTreeMap::new() }
    }

    /// Adds the stalls of a line, except those in which the meter itself was stopped.
    pub(crate) fn add(&mut self, fields: &Value, zero: u64) {
        let stalls = fields.get("stalls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for stall in stalls {
            let of = |name: &str| stall.pointer(name).and_then(Value::as_u64);
            let cause = |name: &str| of(&format!("/causes_ns/{name}")).unwrap_or(0);
            let length = of("/length_ns").unwrap_or(0);
            if cause("stopped") > length / 2 || length == 0 {
                continue;
            }
            let from = zero.saturating_add(of("/at_ns").unwrap_or(0));
            self.stalls_by_meter.entry(of("/cpu")).or_default().push(MeterStall {
                stall: Stall { from, to: from.saturating_add(length) },
                stolen: cause("stolen") > length / 2,
                unexplained: cause("stolen").saturating_add(cause("unknown")) > length / 2,
            });
        }
    }

    /// When all meters were stalled, each for a reason for which `counts` is true.
    fn at_once(&self, counts: impl Fn(&MeterStall) -> bool) -> Vec<Stall> {
        if self.stalls_by_meter.len() < self.count {
            return Vec::new();
        }
        let of_meter = |stalls: &Vec<MeterStall>| {
            merged(stalls.iter().filter(|stall| counts(stall)).map(|stall| stall.stall).collect())
        };
        self.stalls_by_meter.values().map(of_meter).reduce(|all, one| common(&all, &one)).unwrap_or_default()
    }
}

/// The intersection of both lists.
fn common(one: &[Stall], other: &[Stall]) -> Vec<Stall> {
    let both = |stall: &Stall| {
        let (from, to) = (stall.from, stall.to);
        let cut = move |other: &Stall| Stall { from: other.from.max(from), to: other.to.min(to) };
        within(other, from, to).map(cut)
    };
    one.iter().flat_map(both).collect()
}

/// The union, in order and without overlap.
pub(crate) fn merged(mut stalls: Vec<Stall>) -> Vec<Stall> {
    stalls.sort_by_key(|stall| (stall.from, stall.to));
    let mut merged: Vec<Stall> = Vec::with_capacity(stalls.len());
    for stall in stalls {
        match merged.last_mut() {
            Some(last) if stall.from < last.to => last.to = last.to.max(stall.to),
            _ => merged.push(stall),
        }
    }
    merged
}

/// The stalls that overlap `from..to`.
pub(crate) fn within(stalls: &[Stall], from: u64, to: u64) -> impl Iterator<Item = &Stall> {
    let first = stalls.partition_point(|stall| stall.to <= from);
    stalls[first..].iter().take_while(move |stall| stall.from < to)
}

/// How much of `from..to` they cover.
pub(crate) fn overlap(stalls: &[Stall], from: u64, to: u64) -> u64 {
    within(stalls, from, to).map(|stall| stall.to.min(to) - stall.from.max(from)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stalls(count: usize, line: &Value) -> Stalls {
        let mut meters = Meters { count, stalls_by_meter: BTreeMap::new() };
        meters.add(line, 1_000);
        let mut stalls = Stalls::default();
        stalls.add(&meters);
        stalls
    }

    fn spans(stalls: &[Stall]) -> Vec<(u64, u64)> {
        stalls.iter().map(|stall| (stall.from, stall.to)).collect()
    }

    /// If this fails, a program that hogs one CPU excuses a client that was late on another.
    #[test]
    fn a_host_stands_still_when_all_its_meters_do() {
        let line = json!({ "stalls": [
            { "at_ns": 100, "length_ns": 50, "cpu": 0, "causes_ns": { "stolen": 50 } },
            { "at_ns": 120, "length_ns": 60, "cpu": 1, "causes_ns": { "unknown": 60 } },
            { "at_ns": 300, "length_ns": 40, "cpu": 0, "causes_ns": { "run_queue": 40 } },
            { "at_ns": 310, "length_ns": 20, "cpu": 1, "causes_ns": { "stolen": 20 } },
            { "at_ns": 500, "length_ns": 40, "cpu": 1, "causes_ns": { "stopped": 40 } },
            { "at_ns": 600, "length_ns": 10, "cpu": 1, "causes_ns": { "stolen": 10 } },
        ]});
        let both = stalls(2, &line);
        assert_eq!(spans(&both.all), [(1_120, 1_150), (1_310, 1_330)]);
        assert_eq!(spans(&both.by_platform), [(1_120, 1_150)]);
        assert_eq!((overlap(&both.all, 1_130, 1_140), overlap(&both.all, 0, 5_000)), (10, 50));
        // The meter of a third CPU had no stall at all.
        assert_eq!(stalls(3, &line), Stalls::default());
        assert_eq!(stalls(1, &json!({ "stalls": 7 })), Stalls::default());
    }

    /// If this fails, one stolen moment makes a whole wait for a CPU count as the hypervisor's.
    #[test]
    fn stalls_by_the_platform_are_told_apart_from_those_that_they_touch() {
        let line = json!({ "stalls": [
            { "at_ns": 100, "length_ns": 50, "causes_ns": { "stolen": 50 } },
            { "at_ns": 120, "length_ns": 60, "causes_ns": { "run_queue": 60 } },
            { "at_ns": 600, "length_ns": 10, "causes_ns": { "unknown": 10 } },
        ]});
        let one = stalls(1, &line);
        assert_eq!(spans(&one.all), [(1_100, 1_180), (1_600, 1_610)]);
        // With a single meter, what the kernel does not report may be an interrupt of its CPU.
        assert_eq!(spans(&one.by_platform), [(1_100, 1_150)]);
    }
}
