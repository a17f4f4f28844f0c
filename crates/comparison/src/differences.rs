//! What the records were asked to do, and where that differs: figures of different experiments prove nothing.

use std::collections::{BTreeMap, BTreeSet};

use units::escape_text;

use crate::{Arm, ComparedRun};

/// Something that is not the same in all records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// An option by its long name, `host`, `made by` or `url`.
    pub what: String,
    /// The values of each arm, in the order of the arms.
    pub values: Vec<String>,
    /// Whether the load or the place of measuring differs. A URL may be what is compared.
    pub matters: bool,
}

/// Options that change what is printed, kept or exported, what the run is called, or which process of the server is
/// looked at: not what is sent when.
const NEUTRAL: [&str; 23] = [
    // Compared by itself: it may be what the arms differ in.
    "url",
    "output",
    "block",
    "json",
    "quiet",
    "verbose",
    "no-tui",
    "no-color",
    "record-mode",
    "no-record",
    "requests",
    "fail-if",
    "on-invalid",
    "seed",
    "prometheus",
    "prometheus-linger",
    "otlp",
    "otlp-interval",
    "jsonl",
    "csv",
    "watch-cpu",
    "watch",
    "profile",
];

/// Options that observe the server during a run.
const OBSERVERS: [&str; 2] = ["watch", "profile"];

/// At most so many values of one arm are shown.
const SHOWN: usize = 3;

/// Everything that differs between the arms or within one.
pub(super) fn differences(arms: &[Arm]) -> Vec<Difference> {
    let names: BTreeSet<&str> = arms
        .iter()
        .flat_map(|arm| &arm.runs)
        .flat_map(|run| run.options.keys().map(String::as_str))
        .collect();
    let options = names.into_iter().filter(|name| !NEUTRAL.contains(name)).filter_map(|name| {
        let value = |run: &ComparedRun| run.options.get(name).map(|option| option.value.clone());
        difference(arms, &format!("--{name}"), true, value)
    });
    // Which process was watched does not matter; whether one was does, because that has a cost.
    let observers = OBSERVERS.iter().filter_map(|name| {
        let is_given = |option: &&record::document::EffectiveOption| !option.value.is_empty();
        let state = |run: &ComparedRun| run.options.get(*name).filter(is_given).map(|_| "on".to_owned());
        difference(arms, &format!("--{name}"), true, |run| Some(state(run).unwrap_or_default()))
    });
    let options = options.chain(observers);
    let host = difference(arms, "host", true, |run| run.host.clone());
    let tool = difference(arms, "made by", true, |run| Some(run.tool.clone()));
    let url = difference(arms, "url", false, |run| run.url.clone());
    let mut found: Vec<Difference> = [host, tool, url].into_iter().flatten().chain(options).collect();
    found.sort_by_key(|difference| !difference.matters);
    found
}

fn difference(
    arms: &[Arm],
    what: &str,
    matters: bool,
    value: impl Fn(&ComparedRun) -> Option<String>,
) -> Option<Difference> {
    let counted = |arm: &Arm| {
        let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
        for run in &arm.runs {
            *counts.entry(value(run)).or_default() += 1;
        }
        counts
    };
    let each: Vec<_> = arms.iter().map(counted).collect();
    let all: BTreeSet<&Option<String>> = each.iter().flat_map(BTreeMap::keys).collect();
    (all.len() > 1).then(|| Difference {
        what: what.to_owned(),
        values: each.iter().map(shown).collect(),
        matters,
    })
}

/// `500/s`, or `500/s (3), 1000/s (2)` for an arm whose records differ.
fn shown(counts: &BTreeMap<Option<String>, usize>) -> String {
    let text = |value: &Option<String>| match value.as_deref() {
        None => "absent".to_owned(),
        Some("") => "off".to_owned(),
        Some(value) => escape_text(value),
    };
    if let [(value, _)] = counts.iter().collect::<Vec<_>>()[..] {
        return text(value);
    }
    let mut parts: Vec<String> =
        counts.iter().take(SHOWN).map(|(value, count)| format!("{} ({count})", text(value))).collect();
    if counts.len() > SHOWN {
        parts.push(format!("{} more", counts.len() - SHOWN));
    }
    parts.join(", ")
}
