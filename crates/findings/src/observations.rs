//! Results of the observing verbs, from the histograms that they kept.

use std::collections::BTreeMap;

use record::Durations;
use record::observation::hiccup::Hiccups;
use record::observation::watch::{self, PREEMPTED, RESPONSE, UNDISTURBED, WatchResults};
use stats::quantile_ranks;

use crate::distribution::plain;

/// Sets the distributions in the results of a watch, from its histograms.
pub fn summarize_watch(results: &mut WatchResults, logs: &BTreeMap<String, Durations>) {
    let of = |name: &str| logs.get(name).filter(|durations| !durations.is_empty()).map(|d| plain(Some(d)));
    results.response = Some(plain(logs.get(RESPONSE)));
    results.socket_queue = of(watch::SOCKET_QUEUE);
    results.preempted_response = of(PREEMPTED);
    results.undisturbed_response = of(UNDISTURBED);
    for class in &mut results.classes {
        class.response = of(&watch::class_log(&class.class));
    }
}

/// The tick statistics from histograms; the caller adds the counts of stalls and their causes.
pub fn summarize_hiccups(ticks: &Durations) -> Hiccups {
    let at = |q| {
        let ranks = quantile_ranks(ticks.count(), q)?;
        ticks.at_rank(ranks.estimate).map(|value| value.0)
    };
    Hiccups {
        ticks: ticks.count(),
        max_ns: ticks.max().map(|max| max.0),
        p50_ns: at(0.5),
        p99_ns: at(0.99),
        p99_9_ns: at(0.999),
        p99_99_ns: at(0.9999),
        ..Hiccups::default()
    }
}
