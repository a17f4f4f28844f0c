//! What `hiccup` prints: a line an interval, a line a stall with its causes, and the distributions at the end.

use std::io::{self, Write};

use record::Durations;
use record::observation::hiccup::{Beside, CausesNs, HiccupLine, HiccupResults, Hiccups, Stall};
use units::Nanos;

use crate::style::Style;
use crate::watch::powers;
use units::{count, plural};

/// The names above [`hiccup_line`].
pub fn hiccup_head(style: Style) -> String {
    style.faint(format!("{:>10} {COLUMNS}", "until"))
}

const COLUMNS: &str = "     ticks       p50       p99     p99.9    p99.99       max  >=1ms >=10ms >=100ms";

/// The line of an interval that ends at `end`, and its longest stalls, at most `most`.
pub fn hiccup_line(end: Nanos, line: &HiccupLine, most: usize) -> String {
    let mut text = format!("{:>10} {}\n", end.to_string(), row(&line.saw));
    for stall in line.stalls.iter().take(most) {
        text.push_str(&format!("{:>10}   {}\n", "", stall_text(stall)));
    }
    let told = line.stalls.len().min(most) as u64;
    if line.saw.stalls > told {
        text.push_str(&format!("{:>10}   and {} more, shorter\n", "", count(line.saw.stalls - told)));
    }
    text
}

fn row(saw: &Hiccups) -> String {
    // Too few ticks for a percentile is not a zero.
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| Nanos(ns).to_string());
    format!(
        "{:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6} {:>7}",
        count(saw.ticks),
        time(saw.p50_ns),
        time(saw.p99_ns),
        time(saw.p99_9_ns),
        time(saw.p99_99_ns),
        time(saw.max_ns),
        count(saw.over_1ms),
        count(saw.over_10ms),
        count(saw.over_100ms)
    )
}

fn stall_text(stall: &Stall) -> String {
    let cpu = stall.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    let at = stall.at_ns as f64 / 1e9;
    let pressure = stall
        .cpu_pressure_ns
        .filter(|&ns| ns > 0)
        .map_or_else(String::new, |ns| format!("; somebody waited for a CPU for {}", Nanos(ns)));
    format!(
        "stall at {at:.6} s{cpu}: {} = {}{pressure}",
        Nanos(stall.length_ns),
        causes_text(&stall.causes_ns)
    )
}

/// `40.0 ms run queue + 2.1 ms unknown`: what there is of them.
fn causes_text(causes: &CausesNs) -> String {
    let told: Vec<String> = causes
        .named()
        .into_iter()
        .filter(|&(_, ns)| ns > 0)
        .map(|(name, ns)| format!("{} {name}", Nanos(ns)))
        .collect();
    if told.is_empty() { "nothing".to_owned() } else { told.join(" + ") }
}

/// The end of a run: the distribution, each meter, why it stalled, and beside what.
pub fn hiccup_text(
    results: &HiccupResults,
    ticks: &Durations,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "how late a tick each {} was (all meters)", Nanos(results.resolution_ns))?;
    powers::draw(ticks, out, style)?;
    writeln!(out, "\n{:>10} {COLUMNS}", "")?;
    for meter in &results.meters {
        let name = meter.cpu.map_or_else(|| "unbound".to_owned(), |cpu| format!("CPU {cpu}"));
        writeln!(out, "{name:>10} {}", row(&meter.saw))?;
    }
    if results.meters.len() > 1 {
        writeln!(out, "{:>10} {}", "all", row(&results.all))?;
    }
    why(results, out)?;
    match &results.beside {
        Some(beside) => compare(beside, &results.all, out),
        None => Ok(()),
    }
}

fn why(results: &HiccupResults, out: &mut dyn Write) -> io::Result<()> {
    let threshold = Nanos(results.threshold_ns).written();
    if results.all.stalls == 0 {
        return writeln!(out, "\nno stall of {threshold} or more");
    }
    let stalls = plural(results.all.stalls, "stall");
    writeln!(out, "\n{stalls} of {threshold} or more, made of {}", causes_text(&results.all.causes_ns))?;
    for (name, told) in [
        ("run-queue wait", results.all.causes_ns.run_queue),
        ("throttling", results.all.causes_ns.throttled),
        ("stolen time", results.all.causes_ns.stolen),
    ] {
        if told.is_none() {
            writeln!(out, "  the kernel does not tell {name}: where there was any, it is in unknown")?;
        }
    }
    Ok(())
}

