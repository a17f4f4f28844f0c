//! Lines and ends of invented hiccup meters.

#[path = "fixture/rendered.rs"]
mod rendered;

use expect_test::{Expect, expect};
use findings::{hiccup_head, hiccup_line};
use record::Durations;
use record::observation::hiccup::{CausesNs, CommandRun, HiccupLine, HiccupResults, Hiccups, Meter, Stall};
use rendered::rendered;
use report::Style;
use units::Nanos;

fn saw(us: &[u64]) -> (Hiccups, Durations) {
    let mut ticks = Durations::default();
    us.iter().for_each(|&us| ticks.record(Nanos::from_micros(us)));
    (findings::summarize_hiccups(&ticks), ticks)
}

fn stall() -> Stall {
    Stall {
        at_ns: 1_234_567_890,
        length_ns: 42_100_000,
        cpu: Some(1),
        causes_ns: CausesNs {
            run_queue: Some(40_000_000),
            throttled: Some(0),
            stolen: None,
            stopped: 0,
            unknown: 2_100_000,
        },
        cpu_pressure_ns: Some(41_000_000),
    }
}

#[track_caller]
fn check(text: &str, expected: &Expect) {
    // A first line at the margin, because the common indentation is removed from an expected text.
    expected.assert_eq(&format!("line:\n{text}"));
}

#[test]
fn a_line_tells_what_the_sample_can_carry_and_the_longest_stalls() {
    let (mut saw, _) = saw(&[50; 1_000]);
    (saw.stalls, saw.over_1ms, saw.over_10ms) = (3, 3, 1);
    let line = HiccupLine { saw, stalls: vec![stall()], cpu_pressure_ns: None };
    let text = hiccup_line(Nanos::from_secs(2), &line, 5);
    check(
        &format!("{}\n{text}", hiccup_head()),
        &expect![[r#"
            line:
                 until   ticks     p50     p99   p99.9  p99.99     max >=1ms >=10ms >=100ms
                2.00 s    1000 50.0 us 50.0 us       -       - 50.0 us     3      1       0
                         stall at 1.234568 s on CPU 1: 42.1 ms = 40.0 ms run queue + 2.10 ms unknown; CPU pressure (PSI some): 41.0 ms
                         and 2 more, shorter
        "#]],
    );
}

/// If this fails, the lines of `hiccup` wrap on a terminal of 80 columns. A minute of a host with 64 CPUs.
#[test]
fn lines_and_tables_fit_80_columns() {
    let (mut all, ticks) = saw(&[&[60; 990][..], &[142_100; 10]].concat());
    (all.ticks, all.over_1ms, all.over_10ms, all.over_100ms) = (3_840_000, 98_765, 9_876, 987);
    let times = [Some(999_000), Some(12_345_678), Some(123_456_789), Some(456_000_000)];
    [all.p50_ns, all.p99_ns, all.p99_9_ns, all.p99_99_ns] = times;
    let line = HiccupLine { saw: all.clone(), ..HiccupLine::default() };
    let results = HiccupResults {
        meters: vec![Meter { cpu: None, saw: all.clone() }, Meter { cpu: Some(63), saw: all.clone() }],
        all,
        ..HiccupResults::default()
    };
    let narrow = Style { width: 80, ..Style::PLAIN };
    let report = rendered(&findings::hiccup_view(&results, &ticks), narrow);
    let live = format!("{}\n{}", hiccup_head(), hiccup_line(Nanos::from_secs(36_000), &line, 0));
    for text in [report, live] {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{text}");
        }
    }
}

#[test]
fn the_end_names_the_causes_and_what_a_command_changed() {
    let (idle, _) = saw(&[50; 1_000]);
    let (mut all, ticks) = saw(&[&[60; 990][..], &[42_100; 10]].concat());
    (all.stalls, all.over_1ms, all.over_10ms, all.causes_ns) = (1, 1, 1, stall().causes_ns);
    let beside = CommandRun {
        command: vec!["make".to_owned(), "all".to_owned()],
        exit_code: Some(0),
        from_ns: 2_000_000_000,
        until_ns: Some(5_000_000_000),
        cpu_ns: Some(2_900_000_000),
        idle,
    };
    let results = HiccupResults {
        resolution_ns: 1_000_000,
        priority: "normal".to_owned(),
        threshold_ns: 10_000_000,
        all,
        meters: Vec::new(),
        beside: Some(beside),
    };
    let text = rendered(&findings::hiccup_view(&results, &ticks), Style::PLAIN);
    check(
        &text,
        &expect![[r#"
            line:
            lateness of ticks, one per 1.00 ms (all meters)
               32.8 us – ████████████████████████████████████████████          990
               65.5 us –                                                         0
                131 us –                                                         0
                262 us –                                                         0
                524 us –                                                         0
               1.05 ms –                                                         0
               2.10 ms –                                                         0
               4.19 ms –                                                         0
               8.39 ms –                                                         0
               16.8 ms –                                                         0
               33.6 ms – ▌                                                      10

                         ticks     p50     p99   p99.9  p99.99     max >=1ms >=10ms >=100ms

            1 stall of 10ms or more, caused by 40.0 ms run queue + 2.10 ms unknown
              the kernel does not report stolen time: any of it is in unknown

                         ticks     p50     p99   p99.9  p99.99     max >=1ms >=10ms >=100ms
                  idle    1000 50.0 us 50.0 us       -       - 50.0 us     0      0       0
               with it    1000 60.0 us 60.0 us       -       - 42.1 ms     1      1       0
            `make all` ran for 3.00 s, used 2.90 s of CPU, exit code 0
            compared with the idle host before it: p50 +10.0 us, p99 +10.0 us
        "#]],
    );
}
