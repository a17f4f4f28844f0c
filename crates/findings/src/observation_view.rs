//! The view of any record of an observing verb.

use std::collections::BTreeMap;
use std::io;

use record::Observed;
use record::observation::{CpuResults, ObservationBody};
use units::Nanos;

use crate::cpu_view::{CpuTable, CpuUnit, cpu_view};
use crate::disturb_view::disturb_view;
use crate::hiccup_view::hiccup_view;
use crate::jvm_view::jvm_view;
use crate::observations::watch_so_far;
use crate::profile_view::profile_view;
use crate::view::View;
use crate::watch_query::WatchQuery;
use crate::watch_view::{WatchRecord, watch_cost, watch_view};

/// The view of a record of `watch`, `cpu`, `hiccup`, `disturb`, `profile` or a JVM. `query` applies to `watch`.
///
/// # Errors
///
/// `InvalidData` for a line of the series that cannot be parsed.
pub fn observation_view(observed: &Observed, query: &WatchQuery) -> io::Result<View> {
    let document = &observed.document;
    Ok(match &document.body {
        ObservationBody::Watch(results) if observed.is_cut_off() && !observed.lines.is_empty() => {
            let end = observed.lines.last().map(|line| line.start.saturating_add(line.length).0);
            let mut document = document.clone();
            document.time.elapsed_ns = end;
            let results = &watch_so_far(observed, results)?;
            watch_view(&WatchRecord { document: &document, results, logs: &observed.logs, query })
        }
        ObservationBody::Watch(results) => {
            let mut view = watch_view(&WatchRecord { document, results, logs: &observed.logs, query });
            if !results.self_cost.is_empty() {
                view.sections.push(watch_cost(results, Nanos(document.time.elapsed_ns.unwrap_or(0))));
            }
            view
        }
        ObservationBody::Cpu(results) => cpu(results),
        ObservationBody::Hiccup(results) => {
            hiccup_view(results, &observed.logs.get("hiccup").cloned().unwrap_or_default())
        }
        ObservationBody::Disturb(results) => disturb_view(observed, results),
        ObservationBody::Jvm(results) => jvm_view(observed, results)?,
        ObservationBody::Profile(results) => profile_view(document, results),
    })
}

fn cpu(results: &CpuResults) -> View {
    // A record does not keep command lines: they hold secrets.
    let commands = BTreeMap::new();
    cpu_view(&CpuTable {
        processes: &results.processes,
        groups: &results.groups,
        idle: 0,
        cpus: results.cpus,
        tick: Nanos(results.tick_ns),
        unit: CpuUnit::Machine,
        commands: &commands,
    })
}
