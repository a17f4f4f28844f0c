//! `parallax report` of what an observing verb has recorded: its text again, from the folder alone.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use record::Durations;
use record::document::State;
use record::observation::{CpuResults, ObservationBody, Observed, WatchResults};
use report::{CpuTable, CpuUnit, Style, WatchReport};
use units::Nanos;

use crate::exit::Exit;
use crate::{printed, say, say_notes, terminal};

/// Prints it; with `json` the document alone.
///
/// # Errors
///
/// When the folder holds no such record, or one that cannot be read.
pub fn report(folder: &Path, json: bool, no_color: bool) -> anyhow::Result<Exit> {
    let observed = record::read_observation(folder)?;
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    printed(if json {
        report::json(&observed.document, &mut out)
    } else {
        text(&observed, &mut out, style)
    })?;
    say_notes(&observed.document);
    if observed.document.state == State::Running {
        say("it was cut off, or goes on: its document has no totals yet; series.ndjson has the intervals");
    }
    Ok(Exit::Done)
}

fn text(observed: &Observed, out: &mut dyn Write, style: Style) -> io::Result<()> {
    match &observed.document.body {
        ObservationBody::Watch(results) => watch(observed, results, out, style),
        ObservationBody::Cpu(results) => cpu(results, out, style),
        ObservationBody::Hiccup(results) => {
            let ticks = observed.logs.get("hiccup").cloned().unwrap_or_default();
            report::hiccup_text(results, &ticks, out, style)
        }
        ObservationBody::Disturb(results) => {
            writeln!(
                out,
                "{}: {} of {} done",
                results.what,
                results.episodes - results.skipped,
                results.episodes
            )?;
            events(observed, out)
        }
        ObservationBody::Jvm(results) => report::jvm_text(observed, results, out, style),
        // Has a text of its own, with pictures.
        ObservationBody::Profile(_) => Ok(()),
    }
}

fn watch(observed: &Observed, results: &WatchResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let logs: &BTreeMap<String, Durations> = &observed.logs;
    report::watch_text(&WatchReport { document: &observed.document, results, logs }, out, style)?;
    if results.self_cost.is_empty() {
        return Ok(());
    }
    let elapsed = Nanos(observed.document.time.elapsed_ns.unwrap_or(0));
    report::watch_cost(results, elapsed, out, style)
}

fn cpu(results: &CpuResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    // A record does not keep command lines: they hold secrets.
    let commands = BTreeMap::new();
    let table = CpuTable {
        processes: &results.processes,
        idle: 0,
        cpus: results.cpus,
        tick: Nanos(results.tick_ns),
        unit: CpuUnit::Machine,
        commands: &commands,
    };
    report::cpu_table(&table, out, style)?;
    report::cpu_notes(&table, out, style)
}

fn events(observed: &Observed, out: &mut dyn Write) -> io::Result<()> {
    for event in &observed.events {
        writeln!(out, "  {:>10}  {}", Nanos(event.at_ns).to_string(), event.text)?;
    }
    Ok(())
}
