//! The counters and histograms of a run by name, defined once for all exporters.

use record::{Durations, Interval, KindFigures, Outcome, Phase};

use crate::snapshot::Snapshot;

/// A counter of the whole run: its name without prefix and suffix, what it counts, and its value.
pub(crate) type Counter = (&'static str, &'static str, u64);

pub(crate) fn counters(total: &Interval) -> [Counter; 9] {
    let counts = &total.counts;
    [
        ("scheduled_requests", "Requests that became due.", counts.scheduled),
        ("sent_requests", "Requests whose first byte was handed to the kernel.", counts.sent),
        ("sent_bytes", "Bytes sent.", counts.bytes_sent),
        ("received_bytes", "Bytes received.", counts.bytes_received),
        ("body_bytes", "Bytes of response bodies.", counts.body_bytes),
        ("connections_opened", "Connections opened.", counts.connections_opened),
        (
            "idle_closes",
            "Connections that ended while idle: closed by the peer, or with bytes after a response.",
            counts.idle_closes,
        ),
        ("unstamped_responses", "Ok responses without kernel timestamps.", counts.unstamped),
        ("moved_stamps", "Timestamps moved by over a microsecond to keep their order.", counts.stamps_moved),
    ]
}

/// A family of histograms, distinguished by one label.
pub(crate) struct Family<'a> {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) label: &'static str,
    pub(crate) members: Vec<(&'a str, &'a Durations)>,
}

/// Each target with its name, if a run has several.
pub(crate) fn targets<'a>(snapshot: &Snapshot<'a>) -> impl Iterator<Item = (&'a str, &'a KindFigures)> {
    snapshot.facts.targets.iter().map(String::as_str).zip(snapshot.total.kinds())
}

/// The families that have values. The label of `response` and `service` is empty.
pub(crate) fn families<'a>(snapshot: &Snapshot<'a>) -> Vec<Family<'a>> {
    let total = snapshot.total;
    let phases = Phase::ALL.into_iter().filter_map(|phase| Some((phase.name(), total.phase(phase)?)));
    let failed =
        Outcome::ALL.into_iter().filter_map(|outcome| Some((outcome.name(), total.failed(outcome)?)));
    let of_targets = |name, help, of: fn(&'a KindFigures) -> Option<&'a Durations>| Family {
        name,
        help,
        label: "target",
        members: targets(snapshot).filter_map(|(target, kind)| Some((target, of(kind)?))).collect(),
    };
    let all = [
        Family {
            name: "response",
            help: "Intended start to last byte read, of the ok requests: what a user experiences.",
            label: "",
            members: alone(total.response()),
        },
        Family {
            name: "service",
            help: "First byte sent to last byte arrived, of the ok requests.",
            label: "",
            members: alone(total.service()),
        },
        Family {
            name: "phase",
            help: "One phase of the ok requests that passed through it.",
            label: "phase",
            members: phases.collect(),
        },
        Family {
            name: "failed",
            help: "Age at the end of the requests that did not end ok.",
            label: "outcome",
            members: failed.collect(),
        },
        of_targets(
            "target_response",
            "Intended start to last byte read, of the ok requests of one target.",
            KindFigures::response,
        ),
        of_targets(
            "target_service",
            "First byte sent to last byte arrived, of one target.",
            KindFigures::service,
        ),
        of_targets(
            "target_failed",
            "Age at the end of the failed requests of one target.",
            KindFigures::failed,
        ),
    ];
    all.into_iter().filter(|family| !family.members.is_empty()).collect()
}

fn alone(durations: Option<&Durations>) -> Vec<(&str, &Durations)> {
    durations.map(|durations| ("", durations)).into_iter().collect()
}
