//! The view of a JVM's record: a row for each log, and the longest pauses and hiccups.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use record::observation::jvm::{JvmLine, JvmResults};
use record::{Durations, Event, Observed};
use stats::{needed_samples, quantile_ranks};
use units::Nanos;

use crate::view::{Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, View, phrase};

const COLUMNS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
/// Maximum number of rows per series, and of events per kind, so that a report fits on a screen.
const MOST: usize = 10;

/// A log of a series with labels is named `SERIES-LABELS`; no name of a series contains `-`.
const LABELLED: char = '-';
/// Separates the description of a series from its labels.
const OF: &str = ", of ";

/// The view of a record of a JVM.
///
/// # Errors
///
/// `InvalidData` for a line of the series that cannot be parsed.
pub fn jvm_view(observed: &Observed, results: &JvmResults) -> io::Result<View> {
    let mut view = View::new(Subject::Jvm);
    let mut subject = vec![Block::line(Role::Text, head(observed, results))];
    subject.extend(observed.document.missing.iter().map(|fact| {
        Block::labelled(Role::Text, "not seen:", Phrase::text(format!("{}: {}", fact.what, fact.why)))
    }));
    view.sections.push(Section::new("subject", subject));
    let mut durations = vec![series(observed, results)];
    durations.extend(unusable(observed)?);
    view.sections.push(Section::new("durations", durations));
    view.sections.extend(events(&observed.events));
    Ok(view)
}

fn head(observed: &Observed, results: &JvmResults) -> Phrase {
    let document = &observed.document;
    let mut parts =
        vec![phrase!("{vm} {version}", vm = results.vm.as_str(), version = results.java_version.as_str())];
    parts.extend(results.collectors.iter().map(|name| phrase!("{collector}", collector = name.as_str())));
    parts.extend(document.host.pid.map(|pid| phrase!("pid {pid}", pid = pid.to_string())));
    parts.push(phrase!("from {started}", started = document.time.started.as_str()));
    parts.extend(document.time.elapsed_ns.map(|ns| phrase!("for {elapsed}", elapsed = Nanos(ns))));
    Phrase::join(parts, ", ")
}

/// Logs with the same description are in one group: different libraries may use one name for different durations.
fn series(observed: &Observed, results: &JvmResults) -> Block {
    let mut all: BTreeMap<(&str, &str), Vec<Log<'_>>> = BTreeMap::new();
    for (log, durations) in observed.logs.iter().filter(|(_, durations)| !durations.is_empty()) {
        let of = results.series.get(log).map_or("", String::as_str);
        let (meaning, label) = of.split_once(OF).unwrap_or((of, ""));
        let (name, rest) = log.split_once(LABELLED).unwrap_or((log, ""));
        let label = if label.is_empty() { rest } else { label };
        all.entry((name, meaning)).or_default().push(Log { label, durations });
    }
    if all.is_empty() {
        return Block::line(Role::Line, Phrase::new("no duration was recorded"));
    }
    let mut rows = Vec::new();
    for ((name, meaning), mut logs) in all {
        logs.sort_by_key(|log| Reverse(log.durations.sum_ns()));
        let is_alone = logs.len() == 1 && logs[0].label.is_empty();
        let figures = if is_alone { logs[0].figures() } else { vec![Cell::absent(); COLUMNS.len() + 3] };
        let note = (!meaning.is_empty()).then(|| Phrase::text(meaning));
        rows.push(Row { note, ..Row::key([Cell::from(name)].into_iter().chain(figures).collect()) });
        if is_alone {
            continue;
        }
        rows.extend(logs.iter().take(MOST).map(Log::row));
        let rest = rest(logs.get(MOST..).unwrap_or_default());
        if let Some((last, rest)) = rows.last_mut().zip(rest) {
            last.note = Some(rest);
        }
    }
    let columns = [
        ("series", "", "text", "what was timed; below it, by label"),
        ("count", "count", "count", "how often"),
        ("sum", "sum", "ns", "all of them together"),
        ("p50", "p50", "ns", "median"),
        ("p90", "p90", "ns", "90th percentile"),
        ("p99", "p99", "ns", "99th percentile"),
        ("p99.9", "p99.9", "ns", "99.9th percentile"),
        ("max", "max", "ns", "longest"),
    ];
    Block::Table(Table::new("jvm_series", &columns, rows))
}

/// One log and its labels.
struct Log<'a> {
    label: &'a str,
    durations: &'a Durations,
}

