//! The view of a host's hiccups: how late ticks were, which meter saw it, and why.

use record::Durations;
use record::observation::hiccup::{CausesNs, CommandRun, HiccupResults, Hiccups};
use units::Nanos;

use crate::histogram::histogram;
use crate::view::{Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, View, phrase};

/// The view of a record of `hiccup`; `ticks` are those of all meters.
pub fn hiccup_view(results: &HiccupResults, ticks: &Durations) -> View {
    let mut view = View::new(Subject::Hiccup);
    let title = phrase!(
        "lateness of ticks, one per {resolution} (all meters)",
        resolution = Nanos(results.resolution_ns)
    );
    let lateness = vec![Block::line(Role::Line, title), Block::Histogram(histogram("ticks", ticks))];
    view.sections.push(Section::new("lateness", lateness));
    let mut rows: Vec<Row> = results
        .meters
        .iter()
        .map(|meter| {
            row(meter.cpu.map_or_else(|| "not pinned".to_owned(), |cpu| format!("CPU {cpu}")), &meter.saw)
        })
        .collect();
    if results.meters.len() > 1 {
        rows.push(row("all".to_owned(), &results.all));
    }
    view.sections.push(Section::new("meters", vec![table(rows)]));
    view.sections.push(Section::new("causes", why(results)));
    view.sections.extend(results.beside.as_ref().map(|beside| compare(beside, &results.all)));
    view
}

fn table(rows: Vec<Row>) -> Block {
    let columns = [
        ("meter", "", "text", "which meter, or when"),
        ("ticks", "ticks", "count", "how many ticks"),
        ("p50", "p50", "ns", "median lateness"),
        ("p99", "p99", "ns", "99th percentile"),
        ("p99.9", "p99.9", "ns", "99.9th percentile"),
        ("p99.99", "p99.99", "ns", "99.99th percentile"),
        ("max", "max", "ns", "latest"),
        ("over_1ms", ">=1ms", "count", "ticks that were at least 1 ms late"),
        ("over_10ms", ">=10ms", "count", "at least 10 ms"),
        ("over_100ms", ">=100ms", "count", "at least 100 ms"),
    ];
    Block::Table(Table::new("hiccups", &columns, rows))
}

fn row(name: String, saw: &Hiccups) -> Row {
    let mut cells = vec![Cell::from(name), Value::Count(saw.ticks).into()];
    cells.extend([saw.p50_ns, saw.p99_ns, saw.p99_9_ns, saw.p99_99_ns, saw.max_ns].map(Cell::ns));
    cells.extend([saw.over_1ms, saw.over_10ms, saw.over_100ms].map(|n| Cell::from(Value::Count(n))));
    Row::new(cells)
}

/// `40.0 ms run queue + 2.1 ms unknown`: the parts that are not zero.
pub(crate) fn causes(causes: &CausesNs) -> Phrase {
    let named = causes.named().into_iter().filter(|&(_, ns)| ns > 0);
    let each = named.map(|(name, ns)| phrase!("{length} {cause}", length = Nanos(ns), cause = name));
    let all: Vec<Phrase> = each.collect();
    if all.is_empty() { Phrase::new("nothing") } else { Phrase::join(all, " + ") }
}

fn why(results: &HiccupResults) -> Vec<Block> {
    let threshold = Nanos(results.threshold_ns).written();
    if results.all.stalls == 0 {
        return vec![Block::line(
            Role::Line,
            phrase!("no stall of {threshold} or more", threshold = threshold),
        )];
    }
    let stalls = Value::items(results.all.stalls, "stall");
    let text = phrase!("{stalls} of {threshold} or more, caused by ", stalls = stalls, threshold = threshold);
    let mut blocks = vec![Block::line(Role::Line, text.then("", causes(&results.all.causes_ns)))];
    for (name, known) in [
        ("run-queue latency", results.all.causes_ns.run_queue),
        ("throttling", results.all.causes_ns.throttled),
        ("stolen time", results.all.causes_ns.stolen),
    ] {
        if known.is_none() {
            let text = phrase!("the kernel does not report {cause}: any of it is in unknown", cause = name);
            blocks.push(Block::line(Role::Text, text));
        }
    }
    blocks
}

fn compare(beside: &CommandRun, with: &Hiccups) -> Section {
    let rows = vec![row("idle".to_owned(), &beside.idle), row("with it".to_owned(), with)];
    let mut text = phrase!("`{command}` ran", command = beside.command.join(" "));
    if let Some(until) = beside.until_ns {
        text = text.then(" for ", phrase!("{ran}", ran = Nanos(until.saturating_sub(beside.from_ns))));
    }
    if let Some(cpu) = beside.cpu_ns {
        text = text.then(", used ", phrase!("{cpu} of CPU", cpu = Nanos(cpu)));
    }
    if let Some(code) = beside.exit_code {
        text = text.then(", exit code ", phrase!("{exit_code}", exit_code = code.to_string()));
    }
    let blocks = vec![
        table(rows),
        Block::line(Role::Line, text),
        Block::line(Role::Line, difference(&beside.idle, with)),
    ];
    Section::new("command", blocks)
}

/// What the command changed, for the percentiles that both samples allow.
fn difference(idle: &Hiccups, with: &Hiccups) -> Phrase {
    let both = [
        ("p50", idle.p50_ns, with.p50_ns),
        ("p99", idle.p99_ns, with.p99_ns),
        ("p99.9", idle.p99_9_ns, with.p99_9_ns),
    ];
    let known = both.into_iter().filter_map(|(name, before, after)| Some((name, before?, after?)));
    let change = |(name, before, after): (&str, u64, u64)| {
        let change = i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(i64::MAX);
        phrase!("{percentile} {change}", percentile = name, change = Value::NsChange(change))
    };
    let all: Vec<Phrase> = known.map(change).collect();
    if all.is_empty() {
        return Phrase::new("too few ticks on the idle host to compare with; raise --baseline");
    }
    Phrase::new("compared with the idle host before it: ").then("", Phrase::join(all, ", "))
}
