//! Results of the observing verbs, from the histograms that they kept.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use record::observation::hiccup::Hiccups;
use record::observation::watch::{
    self, ClassResult, PREEMPTED, RESPONSE, UNDISTURBED, WatchLine, WatchResults, Windows,
};
use record::{Durations, Observed};
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

/// The results of a watch that has none, because it was killed or is in progress: the sums of its series. Statements,
/// preemptors and costs are not in the series.
///
/// # Errors
///
/// `InvalidData` for a line of the series that cannot be parsed.
pub fn watch_so_far(observed: &Observed, results: &WatchResults) -> io::Result<WatchResults> {
    let mut sums = results.clone();
    for line in &observed.lines {
        let line: WatchLine =
            line.fields().map_err(|damage| io::Error::new(ErrorKind::InvalidData, damage))?;
        sums.requests = sums.requests.saturating_add(line.requests);
        sums.preempted = sums.preempted.saturating_add(line.preempted);
        sums.connections = sums.connections.saturating_add(line.connections);
        sums.request_bytes = sums.request_bytes.saturating_add(line.request_bytes);
        sums.response_bytes = sums.response_bytes.saturating_add(line.response_bytes);
        sums.parts_ns.add(&line.parts_ns.into());
        sums.losses.add(&line.losses);
        sums.inexact.add(&line.inexact);
        if let Some(seen) = line.seen_ns {
            // Without its budget and its estimates, which are made at the end.
            let windows = sums.windows.get_or_insert_with(Windows::default);
            windows.in_windows_ns = windows.in_windows_ns.saturating_add(seen);
            windows.windows = windows.windows.saturating_add(line.seen.len() as u64);
        }
        for (class, requests) in line.classes {
            match sums.classes.iter_mut().find(|known| known.class == class) {
                Some(known) => known.requests = known.requests.saturating_add(requests),
                None => sums.classes.push(ClassResult { requests, ..ClassResult::named(class) }),
            }
        }
    }
    summarize_watch(&mut sums, &observed.logs);
    Ok(sums)
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