impl Log<'_> {
    fn row(&self) -> Row {
        let label = if self.label.is_empty() { "(without a label)" } else { self.label };
        Row::new([Cell::from(label)].into_iter().chain(self.figures()).collect())
    }

    fn figures(&self) -> Vec<Cell> {
        let durations = self.durations;
        let at = |q| match quantile_ranks(durations.count(), q) {
            Some(ranks) => Cell::ns(durations.at_rank(ranks.estimate).map(|value| value.0)),
            None => Cell::TooFew { needed: needed_samples(q) },
        };
        let mut cells = vec![Value::Count(durations.count()).into(), Cell::from(sum([self]))];
        cells.extend(COLUMNS.map(at));
        cells.push(Cell::ns(durations.max().map(|max| max.0)));
        cells
    }
}

fn sum<'a>(logs: impl IntoIterator<Item = &'a Log<'a>>) -> Nanos {
    let sum = logs.into_iter().map(|log| log.durations.sum_ns()).fold(0, u128::saturating_add);
    Nanos(u64::try_from(sum).unwrap_or(u64::MAX))
}

fn rest(logs: &[Log<'_>]) -> Option<Phrase> {
    let values = logs.iter().map(|log| log.durations.count()).fold(0, u64::saturating_add);
    let rest = phrase!(
        "and {more} more, with {count} of {sum} in all",
        more = Value::Count(logs.len() as u64),
        count = Value::Count(values),
        sum = sum(logs)
    );
    (!logs.is_empty()).then_some(rest)
}

fn unusable(observed: &Observed) -> io::Result<Vec<Block>> {
    let mut all = BTreeMap::<String, u64>::new();
    for line in &observed.lines {
        let line: JvmLine = line.fields().map_err(|damage| io::Error::new(ErrorKind::InvalidData, damage))?;
        for (log, number) in line.unusable {
            let sum = all.entry(log).or_default();
            *sum = sum.saturating_add(number);
        }
    }
    let text = |(log, number)| {
        let count = Value::Count(number);
        phrase!("{log}: {count} more had an invalid duration", log = log, count = count)
    };
    let all: Vec<(String, u64)> = all.into_iter().collect();
    Ok(all.into_iter().map(text).map(|text| Block::line(Role::Line, text)).collect())
}

/// The length of a pause or hiccup; `None` for other events.
fn length(event: &Event) -> Option<u64> {
    let paused = event.pause.as_ref().map(|pause| pause.end_ns.saturating_sub(pause.begin_ns));
    paused.or(event.hiccup.as_ref().map(|hiccup| hiccup.length_ns))
}

/// The events by kind; an untrusted record can have any number of kinds.
fn events(all: &[Event]) -> Vec<Section> {
    let mut kinds = BTreeMap::<&str, Vec<&Event>>::new();
    for event in all {
        kinds.entry(&event.kind).or_default().push(event);
    }
    let further: u64 = kinds.values().skip(MOST).map(|events| events.len() as u64).sum();
    let mut sections: Vec<Section> =
        kinds.iter_mut().take(MOST).map(|(kind, events)| of_kind(kind, events)).collect();
    if further > 0 {
        let text = phrase!("and {further} of other kinds", further = Value::items(further, "event"));
        sections.push(Section::new("further_events", vec![Block::line(Role::Line, text)]));
    }
    sections
}

/// The longest events if they have lengths, otherwise the first; in order of time.
fn of_kind(kind: &str, shown: &mut Vec<&Event>) -> Section {
    let number = shown.len();
    let have_lengths = shown.iter().all(|event| length(event).is_some());
    shown.sort_by_key(|event| (Reverse(length(event)), event.at_ns));
    shown.truncate(MOST);
    shown.sort_by_key(|event| event.at_ns);
    let mut title = phrase!("{events}", events = Value::items(number as u64, kind));
    if number > MOST {
        let which = if have_lengths { ", the longest {most}" } else { ", the first {most}" };
        title = title.then("", phrase!(which, most = Value::Id(MOST as u64)));
    }
    let table = events_table("events", shown.iter().copied());
    Section::new(&format!("events-{kind}"), vec![Block::line(Role::Title, title), Block::Table(table)])
}

/// A row for each event: when, and what.
pub(crate) fn events_table<'a>(id: &str, events: impl Iterator<Item = &'a Event>) -> Table {
    let row = |event: &Event| Row::new(vec![Value::Ns(event.at_ns).into(), event.text.as_str().into()]);
    let columns = [("at", "", "ns", "since the start of the record"), ("text", "", "text", "what happened")];
    Table::new(id, &columns, events.map(row).collect())
}