fn compare(beside: &Beside, with: &Hiccups, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{:>10} {COLUMNS}", "")?;
    writeln!(out, "{:>10} {}", "idle", row(&beside.idle))?;
    writeln!(out, "{:>10} {}", "with it", row(with))?;
    let command = record::escape_text(&beside.command.join(" "));
    let ran = beside.until_ns.map(|until| until.saturating_sub(beside.from_ns));
    let ran = ran.map_or_else(String::new, |ran| format!(" for {}", Nanos(ran)));
    let used = beside.cpu_ns.map_or_else(String::new, |cpu| format!(", used {} of CPU", Nanos(cpu)));
    let code = beside.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
    writeln!(out, "`{command}` ran{ran}{used}{code}")?;
    writeln!(out, "{}", difference(&beside.idle, with))
}

/// What the command changed, by the percentiles that both can carry.
fn difference(idle: &Hiccups, with: &Hiccups) -> String {
    let both = [
        ("p50", idle.p50_ns, with.p50_ns),
        ("p99", idle.p99_ns, with.p99_ns),
        ("p99.9", idle.p99_9_ns, with.p99_9_ns),
    ];
    let told: Vec<String> = both
        .into_iter()
        .filter_map(|(name, before, after)| Some((name, before?, after?)))
        .map(|(name, before, after)| format!("{name} {}", change(before, after)))
        .collect();
    if told.is_empty() {
        return "too few ticks to compare with the idle time before it; raise --baseline".to_owned();
    }
    format!("against the idle host before it: {}", told.join(", "))
}

fn change(before: u64, after: u64) -> String {
    let (sign, by) = if after < before { ("-", before - after) } else { ("+", after - before) };
    format!("{sign}{}", Nanos(by))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

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
        // A first line at the edge: what all lines are indented by is no part of an expected text.
        expected.assert_eq(&format!("line:\n{text}"));
    }

    #[test]
    fn a_line_tells_what_the_sample_can_carry_and_the_longest_stalls() {
        let (mut saw, _) = saw(&[50; 1_000]);
        (saw.stalls, saw.over_1ms, saw.over_10ms) = (3, 3, 1);
        let line = HiccupLine { saw, stalls: vec![stall()], cpu_pressure_ns: None };
        let text = hiccup_line(Nanos::from_secs(2), &line, 5);
        check(
            &format!("{}\n{text}", hiccup_head(Style::PLAIN)),
            &expect![[r#"
                line:
                     until      ticks       p50       p99     p99.9    p99.99       max  >=1ms >=10ms >=100ms
                    2.00 s       1000   50.0 us   50.0 us         -         -   50.0 us      3      1       0
                             stall at 1.234568 s on CPU 1: 42.1 ms = 40.0 ms run queue + 2.10 ms unknown; somebody waited for a CPU for 41.0 ms
                             and 2 more, shorter
            "#]],
        );
    }

    #[test]
    fn the_end_names_the_causes_and_what_a_command_changed() {
        let (idle, _) = saw(&[50; 1_000]);
        let (mut all, ticks) = saw(&[&[60; 990][..], &[42_100; 10]].concat());
        (all.stalls, all.over_1ms, all.over_10ms, all.causes_ns) = (1, 1, 1, stall().causes_ns);
        let beside = Beside {
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
        let mut text = Vec::new();
        hiccup_text(&results, &ticks, &mut text, Style::PLAIN).unwrap();
        check(
            &String::from_utf8(text).unwrap(),
            &expect![[r#"
                line:
                how late a tick each 1.00 ms was (all meters)
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

                                ticks       p50       p99     p99.9    p99.99       max  >=1ms >=10ms >=100ms

                1 stall of 10ms or more, made of 40.0 ms run queue + 2.10 ms unknown
                  the kernel does not tell stolen time: where there was any, it is in unknown

                                ticks       p50       p99     p99.9    p99.99       max  >=1ms >=10ms >=100ms
                      idle       1000   50.0 us   50.0 us         -         -   50.0 us      0      0       0
                   with it       1000   60.0 us   60.0 us         -         -   42.1 ms      1      1       0
                `make all` ran for 3.00 s, used 2.90 s of CPU, exit code 0
                against the idle host before it: p50 +10.0 us, p99 +10.0 us
            "#]],
        );
    }
}
