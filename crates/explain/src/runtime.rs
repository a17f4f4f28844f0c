//! When the JVM of a server was stalled, according to its own record.

use std::collections::BTreeMap;

use record::Observed;
use record::observation::ObservationBody;
use record::observation::jvm::Pause;
use serde::Serialize;
use units::Nanos;
use units::count;

use crate::stalls::Stall;

/// What a record of a JVM tells of the client's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    pub pid: Option<u32>,
    /// Its name and version.
    pub vm: String,
    pub pauses: u64,
    pub paused_ns: u64,
    pub longest_ns: u64,
    /// By what the JVM says of them.
    pub causes_ns: BTreeMap<String, u64>,
    /// On the client's clock, in order; they do not overlap.
    #[serde(skip)]
    stretches: Vec<(Stall, String)>,
}

impl Runtime {
    /// The part of a JVM's record within `from..to`; `None` if it is not the record of a JVM.
    pub(crate) fn of(observed: &Observed, zero: u64, (from, to): (u64, u64)) -> Option<Runtime> {
        let ObservationBody::Jvm(results) = &observed.document.body else { return None };
        let pauses = observed.events.iter().filter_map(|event| event.pause.as_ref());
        let mut stretches: Vec<_> = pauses
            .map(|pause| (stretch(pause, zero), cause(pause)))
            .filter(|(pause, _)| pause.from < pause.to && pause.from < to && pause.to > from)
            .collect();
        stretches.sort_by_key(|(pause, _)| (pause.from, pause.to));
        // A JVM has one stall at a time; an untrusted record may contain overlapping ones.
        let mut last = 0;
        stretches.retain(|(pause, _)| {
            let is_after = pause.from >= last;
            last = pause.to.max(last);
            is_after
        });
        let mut causes_ns = BTreeMap::new();
        for (pause, cause) in &stretches {
            let sum: &mut u64 = causes_ns.entry(cause.clone()).or_default();
            *sum = sum.saturating_add(pause.to - pause.from);
        }
        let lengths = || stretches.iter().map(|(pause, _)| pause.to - pause.from);
        Some(Runtime {
            pid: observed.document.host.pid,
            vm: format!("{} {}", results.vm, results.java_version),
            pauses: stretches.len() as u64,
            paused_ns: lengths().fold(0, u64::saturating_add),
            longest_ns: lengths().max().unwrap_or(0),
            causes_ns,
            stretches,
        })
    }

    /// Whether it may have served a request: the process that did is this one, or unknown.
    pub(crate) fn serves(&self, pid: Option<u32>) -> bool {
        pid.is_none() || self.pid.is_none() || self.pid == pid
    }

    /// The pauses that overlap `from..to`.
    pub(crate) fn during(&self, from: u64, to: u64) -> &[(Stall, String)] {
        let first = self.stretches.partition_point(|(pause, _)| pause.to <= from);
        let after = self.stretches.partition_point(|(pause, _)| pause.from < to);
        &self.stretches[first..after.max(first)]
    }

    /// When and why it was stalled, without a full stop.
    pub(crate) fn summary(&self) -> String {
        let mut causes: Vec<_> = self.causes_ns.iter().collect();
        causes.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
        let causes = causes.iter().take(MOST_CAUSES).map(|(cause, ns)| format!("{cause} {}", Nanos(**ns)));
        let causes: Vec<_> = causes.collect();
        let who = self.pid.map_or_else(|| self.vm.clone(), |pid| format!("pid {pid}"));
        match self.pauses {
            0 => format!("the JVM ({who}) never stood still"),
            times => format!(
                "the JVM ({who}) stood still {} times for {} in all, at most {}: {}",
                count(times),
                Nanos(self.paused_ns),
                Nanos(self.longest_ns),
                causes.join(", ")
            ),
        }
    }
}

/// Text for pauses that affected requests: `3 pauses of up to 40 ms, most by G1 Evacuation Pause`.
pub(crate) fn met(pauses: &BTreeMap<(u64, u64), String>) -> Option<String> {
    let longest = pauses.keys().map(|(from, to)| to - from).max()?;
    let mut by_cause: BTreeMap<&str, u64> = BTreeMap::new();
    for ((from, to), cause) in pauses {
        let sum = by_cause.entry(cause).or_default();
        *sum = sum.saturating_add(to - from);
    }
    let (most, _) = by_cause.into_iter().max_by_key(|(_, ns)| *ns)?;
    let pauses = match pauses.len() as u64 {
        1 => "1 of its pauses,".to_owned(),
        several => format!("{} of its pauses, of up to", count(several)),
    };
    Some(format!("{pauses} {}, most by {most}", Nanos(longest)))
}

/// Maximum number of causes that are named.
const MOST_CAUSES: usize = 4;

fn stretch(pause: &Pause, zero: u64) -> Stall {
    Stall { from: zero.saturating_add(pause.begin_ns), to: zero.saturating_add(pause.end_ns) }
}

fn cause(pause: &Pause) -> String {
    pause.cause.clone().unwrap_or_else(|| "an unnamed cause".to_owned())
}

/// How much of `from..to` is covered by pauses.
pub(crate) fn overlap(pauses: &[(Stall, String)], from: u64, to: u64) -> u64 {
    pauses.iter().map(|(pause, _)| pause.to.min(to) - pause.from.max(from)).sum()
}
