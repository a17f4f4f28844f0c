//! Reports on records of a JVM.

#[path = "fixture/rendered.rs"]
mod rendered;

use std::collections::BTreeMap;
use std::path::Path;

use expect_test::{Expect, expect};
use record::observation::ObservationBody;
use record::observation::jvm::{Hiccup, Pause};
use record::{Durations, Event, Observed, read_observation};
use rendered::rendered;
use report::Style;
use units::Nanos;

/// A record as Java writes it.
fn golden() -> Observed {
    read_observation(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats/golden/jvm"))
        .expect("the golden record is read")
}

#[track_caller]
fn check(observed: &Observed, expected: &Expect) {
    let ObservationBody::Jvm(results) = &observed.document.body else { panic!("no record of a JVM") };
    let text = rendered(&findings::jvm_view(observed, results).expect("its lines are read"), Style::PLAIN);
    // A first line at the margin, because the common indentation is removed from an expected text.
    expected.assert_eq(&format!("text:\n{}", text));
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
            response: 2 more had an invalid duration

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
