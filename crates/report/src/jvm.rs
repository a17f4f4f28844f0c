//! What a JVM kept of itself: a row a log, and the longest times that it did not run.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};

use record::observation::jvm::{JvmLine, JvmResults};
use record::{Durations, Event, Observed};
use stats::quantile_ranks;
use units::Nanos;

use crate::style::{Style, aligned, wrap};
use findings::quantile_name;
use units::{count, plural};

const COLUMNS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
const NAME: usize = 32;
const COUNT: usize = 9;
const VALUE: usize = 10;
/// Rows of one series, and events of one kind: enough to see whose it is, and no more than a screen.
const MOST: usize = 10;

/// A log of a series with labels is named `SERIES-LABELS`; no series has that sign in its name.
const LABELLED: char = '-';
/// Between what a series is of and its labels.
const OF: &str = ", of ";

/// The whole text. What is called `of` in the record is as its maker wrote it; the reader has escaped it.
///
/// # Errors
///
/// Those of the writer; a line of the series that is none is an error of the kind `InvalidData`.
pub fn jvm_text(
    observed: &Observed,
    results: &JvmResults,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "{}", wrap("", &head(observed, results), style.width))?;
    for fact in &observed.document.missing {
        writeln!(out, "{}", wrap("  not seen: ", &format!("{}: {}", fact.what, fact.why), style.width))?;
    }
    series(observed, results, out, style)?;
    unusable(observed, out)?;
    events(&observed.events, out, style)
}

fn head(observed: &Observed, results: &JvmResults) -> String {
    let document = &observed.document;
    let mut parts = vec![format!("{} {}", results.vm, results.java_version)];
    parts.extend(results.collectors.iter().cloned());
    parts.extend(document.host.pid.map(|pid| format!("pid {pid}")));
    let elapsed = document.time.elapsed_ns.map_or_else(String::new, |ns| format!(", for {}", Nanos(ns)));
    parts.push(format!("from {}{elapsed}", document.time.started));
    parts.join(", ")
}

/// Those of one meaning under one name: two makers may call different times the same.
fn series(observed: &Observed, results: &JvmResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let mut all: BTreeMap<(&str, &str), Vec<Row<'_>>> = BTreeMap::new();
    for (log, durations) in observed.logs.iter().filter(|(_, durations)| !durations.is_empty()) {
        let of = results.series.get(log).map_or("", String::as_str);
        let (meaning, label) = of.split_once(OF).unwrap_or((of, ""));
        let (name, rest) = log.split_once(LABELLED).unwrap_or((log, ""));
        let label = if label.is_empty() { rest } else { label };
        all.entry((name, meaning)).or_default().push(Row { label, durations });
    }
    if all.is_empty() {
        return writeln!(out, "\nno duration was recorded");
    }
    writeln!(out, "\n{}", style.faint(titles().trim_end()))?;
    for ((name, meaning), mut rows) in all {
        rows.sort_by_key(|row| Reverse(row.durations.sum_ns()));
        let is_alone = rows.len() == 1 && rows[0].label.is_empty();
        if is_alone {
            rows[0].tell(&style.strong(format!("{name:NAME$}")), out)?;
        } else {
            writeln!(out, "{}", style.strong(name))?;
        }
        if !meaning.is_empty() {
            writeln!(out, "{}", style.faint(wrap("  ", meaning, style.width)))?;
        }
        for row in rows.iter().take(MOST).filter(|_| !is_alone) {
            row.labelled(out)?;
        }
        rest(rows.get(MOST..).unwrap_or_default(), out)?;
    }
    Ok(())
}

fn titles() -> String {
    let quantiles = COLUMNS.map(quantile_name).into_iter().chain(["max".to_owned()]);
    let titles = ["sum".to_owned()].into_iter().chain(quantiles);
    // A value's number ends where its unit begins.
    let titles: String = titles.map(|title| format!("{title:>width$}   ", width = VALUE - 3)).collect();
    format!("{:NAME$}{:>COUNT$}{titles}", "", "count")
}

/// What one log holds.
struct Row<'a> {
    label: &'a str,
    durations: &'a Durations,
}

impl Row<'_> {
    /// A label that is longer than its column has a line of its own.
    fn labelled(&self, out: &mut dyn Write) -> io::Result<()> {
        let label = format!("  {}", if self.label.is_empty() { "(without a label)" } else { self.label });
        if label.chars().count() < NAME {
            return self.tell(&format!("{label:NAME$}"), out);
        }
        writeln!(out, "{label}")?;
        self.tell(&format!("{:NAME$}", ""), out)
    }

    fn tell(&self, head: &str, out: &mut dyn Write) -> io::Result<()> {
        let durations = self.durations;
        let at = |q| match quantile_ranks(durations.count(), q) {
            Some(ranks) => durations.at_rank(ranks.estimate).map_or_else(String::new, aligned),
            None => "too few ".to_owned(),
        };
        let max = durations.max().map_or_else(String::new, aligned);
        let values = [aligned(sum([self]))].into_iter().chain(COLUMNS.map(at)).chain([max]);
        let values: String = values.map(|value| format!("{value:>VALUE$}")).collect();
        writeln!(out, "{}", format!("{head}{:>COUNT$}{values}", count(durations.count())).trim_end())
    }
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a Row<'a>>) -> Nanos {
    let sum = rows.into_iter().map(|row| row.durations.sum_ns()).fold(0, u128::saturating_add);
    Nanos(u64::try_from(sum).unwrap_or(u64::MAX))
}

fn rest(rows: &[Row<'_>], out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let number = count(rows.iter().map(|row| row.durations.count()).fold(0, u64::saturating_add));
    writeln!(out, "  and {} more, with {number} of {} in all", count(rows.len() as u64), sum(rows))
}

fn unusable(observed: &Observed, out: &mut dyn Write) -> io::Result<()> {
    let mut all = BTreeMap::<String, u64>::new();
    for line in &observed.lines {
        let line: JvmLine = line.fields().map_err(|damage| io::Error::new(ErrorKind::InvalidData, damage))?;
        for (log, number) in line.unusable {
            let sum = all.entry(log).or_default();
            *sum = sum.saturating_add(number);
        }
    }
    for (log, number) in all {
        writeln!(out, "{log}: {} more had no begin or end that can be believed", count(number))?;
    }
    Ok(())
}

/// How long nothing ran; `None` where an event tells of something else.
fn length(event: &Event) -> Option<u64> {
    let paused = event.pause.as_ref().map(|pause| pause.end_ns.saturating_sub(pause.begin_ns));
    paused.or(event.hiccup.as_ref().map(|hiccup| hiccup.length_ns))
}

/// By their kinds, of which a stranger's record may have any number.
fn events(all: &[Event], out: &mut dyn Write, style: Style) -> io::Result<()> {
    let mut kinds = BTreeMap::<&str, Vec<&Event>>::new();
    for event in all {
        kinds.entry(&event.kind).or_default().push(event);
    }
    for (kind, events) in kinds.iter_mut().take(MOST) {
        of_kind(kind, events, out, style)?;
    }
    let further = kinds.values().skip(MOST).map(|events| events.len() as u64).sum();
    if further > 0 {
        writeln!(out, "\nand {} of other kinds", plural(further, "event"))?;
    }
    Ok(())
}

/// The longest where they have a length, else the first; in the order of time.
fn of_kind(kind: &str, told: &mut Vec<&Event>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let number = told.len();
    let have_lengths = told.iter().all(|event| length(event).is_some());
    told.sort_by_key(|event| (Reverse(length(event)), event.at_ns));
    told.truncate(MOST);
    told.sort_by_key(|event| event.at_ns);
    let which = match (number > MOST, have_lengths) {
        (false, _) => String::new(),
        (true, true) => format!(", the longest {MOST}"),
        (true, false) => format!(", the first {MOST}"),
    };
    writeln!(out, "\n{}", style.strong(format!("{}{which}", plural(number as u64, kind))))?;
    for event in told.iter() {
        let head = format!("{:>10}  ", Nanos(event.at_ns).to_string());
        writeln!(out, "{}", wrap(&head, &event.text, style.width))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::{Expect, expect};
    use record::observation::ObservationBody;
    use record::observation::jvm::{Hiccup, Pause};
    use record::read_observation;

    use super::*;

    /// A record as Java writes it.
    fn golden() -> Observed {
        read_observation(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats/golden/jvm")).unwrap()
    }

    #[track_caller]
    fn check(observed: &Observed, expected: &Expect) {
        let ObservationBody::Jvm(results) = &observed.document.body else { panic!("no record of a JVM") };
        let mut text = Vec::new();
        jvm_text(observed, results, &mut text, Style::PLAIN).unwrap();
        // A first line at the edge: what all lines are indented by is no part of an expected text.
        expected.assert_eq(&format!("text:\n{}", String::from_utf8(text).unwrap()));
    }

    fn durations(us: impl IntoIterator<Item = u64>) -> Durations {
        let mut durations = Durations::new();
        us.into_iter().for_each(|us| durations.record(Nanos::from_micros(us)));
        durations
    }

    fn with(logs: Vec<(&str, &str, Durations)>) -> Observed {
        let mut observed = golden();
        (observed.logs, observed.lines, observed.events) = (BTreeMap::new(), Vec::new(), Vec::new());
        let ObservationBody::Jvm(results) = &mut observed.document.body else { panic!("no record of a JVM") };
        results.series.clear();
        for (log, of, durations) in logs {
            results.series.insert(log.to_owned(), of.to_owned());
            observed.logs.insert(log.to_owned(), durations);
        }
        observed
    }

    #[test]
    fn a_record_of_java_is_told_whole() {
        check(
            &golden(),
            &expect![[r#"
                text:
                OpenJDK 64-Bit Server VM 17.0.15, G1 Young Generation, G1 Old Generation, pid 4711, from
                2026-01-31T12:00:00.250Z, for 2.70 s

                                                    count    sum       p50       p90       p99     p99.9       max
                response                             3001       3 h    502 us    901 us    991 us  too few        1 h
                  of GET /items
                wait                                  300   44.9 us    149 ns    269 ns  too few   too few     299 ns
                  for a connection
                response: 2 more had no begin or end that can be believed

                1 hiccup
                    1.50 s  hiccup of 4.0 ms: safepoint 3.0 ms, timer 1.0 ms

                1 note
                    1.20 s  what "people" read

                1 pause
                    1.50 s  stood still for 3.000 ms: G1 Evacuation Pause
            "#]],
        );
    }

    #[test]
    fn labels_stand_under_their_series_those_that_took_most_first() {
        let mut logs = vec![
            ("jvm.pause", "each pause", durations([7_200])),
            ("jvm.hiccup.part-run_queue", "a part, of run_queue", durations((0..2_000).map(|n| n / 10))),
            ("jvm.hiccup.part-safepoint", "a part, of safepoint", durations([900_000])),
            ("use-a_b", "having one, of a pool whose name is longer than a column", durations([5])),
        ];
        let many: Vec<String> = (0..13).map(|n| format!("wait-pool{n}")).collect();
        logs.extend(many.iter().map(|log| (log.as_str(), "", durations([1, 1]))));
        check(
            &with(logs),
            &expect![[r#"
            text:
            OpenJDK 64-Bit Server VM 17.0.15, G1 Young Generation, G1 Old Generation, pid 4711, from
            2026-01-31T12:00:00.250Z, for 2.70 s

                                                count    sum       p50       p90       p99     p99.9       max
            jvm.hiccup.part
              a part
              safepoint                             1    900 ms  too few   too few   too few   too few     900 ms
              run_queue                          2000    199 ms   99.0 us    179 us    197 us  too few     199 us
            jvm.pause                               1   7.20 ms  too few   too few   too few   too few    7.20 ms
              each pause
            use
              having one
              a pool whose name is longer than a column
                                                    1   5.00 us  too few   too few   too few   too few    5.00 us
            wait
              pool0                                 2   2.00 us  too few   too few   too few   too few    1.00 us
              pool1                                 2   2.00 us  too few   too few   too few   too few    1.00 us
              pool10                                2   2.00 us  too few   too few   too few   too few    1.00 us
              pool11                                2   2.00 us  too few   too few   too few   too few    1.00 us
              pool12                                2   2.00 us  too few   too few   too few   too few    1.00 us
              pool2                                 2   2.00 us  too few   too few   too few   too few    1.00 us
              pool3                                 2   2.00 us  too few   too few   too few   too few    1.00 us
              pool4                                 2   2.00 us  too few   too few   too few   too few    1.00 us
              pool5                                 2   2.00 us  too few   too few   too few   too few    1.00 us
              pool6                                 2   2.00 us  too few   too few   too few   too few    1.00 us
              and 3 more, with 6 of 6.00 us in all
        "#]],
        );
    }

    #[test]
    fn of_many_events_the_longest_are_told_in_their_order() {
        let mut observed = with(Vec::new());
        let event = |at_ns: u64, kind: &str| Event::new(at_ns, kind, format!("{kind} at {at_ns}"));
        observed.events = (0..12_u64)
            .map(|n| {
                let length_ns = if n == 5 || n == 7 { 1 } else { 100 + n };
                let hiccup = Some(Hiccup { length_ns, causes_ns: BTreeMap::new() });
                Event { hiccup, ..event(n, "hiccup") }
            })
            .collect();
        let pause = Some(Pause { begin_ns: 3, end_ns: 4, cause: None });
        observed.events.push(Event { pause, ..event(3, "pause") });
        observed.events.extend((0..11).map(|n| event(n, "note")));
        check(
            &observed,
            &expect![[r#"
                text:
                OpenJDK 64-Bit Server VM 17.0.15, G1 Young Generation, G1 Old Generation, pid 4711, from
                2026-01-31T12:00:00.250Z, for 2.70 s

                no duration was recorded

                12 hiccups, the longest 10
                         0  hiccup at 0
                      1 ns  hiccup at 1
                      2 ns  hiccup at 2
                      3 ns  hiccup at 3
                      4 ns  hiccup at 4
                      6 ns  hiccup at 6
                      8 ns  hiccup at 8
                      9 ns  hiccup at 9
                     10 ns  hiccup at 10
                     11 ns  hiccup at 11

                11 notes, the first 10
                         0  note at 0
                      1 ns  note at 1
                      2 ns  note at 2
                      3 ns  note at 3
                      4 ns  note at 4
                      5 ns  note at 5
                      6 ns  note at 6
                      7 ns  note at 7
                      8 ns  note at 8
                      9 ns  note at 9

                1 pause
                      3 ns  pause at 3
            "#]],
        );
    }
}
